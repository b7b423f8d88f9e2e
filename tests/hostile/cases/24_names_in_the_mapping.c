/* Expected: programs are executed whose names, arguments, variables and the lists of these lie in the mapping.
 * @own-data
 * @counter active_readers 1 */
#include "hostile.h"
#include <spawn.h>
#include <sys/syscall.h>

extern char **environ;
static unsigned char *base;

/* A place that nobody has touched, in no order, with this across the end of a page. */
static char *put(const void *content, size_t length)
{
	static size_t turn;
	size_t at = turn++ * 37 % 61 * MIB + 3 * PAGE - length / 2;
	if (pwrite(file_descriptor, content, length, at) != (ssize_t)length)
		fail("pwrite");
	return (char *)base + at;
}

static char *text(const char *content)
{
	return put(content, strlen(content) + 1);
}

/* Lists that a shell is given which shows an argument and a variable. */
static char **words(void)
{
	char *list[] = { text("sh"), text("-c"), text("echo $1 $SHOWN"), text("sh"), text("argument"), NULL };
	return (char **)put(list, sizeof list);
}

static char **variables(void)
{
	char *list[] = { text("SHOWN=variable"), text("PATH=/usr/bin:/bin"), NULL };
	return (char **)put(list, sizeof list);
}

static void in_child(const char *what, int (*execute)(void))
{
	printf("%s\n", what);
	fflush(stdout);
	pid_t child = fork();
	if (child == 0) {
		execute();
		perror(what);
		_exit(7);
	}
	int status;
	waitpid(child, &status, 0);
	printf("%d\n", status);
}

static int by_execve(void) { return execve(text("/bin/sh"), words(), variables()); }
static int by_execv(void) { return execv(text("/bin/sh"), words()); }
static int by_execvp(void) { return execvp(text("sh"), words()); }
static int by_execvpe(void) { return execvpe(text("sh"), words(), variables()); }
static int by_number(void) { return syscall(SYS_execve, text("/bin/sh"), words(), variables()); }
static int of_nothing(void) { return execve(text("/bin/sh"), (char **)8, environ); }

int main(int count, char **arguments)
{
	(void)count;
	base = (unsigned char *)map_file(arguments, PROT_READ, MAP_SHARED);
	close(file_descriptor);
	if ((file_descriptor = open(arguments[1], O_RDWR)) < 0)
		fail("open");
	in_child("execve", by_execve);
	in_child("execv", by_execv);
	rendezvous();
	in_child("execvp", by_execvp);
	in_child("execvpe", by_execvpe);
	in_child("by number", by_number);
	in_child("of nothing", of_nothing);
	fflush(stdout);
	printf("system: %d\n", system(text("echo command")));
	char shown[64] = "";
	FILE *shell = popen(text("echo of a pipe"), text("r"));
	printf("popen: %d\n", shell != NULL);
	if (shell && fgets(shown, sizeof shown, shell))
		fputs(shown, stdout);
	if (shell)
		pclose(shell);
	int status;
	char *shell_path = text("/bin/sh"), **list = words(), **variable = variables();
	pid_t child = vfork();
	if (child == 0) {
		execve(shell_path, list, variable);
		_exit(7);
	}
	printf("vfork: %d, %d\n", waitpid(child, &status, 0) == child, status);
	fflush(stdout);
	/* All has been opened: anew. */
	base = mmap(NULL, file_length, PROT_READ, MAP_SHARED, file_descriptor, 0);
	read_pages(base, 62 * MIB, 63 * MIB);
	for (int named = 0; named < 2; named++) {
		int error = named ? posix_spawnp(&child, text("sh"), NULL, NULL, words(), variables())
				  : posix_spawn(&child, text("/bin/sh"), NULL, NULL, words(), variables());
		printf("posix_spawn: %d\n", error);
		if (!error && waitpid(child, &status, 0) == child)
			printf("%d\n", status);
		fflush(stdout);
		base = mmap(NULL, file_length, PROT_READ, MAP_SHARED, file_descriptor, 0);
		read_pages(base, 62 * MIB, 63 * MIB);
	}
	return 0;
}
