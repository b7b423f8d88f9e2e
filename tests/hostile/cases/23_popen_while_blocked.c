/* Expected: popen reads its mode in closed memory while SIGSEGV is blocked, and the shell finds it blocked.
 * @own-data */
#include "signals.h"

int main(int count, char **arguments)
{
	(void)count;
	int file = open(arguments[1], O_WRONLY);
	const size_t mode = 40 * MIB + PAGE / 2;
	if (pwrite(file, "r", 2, mode) != 2)
		fail("pwrite");
	close(file);
	base = map_file(arguments, PROT_READ, MAP_SHARED);
	read_on(4 * MIB);
	rendezvous();
	set_mask(1ULL << (SIGSEGV - 1));
	FILE *pipe = popen("env -u LD_PRELOAD cat /proc/self/status | grep SigBlk", (const char *)base + mode);
	char line[64] = "";
	printf("%s", pipe && fgets(line, sizeof line, pipe) ? line : "nothing read\n");
	printf("%d, %s\n", pclose(pipe), letters(mask_now()));
	/* From here on nothing is closed any more; another mapping is accelerated. */
	volatile unsigned char *again = mmap(NULL, file_length, PROT_READ, MAP_SHARED, file_descriptor, 0);
	printf("%x %x\n", read_pages(base, 0, file_length), read_pages(again, 0, file_length));
	return 0;
}
