/* Expected: of a program with several threads one forbids all of them the calls by which handlers are set and masks changed. All read
 * on, and the program dies by a fault, or by SIGSEGV that it is sent, as alone; where it may set a handler after that, or had one
 * before, that is called, as often as alone and whatever is forbidden, and one that it blocks stays pending. A filter that is refused,
 * or a second one, changes nothing.
 * @not-detected the filter kills on the call by which the detector looks
 * @report the program forbids itself system calls */
#include "hostile.h"
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

static volatile unsigned char *base;
static int to_reader[2], from_reader[2];

/* Reads what it is told to, and tells what that was. */
static void *reader(void *unused)
{
	size_t at;
	while (read(to_reader[0], &at, sizeof at) == sizeof at) {
		unsigned char byte = base[at];
		write(from_reader[1], &byte, 1);
	}
	return unused;
}

static int read_there(size_t at)
{
	unsigned char byte;
	write(to_reader[1], &at, sizeof at);
	if (read(from_reader[0], &byte, 1) != 1)
		fail("the other thread");
	return byte;
}

/* Kills the process for these calls; the last two may be one. */
static int forbid(int first, int second)
{
	struct sock_filter filter[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_mprotect, 3, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, first, 2, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, second, 1, 0),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
	};
	struct sock_fprog program = { sizeof filter / sizeof *filter, filter };
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
		fail("no_new_privs");
	return syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &program);
}

static void handler(int signal, siginfo_t *info, void *context)
{
	(void)signal, (void)context;
	const char *text = info->si_addr == (void *)8 ? "handled\n" : "handled elsewhere\n";
	write(1, text, strlen(text));
	_exit(7);
}

static volatile unsigned char *holes;
static atomic_int filled;

/* Puts memory where there is none. */
static void fill(int signal, siginfo_t *info, void *context)
{
	(void)signal, (void)context;
	void *page = (void *)((uintptr_t)info->si_addr & -PAGE);
	if (info->si_code != SEGV_ACCERR || mmap(page, PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) != page)
		_exit(4);
	filled++;
}

/* Says so, and lets the same happen again. */
static void tell(int signal, siginfo_t *info, void *context)
{
	(void)info, (void)context;
	const char *text = signal == SIGSEGV ? "told\n" : "told of another\n";
	write(1, text, strlen(text));
}

static sigjmp_buf out;
static char *volatile nowhere;

static void leave(int signal)
{
	siglongjmp(out, signal);
}

enum {
	BEFORE = 1,
	AFTERWARDS = 2,
	SENT = 4,
	REFUSED = 8,
	BLOCKED = 16,
	TWICE = 32,
	ALL = 64,
	ONCE = 128,
	FILLED = 256,
	AGAIN = 512,
	MASKED = 1024,
	OTHER = 2048,
	IGNORED = 4096,
	FORKED = 8192,
	JUMPS = 16384,
	VFORKED = 1 << 15,
	FULL = 1 << 16,
	NO_SOCKETS = 1 << 17,
	LATER = 1 << 18,
};

static void program(const char *what, int how)
{
	fflush(stdout);
	pid_t child = fork();
	if (child == 0) {
		pthread_t thread;
		struct sigaction action = { .sa_sigaction = handler, .sa_flags = SA_SIGINFO }, now;
		if (pipe(to_reader) || pipe(from_reader) || pthread_create(&thread, NULL, reader, NULL))
			fail("a thread");
		sigset_t set;
		sigemptyset(&set);
		sigaddset(&set, SIGSEGV);
		if (how & ONCE)
			action.sa_sigaction = tell, action.sa_flags |= SA_RESETHAND;
		if (how & FILLED)
			action.sa_sigaction = fill;
		if (how & JUMPS)
			action.sa_handler = leave, action.sa_flags = SA_ONSTACK;
		if (how & BEFORE)
			sigaction(SIGSEGV, &action, NULL);
		if (how & IGNORED)
			action.sa_handler = SIG_IGN, action.sa_flags = 0, sigaction(SIGSEGV, &action, NULL);
		if (how & (BLOCKED | MASKED))
			sigprocmask(SIG_BLOCK, &set, NULL);
		int sum = read_there(MIB) + base[20 * MIB];
		if (how & REFUSED) {
			if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, NULL) == 0)
				fail("a filter without instructions");
			sigaction(SIGSEGV, NULL, &now);
			volatile unsigned char *other = mmap(NULL, file_length, PROT_READ, MAP_SHARED, file_descriptor, 0);
			sum += now.sa_handler == SIG_DFL ? other[3 * MIB] : 0;
		} else if (how & TWICE) {
			/* The first one forbids nothing that is made here; the second forbids what the first did not. */
			if (forbid(SYS_membarrier, SYS_rt_sigprocmask) || forbid(SYS_rt_sigaction, SYS_madvise))
				fail("two filters");
			errno = 0;
			if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, NULL) == 0)
				fail("a filter without instructions");
		} else if (how & (BEFORE | AFTERWARDS | BLOCKED) && !(how & (ALL | FORKED)) ? forbid(SYS_madvise, SYS_madvise) :
				how & NO_SOCKETS ? forbid(SYS_socket, SYS_madvise) :
				forbid(SYS_rt_sigaction, how & FORKED ? SYS_madvise : SYS_rt_sigprocmask))
			fail("seccomp");
		if (how & AFTERWARDS) {
			sigaction(SIGSEGV, NULL, &now);
			sum += now.sa_handler == SIG_DFL;
			sigaction(SIGSEGV, &action, NULL);
		}
		if (how & AGAIN) {
			action.sa_sigaction = handler;
			sigaction(SIGSEGV, &action, &now);
			sum += now.sa_sigaction == fill;
			action.sa_handler = SIG_DFL;
			sigaction(SIGSEGV, &action, &now);
			sum += now.sa_sigaction == handler;
		}
		char text[64];
		for (size_t at = 21 * MIB; at < file_length; at += MIB)
			sum += base[at] + read_there(at + MIB / 2);
		write(1, text, snprintf(text, sizeof text, "%s: %d\n", what, sum));
		if (how & LATER) {
			/* A call that fails is no fault. */
			sigprocmask(SIG_BLOCK, &set, NULL);
			write(1, text, snprintf(text, sizeof text, "%d\n", open((char *)8, O_RDONLY) == -1 && errno == EFAULT));
		}
		if (how & FILLED && !(how & AGAIN)) {
			/* Both threads; each page is found to be there the second time. */
			for (int i = 0; i < 800; i += 2)
				sum += holes[i % 400 * PAGE] + read_there(holes + (i % 400 + 1) * PAGE - base);
			write(1, text, snprintf(text, sizeof text, "%d, %d were filled\n", sum, filled));
			_exit(0);
		}
		if (how & BLOCKED) {
			int received;
			/* To this thread, for another one does not block it. */
			syscall(SYS_tgkill, getpid(), syscall(SYS_gettid), SIGSEGV);
			sigwait(&set, &received);
			write(1, text, snprintf(text, sizeof text, "%d was pending\n", received));
		}
		if (how & SENT) {
			syscall(SYS_kill, getpid(), SIGSEGV);
			write(1, "alive\n", 6);
		}
		if (how & JUMPS) {
			/* Some by a fault, some sent; the mask is as before, natively or not. */
			int caught = 0;
			for (volatile int i = 0; i < 100; i++)
				if (sigsetjmp(out, 1) == SIGSEGV)
					caught++;
				else if (i % 3)
					*(volatile int *)8 = 1;
				else
					raise(SIGSEGV);
			sigprocmask(SIG_BLOCK, NULL, &set);
			write(1, text, snprintf(text, sizeof text, "%d caught, blocked %d\n", caught, sigismember(&set, SIGSEGV)));
			_exit(0);
		}
		if (how & VFORKED && vfork() == 0) {
			signal(SIGSEGV, SIG_DFL);
			_exit(0);
		}
		if (how & FULL) {
			/* All but SIGSEGV, which is not blocked then, nor read back so. */
			sigfillset(&set);
			sigdelset(&set, SIGSEGV);
			sigprocmask(SIG_SETMASK, &set, NULL);
			sigprocmask(SIG_SETMASK, NULL, &set);
			write(1, text, snprintf(text, sizeof text, "blocked %d %d\n", sigismember(&set, SIGSEGV), sigismember(&set, SIGSTKFLT)));
			sigprocmask(SIG_SETMASK, &set, NULL);
			sigaction(SIGSEGV, &action, NULL);
		}
		if (how & FORKED) {
			fflush(stdout);
			if (fork()) {
				wait(NULL);
				_exit(0);
			}
			if (how & NO_SOCKETS)
				sigaction(SIGSEGV, &action, NULL);
			write(1, text, snprintf(text, sizeof text, "child: %d %d\n", base[30 * MIB], open(nowhere, O_RDONLY)));
		}
		if (how & OTHER)
			read_there(8 - (uintptr_t)base);
		*(volatile int *)8 = 1;
	}
	int status;
	waitpid(child, &status, 0);
	printf("%s %d\n", WIFSIGNALED(status) ? "signal" : "exit", WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
}

int main(int count, char **arguments)
{
	(void)count;
	base = map_file(arguments, PROT_READ, MAP_SHARED);
	read_pages(base, 0, 2 * MIB);
	holes = mmap(NULL, 400 * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	program("fault", 0);
	program("sent", SENT);
	rendezvous();
	program("handler before", BEFORE);
	program("handler afterwards", AFTERWARDS);
	program("handler before, all forbidden", BEFORE | ALL);
	program("handler before, all forbidden, sent", BEFORE | ALL | SENT);
	program("handler for once", BEFORE | ALL | ONCE);
	program("handler for once, sent", BEFORE | ALL | ONCE | SENT);
	program("handler that fills", BEFORE | ALL | FILLED);
	program("handler afterwards that fills", AFTERWARDS | FILLED);
	program("handlers changed", BEFORE | FILLED | AGAIN);
	program("handler before, masked", BEFORE | ALL | MASKED);
	program("handler before, masked, in another thread", BEFORE | ALL | MASKED | OTHER);
	program("masked", ALL | MASKED);
	program("ignored, sent", ALL | IGNORED | SENT);
	program("handler before, blocked", BEFORE | BLOCKED);
	program("handler that jumps", BEFORE | JUMPS);
	program("handler afterwards that jumps", AFTERWARDS | JUMPS);
	program("handler before, action of a vfork child", BEFORE | VFORKED);
	program("nearly full mask", NO_SOCKETS | FULL);
	program("masked later", NO_SOCKETS | LATER);
	program("forked, handler there", NO_SOCKETS | FORKED);
	program("forked", FORKED);
	program("handler before, forked", BEFORE | FORKED);
	program("refused", REFUSED);
	program("refused, sent", REFUSED | SENT);
	program("blocked", BLOCKED);
	program("twice", TWICE);
	program("twice, sent", TWICE | SENT);
	return 0;
}
