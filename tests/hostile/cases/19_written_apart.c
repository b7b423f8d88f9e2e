/* Expected: a private mapping that a program first writes to in places far apart, to what it has read and to what it has not, alone
 * or beside readers, also after system calls and in forked children, is grown where it is, moved, and moved again as one; what
 * natively is not one is not.
 * @no-guards private mappings have none */
#include "hostile.h"

enum { PLACES = 6 };
static size_t apart[PLACES];
static volatile int over;

static void *map_at(void *place, size_t length, int flags)
{
	void *base = mmap(place, length, PROT_READ | PROT_WRITE, MAP_PRIVATE | flags, file_descriptor, 0);
	if (base == MAP_FAILED)
		fail("mmap");
	return base;
}

static volatile unsigned char *map_anew(void)
{
	return map_at(NULL, file_length, 0);
}

/* Room for so many files. */
static unsigned char *room(int files)
{
	unsigned char *place = mmap(NULL, files * file_length, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (place == MAP_FAILED)
		fail("mmap");
	return place;
}

static void write_to(volatile unsigned char *base)
{
	for (int place = 0; place < PLACES; place++)
		base[apart[place]] += 1 + place;
}

/* What was written to it, and all that was not. */
static void check(const char *what, volatile unsigned char *base, size_t length)
{
	for (int place = 0; place < PLACES; place++) {
		if (apart[place] >= length)
			continue;
		if (base[apart[place]] != (unsigned char)(word_at(apart[place]) + 1 + place))
			printf("%s: %x at %zu\n", what, base[apart[place]], apart[place]);
		base[apart[place]] -= 1 + place;
	}
	read_pages(base, 0, length);
	for (int place = 0; place < PLACES; place++)
		if (apart[place] < length)
			base[apart[place]] += 1 + place;
}

/* mremap(2), of what has these bytes then, if it succeeds. Nothing may be left behind. */
static volatile unsigned char *moved(const char *what, volatile unsigned char *base, size_t length, size_t new_length, int flags,
				     void *to)
{
	unsigned char resident;
	errno = 0;
	volatile unsigned char *result = mremap((void *)base, length, new_length, flags, to);
	printf("%s: %s%s\n", what, strerror(errno), result == base ? ", where it was" : result == to ? ", there" : "");
	if (result == MAP_FAILED)
		return result;
	size_t kept = length < new_length ? length : new_length;
	check(what, result, kept < file_length ? kept : file_length);
	if (result != base)
		for (size_t at = 0; at < length; at += MIB)
			if (!mincore((void *)(base + at), PAGE, &resident) || errno != ENOMEM)
				printf("%s: left behind at %zu\n", what, at);
	return result;
}

/* To where there is room for twice as much, and back to where that is. */
static void move(const char *what, volatile unsigned char *base)
{
	volatile unsigned char *there = moved(what, base, file_length, 2 * file_length, MREMAP_MAYMOVE, NULL);
	if (there == MAP_FAILED)
		return;
	unsigned char *place = room(2);
	there = moved("again", there, 2 * file_length, 2 * file_length, MREMAP_MAYMOVE | MREMAP_FIXED, place);
	munmap((void *)there, 2 * file_length);
}

static void *read_on(void *base)
{
	uint32_t sum = 0;
	while (!over)
		for (size_t at = 0; at < file_length; at += MIB)
			sum += read_pages(base, at + PAGE, at + MIB);
	return (void *)(uintptr_t)sum;
}

static void in_a_child(volatile unsigned char *base, int writes)
{
	fflush(stdout);
	if (fork() == 0) {
		read_pages(base, 28 * MIB, 29 * MIB);
		if (writes)
			write_to(base);
		move("in a child", base);
		fflush(stdout);
		_exit(0);
	}
	wait(NULL);
}

/* Two mappings of the file one behind the other, of which both have been written to. */
static void what_is_not_one(void)
{
	unsigned char *place = room(3);
	volatile unsigned char *base = map_at(place, file_length, MAP_FIXED);
	map_at(place + file_length, file_length, MAP_FIXED);
	write_to(base);
	write_to(base + file_length);
	volatile unsigned char *result = mremap(place, 2 * file_length, 3 * file_length, MREMAP_MAYMOVE);
	printf("two mappings: %s\n", result == MAP_FAILED ? strerror(errno) : "moved");
	result = mremap(place + file_length / 2, file_length, 2 * file_length, MREMAP_MAYMOVE);
	printf("halves of two: %s\n", result == MAP_FAILED ? strerror(errno) : "moved");
	check("the first", base, file_length);
	check("the second", base + file_length, file_length);
	munmap(place, 3 * file_length);
}

int main(int count, char **arguments)
{
	(void)count;
	open_file(arguments);
	const size_t places[PLACES] = {0, file_length / 2, file_length - MIB, 12 * MIB, 30 * MIB, 4 * MIB};
	memcpy(apart, places, sizeof apart);

	volatile unsigned char *base = map_anew();
	read_pages(base, PAGE, 3 * MIB);
	base[apart[0]] += 1;
	rendezvous();
	for (int place = 1; place < PLACES; place++)
		base[apart[place]] += 1 + place;
	move("never read", base);

	base = map_anew();
	read_pages(base, 0, 6 * MIB);
	read_pages(base, 28 * MIB, 32 * MIB);
	read_pages(base, file_length - 2 * MIB, file_length);
	write_to(base);
	move("read", base);

	/* Where it is, while there is room; part of it; to where something is. */
	unsigned char *place = room(3);
	base = map_at(place, file_length, MAP_FIXED);
	write_to(base);
	munmap(place + file_length, file_length);
	moved("grown", base, file_length, 2 * file_length, 0, NULL);
	moved("no room", base, 2 * file_length, 3 * file_length, 0, NULL);
	munmap(place, 3 * file_length);

	base = map_anew();
	write_to(base);
	place = room(2);
	base = moved("shrunk", base, file_length, 40 * MIB, MREMAP_MAYMOVE | MREMAP_FIXED, place);
	base = moved("parts of pages", base, 40 * MIB - 9, 41 * MIB - 9, MREMAP_MAYMOVE | MREMAP_FIXED, place + file_length);
	munmap((void *)base, 41 * MIB);

	/* After calls that have read or filled parts of it. */
	base = map_anew();
	read_pages(base, 0, 2 * MIB);
	unsigned char byte = (unsigned char)(word_at(apart[1]) + 2);
	int ends[2], nothing = open("/dev/null", O_WRONLY);
	if (write(nothing, (void *)(base + 20 * MIB), PAGE) != (ssize_t)PAGE || pipe(ends) || write(ends[1], &byte, 1) != 1 ||
	    read(ends[0], (void *)(base + apart[1]), 1) != 1)
		fail("pipe");
	base[apart[1]] -= 2;
	write_to(base);
	move("after calls", base);

	base = map_anew();
	read_pages(base, 0, 6 * MIB);
	in_a_child(base, 1);
	write_to(base);
	in_a_child(base, 0);
	move("a parent's", base);

	for (int round = 0; round < 3; round++) {
		pthread_t readers[2];
		base = map_anew();
		over = 0;
		for (int reader = 0; reader < 2; reader++)
			if (pthread_create(&readers[reader], NULL, read_on, (void *)base))
				fail("pthread_create");
		read_pages(base, 5 * MIB + PAGE, 6 * MIB);
		write_to(base);
		over = 1;
		for (int reader = 0; reader < 2; reader++)
			pthread_join(readers[reader], NULL);
		move("beside readers", base);
	}
	what_is_not_one();
	return 0;
}
