/* Expected: handlers run on an alternate stack that lies in a private mapping of the data file, of which they read the rest.
 * @no-guards private mappings have none
 * @report the program gave the mapping to asynchronous calls (aio, getaddrinfo_a), or to its handlers as a stack */
#include "signals.h"

static sigjmp_buf out;
static volatile int on_alternate;
static char *alternate;

static void handler(int signal)
{
	char *here = __builtin_frame_address(0);
	on_alternate = here >= alternate && here < alternate + MIB;
	read_on(MIB);
	if (signal == SIGSEGV)
		siglongjmp(out, 1);
}

int main(int count, char **arguments)
{
	(void)count;
	base = map_file(arguments, PROT_READ | PROT_WRITE, MAP_PRIVATE);
	read_on(2 * MIB);
	rendezvous();
	read_on(2 * MIB);
	/* Of what is not read yet. */
	alternate = (char *)base + 40 * MIB;
	stack_t stack = { .ss_sp = alternate, .ss_size = MIB };
	struct sigaction action = { .sa_handler = handler, .sa_flags = SA_ONSTACK };
	if (sigaltstack(&stack, NULL) || sigaction(SIGUSR1, &action, NULL) || sigaction(SIGSEGV, &action, NULL))
		fail("sigaltstack");
	for (int round = 0; round < 4; round++) {
		raise(SIGUSR1);
		printf("on the alternate stack %d\n", on_alternate);
		if (!sigsetjmp(out, 1))
			fault();
		printf("on the alternate stack %d\n", on_alternate);
	}
	return 0;
}
