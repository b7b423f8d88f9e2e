/* Expected: while threads read, other memory that comes to lie where a mapping was is never protected or zeroed; nor where
 * they are still tripping in the mapping when it goes. */
#include "hostile.h"

enum { READERS = 2, TRIPPERS = 3, PLACES = 64, PASS = 20, MINE = 0x50505050 };

static char **names;
static volatile int stop;

static void *reader(void *unused)
{
	(void)unused;
	int file = open(names[1], O_RDONLY);
	while (!stop) {
		volatile unsigned char *base = mmap(NULL, file_length, PROT_READ, MAP_SHARED, file, 0);
		for (size_t at = 0; at < file_length; at += MIB)
			if (*(volatile uint32_t *)(base + at) != word_at(at))
				abort();
		munmap((void *)base, file_length);
	}
	return NULL;
}

static void *reuser(void *unused)
{
	(void)unused;
	for (int round = 0; round < 100; round++) {
		unsigned char *base = mmap(NULL, file_length, PROT_READ, MAP_SHARED, file_descriptor, 0);
		uint32_t word = *(volatile uint32_t *)(base + (round % 60) * MIB);
		if (word != word_at((round % 60) * MIB))
			abort();
		munmap(base, file_length);
		unsigned char *mine = mmap(base, 4 * MIB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		memset(mine, round | 1, 4 * MIB);
		for (size_t at = 0; at < 4 * MIB; at += PAGE)
			if (mine[at] != (unsigned char)(round | 1))
				abort();
		munmap(mine, 4 * MIB);
	}
	return NULL;
}

static unsigned char *ground;
static pthread_barrier_t ready, done;
static unsigned passed;

static volatile uint32_t *place(unsigned step)
{
	return (volatile uint32_t *)(ground + step * 29 % PLACES * MIB);
}

/* Touches one place after the other: the file is there, or nothing but zeros. */
static void *tripper(void *argument)
{
	for (unsigned step = (long)argument * PASS;; step += PLACES / TRIPPERS) {
		pthread_barrier_wait(&ready);
		if (stop)
			return NULL;
		for (int i = 0; i < PASS; i++, __atomic_fetch_add(&passed, 1, __ATOMIC_SEQ_CST)) {
			volatile uint32_t *at = place(step + i);
			uint32_t word = *at;
			if (word != word_at((unsigned char *)at - ground) && word != 0)
				abort();
		}
		pthread_barrier_wait(&done);
	}
}

/* Puts memory of the program's where the file is, in one call: there is always something. What a thread does that was on its
 * way in the mapping is done when all have finished the pass: then it would be seen. */
static void replace(int most)
{
	for (int round = 0; round < most; round++) {
		if (mmap(ground, file_length, PROT_READ, MAP_SHARED | MAP_FIXED, file_descriptor, 0) != ground)
			fail("mmap");
		passed = 0;
		pthread_barrier_wait(&ready);
		while (__atomic_load_n(&passed, __ATOMIC_SEQ_CST) < round * 7u % (TRIPPERS * PASS))
			sched_yield();
		if (mmap(ground, file_length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0) != ground)
			fail("mmap");
		pthread_barrier_wait(&done);
		if (round == most / 2)
			rendezvous();
		for (unsigned step = 0; step < PLACES; step++) {
			if (*place(step))
				abort();
			*place(step) = MINE;
		}
	}
}

int main(int count, char **arguments)
{
	(void)count;
	names = arguments;
	ground = (unsigned char *)map_file(arguments, PROT_READ, MAP_SHARED);
	pthread_barrier_init(&ready, NULL, TRIPPERS + 1);
	pthread_barrier_init(&done, NULL, TRIPPERS + 1);
	pthread_t readers[READERS], reusers[READERS], trippers[TRIPPERS];
	for (long i = 0; i < TRIPPERS; i++)
		pthread_create(&trippers[i], NULL, tripper, (void *)i);
	replace(rounds(300));
	stop = 1;
	pthread_barrier_wait(&ready);
	for (int i = 0; i < TRIPPERS; i++)
		pthread_join(trippers[i], NULL);
	stop = 0;
	for (int i = 0; i < READERS; i++) {
		pthread_create(&readers[i], NULL, reader, NULL);
		pthread_create(&reusers[i], NULL, reuser, NULL);
	}
	for (int i = 0; i < READERS; i++)
		pthread_join(reusers[i], NULL);
	stop = 1;
	for (int i = 0; i < READERS; i++)
		pthread_join(readers[i], NULL);
	puts("nothing was touched");
	return 0;
}
