/* Reads the file in order, as often as the second argument says, each time through a new mapping. Before each step of
 * 64 KiB, which is what one page fault maps, looks whether its first page is mapped already; standard error says how many
 * were not: the faults that the reader takes. It computes on each MiB for some time. */
#include "../../reader/programs/common.h"

#define STEP (64 << 10)
#define COMPUTING 1000 /* microseconds */

int main(int count, char **arguments)
{
	int pagemap = open("/proc/self/pagemap", O_RDONLY);
	if (pagemap < 0)
		fail("pagemap");
	unsigned faults = 0, sum = 0;
	for (int pass = count > 2 ? atoi(arguments[2]) : 1; pass > 0; pass--) {
		const volatile unsigned char *base = map_file(arguments, PROT_READ, MAP_SHARED);
		for (size_t at = 0; at < file_length; at += STEP) {
			if (at % MIB == 0)
				usleep(COMPUTING);
			uint64_t entry;
			off_t place = ((uintptr_t)base + at) / PAGE * sizeof entry;
			if (pread(pagemap, &entry, sizeof entry, place) != sizeof entry)
				fail("pagemap");
			/* Bit 63: the page is present (proc_pid_pagemap(5)). */
			faults += !(entry >> 63);
			sum = sum * 31 + read_pages(base, at, at + STEP < file_length ? at + STEP : file_length);
		}
		munmap((void *)base, file_length);
		close(file_descriptor);
	}
	printf("%x\n", sum);
	fprintf(stderr, "%u\n", faults);
	return 0;
}
