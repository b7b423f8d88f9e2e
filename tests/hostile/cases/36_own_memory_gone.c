/* Expected: when what the handler itself needs is gone, the program dies at once, by SIGSEGV, and does not loop. Natively
 * nothing of it is there, and the program ends itself in the same way. */
#include "signals.h"

static void without_it(void)
{
	FILE *maps = fopen("/proc/self/maps", "r");
	char line[512];
	unsigned long from, to, found = 0, length = 0;
	while (fgets(line, sizeof line, maps))
		if (strstr(line, "memfd:precache") && sscanf(line, "%lx-%lx", &from, &to) == 2)
			found = from, length = to - from;
	fclose(maps);
	if (!found)
		fault();
	syscall(SYS_munmap, found, length);
	read_on(32 * MIB);
	_exit(1);
}

int main(int count, char **arguments)
{
	(void)count;
	base = map_file(arguments, PROT_READ, MAP_SHARED);
	read_on(MIB);
	rendezvous();
	read_on(MIB);
	fflush(stdout);
	without_it();
	return 0;
}
