/* Expected: threads that write what is mapped piece by piece, each from pages of its own and from those of the others, write every
 * byte, while others read the same mapping over and over, so that pages behind them are closed again; so does one that maps the
 * file anew in the same place between its pieces.
 * @counter lifted_for_calls 10 */
#include "hostile.h"

enum { WRITERS = 3, ROUNDS = 60, PIECES = 400 };

static volatile unsigned char *volatile base, *volatile fixed;
static volatile int stop;

static void *reader(void *argument)
{
	(void)argument;
	for (size_t epoch = 0; !stop; epoch++) {
		volatile unsigned char *mapping = base;
		for (size_t at = epoch % 13 * 5 * PAGE; at < file_length && !stop; at += (1 + epoch % 3) * MIB / 4)
			(void)mapping[at];
	}
	return NULL;
}

/* So long pieces, one after the other, from there on. Wrong ones are counted. */
static long write_pieces(int copy, FILE *stream, const volatile unsigned char *mapping, size_t at, size_t length)
{
	long wrong = 0;
	char back[300];
	for (size_t piece = 0; piece < PIECES; piece++, at += length) {
		const char *from = (const char *)mapping + at;
		if (pwrite(copy, from, length, 0) != (ssize_t)length || pread(copy, back, length, 0) != (ssize_t)length ||
		    memcmp(back, from, length))
			wrong++;
		if (fwrite(from, length, 1, stream) != 1)
			wrong++;
	}
	return wrong;
}

static void *writer(void *argument)
{
	size_t number = (size_t)argument;
	long wrong = 0;
	int copy = memfd_create("copy", 0);
	FILE *stream = fopen("/dev/null", "w");
	for (size_t round = 0; round < ROUNDS; round++) {
		/* Where others are, too, in every third round. */
		size_t place = (round * 37 + (round % 3 ? number * 11 : 0)) * PAGE * 7 % (file_length - MIB);
		wrong += write_pieces(copy, stream, base, place, 1 + (round * 53 + number * 71) % 299);
	}
	fclose(stream), close(copy);
	return (void *)wrong;
}

int main(int count, char **arguments)
{
	(void)count;
	base = map_file(arguments, PROT_READ, MAP_SHARED);
	pthread_t readers[2], writers[WRITERS];
	for (int i = 0; i < 2; i++)
		pthread_create(&readers[i], NULL, reader, NULL);
	for (size_t i = 0; i < WRITERS; i++)
		pthread_create(&writers[i], NULL, writer, (void *)i);
	/* The same addresses again and again: what was open there is closed, or somebody else's. */
	int copy = memfd_create("copy", 0);
	FILE *stream = fopen("/dev/null", "w");
	fixed = mmap(NULL, file_length, PROT_READ, MAP_SHARED, file_descriptor, 0);
	long wrong = 0;
	for (size_t round = 0; round < ROUNDS; round++) {
		wrong += write_pieces(copy, stream, fixed, round % 2 ? 0 : 8 * MIB - PAGE, 40);
		if (round == ROUNDS / 2)
			rendezvous();
		if (mmap((void *)fixed, file_length, PROT_READ, MAP_SHARED | MAP_FIXED, file_descriptor, 0) != fixed)
			fail("mmap");
	}
	for (int i = 0; i < WRITERS; i++) {
		void *missed;
		pthread_join(writers[i], &missed);
		wrong += (long)missed;
	}
	stop = 1;
	for (int i = 0; i < 2; i++)
		pthread_join(readers[i], NULL);
	printf("%ld pieces went wrong\n", wrong);
	return 0;
}
