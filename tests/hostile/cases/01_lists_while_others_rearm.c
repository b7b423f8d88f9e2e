/* Expected: a list of buffers, and what else a call is given by address, may lie in a private mapping that is written to there:
 * while other threads read it over and over, so that pages behind them are closed again, no call stops short, and no message is lost.
 * @own-data
 * @counter lifted_for_calls 10 */
#include "hostile.h"
#include <mqueue.h>
#include <stdatomic.h>

enum { LENGTH = 8, COUNT = 200, ROUNDS = 10, READERS = 4, EPOCHS = 8 };

static unsigned char *own;
static atomic_int reading;
static int pair[2];
static mqd_t queue;
static char out[COUNT * LENGTH], in[COUNT * LENGTH];

/* The last one sends: it has all been read between the look at what the kernel is given, and the kernel's own. */
static void *reader(void *argument)
{
	/* Each epoch elsewhere, so that single pages and sentinels come and go. */
	for (size_t epoch = 0; epoch < EPOCHS; epoch++)
		for (size_t at = epoch % 13 * 5 * PAGE; at < file_length; at += (1 + epoch % 3) * MIB / 4)
			(void)((volatile unsigned char *)own)[at];
	if (atomic_fetch_sub(&reading, 1) > 1)
		return argument;
	for (int i = 0; i < COUNT; i++)
		if (send(pair[0], out + i * LENGTH, LENGTH, 0) != LENGTH)
			fail("send");
	return argument;
}

static void expect(const char *what, int round, ssize_t got, ssize_t wanted)
{
	if (got != wanted)
		printf("%s in round %d: %zd instead of %zd (%s)\n", what, round, got, wanted, strerror(errno)), fflush(stdout);
}

static void receive(int round)
{
	/* Behind the first list and the second. */
	unsigned char *place = own + (size_t)round % EPOCHS * 5 * PAGE;
	struct mmsghdr *messages = (struct mmsghdr *)place + 1;
	struct timespec *until = (struct timespec *)(place + MIB / 4) + 1;
	*until = (struct timespec){ .tv_sec = 3600 };
	for (int i = 0; i < COUNT; i++, place += MIB / 4) {
		struct iovec *parts = (struct iovec *)place;
		*parts = (struct iovec){ in + i * LENGTH, LENGTH };
		messages[i] = (struct mmsghdr){ .msg_hdr = { .msg_iov = parts, .msg_iovlen = 1 } };
	}
	memset(in, 0, sizeof in);
	pthread_t threads[READERS];
	reading = READERS;
	for (int i = 0; i < READERS; i++)
		pthread_create(&threads[i], NULL, reader, NULL);
	int got = recvmmsg(pair[1], messages, COUNT, 0, until);
	expect("recvmmsg", round, got, COUNT);
	for (int i = got < 0 ? 0 : got; i < COUNT; i++)
		expect("recv", round, recv(pair[1], in + i * LENGTH, LENGTH, 0), LENGTH);
	expect("what was received", round, memcmp(in, out, sizeof in), 0);
	for (int i = 0; i < READERS; i++)
		pthread_join(threads[i], NULL);
}

/* How long to wait nobody has accessed: it is what the file has there. The priority the kernel writes after it has taken the message. */
static void receive_priority(size_t at)
{
	struct mmsghdr message = { 0 };
	if (recvmmsg(pair[1], &message, 1, MSG_DONTWAIT, (struct timespec *)(own + at + 2 * PAGE)) >= 0 || errno == EFAULT)
		expect("recvmmsg of nothing", at / PAGE, 0, -1);
	unsigned *priority = (unsigned *)(own + at);
	struct timespec *until = (struct timespec *)(own + at + PAGE);
	*until = (struct timespec){ .tv_sec = 1L << 32 };
	if (mq_timedsend(queue, out, LENGTH, 7, until))
		fail("mq_timedsend");
	expect("mq_receive", at / PAGE, mq_receive(queue, in, LENGTH, priority), LENGTH);
	expect("priority", at / PAGE, *priority, 7);
}

int main(int count, char **arguments)
{
	(void)count;
	(void)map_file(arguments, PROT_READ, MAP_SHARED);
	char name[64];
	snprintf(name, sizeof name, "/precache-hostile-%d", getpid());
	struct mq_attr attributes = { .mq_maxmsg = 1, .mq_msgsize = LENGTH };
	queue = mq_open(name, O_RDWR | O_CREAT | O_EXCL, 0600, &attributes);
	if (queue == (mqd_t)-1 || mq_unlink(name) || socketpair(AF_UNIX, SOCK_DGRAM, 0, pair))
		fail("preparation");
	for (unsigned i = 0; i < sizeof out; i++)
		out[i] = i * 7;
	for (int round = 0; round < ROUNDS; round++) {
		/* What is cached already is not watched for long. */
		if (fsync(file_descriptor) || posix_fadvise(file_descriptor, 0, 0, POSIX_FADV_DONTNEED))
			fail("posix_fadvise");
		own = mmap(NULL, file_length, PROT_READ | PROT_WRITE, MAP_PRIVATE, file_descriptor, 0);
		if (own == MAP_FAILED)
			fail("mmap");
		if (round % 2)
			receive(round);
		else
			for (size_t at = 0; at + 3 * PAGE <= file_length; at += 3 * PAGE)
				receive_priority(at);
		munmap(own, file_length);
		if (round == ROUNDS / 2)
			rendezvous();
	}
	puts("done");
	return 0;
}
