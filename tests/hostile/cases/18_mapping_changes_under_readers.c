/* Expected: threads that are just tripping when another one re-protects, moves over or unmaps and maps the same place again
 * read what is there, or die of what they would have died of.
 */
#include "hostile.h"

enum { READERS = 16, ROUNDS = 250 };

static unsigned char *volatile base;
static volatile int stop;
static int wrong[READERS];

static void *reader(void *argument)
{
	long number = (long)argument;
	for (unsigned step = number; !stop; step++) {
		/* All at the same few pages. */
		size_t at = step / READERS % 8 * 8 * MIB;
		uint32_t word = *(volatile uint32_t *)(base + at);
		wrong[number] += word != word_at(at);
	}
	return NULL;
}

int main(int count, char **arguments)
{
	(void)count;
	base = (unsigned char *)map_file(arguments, PROT_READ, MAP_SHARED);
	pthread_t threads[READERS];
	for (long i = 0; i < READERS; i++)
		pthread_create(&threads[i], NULL, reader, (void *)i);
	for (int round = 0; round < ROUNDS; round++) {
		/* Over itself, in one call: closed anew, and never absent. */
		if (mmap(base, file_length, PROT_READ, MAP_SHARED | MAP_FIXED, file_descriptor, 0) != base)
			fail("mmap");
		for (int i = 0; i < 8; i++)
			(void)*(volatile unsigned char *)(base + (i * 11 + round) % 64 * MIB);
		/* Let go of while readers trip. */
		if (round % 2 && mprotect(base, file_length, PROT_READ))
			fail("mprotect");
		if (round == ROUNDS / 2)
			rendezvous();
	}
	stop = 1;
	int sum = 0;
	for (int i = 0; i < READERS; i++) {
		pthread_join(threads[i], NULL);
		sum += wrong[i];
	}
	printf("%d wrong\n", sum);
	fflush(stdout);
	munmap(base, file_length);
	return base[8 * MIB];
}
