/* Expected: instructions and loops that need several checkpoints at once retire, whatever lies between them. */
#include "common.h"

int main(int count, char **arguments)
{
	(void)count;
	volatile unsigned char *base = map_file(arguments, PROT_READ, MAP_SHARED);
	size_t part = file_length / 2;
#if defined(__x86_64__)
	for (size_t at = 0; at < part; at += 4 * MIB) {
		const volatile unsigned char *from = base + at, *to = base + part + at;
		long left = 64;
		__asm__ volatile("repe cmpsb" : "+S"(from), "+D"(to), "+c"(left) : : "memory", "cc");
		printf("%ld ", left);
	}
	puts("compared");
	/* An access that straddles two pages, at every grid point. */
	for (size_t at = 4 * MIB; at < file_length; at += 4 * MIB) {
		uint64_t word;
		memcpy(&word, (const void *)(base + at - 4), 8);
		if (word != ((uint64_t)word_at(at) << 32 | word_at(at - 4)))
			printf("wrong at %zu\n", at);
	}
#endif
	/* 50 arrays in step. */
	uint32_t sum = 0;
	for (size_t at = 0; at < file_length / 50 - PAGE; at += 512)
		for (size_t array = 0; array < 50; array++)
			sum = sum * 31 + base[array * (file_length / 50) + at];
	printf("%x\n", sum);
	return 0;
}
