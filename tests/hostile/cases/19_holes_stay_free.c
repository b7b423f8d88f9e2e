/* Expected: nothing but what the program maps itself comes to lie where it has made room: it may unmap the room as a whole,
 * and map anew in it.
 * @report the program changed the mapping itself */
#include "hostile.h"
#include "../../reader/programs/maps.h"

#define ROOM (4 * file_length)

/* Leaves no hole above: the room is the topmost, which the kernel fills first. */
static void fill_above(const unsigned char *end)
{
	for (size_t length = MIB; length >= PAGE; length /= 16) {
		unsigned char *filler;
		do
			if ((filler = mmap(NULL, length, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)) == MAP_FAILED)
				fail("mmap");
		while (filler >= end);
		munmap(filler, length);
	}
}

int main(int count, char **arguments)
{
	(void)count;
	open_file(arguments);
	unsigned char *low = mmap(NULL, ROOM, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (low == MAP_FAILED)
		fail("mmap");
	munmap(low, ROOM);
	fill_above(low + ROOM);
	for (int round = 0; round < 3; round++) {
		unsigned char *base = mmap(low + file_length, file_length, PROT_READ, MAP_SHARED | MAP_FIXED, file_descriptor, 0);
		if (base == MAP_FAILED)
			fail("mmap");
		if (round == 1)
			rendezvous();
		printf("%u\n", read_pages(base, 0, 32 * MIB));
		show_mappings("below", low, base);
		show_mappings("above", base + file_length, low + ROOM);
		munmap(base + 40 * MIB, MIB);
		munmap(low, ROOM);
	}
	return 0;
}
