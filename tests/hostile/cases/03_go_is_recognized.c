/* Expected: nothing is armed in a program with a Go runtime, which makes its system calls itself. A note that Go's linker
 * leaves stands for it here.
 * @no-trap the program is recognized before anything is armed
 * @report the program makes system calls past libc */
#include "hostile.h"

__asm__(".pushsection .note.go.buildid, \"a\", @note\n"
	".balign 4\n"
	".long 4, 8, 4\n"
	".asciz \"Go\\0\"\n"
	".ascii \"build-id\"\n"
	".popsection\n");

int main(int count, char **arguments)
{
	(void)count;
	volatile unsigned char *base = map_file(arguments, PROT_READ, MAP_SHARED);
	read_pages(base, 0, file_length / 2);
	rendezvous();
	printf("%x\n", read_pages(base, 0, file_length));
	return 0;
}
