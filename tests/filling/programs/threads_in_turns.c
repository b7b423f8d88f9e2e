/* Four threads read the file in turns: each the next record of 49 pages, when all of them have read theirs. */
#include "../../reader/programs/common.h"
#include <pthread.h>

#define THREADS 4
#define RECORD (49 * PAGE)

static const volatile unsigned char *base;
static pthread_barrier_t all;
static uint32_t sums[THREADS];

static void *read_in_turns(void *number)
{
	size_t thread = (size_t)number;
	for (size_t at = thread * RECORD; at + (THREADS - thread) * RECORD <= file_length; at += THREADS * RECORD) {
		sums[thread] = sums[thread] * 31 + read_pages(base, at, at + RECORD);
		pthread_barrier_wait(&all);
	}
	return NULL;
}

int main(int count, char **arguments)
{
	(void)count;
	base = map_file(arguments, PROT_READ, MAP_SHARED);
	pthread_barrier_init(&all, NULL, THREADS);
	pthread_t threads[THREADS];
	for (size_t thread = 0; thread < THREADS; thread++)
		pthread_create(&threads[thread], NULL, read_in_turns, (void *)thread);
	for (size_t thread = 0; thread < THREADS; thread++) {
		pthread_join(threads[thread], NULL);
		printf("%x\n", sums[thread]);
	}
	return 0;
}
