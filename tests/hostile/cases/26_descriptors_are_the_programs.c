/* Expected: a program that closes every descriptor it does not know, uses any number, or may have only a few, meets none of
 * ours and loses none of its own; a daemon does all of it. */
#include "hostile.h"
#include <dirent.h>
#include <sys/resource.h>

static volatile unsigned char *base;

static void count_descriptors(const char *when)
{
	int open_ones = 0;
	for (int i = 0; i < 1024; i++)
		open_ones += fcntl(i, F_GETFD) >= 0;
	printf("%s: %d descriptors\n", when, open_ones);
}

int main(int count, char **arguments)
{
	(void)count;
	base = map_file(arguments, PROT_READ, MAP_SHARED);
	count_descriptors("mapped");
	read_pages(base, 0, 10 * MIB);
	count_descriptors("read");
	char name[] = "own-XXXXXX";
	/* All numbers are ours to give: 3 to 40 get a file of our own. */
	int own = mkstemp(name);
	close_range(3, own - 1, 0);
	close_range(own + 1, ~0U, 0);
	for (int number = 3; number < 40; number++)
		if (number != own)
			dup2(own, number);
	read_pages(base, 10 * MIB, 20 * MIB);
	struct stat status;
	fstat(own, &status);
	printf("stray bytes: %ld\n", (long)status.st_size);
	count_descriptors("dup2");
	for (int number = 3; number < 1024; number++)
		close(number);
	/* None to spare. */
	struct rlimit limit, few = { 3, 3 };
	getrlimit(RLIMIT_NOFILE, &limit);
	few.rlim_max = limit.rlim_max;
	setrlimit(RLIMIT_NOFILE, &few);
	read_pages(base, 20 * MIB, 30 * MIB);
	printf("open: %d\n", open("/dev/null", O_RDONLY));
	setrlimit(RLIMIT_NOFILE, &limit);
	rendezvous();
	/* The number that comes next is the lowest. */
	int next = open(arguments[1], O_RDONLY);
	void *other = mmap(NULL, file_length, PROT_READ, MAP_SHARED, next, 0);
	close(next);
	read_pages(other, 0, 10 * MIB);
	printf("next %d, again %d\n", next, open("/dev/null", O_RDONLY));
	fflush(stdout);
	/* As daemons are made; the harness sees its output and waits for it by a pipe that it holds. */
	int ends[2];
	pipe(ends);
	if (fork() == 0) {
		setsid();
		if (fork())
			_exit(0);
		for (int number = 3; number < 1024; number++)
			if (number != ends[1])
				close(number);
		if (chdir("/"))
			_exit(1);
		dprintf(1, "daemon: %x %x\n", read_pages(base, 0, file_length), read_pages(other, 0, file_length));
		_exit(0);
	}
	close(ends[1]);
	char byte;
	read(ends[0], &byte, 1);
	wait(NULL);
	count_descriptors("at the end");
	return 0;
}
