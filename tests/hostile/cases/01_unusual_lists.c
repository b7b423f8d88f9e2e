/* Expected: lists that the kernel refuses for their length are not looked at, for they may be shorter than the program says;
 * of others it takes 32 bits of the length, and as many messages as it takes itself; lists and messages at odd addresses
 * transfer every byte.
 * @counter lifted_for_calls 14 */
#include "hostile.h"
#include <aio.h>
#include <sys/syscall.h>

enum { LENGTH = 5000 };

static volatile unsigned char *base;
static int in, out;

static void tell(const char *what, ssize_t got)
{
	printf("%s: %zd (%s)\n", what, got, got < 0 ? strerror(errno) : "");
}

static void too_long(void)
{
	char *memory = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (memory == MAP_FAILED || mprotect(memory + PAGE, PAGE, PROT_NONE))
		fail("mmap");
	struct iovec *list = (struct iovec *)(memory + PAGE) - 1, part = { memory, 4 };
	*list = part;
	tell("writev by number", syscall(SYS_writev, out, list, -1L));
	tell("writev", writev(out, list, 2000));
	tell("preadv", preadv(file_descriptor, list, 1025, 0));
	tell("process_vm_readv", process_vm_readv(getpid(), &part, 1, list, 2000, 0));
	struct msghdr message = { .msg_iov = list, .msg_iovlen = 2000 };
	tell("sendmsg", sendmsg(out, &message, 0));
}

/* A copy at an odd address. */
static void *odd(const void *what, size_t length)
{
	char *copy = malloc(length + 1);
	return memcpy(copy + 1, what, length);
}

static void expect(const char *what, size_t at)
{
	static char got[LENGTH + 1], wanted[LENGTH];
	tell(what, recv(in, got, sizeof got, MSG_DONTWAIT));
	if (pread(file_descriptor, wanted, LENGTH, at) != LENGTH || memcmp(got, wanted, LENGTH))
		printf("%s: other bytes\n", what);
}

static void unaligned(size_t at)
{
	struct iovec part = { (char *)base + at, LENGTH };
	tell("writev", writev(out, odd(&part, sizeof part), 1));
	expect("writev", at);
	part.iov_base += 3 * MIB;
	struct msghdr message = { .msg_iov = odd(&part, sizeof part), .msg_iovlen = 1 };
	tell("sendmsg", sendmsg(out, odd(&message, sizeof message), 0));
	expect("sendmsg", at + 3 * MIB);
	part.iov_base += 3 * MIB;
	struct mmsghdr many = { .msg_hdr = { .msg_iov = odd(&part, sizeof part), .msg_iovlen = 1 } };
	tell("sendmmsg", sendmmsg(out, odd(&many, sizeof many), 1, 0));
	expect("sendmmsg", at + 6 * MIB);
}

/* With a length whose lower half is what counts. */
static void beyond_32_bits(size_t at)
{
	char got[LENGTH];
	struct iovec part = { (char *)base + at, LENGTH }, to = { got, LENGTH };
	tell("writev by number", syscall(SYS_writev, out, &part, (1L << 32) + 1));
	expect("writev by number", at);
	part.iov_base += 3 * MIB;
	tell("process_vm_writev", process_vm_writev(getpid(), &part, (1UL << 32) + 1, &to, 1, 0));
}

enum { MANY = 1100, TAKEN = 1024 };

static struct mmsghdr *messages(struct iovec *parts)
{
	struct mmsghdr *list = calloc(MANY, sizeof *list);
	for (int i = 0; i < MANY; i++)
		list[i].msg_hdr = (struct msghdr){ .msg_iov = parts + i, .msg_iovlen = 1 };
	return list;
}

/* Of so many it sends fewer in one call. */
static void *send_many(void *unused)
{
	struct iovec parts[MANY];
	for (int i = 0; i < MANY; i++)
		parts[i] = (struct iovec){ (char *)base + i * (MIB / 32), 4 };
	struct mmsghdr *list = messages(parts);
	tell("sendmmsg", sendmmsg(out, list, MANY, 0));
	tell("sendmmsg of the rest", sendmmsg(out, list + TAKEN, MANY - TAKEN, 0));
	free(list);
	return unused;
}

static void many_messages(void)
{
	static uint32_t plain[TAKEN];
	struct iovec parts[MANY];
	char *to = mmap(NULL, file_length, PROT_READ | PROT_WRITE, MAP_PRIVATE, file_descriptor, 0);
	pthread_t sender;
	if (to == MAP_FAILED || pthread_create(&sender, NULL, send_many, NULL))
		fail("mmap");
	for (int i = 0; i < MANY; i++)
		parts[i] = (struct iovec){ i < TAKEN ? (char *)(plain + i) : to + (i - TAKEN) * (MIB / 2), 4 };
	struct mmsghdr *list = messages(parts);
	int got = recvmmsg(in, list, MANY, 0, NULL);
	pthread_join(sender, NULL);
	tell("recvmmsg", got);
	for (int i = 0; i < got; i++)
		if (list[i].msg_len != 4 || *(uint32_t *)parts[i].iov_base != word_at(i * (MIB / 32)))
			printf("message %d: other bytes\n", i);
	free(list);
}

static void many_requests(void)
{
	static struct aiocb requests[MANY], *list[MANY];
	int memory = memfd_create("requests", 0), whole = 0;
	volatile unsigned char *from = mmap(NULL, file_length, PROT_READ, MAP_SHARED, file_descriptor, 0);
	if (memory < 0 || from == MAP_FAILED)
		fail("mmap");
	for (int i = 0; i < MANY; i++) {
		requests[i] = (struct aiocb){ .aio_fildes = memory, .aio_lio_opcode = LIO_WRITE, .aio_offset = i * PAGE,
					      .aio_buf = (void *)(from + i * 14 * PAGE), .aio_nbytes = PAGE };
		list[i] = requests + i;
	}
	tell("lio_listio", lio_listio(LIO_WAIT, list, MANY, NULL));
	for (int i = 0; i < MANY; i++)
		whole += aio_return(requests + i) == (ssize_t)PAGE;
	printf("requests: %d\n", whole);
}

int main(int count, char **arguments)
{
	(void)count;
	int pair[2];
	base = map_file(arguments, PROT_READ, MAP_SHARED);
	read_pages(base, 0, MIB);
	if (socketpair(AF_UNIX, SOCK_DGRAM, 0, pair))
		fail("socketpair");
	in = pair[0], out = pair[1];
	too_long();
	unaligned(10 * MIB + 100);
	rendezvous();
	unaligned(30 * MIB + 100);
	beyond_32_bits(45 * MIB + 100);
	many_messages();
	many_requests();
	return 0;
}
