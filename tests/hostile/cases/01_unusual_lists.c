/* Expected: lists that the kernel refuses for their length are not looked at, for they may be shorter than the program says;
 * lists and messages at odd addresses transfer every byte.
 * @counter lifted_for_calls 4 */
#include "hostile.h"
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
	return 0;
}
