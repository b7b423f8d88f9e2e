/* Reads the file, and then writes it to a file in memory, page by page. */
#include "../../reader/programs/common.h"

int main(int count, char **arguments)
{
	(void)count;
	const volatile unsigned char *base = map_file(arguments, PROT_READ, MAP_SHARED);
	printf("%x\n", read_pages(base, 0, file_length));
	int copy = memfd_create("copy", 0);
	for (size_t at = 0; at < file_length; at += PAGE)
		if (pwrite(copy, (const char *)base + at, PAGE, at % MIB) != PAGE)
			fail("pwrite");
	return 3;
}
