/* Expected: a program that unmaps a part of a mapping reads the rest, and the report says why it is not followed any more.
 * @report the program changed the mapping itself */
#include "hostile.h"

int main(int count, char **arguments)
{
	(void)count;
	volatile unsigned char *base = map_file(arguments, PROT_READ, MAP_SHARED);
	read_pages(base, 0, 8 * MIB);
	rendezvous();
	printf("%d\n", munmap((void *)(base + 20 * MIB), MIB));
	printf("%x %x\n", read_pages(base, 0, 20 * MIB), read_pages(base, 21 * MIB, file_length));
	return munmap((void *)base, file_length);
}
