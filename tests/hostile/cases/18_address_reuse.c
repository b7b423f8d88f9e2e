/* Expected: while threads read, other memory that comes to lie where a mapping was is never protected or zeroed. */
#include "hostile.h"

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
	for (int round = 0; round < 300; round++) {
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

int main(int count, char **arguments)
{
	(void)count;
	names = arguments;
	munmap((void *)map_file(arguments, PROT_READ, MAP_SHARED), file_length);
	pthread_t readers[2], reusers[2];
	for (int i = 0; i < 2; i++) {
		pthread_create(&readers[i], NULL, reader, NULL);
		pthread_create(&reusers[i], NULL, reuser, NULL);
	}
	rendezvous();
	for (int i = 0; i < 2; i++)
		pthread_join(reusers[i], NULL);
	stop = 1;
	for (int i = 0; i < 2; i++)
		pthread_join(readers[i], NULL);
	puts("nothing was touched");
	return 0;
}
