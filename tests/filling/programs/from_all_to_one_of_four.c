/* Reads the first half of the file in order, then of the second half one record in four: 50 pages of 200. */
#include "../../reader/programs/common.h"

#define RECORD (50 * PAGE)
#define PERIOD (4 * RECORD)

int main(int count, char **arguments)
{
	(void)count;
	const volatile unsigned char *base = map_file(arguments, PROT_READ, MAP_SHARED);
	uint32_t sum = read_pages(base, 0, file_length / 2);
	for (size_t at = file_length / 2; at + RECORD <= file_length; at += PERIOD)
		sum = sum * 31 + read_pages(base, at, at + RECORD);
	printf("%x\n", sum);
	return 0;
}
