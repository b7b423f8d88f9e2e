/* Expected: paths, lists, messages, masks and environments that are not there, or not to their end, are answered with EFAULT, by
 * function and by number, before a file is mapped, while it is and afterwards; no handler is called. What is good before the end is
 * transferred. */
#include "hostile.h"
#include <poll.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/syscall.h>

static volatile unsigned char *base;
static int in, out;
/* The end of memory that can be read; not a page of it; nothing at all; no address of a program. */
static char *end, *closed, *unmapped, *const odd = (char *)0xdead000000000000;

static void handler(int signal)
{
	(void)signal;
	_exit(9);
}

static void tell(const char *what, ssize_t got)
{
	printf("%s: %zd (%s)\n", what, got, got < 0 ? strerror(errno) : "");
}

static void calls_with(void *bad)
{
	struct epoll_event event;
	struct timespec none = { 0, 0 };
	char byte, *words[] = { "true", NULL };
	struct iovec part = { &byte, 1 };
	struct msghdr without = { .msg_iov = bad, .msg_iovlen = 1 };
	struct pollfd file = { .fd = in };
	tell("open", open(bad, O_RDONLY));
	tell("openat", openat(AT_FDCWD, bad, O_RDONLY));
	tell("open by number", syscall(SYS_open, bad, O_RDONLY));
	tell("writev", writev(out, bad, 1));
	tell("writev of 1,024", writev(out, bad, 1024));
	tell("readv", readv(in, bad, 1));
	tell("pwritev", pwritev(out, bad, 2, 0));
	tell("writev by number", syscall(SYS_writev, out, bad, 1L));
	tell("sendmsg", sendmsg(out, bad, 0));
	tell("sendmsg without parts", sendmsg(out, &without, 0));
	tell("sendmsg by number", syscall(SYS_sendmsg, out, bad, 0));
	tell("recvmsg", recvmsg(in, bad, MSG_DONTWAIT));
	tell("sendmmsg", sendmmsg(out, bad, 2, 0));
	tell("process_vm_readv", process_vm_readv(getpid(), &part, 1, bad, 1, 0));
	tell("process_vm_writev", process_vm_writev(getpid(), bad, 1, &part, 1, 0));
	tell("ppoll", ppoll(&file, 1, &none, bad));
	tell("pselect", pselect(0, NULL, NULL, NULL, &none, bad));
	int epoll = epoll_create1(0);
	tell("epoll_pwait", epoll_pwait(epoll, &event, 1, 0, bad));
	close(epoll);
	tell("sigsuspend", sigsuspend(bad));
	tell("execve", execve("/bin/true", words, bad));
	tell("execve with bad arguments", execve("/bin/true", bad, environ));
	tell("execve by number", syscall(SYS_execve, "/bin/true", words, bad));
}

/* Lists whose last part is not there. */
static void cut_short(size_t at)
{
	struct iovec *list = (struct iovec *)end - 2;
	list[0] = (struct iovec){ (char *)base + at, 5000 };
	list[1] = (struct iovec){ (char *)base + at + 2 * MIB, 5000 };
	tell("writev", writev(out, list, 3));
	tell("writev to its end", writev(out, list, 2));
	char got[12000], wanted[10000];
	tell("recv", recv(in, got, sizeof got, MSG_DONTWAIT));
	if (pread(file_descriptor, wanted, 5000, at) != 5000 || pread(file_descriptor, wanted + 5000, 5000, at + 2 * MIB) != 5000 ||
	    memcmp(got, wanted, 10000))
		printf("other bytes\n");
	char **variables = (char **)end - 2, *words[] = { "true", NULL };
	variables[0] = "A=1", variables[1] = getenv("PATH");
	tell("execve", execve("/bin/true", words, variables));
	variables[1] = unmapped;
	tell("execve", execve("/bin/true", words, variables));
}

/* Messages that end after each of their words, and one whose part does. */
static void cut_after_words(void)
{
	for (int words = 1; words < 7; words++)
		tell("sendmsg", sendmsg(out, (struct msghdr *)(end - 8 * words), 0));
	struct iovec *part = (struct iovec *)(end - 8);
	struct msghdr message = { .msg_iov = part, .msg_iovlen = 1 };
	part->iov_base = (char *)base;
	tell("sendmsg", sendmsg(out, &message, 0));
	tell("writev", writev(out, part, 1));
}

/* The kernel takes the address before it looks at the parts: what it says of these is what it says alone. */
static void addresses(size_t at)
{
	struct iovec endless = { (void *)-1, -1 };
	struct msghdr many = { .msg_name = (char *)base + at, .msg_namelen = 16, .msg_iov = (void *)closed, .msg_iovlen = 1025 };
	tell("sendmsg of too many parts", sendmsg(out, &many, 0));
	struct msghdr one = { .msg_name = (char *)base + at + 2 * MIB, .msg_namelen = 16, .msg_iov = &endless, .msg_iovlen = 1 };
	tell("sendmsg of an endless part", sendmsg(out, &one, 0));
}

/* Fewer come than there is room for: the kernel does not look at the rest, which is anything. */
static void more_than_come(void)
{
	char got[2][8];
	struct iovec parts[2] = { { got[0], 8 }, { got[1], 8 } };
	struct mmsghdr list[20];
	memset(list, 0x5a, sizeof list);
	void *rubbish[] = { closed, unmapped, odd, (void *)1, (void *)(base + 20 * MIB) };
	for (int i = 0; i < 2; i++)
		list[i].msg_hdr = (struct msghdr){ .msg_iov = parts + i, .msg_iovlen = 1 };
	for (int i = 2; i < 12; i++) {
		list[i].msg_hdr.msg_iov = rubbish[i % 5], list[i].msg_hdr.msg_iovlen = 3;
		list[i].msg_hdr.msg_control = rubbish[(i + 1) % 5];
	}
	send(out, "one", 4, 0), send(out, "two", 4, 0);
	tell("recvmmsg", recvmmsg(in, list, 20, MSG_DONTWAIT, NULL));
	printf("%s %s\n", got[0], got[1]);
	struct mmsghdr *last = (struct mmsghdr *)end - 1;
	*last = list[0];
	send(out, "more", 5, 0), send(out, "even", 5, 0);
	tell("recvmmsg", recvmmsg(in, last, 2, MSG_DONTWAIT, NULL));
	tell("recvmmsg", recvmmsg(in, last, 2000, MSG_DONTWAIT, NULL));
	printf("%s %u\n", got[0], last->msg_len);
}

int main(int count, char **arguments)
{
	(void)count;
	int pair[2];
	struct sigaction action = { .sa_handler = handler };
	sigaction(SIGSEGV, &action, NULL);
	char *memory = mmap(NULL, 4 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (memory == MAP_FAILED || mprotect(memory + PAGE, PAGE, PROT_NONE) || munmap(memory + 2 * PAGE, PAGE) ||
	    socketpair(AF_UNIX, SOCK_DGRAM, 0, pair))
		fail("mmap");
	end = closed = memory + PAGE, unmapped = memory + 2 * PAGE, in = pair[0], out = pair[1];
	char *bad[] = { closed, unmapped, unmapped - 8, end - 4, odd, (char *)1 };
	for (int i = 0; i < 6; i++)
		calls_with(bad[i]);
	base = map_file(arguments, PROT_READ, MAP_SHARED);
	read_pages(base, 0, 4 * MIB);
	for (int i = 0; i < 6; i++)
		calls_with(bad[i]);
	cut_after_words();
	addresses(12 * MIB);
	cut_short(6 * MIB + 100);
	rendezvous();
	calls_with(closed);
	cut_short(30 * MIB + 100);
	more_than_come();
	read_pages(base, 40 * MIB, 50 * MIB);
	munmap((void *)base, file_length);
	for (int i = 0; i < 6; i++)
		calls_with(bad[i]);
	return 0;
}
