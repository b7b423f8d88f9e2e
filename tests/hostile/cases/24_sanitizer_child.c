/* Expected: a sanitizer build that an injected program executes, however it does so, starts and runs, without our library
 * and with all of its environment; other children keep the library.
 * @not-detected a sanitizer build does not start behind the detector either
 * @counter active_readers 2 */
#include "hostile.h"
#include "executed.h"
#include <sys/syscall.h>

static void script(const char *name, const char *interpreter, const char *argument)
{
	FILE *file = fopen(name, "w");
	fprintf(file, argument ? "#! \t%s %s\n" : "#!%s\n", interpreter, argument);
	fclose(file);
	chmod(name, 0755);
}

int main(int count, char **arguments)
{
	(void)count;
	volatile unsigned char *base = map_file(arguments, PROT_READ, MAP_SHARED);
	read_pages(base, 0, 20 * MIB);
	write_reader();
	setenv("SHOWN", "kept", 1);
	setenv("ASAN_OPTIONS", "detect_leaks=0", 1);
	compile("-fsanitize=address", "with-asan");
	compile("-fsanitize=thread", "with-tsan");
	compile("-O1", "without");
	rendezvous();
	for (int i = 0; i < 3; i++) {
		char *names[] = { "./with-asan", "./with-tsan", "./without" }, *again[] = { names[i], arguments[1], NULL };
		char *one[] = { "SHOWN=alone", "ASAN_OPTIONS=detect_leaks=0", NULL }, path[4096];
		IN_CHILD("execve", execve(names[i], again, environ));
		IN_CHILD("execve, own environment", execve(names[i], again, one));
		IN_CHILD("execv", execv(names[i], again));
		setenv("PATH", ".:/usr/bin:/bin", 1);
		IN_CHILD("execvp", execvp(names[i] + 2, again));
		IN_CHILD("execvpe", execvpe(names[i] + 2, again, environ));
		IN_CHILD("execl", execl(names[i], names[i], arguments[1], NULL));
		IN_CHILD("execl, many", execl(names[i], names[i], arguments[1], "2", "3", "4", "5", "6", "7", "8", NULL));
		IN_CHILD("execlp", execlp(names[i] + 2, names[i], arguments[1], NULL));
		IN_CHILD("execle", execle(names[i], names[i], arguments[1], NULL, environ));
		IN_CHILD("execle, many", execle(names[i], names[i], arguments[1], "2", "3", "4", "5", "6", NULL, one));
		IN_CHILD("execveat", execveat(AT_FDCWD, names[i], again, environ, 0));
		IN_CHILD("by number", syscall(SYS_execve, names[i], again, environ));
		IN_CHILD("at, by number", syscall(SYS_execveat, AT_FDCWD, names[i], again, environ, 0));
		int file = open(names[i], O_RDONLY | O_CLOEXEC);
		IN_CHILD("fexecve", fexecve(file, again, environ));
		IN_CHILD("descriptor", execveat(file, "", again, environ, AT_EMPTY_PATH));
		IN_CHILD("descriptor by number", syscall(SYS_execveat, file, "", again, environ, AT_EMPTY_PATH));
		close(file);
		pid_t child;
		if (posix_spawn(&child, names[i], NULL, NULL, again, environ) == 0)
			end_of("posix_spawn", child);
		if (posix_spawnp(&child, names[i] + 2, NULL, NULL, again, environ) == 0)
			end_of("posix_spawnp", child);
		snprintf(path, sizeof path, "%s %s", names[i], arguments[1]);
		fflush(stdout);
		printf("system %d\n", system(path));
		fflush(stdout);
		printf("popen %d\n", pclose(popen(path, "w")));
		/* As the interpreter of a script, and of a script that is one's interpreter. */
		script("script", names[i], arguments[1]);
		script("script-of-script", "./script", NULL);
		IN_CHILD("script", execv("./script", again));
		IN_CHILD("script of a script", execve("./script-of-script", again, environ));
		IN_CHILD("script found", execlp("script", "script", NULL));
	}
	printf("%x\n", read_pages(base, 0, file_length));
	return 0;
}
