/* Expected: a handler on an alternate stack of 8 KiB, as crash reporters have it, executes a program, also where one that it
 * would rather have is not there and there are 300 variables; one on 16 KiB executes one
 * that can have no library, with an environment of 300 variables. */
#include "hostile.h"
#include <signal.h>
#include <sys/stat.h>

enum { VARIABLES = 300 };
static volatile int status_of_stranger;
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
	if (execute("/nowhere/debugger", words, environment) != 9 << 8)
		_exit(2);
	_exit(execute("/bin/echo", words, environ) ? 1 : signal);
}

/* What is built for another C library cannot have ours. This one is made up, so nothing is executed in the end. */
static void execute_stranger(int signal)
{
	char *words[] = { "stranger", NULL };
	(void)signal;
	status_of_stranger = execute("./stranger", words, environment);
}

static void make_stranger(void)
{
	static char program[MIB];
	static const char ours[] = "/lib64/ld-linux", theirs[] = "/lib/ld-musl-no";
	FILE *from = fopen("/bin/echo", "r"), *to = fopen("stranger", "w");
	size_t length = from ? fread(program, 1, sizeof program, from) : 0;
	char *place = memmem(program, length, ours, sizeof ours - 1);
	if (!to || !place)
		fail("a program for another C library");
	memcpy(place, theirs, sizeof theirs - 1);
	fwrite(program, 1, length, to);
	fclose(to);
	chmod("stranger", 0755);
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
	make_stranger();
	on_a_stack_of(16384, SIGUSR1, execute_stranger);
	printf("stranger: %d\n", status_of_stranger);
	fflush(stdout);
	on_a_stack_of(8192, SIGABRT, report);
}
