/* Expected: without a handler a fault of the program's own kills it by SIGSEGV, after the output so far. */
#include "common.h"

int main(int count, char **arguments)
{
	(void)count;
	volatile unsigned char *base = map_file(arguments, PROT_READ, MAP_SHARED);
	printf("%x\n", read_pages(base, 0, file_length / 2));
	fflush(stdout);
	*(volatile char *)0x10 = 1;
	return 0;
}
