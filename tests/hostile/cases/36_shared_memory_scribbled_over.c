/* Expected: whatever a program that goes wild writes over the memory that it shares with the optimizer, what it maps holds what the
 * file holds, and it ends as natively. */
#include "signals.h"

/* What the library shares: two numbers for each optimizer that there was. */
static int shared_memory(unsigned long found[8][2])
{
	FILE *maps = fopen("/proc/self/maps", "r");
	char line[512];
	int count = 0;
	while (fgets(line, sizeof line, maps) && count < 8)
		if (strstr(line, "memfd:precache") && sscanf(line, "%lx-%lx", &found[count][0], &found[count][1]) == 2)
			count++;
	fclose(maps);
	return count;
}

static void scribble(unsigned seed)
{
	unsigned long found[8][2];
	for (int count = shared_memory(found); count-- > 0;)
		for (unsigned long at = found[count][0]; at < found[count][1]; at += 8) {
			seed = seed * 1103515245 + 12345;
			uint64_t word = seed % 4 == 0 ? 0 : seed % 4 == 1 ? UINT64_MAX : (uint64_t)seed << seed % 32;
			*(volatile uint64_t *)at = word;
		}
}

int main(int count, char **arguments)
{
	(void)count;
	base = map_file(arguments, PROT_READ, MAP_SHARED);
	read_on(4 * MIB);
	rendezvous();
	for (unsigned seed = 1; position + 3 * MIB < file_length; seed++) {
		scribble(seed);
		read_on(MIB);
		unsigned char *another = (unsigned char *)map_file(arguments, PROT_READ, seed % 2 ? MAP_SHARED : MAP_PRIVATE);
		read_pages(another, seed * MIB, seed * MIB + 2 * MIB);
		if (seed % 5 == 0) {
			scribble(~seed);
			if (fork() == 0) {
				read_pages(another, 0, file_length);
				_exit(0);
			}
			int status;
			wait(&status);
			printf("child: %d\n", status);
		}
		munmap(another, file_length);
	}
	puts("read");
	return 0;
}
