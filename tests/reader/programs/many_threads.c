/* Expected: 64 threads that reach the same checkpoints at once all get on, on the smallest stacks, with every signal
 * blocked in half of them. */
#include "common.h"
#include <limits.h>

static volatile unsigned char *base;
static pthread_barrier_t barrier;
static uint32_t sums[64];

static void *reader(void *argument)
{
	long number = (long)argument;
	if (number % 2) {
		sigset_t all;
		sigfillset(&all);
		if (number % 4 == 1)
			pthread_sigmask(SIG_SETMASK, &all, NULL);
		else
			sigprocmask(SIG_BLOCK, &all, NULL);
	}
	for (size_t at = 0; at < file_length; at += MIB) {
		if (at % (8 * MIB) == 0)
			pthread_barrier_wait(&barrier);
		uint32_t word = *(volatile uint32_t *)(base + at);
		sums[number] = sums[number] * 31 + word;
	}
	return NULL;
}

int main(int count, char **arguments)
{
	(void)count;
	base = map_file(arguments, PROT_READ, MAP_SHARED);
	pthread_barrier_init(&barrier, NULL, 64);
	pthread_attr_t attributes;
	pthread_attr_init(&attributes);
	if (pthread_attr_setstacksize(&attributes, PTHREAD_STACK_MIN))
		fail("stack size");
	for (int round = 0; round < 3; round++) {
		pthread_t threads[64];
		for (long i = 0; i < 64; i++)
			if (pthread_create(&threads[i], &attributes, reader, (void *)i))
				fail("pthread_create");
		for (int i = 0; i < 64; i++)
			pthread_join(threads[i], NULL);
	}
	for (int i = 1; i < 64; i++)
		if (sums[i] != sums[0])
			printf("thread %d: %x\n", i, sums[i]);
	printf("%x\n", sums[0]);
	return 0;
}
