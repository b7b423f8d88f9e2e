/* Expected: a handler that never returns, 100,000 times over, leaves the mask as natively, and data goes on being read
 * through checkpoints. */
#include "signals.h"

static sigjmp_buf out;
static ucontext_t here;
static volatile int by_context, arrivals;

static void handler(int signal, siginfo_t *info, void *context)
{
	(void)signal, (void)info, (void)context;
	arrivals++;
	if (by_context)
		setcontext(&here);
	siglongjmp(out, 1);
}

static void without_mask(int signal)
{
	(void)signal;
	arrivals++;
	siglongjmp(out, 1);
}

int main(int count, char **arguments)
{
	(void)count;
	struct sigaction action = { .sa_sigaction = handler, .sa_flags = SA_SIGINFO };
	base = map_file(arguments, PROT_READ, MAP_SHARED);
	sigaddset(&action.sa_mask, SIGUSR1);
	sigaction(SIGSEGV, &action, NULL);
	volatile int i;
	for (i = 0; i < 100000; i++) {
		if (!sigsetjmp(out, 1))
			fault();
		if (i % 1000 == 0)
			read_on(MIB / 4);
	}
	printf("%d rounds\n%s\n", arrivals, letters(mask_now()));
	rendezvous();
	by_context = 1;
	volatile int left = 1000;
	getcontext(&here);
	if (left-- > 0)
		fault();
	read_on(8 * MIB);
	printf("%d rounds\n%s\n", arrivals, letters(mask_now()));
	/* A jump that does not restore the mask: the next fault would kill, unless SA_NODEFER. */
	action.sa_handler = without_mask;
	action.sa_flags = SA_NODEFER;
	sigaction(SIGSEGV, &action, NULL);
	for (i = 0; i < 1000; i++)
		if (!sigsetjmp(out, 0))
			fault();
	printf("%d rounds\n%s\n", arrivals, letters(mask_now()));
	read_on(file_length / 2);
	action.sa_flags = 0;
	sigaction(SIGSEGV, &action, NULL);
	if (!sigsetjmp(out, 0))
		fault();
	printf("%d rounds\n%s\n", arrivals, letters(mask_now()));
	read_on(8 * MIB);
	fflush(stdout);
	/* Blocked since. */
	fault();
	return 0;
}
