/* Expected: a handler on an alternate stack of 8 KiB, as crash reporters have it, executes a program. */
#include "hostile.h"
#include <signal.h>

static void report(int signal)
{
	int status;
	pid_t child = fork();
	if (child == 0) {
		execl("/bin/echo", "echo", "reported", NULL);
		_exit(9);
	}
	waitpid(child, &status, 0);
	_exit(status ? 1 : signal);
}

int main(int count, char **arguments)
{
	(void)count;
	enum { SIZE = 8192 };
	volatile unsigned char *base = map_file(arguments, PROT_READ, MAP_SHARED);
	printf("first: %x\n", read_pages(base, 0, file_length / 2));
	rendezvous();
	printf("second: %x\n", read_pages(base, file_length / 2, file_length));
	fflush(stdout);
	char *place = mmap(NULL, 16 * SIZE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	stack_t stack = { .ss_sp = place + 8 * SIZE, .ss_size = SIZE };
	struct sigaction action = { .sa_handler = report, .sa_flags = SA_ONSTACK };
	if (place == MAP_FAILED || mprotect(stack.ss_sp, SIZE, PROT_READ | PROT_WRITE) || sigaltstack(&stack, NULL) ||
	    sigaction(SIGABRT, &action, NULL))
		fail("an alternate stack");
	abort();
}
