/* Expected: programs are executed whose names, arguments, variables and the lists of these lie in the mapping, as does the PATH
 * that they are looked for in; also where all signals are blocked, and by commands as long as they may be. Files that they
 * are given are made once.
 * @own-data
 * @counter active_readers 15
 * @counter lifted_for_calls 100
 * @at-most all_pinned 0 */
#include "hostile.h"
#include <spawn.h>
#include <sys/syscall.h>

extern char **environ;
static unsigned char *base;

/* A place that nobody has touched, in no order, with this across the end of a page. */
static char *put(const void *content, size_t length)
{
	static size_t turn;
	size_t at = turn++ * 37 % 61 * MIB + MIB / 2 - length / 2;
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
static int by_posix_spawnp(void)
{
	pid_t child;
	int error = posix_spawnp(&child, text("sh"), NULL, NULL, words(), variables()), status = -1;
	printf("%d\n", error);
	if (!error && waitpid(child, &status, 0) == child)
		printf("%d\n", status);
	exit(fflush(stdout));
}

/* With nothing of the environment but what lies in the mapping. */
static void block_all(void)
{
	sigset_t all;
	sigfillset(&all);
	sigprocmask(SIG_BLOCK, &all, NULL);
	environ = variables();
}

static int blocked_by_execvp(void) { block_all(); return execvp(text("sh"), words()); }
static int blocked_by_execvpe(void) { block_all(); return execvpe(text("sh"), words(), variables()); }
static int blocked_by_posix_spawnp(void) { block_all(); return by_posix_spawnp(); }

static int blocked_by_vfork(void)
{
	block_all();
	char *name = text("sh"), **list = words(), **variable = variables();
	pid_t child = vfork();
	if (child == 0) {
		execvpe(name, list, variable);
		_exit(7);
	}
	int status = -1;
	printf("%d, ", waitpid(child, &status, 0) == child);
	printf("%d\n", status);
	exit(fflush(stdout));
}

static int blocked_by_popen(void)
{
	block_all();
	char shown[64] = "";
	FILE *shell = popen(text("echo of a blocked pipe"), text("r"));
	printf("%d %s\n", shell && fgets(shown, sizeof shown, shell), shown);
	exit(fflush(stdout));
}

/* The file must not be there before. */
static int of_a_new_file(void)
{
	char made[4096];
	pid_t child;
	int status = -1;
	snprintf(made, sizeof made, "/proc/self/cwd/made-%d", getpid());
	posix_spawn_file_actions_t actions;
	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_addopen(&actions, 7, made, O_WRONLY | O_CREAT | O_EXCL, 0600);
	int error = posix_spawn(&child, text("/bin/sh"), &actions, NULL, words(), variables());
	printf("%d\n", error);
	if (!error && waitpid(child, &status, 0) == child)
		printf("%d\n", status);
	printf("%d\n", unlink(made));
	exit(fflush(stdout));
}

/* As long as a string may be, and a byte less for its end. */
static char *long_command(const char *begin)
{
	static char command[32 * PAGE];
	memset(command, '#', sizeof command - 1);
	memcpy(command, begin, strlen(begin));
	return text(command);
}

static int by_long_system(void)
{
	printf("%d\n", system(long_command("echo command ")));
	exit(fflush(stdout));
}

static int by_long_popen(void)
{
	char shown[64] = "";
	FILE *shell = popen(long_command("echo of a pipe "), text("r"));
	printf("%d %s\n", shell && fgets(shown, sizeof shown, shell), shown);
	exit(fflush(stdout));
}

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
	in_child("posix_spawnp", by_posix_spawnp);
	in_child("of a new file", of_a_new_file);
	in_child("execvp, blocked", blocked_by_execvp);
	in_child("execvpe, blocked", blocked_by_execvpe);
	in_child("posix_spawnp, blocked", blocked_by_posix_spawnp);
	in_child("vfork, blocked", blocked_by_vfork);
	in_child("popen, blocked", blocked_by_popen);
	in_child("long system", by_long_system);
	in_child("long popen", by_long_popen);
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
	pid_t child;
	/* None of them leaves anything pinned in this process when it is executed. */
	for (int turn = 0; turn < 30; turn++) {
		child = vfork();
		if (child == 0) {
			execve(shell_path, list, variable);
			_exit(7);
		}
		printf("vfork: %d, ", waitpid(child, &status, 0) == child);
		printf("%d\n", status);
		fflush(stdout);
	}
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
