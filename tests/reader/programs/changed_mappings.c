/* Expected: after unmapping in part, mapping over, moving and re-protecting, /proc/self/maps shows what it shows
 * without precache, and every byte left can be read. */
#include "common.h"
#include "maps.h"

int main(int count, char **arguments)
{
	(void)count;
	unsigned char *base = (unsigned char *)map_file(arguments, PROT_READ, MAP_SHARED);
	read_pages(base, 0, 8 * MIB);
	munmap(base + 8 * MIB, 4 * MIB);
	show_mappings("a hole", base, base + file_length);
	read_pages(base, 12 * MIB, 20 * MIB);
	munmap(base, file_length);
	show_mappings("nothing", base, base + file_length);

	base = (unsigned char *)map_file(arguments, PROT_READ, MAP_SHARED);
	read_pages(base, MIB, 8 * MIB);
	unsigned char *over = mmap(base + 16 * MIB, 2 * MIB, PROT_READ | PROT_WRITE,
				   MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
	memset(over, 7, 2 * MIB);
	show_mappings("mapped over", base, base + file_length);
	read_pages(base, 8 * MIB, 16 * MIB);
	read_pages(base, 18 * MIB, file_length);
	printf("anonymous %d %d\n", over[0], over[2 * MIB - 1]);
	munmap(base, file_length);

	base = (unsigned char *)map_file(arguments, PROT_READ, MAP_SHARED);
	read_pages(base, MIB, 8 * MIB);
	mprotect(base + 4 * MIB, 2 * MIB, PROT_NONE);
	mprotect(base + 20 * MIB, 2 * MIB, PROT_READ | PROT_EXEC);
	show_mappings("re-protected", base, base + file_length);
	read_pages(base, 8 * MIB, file_length);
	munmap(base, file_length);

	base = (unsigned char *)map_file(arguments, PROT_READ, MAP_SHARED);
	read_pages(base, MIB, 8 * MIB);
	base = mremap(base, file_length, file_length / 2, MREMAP_MAYMOVE);
	show_mappings("halved", base, base + file_length);
	read_pages(base, 0, file_length / 2);
	return 0;
}
