/* Expected: children forked from several threads at once, while others read, read every byte of what they touch first, and
 * so do their parent and the children that they fork at exit. */
#include "hostile.h"

enum { FORKERS = 4, READERS = 3, ROUNDS = 60 };

static volatile unsigned char *base;
static volatile int stop;
static int wrong[FORKERS + READERS];

static void *reader(void *argument)
{
	long number = (long)argument;
	for (size_t step = number; !stop; step++) {
		size_t at = step * 977 * PAGE % file_length;
		wrong[number] += *(volatile uint32_t *)(base + at) != word_at(at);
	}
	return NULL;
}

static void *forker(void *argument)
{
	long number = (long)argument;
	for (int round = 0; round < ROUNDS; round++) {
		pid_t child = fork();
		if (child == 0) {
			size_t at = (number * 16 + round * 5 % 16) * MIB;
			for (size_t i = 0; i < 40; i++)
				if (*(volatile uint32_t *)(base + (at + i * 3 * 64 * 1024) % file_length) != word_at((at + i * 3 * 64 * 1024) % file_length))
					_exit(1);
			_exit(0);
		}
		int status;
		if (waitpid(child, &status, 0) != child || status)
			wrong[number]++;
	}
	return NULL;
}

static void at_exit(void)
{
	fflush(stdout);
	pid_t child = fork();
	if (child == 0) {
		printf("at exit: %x\n", read_pages(base, 0, file_length));
		fflush(stdout);
		_exit(0);
	}
	int status;
	waitpid(child, &status, 0);
	printf("parent at exit: %x, %d\n", read_pages(base, 0, file_length), status);
	fflush(stdout);
}

int main(int count, char **arguments)
{
	(void)count;
	base = map_file(arguments, PROT_READ, MAP_SHARED);
	read_pages(base, 0, MIB);
	pthread_t threads[FORKERS + READERS];
	for (long i = 0; i < FORKERS; i++)
		pthread_create(&threads[i], NULL, forker, (void *)i);
	for (long i = FORKERS; i < FORKERS + READERS; i++)
		pthread_create(&threads[i], NULL, reader, (void *)i);
	rendezvous();
	int sum = 0;
	for (int i = 0; i < FORKERS + READERS; i++) {
		if (i == FORKERS)
			stop = 1;
		pthread_join(threads[i], NULL);
		sum += wrong[i];
	}
	printf("%d wrong\n", sum);
	atexit(at_exit);
	return 0;
}
