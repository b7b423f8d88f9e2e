/* Expected: mapping a very large file costs neither kernel mappings nor page tables. Prints what
 * it costs. */
#include "common.h"

static long status_field(const char *name)
{
	char line[256];
	long value = -1;
	FILE *status = fopen("/proc/self/status", "r");
	while (fgets(line, sizeof line, status))
		if (!strncmp(line, name, strlen(name)))
			value = atol(line + strlen(name) + 1);
	fclose(status);
	return value;
}

static int mappings(void)
{
	int count = 0, character;
	FILE *maps = fopen("/proc/self/maps", "r");
	while ((character = getc(maps)) != EOF)
		count += character == '\n';
	fclose(maps);
	return count;
}

int main(int count, char **arguments)
{
	(void)count;
	volatile unsigned char *base = map_file(arguments, PROT_READ, MAP_SHARED);
	unsigned long sum = 0;
	/* A reader at the start, one in the middle, and jumps all over. */
	for (size_t at = 0; at < 256 * MIB; at += PAGE)
		sum += base[at] + base[file_length / 2 + at];
	for (size_t at = 0; at < file_length; at += file_length / 300 / PAGE * PAGE)
		sum += base[at];
	printf("%d %ld %lu\n", mappings(), status_field("VmPTE"), sum);
	return 0;
}
