/* Expected: exec with the environment, with an empty one and with an LD_PRELOAD of the program's own; a failed exec leaves
 * everything as it was; each sees the environment that it was given.
 * @counter active_readers 2 */
#include "hostile.h"

extern char **environ;
static volatile unsigned char *base;

/* What is not ours; the rest is told by `precache-run`. */
static void show_environment(void)
{
	for (char **entry = environ; *entry; entry++)
		if (!strncmp(*entry, "SHOWN", 5))
			puts(*entry);
}

static void run(const char *what, char **environment, char **arguments)
{
	char *again[] = { arguments[0], arguments[1], (char *)what, NULL };
	fflush(stdout);
	pid_t child = fork();
	if (child == 0) {
		/* Some fail first. */
		execve("/nonexistent/program", again, environment);
		execve(arguments[1], again, environment);
		execl("/nonexistent/program", "program", NULL);
		execvp("no-such-program-anywhere", again);
		uint32_t word = *(volatile uint32_t *)(base + 40 * MIB);
		printf("after failures: %d, %s\n", word == word_at(40 * MIB), strerror(errno));
		fflush(stdout);
		execve(again[0], again, environment);
		_exit(7);
	}
	int status;
	waitpid(child, &status, 0);
	printf("%s: %d\n", what, status);
}

int main(int count, char **arguments)
{
	base = map_file(arguments, PROT_READ, MAP_SHARED);
	if (count > 2) {
		show_environment();
		printf("%s: %x\n", arguments[2], read_pages(base, 0, file_length));
		return 0;
	}
	read_pages(base, 0, 20 * MIB);
	setenv("SHOWN", "1", 1);
	char *empty[] = { NULL }, *one[] = { "SHOWN=only", NULL };
	run("with the environment", environ, arguments);
	run("with none", empty, arguments);
	rendezvous();
	run("with one variable", one, arguments);
	printf("%x\n", read_pages(base, 0, file_length));
	fflush(stdout);
	/* At last this process itself. */
	char *again[] = { arguments[0], arguments[1], "the process itself", NULL };
	execv(again[0], again);
	return 1;
}
