/* What the kernel says of a part of the address space. */
#include <stdint.h>
#include <stdio.h>

/* Distance from `low`, length, protection and file offset of every mapping in `low..high`, after a line with `when`. */
static void show_mappings(const char *when, const volatile unsigned char *low, const volatile unsigned char *high)
{
	char line[512];
	FILE *maps = fopen("/proc/self/maps", "r");
	printf("%s:\n", when);
	while (fgets(line, sizeof line, maps)) {
		uintptr_t start, end;
		char protection[5];
		size_t offset;
		if (sscanf(line, "%lx-%lx %4s %zx", &start, &end, protection, &offset) == 4 && end > (uintptr_t)low &&
		    start < (uintptr_t)high)
			printf("  +%zx %zx %s %zx\n", start - (uintptr_t)low, end - start, protection, offset);
	}
	fclose(maps);
}
