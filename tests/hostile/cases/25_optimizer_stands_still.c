/* Expected: whether the optimizer is killed or stands still, the program reads on, starts children and ends, with no SIGPIPE
 * and no more children than its own.
 * @stopped */
#include "hostile.h"

static void on_pipe(int signal)
{
	(void)signal;
	write(2, "SIGPIPE\n", 8);
}

int main(int count, char **arguments)
{
	(void)count;
	signal(SIGPIPE, on_pipe);
	volatile unsigned char *base = map_file(arguments, PROT_READ, MAP_SHARED);
	read_pages(base, 0, file_length / 2);
	rendezvous();
	/* A trip at every step, many more than the ring takes. */
	for (int epoch = 0; epoch < 20; epoch++) {
		volatile unsigned char *again = mmap(NULL, file_length, PROT_READ, MAP_SHARED, file_descriptor, 0);
		for (size_t at = 0; at < file_length; at += 256 * 1024)
			if (*(volatile uint32_t *)(again + at) != word_at(at))
				printf("wrong at %zu\n", at);
		munmap((void *)again, file_length);
	}
	fflush(stdout);
	if (fork() == 0)
		_exit(read_pages(base, 0, file_length) == 0);
	int status;
	wait(&status);
	printf("child %d, others %d\n", status, (int)waitpid(-1, NULL, WNOHANG));
	printf("%x\n", read_pages(base, 0, file_length));
	return 0;
}
