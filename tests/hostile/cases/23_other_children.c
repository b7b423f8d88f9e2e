/* Expected: children of vfork, posix_spawn, system, popen, clone with shared memory and without, with no signal handler of its
 * parent's, and _Fork read closed pages before they execute or end, and the parent reads on. */
#include "hostile.h"
#include <sched.h>
#include <spawn.h>
#include <sys/syscall.h>

extern char **environ;
static volatile unsigned char *base;
static char stack[65536] __attribute__((aligned(16)));

static int shares(void *argument)
{
	size_t at = (size_t)argument;
	return *(volatile uint32_t *)(base + at) != word_at(at);
}

static void end_of(const char *what, pid_t child)
{
	int status = -1;
	if (child < 0 || waitpid(child, &status, __WALL) != child)
		printf("%s: %s\n", what, strerror(errno));
	printf("%s: %d\n", what, status);
	fflush(stdout);
}

int main(int count, char **arguments)
{
	base = map_file(arguments, PROT_READ, MAP_SHARED);
	if (count > 2)
		return read_pages(base, 0, file_length) == 1;
	read_pages(base, 0, MIB);
	char *again[] = { arguments[0], arguments[1], "again", NULL };
	for (int round = 0; round < 12; round++) {
		size_t at = (4 + round * 5) % 60 * MIB;
		pid_t child = vfork();
		if (child == 0) {
			if (*(volatile uint32_t *)(base + at) != word_at(at))
				_exit(9);
			execv(again[0], again);
			_exit(8);
		}
		end_of("vfork", child);
		posix_spawn(&child, again[0], NULL, NULL, again, environ);
		end_of("posix_spawn", child);
		end_of("clone, shared", clone(shares, stack + sizeof stack, CLONE_VM | CLONE_VFORK | SIGCHLD, (void *)(at + MIB)));
		end_of("clone", clone(shares, stack + sizeof stack, SIGCHLD, (void *)(at + 2 * MIB)));
		child = syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
		if (child == 0)
			_exit(shares((void *)(at + 3 * MIB)));
		end_of("clone by number", child);
		child = _Fork();
		if (child == 0)
			_exit(shares((void *)(at + 3 * MIB + 64 * 1024)));
		end_of("_Fork", child);
		if (round == 6)
			rendezvous();
	}
	volatile unsigned char *other = mmap(NULL, file_length, PROT_READ, MAP_SHARED, file_descriptor, 0);
	for (int round = 0; round < 3; round++) {
		read_pages(other, round * 9 * MIB, (round * 9 + 4) * MIB);
		/* CLONE_CLEAR_SIGHAND, and the signal at the end. */
		unsigned long long how[8] = { round < 2 ? 1ULL << 32 : 0, 0, 0, 0, SIGCHLD };
		base = other;
		pid_t child = syscall(SYS_clone3, how, sizeof how);
		if (child == 0)
			_exit(shares((void *)(size_t)((round * 9 + 8) * MIB)));
		end_of("clone3", child);
	}
	printf("%ld\n", syscall(SYS_clone3, NULL, 64L));
	for (int i = 0; i < 10; i++) {
		char line[8] = "";
		FILE *pipe = popen("echo 5", "r");
		if (!fgets(line, sizeof line, pipe))
			puts("nothing read");
		printf("system %d, popen %d %s", system("true; exit 3"), pclose(pipe), line);
	}
	printf("%x\n", read_pages(base, 0, file_length));
	return 0;
}
