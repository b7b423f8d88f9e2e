/* Expected: a handler on an alternate stack of 8 KiB, as crash reporters have it, executes a program; one on 16 KiB executes one
 * that can have no library, with an environment of 300 variables. */
#include "hostile.h"
#include <signal.h>

enum { VARIABLES = 300 };
static volatile int status_of_ldconfig;
static char *environment[VARIABLES + 100];

static int execute(const char *program, char **words, char **with)
{
	int status;
	pid_t child = fork();
	if (child == 0) {
		execve(program, words, with);
		_exit(9);
	}
	waitpid(child, &status, 0);
	return status;
}

static void report(int signal)
{
	char *words[] = { "echo", "reported", NULL };
	_exit(execute("/bin/echo", words, environ) ? 1 : signal);
}

/* Linked statically everywhere. */
static void link_anew(int signal)
{
	char *words[] = { "ldconfig", "--help", NULL };
	(void)signal;
	status_of_ldconfig = execute("/sbin/ldconfig", words, environment);
}

static void on_a_stack_of(size_t size, int signal, void (*handler)(int))
{
	char *place = mmap(NULL, 16 * size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	stack_t stack = { .ss_sp = place + 8 * size, .ss_size = size };
	struct sigaction action = { .sa_handler = handler, .sa_flags = SA_ONSTACK };
	if (place == MAP_FAILED || mprotect(stack.ss_sp, size, PROT_READ | PROT_WRITE) || sigaltstack(&stack, NULL) ||
	    sigaction(signal, &action, NULL))
		fail("an alternate stack");
	raise(signal);
}

int main(int count, char **arguments)
{
	(void)count;
	volatile unsigned char *base = map_file(arguments, PROT_READ, MAP_SHARED);
	printf("first: %x\n", read_pages(base, 0, file_length / 2));
	rendezvous();
	printf("second: %x\n", read_pages(base, file_length / 2, file_length));
	fflush(stdout);
	int used = 0;
	for (char **entry = environ; *entry; entry++)
		environment[used++] = *entry;
	for (int i = used; i < VARIABLES; i++)
		asprintf(&environment[i], "VARIABLE_%d=%d", i, i);
	on_a_stack_of(16384, SIGUSR1, link_anew);
	printf("ldconfig: %d\n", status_of_ldconfig);
	fflush(stdout);
	on_a_stack_of(8192, SIGABRT, report);
}
