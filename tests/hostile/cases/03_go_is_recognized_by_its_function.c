/* Expected: nothing is armed in a program with a Go runtime that has no note, but the function by which C learns where a stack
 * ends; Go's own linker makes a table of symbols of the older kind, and no other.
 * @compile -rdynamic -Wl,--hash-style=sysv
 * @no-trap the program is recognized before anything is armed
 * @report the program makes system calls past libc */
#include "hostile.h"

void _cgo_topofstack(void);
void _cgo_topofstack(void)
{
}

int main(int count, char **arguments)
{
	(void)count;
	volatile unsigned char *base = map_file(arguments, PROT_READ, MAP_SHARED);
	read_pages(base, 0, file_length / 2);
	rendezvous();
	printf("%x\n", read_pages(base, 0, file_length));
	return 0;
}
