/* Expected: a handler installed by a raw system call that passes on what it does not know, as Go's does in a library, is
 * served as long as nobody notices, and a fault of the program's own reaches the handler from before. */
#include "signals.h"
#include "raw_action.h"

static struct raw_action before;
static volatile int passed_on;

static void chaining(int signal, siginfo_t *info, void *context)
{
	passed_on++;
	if (before.handler)
		before.handler(signal, info, context);
}

int main(int count, char **arguments)
{
	(void)count;
	struct sigaction action = { .sa_sigaction = reporting_handler, .sa_flags = SA_SIGINFO };
	sigaction(SIGSEGV, &action, NULL);
	base = map_file(arguments, PROT_READ, MAP_SHARED);
	read_on(8 * MIB);
	rendezvous();
	raw_call(SYS_rt_sigaction, SIGSEGV, 0, (long)&before, 8);
	install_raw(chaining);
	read_on(file_length - position);
	puts("read");
	fflush(stdout);
	fault();
	return 0;
}
