/* Expected: a program that forbids itself system calls, by a filter of its own or by strict mode, reads on afterwards what is
 * still closed, and dies by, or handles, a fault of its own; so does one whose filter is refused. What it executes then fails as
 * alone.
 * @not-detected the filter kills on the call by which the detector looks
 * @report the program forbids itself system calls */
#include "hostile.h"
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

static volatile unsigned char *base;

static void put_in_force(struct sock_filter *filter, int length, int by_syscall)
{
	struct sock_fprog program = { length, filter };
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
		fail("no_new_privs");
	if (by_syscall ? syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program) : prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program))
		fail("seccomp");
}

/* Kills whoever makes a call that reading needs no more. */
static void forbid(int by_syscall)
{
	struct sock_filter filter[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_mprotect, 5, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_madvise, 4, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_futex, 3, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_socket, 2, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_rt_sigprocmask, 1, 0),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
	};
	put_in_force(filter, sizeof filter / sizeof *filter, by_syscall);
}

static void nothing(int signal)
{
	(void)signal;
}

/* Kills whoever opens a file or asks for its mask, and executes what is no program. */
static void execute_where_nothing_opens(int by_number)
{
	struct sock_filter filter[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_openat, 2, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_rt_sigprocmask, 1, 0),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
	};
	char *words[] = { "data", NULL };
	fflush(stdout);
	pid_t child = fork();
	if (child == 0) {
		/* Blocks SIGSEGV in a handler that never runs. */
		struct sigaction blocking = { .sa_handler = nothing };
		sigfillset(&blocking.sa_mask);
		sigaction(SIGTERM, &blocking, NULL);
		put_in_force(filter, sizeof filter / sizeof *filter, 0);
		if (by_number)
			syscall(SYS_execveat, file_descriptor, "", words, environ, AT_EMPTY_PATH);
		else
			execveat(file_descriptor, "", words, environ, AT_EMPTY_PATH);
		_exit(errno);
	}
	int status;
	waitpid(child, &status, 0);
	printf("executed: %d\n", status);
}

static void handler(int signal, siginfo_t *info, void *context)
{
	(void)signal, (void)context;
	const char *text = info->si_addr == (void *)8 ? "handled\n" : "handled elsewhere\n";
	write(1, text, strlen(text));
	syscall(SYS_exit, 7);
}

static void by_fault(const char *what, int how, int handles, int blocks)
{
	fflush(stdout);
	pid_t child = fork();
	if (child == 0) {
		read_pages(base, 0, 2 * MIB);
		struct sigaction action = { .sa_sigaction = handler, .sa_flags = SA_SIGINFO };
		sigset_t set;
		sigemptyset(&set);
		sigaddset(&set, SIGSEGV);
		if (handles)
			sigaction(SIGSEGV, &action, NULL);
		if (blocks)
			sigprocmask(SIG_BLOCK, &set, NULL);
		if (how < 2) {
			struct timespec now = { 0 };
			forbid(how);
			/* Its mask is there: nobody need ask the kernel whether. */
			ppoll(NULL, 0, &now, &set);
		} else if (how == 2 && prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT))
			fail("strict mode");
		else if (how == 3) {
			int refused = prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, NULL);
			char text[80];
			struct sigaction now;
			sigaction(SIGSEGV, NULL, &now);
			int length = snprintf(text, sizeof text, "refused %d, %s, %d\n", refused, strerror(errno), now.sa_sigaction == handler);
			write(1, text, length);
			volatile unsigned char *other = mmap(NULL, file_length, PROT_READ, MAP_SHARED, file_descriptor, 0);
			(void)other[3 * MIB];
		}
		(void)base[40 * MIB];
		*(volatile int *)8 = 1;
	}
	int status;
	waitpid(child, &status, 0);
	printf("%s: %s %d\n", what, WIFSIGNALED(status) ? "signal" : "exit", WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
}

static void in_child(const char *what, int how)
{
	fflush(stdout);
	pid_t child = fork();
	if (child == 0) {
		char text[64];
		struct sigaction kept = { .sa_handler = nothing };
		sigaddset(&kept.sa_mask, SIGSEGV);
		sigaction(SIGUSR2, &kept, NULL);
		if (how == 0)
			read_pages(base, 0, 2 * MIB);
		if (how < 2) {
			forbid(how);
			/* A mask that was kept before means what it meant. */
			sigaction(SIGUSR2, NULL, &kept);
			if (!sigismember(&kept.sa_mask, SIGSEGV) || sigismember(&kept.sa_mask, SIGSTKFLT))
				syscall(SYS_exit, 9);
		}
		if (how == 2 && prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT))
			fail("strict mode");
		uint32_t sum = 0;
		for (size_t at = 0; at < file_length; at += 64 * 1024 + PAGE)
			sum = sum * 31 + *(volatile uint32_t *)(base + at);
		int length = snprintf(text, sizeof text, "%s: %x\n", what, sum);
		write(1, text, length);
		syscall(SYS_exit, 0);
	}
	int status;
	waitpid(child, &status, 0);
	printf("%s: %d\n", what, status);
}

int main(int count, char **arguments)
{
	(void)count;
	base = map_file(arguments, PROT_READ, MAP_SHARED);
	read_pages(base, 0, 20 * MIB);
	in_child("filter", 0);
	in_child("filter by syscall", 1);
	rendezvous();
	in_child("strict", 2);
	execute_where_nothing_opens(0);
	execute_where_nothing_opens(1);
	const char *ways[] = { "filter", "filter by syscall", "strict", "refused" };
	for (int how = 0; how < 4; how++)
		for (int flags = 0; flags < 4; flags++)
			by_fault(ways[how], how, flags & 1, flags & 2);
	read_pages(base, 20 * MIB, 30 * MIB);
	forbid(0);
	/* A mapping made under the filter cannot be protected, and is not. */
	volatile unsigned char *later = mmap(NULL, file_length, PROT_READ, MAP_SHARED, file_descriptor, 0);
	printf("%x %x\n", read_pages(base, 0, file_length), read_pages(later, 0, file_length));
	return 0;
}
