/* Expected: threads that read memory of the program's while the file is mapped over it, in one place after the other, read what
 * was there or what is there: pages are closed once it is known whose they are. Nothing has been unmapped yet.
 */
#include "hostile.h"

enum { READERS = 2, PLACES = 40 };

static unsigned char *ground;
static volatile int current, stop;
static unsigned reads[READERS];

static void *reader(void *argument)
{
	unsigned *own = &reads[(long)argument];
	while (!stop) {
		uint32_t word = *(volatile uint32_t *)(ground + current * file_length);
		if (word && word != word_at(0))
			abort();
		__atomic_fetch_add(own, 1, __ATOMIC_SEQ_CST);
	}
	return NULL;
}

/* Until all have read what is current now. */
static void await_readers(void)
{
	for (int i = 0; i < READERS; i++) {
		unsigned before = __atomic_load_n(&reads[i], __ATOMIC_SEQ_CST);
		while (__atomic_load_n(&reads[i], __ATOMIC_SEQ_CST) - before < 100)
			sched_yield();
	}
}

int main(int count, char **arguments)
{
	(void)count;
	map_file(arguments, PROT_READ, MAP_SHARED);
	ground = mmap(NULL, PLACES * file_length, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (ground == MAP_FAILED)
		fail("mmap");
	pthread_t threads[READERS];
	for (long i = 0; i < READERS; i++)
		pthread_create(&threads[i], NULL, reader, (void *)i);
	for (int number = 0; number < PLACES; number++) {
		current = number;
		await_readers();
		unsigned char *place = ground + number * file_length;
		if (mmap(place, file_length, PROT_READ, MAP_SHARED | MAP_FIXED, file_descriptor, 0) != place)
			fail("mmap");
		await_readers();
		if (number == PLACES / 2)
			rendezvous();
		if (read_pages(place, 0, 4 * MIB) != read_pages(ground, 0, 4 * MIB))
			puts("another file");
	}
	stop = 1;
	for (int i = 0; i < READERS; i++)
		pthread_join(threads[i], NULL);
	puts("all as it was");
	return 0;
}
