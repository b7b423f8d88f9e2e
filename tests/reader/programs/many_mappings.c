/* Expected: a hundred mappings of one file, read in turn, give every byte. */
#include "common.h"

int main(int count, char **arguments)
{
	(void)count;
	volatile unsigned char *maps[100];
	for (int i = 0; i < 100; i++)
		maps[i] = map_file(arguments, PROT_READ, i % 3 ? MAP_SHARED : MAP_PRIVATE);
	for (size_t at = 0; at < file_length; at += 8 * MIB)
		for (int i = 0; i < 100; i++)
			read_pages(maps[i], at, at + MIB);
	for (int i = 0; i < 100; i += 2)
		munmap((void *)maps[i], file_length);
	for (int i = 1; i < 100; i += 2)
		read_pages(maps[i], 0, file_length);
	puts("all read");
	return 0;
}
