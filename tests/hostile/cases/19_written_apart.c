/* Expected: a private mapping that a program first writes to in places far apart, to what it has read and to what it has not, alone
 * or beside readers, in a forked child too, is one mapping when it moves it or asks what is mapped.
 * @no-guards private mappings have none */
#include "hostile.h"
#include "../../reader/programs/maps.h"

static volatile int over;

/* Most of it, without what others write. */
static void *read_on(void *base)
{
	uint32_t sum = 0;
	while (!over)
		for (size_t at = 0; at < file_length; at += MIB)
			sum += read_pages(base, at + PAGE, at + MIB);
	return (void *)(uintptr_t)sum;
}

static volatile unsigned char *map_anew(void)
{
	volatile unsigned char *base = mmap(NULL, file_length, PROT_READ | PROT_WRITE, MAP_PRIVATE, file_descriptor, 0);
	if (base == MAP_FAILED)
		fail("mmap");
	return base;
}

/* Moves it to where there is room for more; all of it must have come along, and what was written in these places. */
static void move(const char *what, volatile unsigned char *base, const size_t *places, int count)
{
	volatile unsigned char *moved = mremap((void *)base, file_length, 2 * file_length, MREMAP_MAYMOVE);
	if (moved == MAP_FAILED) {
		printf("%s: %s\n", what, strerror(errno));
		munmap((void *)base, file_length);
		return;
	}
	show_mappings(what, moved, moved + 2 * file_length);
	for (int place = 0; place < count; place++) {
		if (moved[places[place]] != (unsigned char)(word_at(places[place]) + 1 + place))
			printf("%x at %zu\n", moved[places[place]], places[place]);
		moved[places[place]] -= 1 + place;
	}
	read_pages(moved, 0, file_length);
	munmap((void *)moved, 2 * file_length);
}

static void write_to(volatile unsigned char *base, const size_t *places, int count)
{
	for (int place = 0; place < count; place++)
		base[places[place]] += 1 + place;
}

int main(int count, char **arguments)
{
	(void)count;
	open_file(arguments);
	const size_t apart[] = {0, file_length / 2, file_length - MIB, 12 * MIB, 30 * MIB, 4 * MIB};
	enum { PLACES = sizeof apart / sizeof *apart };
	volatile unsigned char *base = map_anew();

	write_to(base, apart, 1);
	read_pages(base, PAGE, 3 * MIB);
	rendezvous();
	for (int place = 1; place < PLACES; place++)
		base[apart[place]] += 1 + place;
	move("never read", base, apart, PLACES);

	base = map_anew();
	read_pages(base, 0, 6 * MIB);
	read_pages(base, 28 * MIB, 32 * MIB);
	read_pages(base, file_length - 2 * MIB, file_length);
	write_to(base, apart, PLACES);
	move("read", base, apart, PLACES);

	/* A page written by the kernel, after the program has. */
	base = map_anew();
	read_pages(base, 0, 2 * MIB);
	base[apart[0]] += 1;
	unsigned char byte = (unsigned char)(word_at(apart[1]) + 2);
	int ends[2];
	if (pipe(ends) || write(ends[1], &byte, 1) != 1 || read(ends[0], (void *)(base + apart[1]), 1) != 1)
		fail("pipe");
	move("written by the kernel, too", base, apart, 2);

	/* In a child, of what its parent has read. */
	base = map_anew();
	read_pages(base, 0, 6 * MIB);
	fflush(stdout);
	if (fork() == 0) {
		read_pages(base, 28 * MIB, 32 * MIB);
		write_to(base, apart, PLACES);
		move("in a child", base, apart, PLACES);
		fflush(stdout);
		_exit(0);
	}
	wait(NULL);
	munmap((void *)base, file_length);

	for (int round = 0; round < 5; round++) {
		pthread_t readers[2];
		base = map_anew();
		over = 0;
		for (int reader = 0; reader < 2; reader++)
			if (pthread_create(&readers[reader], NULL, read_on, (void *)base))
				fail("pthread_create");
		read_pages(base, 5 * MIB + PAGE, 6 * MIB);
		write_to(base, apart, PLACES);
		over = 1;
		for (int reader = 0; reader < 2; reader++)
			pthread_join(readers[reader], NULL);
		move("beside readers", base, apart, PLACES);
	}
	return 0;
}
