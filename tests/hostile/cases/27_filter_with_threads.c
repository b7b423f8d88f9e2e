/* Expected: of a program with several threads one forbids all of them the calls by which handlers are set and masks changed. All read
 * on, and the program dies by a fault, or by SIGSEGV that it is sent, as alone; where it may set a handler after that, or had one
 * before, that is called, and one that it blocks stays pending. A filter that is refused, or a second one, changes nothing.
 * @not-detected the filter kills on the call by which the detector looks
 * @report the program forbids itself system calls */
#include "hostile.h"
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
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

enum { BEFORE = 1, AFTERWARDS = 2, SENT = 4, REFUSED = 8, BLOCKED = 16, TWICE = 32 };

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
		if (how & BEFORE)
			sigaction(SIGSEGV, &action, NULL);
		if (how & BLOCKED)
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
		} else if (how & (BEFORE | AFTERWARDS | BLOCKED) ? forbid(SYS_madvise, SYS_madvise) : forbid(SYS_rt_sigaction, SYS_rt_sigprocmask))
			fail("seccomp");
		if (how & AFTERWARDS) {
			sigaction(SIGSEGV, NULL, &now);
			sum += now.sa_handler == SIG_DFL;
			sigaction(SIGSEGV, &action, NULL);
		}
		char text[64];
		for (size_t at = 21 * MIB; at < file_length; at += MIB)
			sum += base[at] + read_there(at + MIB / 2);
		write(1, text, snprintf(text, sizeof text, "%s: %d\n", what, sum));
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
	program("fault", 0);
	program("sent", SENT);
	rendezvous();
	program("handler before", BEFORE);
	program("handler afterwards", AFTERWARDS);
	program("refused", REFUSED);
	program("refused, sent", REFUSED | SENT);
	program("blocked", BLOCKED);
	program("twice", TWICE);
	program("twice, sent", TWICE | SENT);
	return 0;
}
