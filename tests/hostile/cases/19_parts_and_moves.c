/* Expected: partial unmapping at every kind of place, mappings over parts, and mremap that duplicates, leaves behind, fails or
 * lands on other armed mappings give the addresses, errors, protections and bytes that they give natively, also while
 * other threads read what stays.
 * @report the program changed the mapping itself */
#include "hostile.h"
#include "../../reader/programs/maps.h"

#ifndef MREMAP_DONTUNMAP
#define MREMAP_DONTUNMAP 4
#endif

static unsigned char *low;
static size_t span;

/* What lies in our place. */
static void show(const char *when)
{
	show_mappings(when, low, low + span);
}

/* Room for four files; the mapping is the second, and the third one more. */
static unsigned char *map_anew(int as_well)
{
	span = 4 * file_length;
	low = mmap(NULL, span, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	munmap(low, span);
	unsigned char *base = mmap(low + file_length, file_length, PROT_READ, MAP_SHARED | MAP_FIXED, file_descriptor, 0);
	if (base == MAP_FAILED)
		fail("mmap");
	if (as_well && mmap(low + 2 * file_length, file_length, PROT_READ, MAP_SHARED | MAP_FIXED, file_descriptor, 0) == MAP_FAILED)
		fail("mmap");
	read_pages(base, 0, 3 * MIB);
	return base;
}

static void gone(void)
{
	munmap(low, span);
}

/* Bytes of the file from `offset` on are at `place`. */
static void check(const unsigned char *place, size_t offset, size_t length)
{
	for (size_t at = 0; at < length; at += PAGE)
		if (*(volatile uint32_t *)(place + at) != word_at(offset + at)) {
			printf("wrong at %zu of %zu\n", at, offset);
			return;
		}
}

static void said(const char *what, void *result)
{
	printf("%s: ", what);
	if (result == MAP_FAILED)
		printf("%s\n", strerror(errno));
	else
		printf("+%zx\n", (size_t)((unsigned char *)result - low));
}

static volatile int over;

static void *read_the_ends(void *base)
{
	uint32_t sum = 0;
	while (!over) {
		sum += read_pages(base, 0, 8 * MIB);
		sum += read_pages(base, file_length - 8 * MIB, file_length);
	}
	return (void *)(uintptr_t)(sum & 1);
}

int main(int count, char **arguments)
{
	(void)count;
	munmap((void *)map_file(arguments, PROT_READ, MAP_SHARED), file_length);

	/* In what has been read, across the edge of the curtain, behind it, a page, what is not aligned, nothing. */
	unsigned char *base = map_anew(0);
	printf("%d", munmap(base + MIB, MIB));
	printf(" %d", munmap(base + 3 * MIB - 8 * PAGE, 16 * PAGE));
	printf(" %d", munmap(base + 40 * MIB, PAGE));
	printf(" %d %s", munmap(base + 50 * MIB + 1, PAGE), strerror(errno));
	printf(" %d %s", munmap(base + 50 * MIB, 0), strerror(errno));
	printf(" %d\n", munmap(base + 60 * MIB, 1));
	show("six times");
	check(base, 0, MIB), check(base + 2 * MIB, 2 * MIB, MIB - 8 * PAGE);
	check(base + 3 * MIB + 8 * PAGE, 3 * MIB + 8 * PAGE, 37 * MIB - 8 * PAGE);
	check(base + 60 * MIB + PAGE, 60 * MIB + PAGE, 4 * MIB - PAGE);
	gone();

	/* Across two mappings, and the room between. */
	base = map_anew(1);
	printf("%d\n", munmap(base + file_length - 4 * MIB, 8 * MIB));
	show("across two");
	check(base, 0, file_length - 4 * MIB), check(base + file_length + 4 * MIB, 4 * MIB, file_length - 4 * MIB);
	gone();

	/* A second mapping of the same bytes; leaving the old place behind; both at once on another armed mapping. */
	base = map_anew(1);
	unsigned char *result = mremap(base + 32 * MIB, 0, 8 * MIB, MREMAP_MAYMOVE | MREMAP_FIXED, low);
	said("duplicated", result);
	/* Not the mapping that stays as it was. */
	span -= 2 * file_length;
	show("duplicated");
	span += 2 * file_length;
	check(low, 32 * MIB, 8 * MIB), check(base, 0, file_length);
	/* From the first byte of one that nobody has read yet. */
	result = mremap(low + 2 * file_length, 0, 8 * MIB, MREMAP_MAYMOVE | MREMAP_FIXED, low + 3 * file_length);
	said("duplicated unread", result);
	check(low + 3 * file_length, 0, 8 * MIB);
	rendezvous();
	result = mremap(base + 8 * MIB, 16 * MIB, 16 * MIB, MREMAP_MAYMOVE | MREMAP_DONTUNMAP | MREMAP_FIXED,
			low + 2 * file_length + 4 * MIB);
	said("left behind", result);
	show("left behind");
	check(base, 0, file_length);
	if (result != MAP_FAILED)
		check(result, 8 * MIB, 16 * MIB), check(low + 2 * file_length + 20 * MIB, 20 * MIB, file_length - 20 * MIB);
	check(low + 2 * file_length, 0, 4 * MIB);
	gone();

	/* What fails changes nothing. */
	base = map_anew(1);
	said("overlapping", mremap(base, 16 * MIB, 16 * MIB, MREMAP_MAYMOVE | MREMAP_FIXED, base + 8 * MIB));
	said("across two", mremap(base + MIB, file_length, file_length + MIB, MREMAP_MAYMOVE));
	said("in the way", mremap(base, file_length, 2 * file_length, 0));
	said("not aligned", mremap(base + 1, MIB, 2 * MIB, MREMAP_MAYMOVE));
	said("no such flag", mremap(base, MIB, 2 * MIB, 64));
	said("to nowhere", mremap(base, MIB, 0, MREMAP_MAYMOVE));
	said("over, badly", mmap(base + 1, MIB, PROT_READ, MAP_SHARED | MAP_FIXED, file_descriptor, 0));
	show("after failures");
	check(base, 0, file_length), check(base + file_length, 0, file_length);
	gone();

	/* Smaller, larger again, in the middle. */
	base = map_anew(0);
	said("smaller", mremap(base + 16 * MIB, 16 * MIB, 4 * MIB + 5, 0));
	show("a part is smaller");
	said("larger", mremap(base + 16 * MIB, 4 * MIB + PAGE, 12 * MIB, 0));
	show("and larger again");
	check(base, 0, 28 * MIB), check(base + 32 * MIB, 32 * MIB, file_length - 32 * MIB);
	gone();

	/* Over and over, while others read both ends. */
	base = map_anew(0);
	pthread_t threads[4];
	for (int i = 0; i < 4; i++)
		pthread_create(&threads[i], NULL, read_the_ends, base);
	for (int round = 0; round < 60; round++) {
		/* What is there anew is armed, and touched, before the next goes. */
		unsigned char *part = base + 10 * MIB + round % 8 * MIB;
		if (mmap(part, 8 * MIB, PROT_READ, MAP_SHARED | MAP_FIXED, file_descriptor, 4 * MIB) != part)
			fail("mmap");
		check(part, 4 * MIB, MIB);
		munmap(part + 2 * MIB, 2 * MIB);
		unsigned char *own = mmap(part + 2 * MIB, 2 * MIB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
		memset(own, round, 2 * MIB);
		check(part + 4 * MIB, 8 * MIB, 2 * MIB);
		for (size_t at = 0; at < 2 * MIB; at += PAGE)
			if (own[at] != (unsigned char)round)
				printf("lost at %zu in round %d\n", at, round);
	}
	over = 1;
	for (int i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
	puts("read meanwhile");
	gone();
	return 0;
}
