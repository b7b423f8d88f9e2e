/* Expected: what system starts finds SIGSEGV blocked, or ignored, as the program has it; the program finds the same afterwards,
 * and a later mapping is accelerated. */
#include "signals.h"

static void run(const char *what)
{
	fflush(stdout);
	/* By cat, for grep has a handler for SIGSEGV, and without our library, which shows what is in force. */
	int status = system("env -u LD_PRELOAD cat /proc/self/status | grep -E 'Sig(Blk|Ign)'");
	struct sigaction now;
	sigaction(SIGSEGV, NULL, &now);
	printf("%s: %d, %s, ignored %d\n", what, status, letters(mask_now()), now.sa_handler == SIG_IGN);
}

int main(int count, char **arguments)
{
	(void)count;
	base = map_file(arguments, PROT_READ, MAP_SHARED);
	read_on(4 * MIB);
	run("neither");
	set_mask(1ULL << (SIGSEGV - 1) | 1ULL << (SIGUSR1 - 1));
	run("blocked");
	signal(SIGSEGV, SIG_IGN);
	run("both");
	set_mask(0);
	run("ignored");
	signal(SIGSEGV, SIG_DFL);
	rendezvous();
	run("neither");
	volatile unsigned char *again = mmap(NULL, file_length, PROT_READ, MAP_SHARED, file_descriptor, 0);
	printf("%x %x\n", read_pages(base, 0, file_length), read_pages(again, 0, file_length));
	return 0;
}
