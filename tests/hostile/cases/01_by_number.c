/* Expected: calls by number whose memory lies in mapped files do what the same calls do elsewhere, whatever stands in the half of a
 * word that the kernel does not look at.
 * @own-data
 * @counter lifted_for_calls 17 */
#include "closed_places.h"
#include <linux/sched.h>
#include <sys/syscall.h>
#include <sys/un.h>

enum { LENGTH = 5000 };

/* In the upper half of a register. */
static const long BEYOND = 1l << 32;

static unsigned char bytes[LENGTH], got[LENGTH];
static mqd_t queue;

static void same(const char *what, const void *there)
{
	if (memcmp(there, bytes, LENGTH))
		printf("%s: other bytes\n", what);
}

/* A list of one part, which lies in a mapping itself. */
static struct iovec *list_of(void *part)
{
	return (void *)put(&(struct iovec) { part, LENGTH }, sizeof(struct iovec));
}

static void lists(void)
{
	int pair[2], file = open("parts", O_RDWR | O_CREAT | O_TRUNC, 0600);
	unsigned char *place;
	expect("SYS_pwritev2", syscall(SYS_pwritev2, file, list_of(put(bytes, LENGTH)), 1l, 0l, 0l, 0), LENGTH);
	expect("pread", pread(file, got, LENGTH, 0), LENGTH);
	same("SYS_pwritev2", got);
	expect("SYS_readv", syscall(SYS_readv, file, list_of(place = room()), 1l), LENGTH);
	same("SYS_readv", place);
	expect("SYS_preadv", syscall(SYS_preadv, file, list_of(place = room()), 1l, 0l, 0l), LENGTH);
	same("SYS_preadv", place);
	expect("SYS_preadv2", syscall(SYS_preadv2, file, list_of(place = room()), 1l, 0l, 0l, 0), LENGTH);
	same("SYS_preadv2", place);
	if (pipe2(pair, O_NONBLOCK))
		fail("pipe2");
	expect("SYS_vmsplice", syscall(SYS_vmsplice, pair[1], list_of(put(bytes, LENGTH)), 1l, 0), LENGTH);
	memset(got, 0, LENGTH);
	expect("read", read(pair[0], got, LENGTH), LENGTH);
	same("SYS_vmsplice", got);
	place = room();
	expect("SYS_process_vm_writev", syscall(SYS_process_vm_writev, getpid(), list_of(put(bytes, LENGTH)), 1l, list_of(place), 1l, 0l),
	       LENGTH);
	same("SYS_process_vm_writev", place);
	/* A kernel that looks at all of the number does not know this one. */
	struct iovec part = { bytes, LENGTH };
	ssize_t wanted = syscall(BEYOND | SYS_writev, pair[1], &part, 1l);
	int known = wanted == LENGTH && read(pair[0], got, LENGTH) == LENGTH;
	errno = PLANTED;
	part.iov_base = put(bytes, LENGTH);
	wanted = syscall(BEYOND | SYS_writev, pair[1], &part, 1l);
	if (known)
		expect("a number of more bits", wanted, LENGTH);
	errno = PLANTED;
	close(pair[0]), close(pair[1]), close(file);
}

static void messages(void)
{
	struct sockaddr_un receiver = { AF_UNIX, "receiver" };
	int in = socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK, 0), out = socket(AF_UNIX, SOCK_DGRAM, 0);
	if (bind(in, (void *)&receiver, sizeof receiver))
		fail("bind");
	void *name = put(&receiver, sizeof receiver);
	expect("SYS_sendto", syscall(SYS_sendto, out, put(bytes, LENGTH), (long)LENGTH, 0l, name, (long)sizeof receiver), LENGTH);
	memset(got, 0, LENGTH);
	expect("recv", recv(in, got, LENGTH, 0), LENGTH);
	same("SYS_sendto", got);
	if (connect(out, (void *)&receiver, sizeof receiver))
		fail("connect");
	struct iovec parts[2] = { { bytes, LENGTH }, { put(bytes, LENGTH), LENGTH } };
	struct mmsghdr both[2] = { { .msg_hdr = { .msg_iov = parts, .msg_iovlen = 1 } },
				   { .msg_hdr = { .msg_iov = parts + 1, .msg_iovlen = 1 } } };
	expect("SYS_sendmmsg", syscall(SYS_sendmmsg, out, both, BEYOND + 2, 0l), 2);
	parts[0].iov_base = got, parts[1].iov_base = room();
	memset(got, 0, LENGTH);
	/* Writable: what is left of it is written there. */
	void *until = room_with(&(struct timespec) { 1000, 0 }, sizeof(struct timespec));
	expect("SYS_recvmmsg", syscall(SYS_recvmmsg, in, both, BEYOND + 2, 0l, until), 2);
	same("SYS_recvmmsg", got);
	same("SYS_recvmmsg into a mapping", parts[1].iov_base);
	close(in), close(out);
}

static void queues(void)
{
	struct timespec until = { 1, 0 };
	expect("SYS_mq_timedsend", syscall(SYS_mq_timedsend, queue, put(bytes, LENGTH), (long)LENGTH, 3l, put(&until, sizeof until)), 0);
	unsigned char *place = room();
	unsigned *priority = (void *)room();
	void *patience = put(&until, sizeof until);
	expect("SYS_mq_timedreceive", syscall(SYS_mq_timedreceive, queue, place, (long)LENGTH, priority, patience), LENGTH);
	same("SYS_mq_timedreceive", place);
	expect("its priority", *priority, 3);
}

/* libc does not look at a new process's arguments. */
static void processes(void)
{
	struct clone_args arguments = { .exit_signal = SIGCHLD };
	int status = -1;
	pid_t child = syscall(SYS_clone3, put(&arguments, sizeof arguments), sizeof arguments);
	if (!child)
		_exit(7);
	expect("SYS_clone3", child > 0, 1);
	expect("waitpid", waitpid(child, &status, 0), child);
	expect("its end", WEXITSTATUS(status), 7);
}

int main(int count, char **arguments)
{
	(void)count;
	open_to_write(arguments);
	for (size_t i = 0; i < LENGTH; i++)
		bytes[i] = i * 31 + (i >> 8);
	if ((queue = new_queue(1, LENGTH)) < 0)
		without_queue("mq_open");
	errno = PLANTED;
	lists();
	rendezvous();
	messages();
	queues();
	processes();
	return 0;
}
