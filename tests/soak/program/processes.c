/* Children. */
#include "soak.h"
#include <spawn.h>

extern char **environ;

int depth;

static int end_of(pid_t child)
{
	int status;
	while (waitpid(child, &status, 0) != child)
		if (errno != EINTR)
			fail("waitpid");
	if (WIFEXITED(status) && WEXITSTATUS(status))
		wrong("the exit status of a child", WEXITSTATUS(status), 0);
	return status;
}

/* A child that does some operations of its own on its copy of everything. */
void op_fork(Random *random, Findings *findings)
{
	uint64_t seed = next(random), found = 0;
	int news[2];
	if (pipe(news))
		fail("pipe");
	pid_t child = fork();
	if (child < 0)
		fail("fork");
	if (child == 0) {
		Random own = {seed};
		Findings its = {0};
		depth++;
		for (size_t left = below(&own, 16); left > 0; left--)
			do_something(&own, &its);
		if (write(news[1], &its.hash, sizeof its.hash) != sizeof its.hash)
			fail("write");
		if (one_in(&own, 4))
			die(&own);
		_exit(0);
	}
	close(news[1]);
	ssize_t length = read(news[0], &found, sizeof found);
	close(news[0]);
	note(findings, length);
	note(findings, found);
	note(findings, end_of(child));
}

/* A program of its own; or a child that reads before it becomes one. */
void op_spawn(Random *random, Findings *findings)
{
	char *const words[] = {"true", NULL};
	volatile pid_t child;
	if (one_in(random, 2)) {
		pid_t spawned;
		if (posix_spawn(&spawned, "/bin/true", NULL, NULL, words, environ))
			fail("posix_spawn");
		child = spawned;
	} else {
		uint64_t seed = next(random);
		child = vfork();
		if (child == 0) {
			Random own = {seed};
			read_steadily(&own, 8);
			execve("/bin/true", words, environ);
			_exit(1);
		}
	}
	note(findings, end_of(child));
}
