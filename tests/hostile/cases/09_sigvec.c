/* Expected: the call of 4.2BSD, which old programs alone are linked to, sets and tells what it does natively.
 * @counter active_readers 1 */
#include "signals.h"

struct vector {
	void (*handler)(int);
	int mask, flags;
};

/* On x86-64. */
__asm__(".symver old_sigvec, sigvec@GLIBC_2.2.5");
extern int old_sigvec(int signal, const struct vector *vector, struct vector *old);

static sigjmp_buf out;
static volatile int caught;

static void handler(int signal)
{
	caught = signal;
	if (signal == SIGSEGV)
		siglongjmp(out, 1);
	/* Also while SIGSEGV is blocked. */
	read_on(4 * MIB);
}

int main(int count, char **arguments)
{
	(void)count;
	base = map_file(arguments, PROT_READ, MAP_SHARED);
	read_on(2 * MIB);
	int signals[] = { SIGUSR1, SIGSEGV };
	for (int i = 0; i < 2; i++) {
		struct vector wanted = { handler, 1 << (SIGUSR2 - 1) | 1 << (SIGSEGV - 1), 2 }, old = { 0 };
		int set = old_sigvec(signals[i], &wanted, NULL), told = old_sigvec(signals[i], NULL, &old);
		printf("%d %d: %d, mask %x, flags %d\n", set, told, old.handler == handler, old.mask, old.flags);
		if (!sigsetjmp(out, 1))
			signals[i] == SIGSEGV ? fault() : (void)raise(signals[i]);
		printf("caught %d\n", caught);
		read_on(10 * MIB);
	}
	rendezvous();
	read_on(10 * MIB);
	int bad = old_sigvec(99, NULL, NULL);
	printf("%d, errno %d\n", bad, errno);
	return 0;
}
