/* Expected: a program with a SIGSEGV handler of its own sees it whenever it asks, gets every fault of its own making
 * with the true siginfo, leaves it by siglongjmp as often as it likes, and never hears of a checkpoint. */
#include "common.h"

static sigjmp_buf out;
static volatile int faults, code;
static void *volatile where;

static void handler(int signal, siginfo_t *info, void *context)
{
	(void)signal, (void)context;
	faults++;
	code = info->si_code;
	where = info->si_addr;
	siglongjmp(out, 1);
}

static void plain(int signal)
{
	(void)signal;
	faults++;
	siglongjmp(out, 1);
}

static void fault_at(volatile char *address)
{
	if (!sigsetjmp(out, 1))
		*address = 1;
}

int main(int count, char **arguments)
{
	(void)count;
	struct sigaction action = { .sa_sigaction = handler, .sa_flags = SA_SIGINFO }, old;
	sigaddset(&action.sa_mask, SIGUSR1);
	sigaction(SIGSEGV, &action, NULL);
	volatile unsigned char *base = map_file(arguments, PROT_READ, MAP_SHARED);
	for (size_t at = 0; at < file_length; at += 4 * MIB) {
		read_pages(base, at, at + 4 * MIB);
		fault_at((char *)(at + 8));
		if (where != (void *)(at + 8))
			printf("si_addr %p\n", where);
	}
	printf("%d faults, code %d\n", faults, code);
	fault_at((volatile char *)base + 5);
	printf("write to a read-only page: code %d, right place %d\n", code, where == (void *)(base + 5));
	sigaction(SIGSEGV, NULL, &old);
	printf("handler mine %d, flags %x, mask %d\n", old.sa_sigaction == handler, old.sa_flags,
	       sigismember(&old.sa_mask, SIGUSR1));
	printf("before signal(): mine %d\n", signal(SIGSEGV, plain) == (void (*)(int))handler);
	faults = 0;
	fault_at(NULL);
	printf("%d by the plain handler\n", faults);
	sigset_t mask;
	sigprocmask(SIG_BLOCK, NULL, &mask);
	printf("blocked afterwards: %d\n", sigismember(&mask, SIGSEGV));
	action.sa_flags |= SA_RESETHAND;
	sigaction(SIGSEGV, &action, NULL);
	fault_at(NULL);
	sigaction(SIGSEGV, NULL, &old);
	printf("after one shot: default %d\n", old.sa_handler == SIG_DFL);
	read_pages(base, 0, file_length);
	*(volatile char *)16 = 1;
	return 0;
}
