/* Expected: 64 threads that touch the same closed page at the same moment all read what is there, in each of many rounds, and
 * nothing is left over.
 * @stopped
 * @at-most forwarded 0 */
#include "hostile.h"
#include "possessions.h"
#include <limits.h>

enum { THREADS = 64 };

static int wanted;
static volatile unsigned char *base;
static pthread_barrier_t ready, done;
static int wrong[THREADS];

static size_t place(int round)
{
	return (size_t)round * 13 % 60 * MIB + (size_t)round * 7 % 16 * PAGE;
}

static void *reader(void *argument)
{
	long number = (long)argument;
	for (int round = 0; round < wanted; round++) {
		pthread_barrier_wait(&ready);
		size_t at = place(round);
		wrong[number] += *(volatile uint32_t *)(base + at) != word_at(at);
		pthread_barrier_wait(&done);
	}
	return NULL;
}

/* All threads, from their start to their end. */
static void touch_together(int count, bool is_last)
{
	wanted = count;
	pthread_attr_t attributes;
	pthread_attr_init(&attributes);
	if (pthread_attr_setstacksize(&attributes, PTHREAD_STACK_MIN))
		fail("stack size");
	pthread_t threads[THREADS];
	for (long i = 0; i < THREADS; i++)
		if (pthread_create(&threads[i], &attributes, reader, (void *)i))
			fail("pthread_create");
	for (int round = 0; round < wanted; round++) {
		base = mmap(NULL, file_length, PROT_READ, MAP_SHARED, file_descriptor, 0);
		if (base == MAP_FAILED)
			fail("mmap");
		/* What happens to the optimizer, all threads learn at once. */
		if (is_last && round == wanted / 2)
			rendezvous();
		pthread_barrier_wait(&ready);
		pthread_barrier_wait(&done);
		munmap((void *)base, file_length);
	}
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
}

int main(int count, char **arguments)
{
	(void)count;
	munmap((void *)map_file(arguments, PROT_READ, MAP_SHARED), file_length);
	pthread_barrier_init(&ready, NULL, THREADS + 1);
	pthread_barrier_init(&done, NULL, THREADS + 1);
	Possessions first = possessions();
	/* The C library keeps the stacks of these for the next ones. */
	touch_together(1, false);
	Possessions warm = possessions_with(first.threads);
	first.mappings = warm.mappings;
	first.private_memory = warm.private_memory;
	touch_together(rounds(1000), true);
	int sum = 0;
	for (int i = 0; i < THREADS; i++)
		sum += wrong[i];
	printf("%d wrong\n", sum);
	print_leaks(&first);
	return 0;
}
