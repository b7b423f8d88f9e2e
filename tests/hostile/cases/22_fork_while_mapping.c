/* Expected: children that are forked while another thread maps a file inherit no descriptor of ours. */
#include "hostile.h"
#include <stdatomic.h>

static int file;
static atomic_int done;

static void *map_files(void *nothing)
{
	while (!done) {
		void *base = mmap(NULL, file_length, PROT_READ, MAP_SHARED, file, 0);
		if (base == MAP_FAILED || munmap(base, file_length))
			fail("the file again");
	}
	return nothing;
}

static int descriptors(void)
{
	int count = 0;
	for (int number = 0; number < 1024; number++)
		count += fcntl(number, F_GETFD) >= 0;
	return count;
}

int main(int count, char **arguments)
{
	(void)count;
	volatile unsigned char *base = map_file(arguments, PROT_READ, MAP_SHARED);
	printf("first: %x\n", read_pages(base, 0, file_length / 2));
	rendezvous();
	pthread_t thread;
	if ((file = open(arguments[1], O_RDONLY)) < 0)
		fail(arguments[1]);
	int before = descriptors(), bad = 0;
	if (pthread_create(&thread, NULL, map_files, NULL))
		fail("another thread");
	for (int child = 0; child < rounds(500); child++) {
		int status;
		pid_t process = fork();
		if (process == 0)
			_exit(descriptors() > before);
		if (waitpid(process, &status, 0) != process || !WIFEXITED(status))
			fail("a child");
		bad += WEXITSTATUS(status);
	}
	done = 1;
	pthread_join(thread, NULL);
	printf("with more descriptors: %d\nsecond: %x\n", bad, read_pages(base, file_length / 2, file_length));
	return 0;
}
