/* Expected: a sanitizer build that nobody can look at before it is executed starts, and runs without our library: where the
 * descriptor is open for its path alone, the file may be executed and not read, the name is one in a folder that the child
 * goes to first, or the process has no descriptor left.
 * @not-detected a sanitizer build does not start behind the detector either
 * @counter active_readers 1 */
#include "hostile.h"
#include "executed.h"
#include <sys/resource.h>

static void without_descriptors(char **again)
{
	struct rlimit few = { 64, 64 };
	setrlimit(RLIMIT_NOFILE, &few);
	while (fcntl(0, F_DUPFD_CLOEXEC, 0) >= 0)
		;
	execve("./with-asan", again, environ);
}

/* As a user who may execute the file and not read it: root may do both. */
static void without_rights(const char *program, char **again)
{
	if (geteuid() == 0 && (setgid(65534) || setuid(65534)))
		_exit(76);
	if (open(program + 2, O_RDONLY) >= 0)
		_exit(75);
	setenv("PATH", ".:/usr/bin:/bin", 1);
	execvp(program + 2, again);
}

int main(int count, char **arguments)
{
	(void)count;
	volatile unsigned char *base = map_file(arguments, PROT_READ, MAP_SHARED);
	read_pages(base, 0, 20 * MIB);
	setenv("SHOWN", "kept", 1);
	setenv("ASAN_OPTIONS", "detect_leaks=0", 1);
	chmod(".", 0755);
	write_reader();
	compile("-fsanitize=address", "with-asan");
	rename("child.c", "child-that-reads.c");
	FILE *source = fopen("child.c", "w");
	fputs("#include <stdio.h>\nint main(void) { puts(\"started\"); return 0; }\n", source);
	fclose(source);
	compile("-fsanitize=address", "with-asan-unreadable");
	chmod("with-asan-unreadable", 0111);
	mkdir("folder", 0755);
	link("with-asan", "folder/elsewhere");
	rendezvous();
	char *again[] = { "with-asan", arguments[1], NULL };
	int path = open("with-asan", O_PATH | O_CLOEXEC);
	IN_CHILD("fexecve", fexecve(path, again, environ));
	IN_CHILD("descriptor", execveat(path, "", again, environ, AT_EMPTY_PATH));
	close(path);
	pid_t child = fork();
	if (child == 0) {
		without_descriptors(again);
		_exit(77);
	}
	end_of("no descriptors", child);
	child = fork();
	if (child == 0) {
		without_rights("./with-asan-unreadable", again);
		_exit(77);
	}
	end_of("no right to read", child);
	posix_spawn_file_actions_t actions;
	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_addchdir_np(&actions, "folder");
	if (posix_spawn(&child, "./elsewhere", &actions, NULL, again, environ) == 0)
		end_of("another folder", child);
	posix_spawn_file_actions_destroy(&actions);
	printf("%x\n", read_pages(base, 0, file_length));
	return 0;
}
