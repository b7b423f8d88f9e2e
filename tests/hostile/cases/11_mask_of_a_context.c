/* Expected: a context into whose mask the program has put SIGSEGV, or all but that, reads mapped data, finds blocked what it has
 * put there, and does not meet a SIGSEGV that is sent while that is blocked; one that was saved while it was blocked blocks it again;
 * what is no context fails as natively.
 * @counter active_readers 1 */
#include "signals.h"

enum { STACK = 65536 };

static ucontext_t here, there;
static char stack[STACK] __attribute__((aligned(16)));
static volatile int round_number, saved, set, caught;

static void handler(int signal)
{
	(void)signal;
	caught++;
}

static void tell(const char *what)
{
	unsigned long long mask = mask_now();
	printf("%s: SIGSEGV %s, SIGUSR1 %s\n", what, mask >> (SIGSEGV - 1) & 1 ? "blocked" : "open",
	       mask >> (SIGUSR1 - 1) & 1 ? "blocked" : "open");
	read_on(4 * MIB);
}

static void elsewhere(void)
{
	tell("elsewhere");
	if (round_number == 0) {
		raise(SIGSEGV);
		printf("caught %d\n", caught);
	}
	if (round_number == 2)
		setcontext(&here);
	swapcontext(&there, &here);
}

static void go_elsewhere(void)
{
	getcontext(&there);
	there.uc_stack.ss_sp = stack;
	there.uc_stack.ss_size = STACK;
	there.uc_link = NULL;
	switch (round_number) {
	case 0:
		/* Whatever stands in for SIGSEGV, this leaves it open. */
		sigfillset(&there.uc_sigmask);
		sigdelset(&there.uc_sigmask, SIGSEGV);
		break;
	case 1:
		sigaddset(&there.uc_sigmask, SIGSEGV);
		break;
	case 2:
		sigfillset(&there.uc_sigmask);
		break;
	default:
		sigaddset(&there.uc_sigmask, SIGUSR1);
	}
	makecontext(&there, elsewhere, 0);
	swapcontext(&here, &there);
}

int main(int count, char **arguments)
{
	(void)count;
	setlinebuf(stdout);
	base = map_file(arguments, PROT_READ, MAP_SHARED);
	read_on(2 * MIB);
	rendezvous();
	signal(SIGSEGV, handler);
	for (round_number = 0; round_number < 4; round_number++) {
		go_elsewhere();
		tell("back");
	}
	signal(SIGSEGV, SIG_DFL);
	/* A mask that the program itself has set, and the context that was saved meanwhile. */
	sigset_t segv, none;
	sigemptyset(&none);
	sigemptyset(&segv);
	sigaddset(&segv, SIGSEGV);
	sigprocmask(SIG_SETMASK, &segv, NULL);
	getcontext(&here);
	tell(saved ? "again" : "blocked");
	if (!saved++) {
		sigprocmask(SIG_SETMASK, &none, NULL);
		setcontext(&here);
	}
	/* By hand, in the one that is in force next. */
	sigprocmask(SIG_SETMASK, &none, NULL);
	getcontext(&here);
	if (!set++) {
		sigaddset(&here.uc_sigmask, SIGSEGV);
		setcontext(&here);
	}
	tell("by hand");
	if (setcontext((ucontext_t *)8) != -1)
		fail("no context");
	perror("no context");
	raise(SIGSEGV);
	sigset_t waiting;
	sigpending(&waiting);
	printf("sent: %d\n", sigismember(&waiting, SIGSEGV));
	return 0;
}
