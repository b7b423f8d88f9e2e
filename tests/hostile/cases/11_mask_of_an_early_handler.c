/* Expected: a handler of another signal that blocks SIGSEGV while it runs, and was set before any library began, reads
 * closed pages; the program reads back the mask that it set. */
#include "hostile.h"

static volatile unsigned char *base;
static size_t position;

static void on_signal(int signal)
{
	sigset_t now;
	sigprocmask(SIG_BLOCK, NULL, &now);
	read_pages(base, position, position + 16 * MIB);
	position += 16 * MIB;
	printf("signal %d, blocked: %d %d %d\n", signal, sigismember(&now, SIGSEGV), sigismember(&now, SIGUSR2),
		sigismember(&now, SIGSTKFLT));
}

static void early(void)
{
	struct sigaction action = { .sa_handler = on_signal };
	sigaddset(&action.sa_mask, SIGSEGV);
	sigaddset(&action.sa_mask, SIGUSR2);
	sigaction(SIGUSR1, &action, NULL);
}

__attribute__((section(".preinit_array"), used)) static void (*first)(void) = early;

int main(int count, char **arguments)
{
	(void)count;
	base = map_file(arguments, PROT_READ, MAP_SHARED);
	for (int turn = 0; turn < 3; turn++) {
		raise(SIGUSR1);
		if (turn == 0)
			rendezvous();
	}
	struct sigaction now;
	sigaction(SIGUSR1, NULL, &now);
	printf("set: %d %d %d\n", sigismember(&now.sa_mask, SIGSEGV), sigismember(&now.sa_mask, SIGUSR2),
		sigismember(&now.sa_mask, SIGSTKFLT));
	return 0;
}
