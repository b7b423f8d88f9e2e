/* Expected: one instruction that needs several closed pages retires, with the right result: string comparison and copy,
 * gathers of 8 and 16 lanes, loads and atomic operations that straddle two pages, two arrays in step.
 * @at-most trips 1000 */
#include "hostile.h"
#if defined(__x86_64__)
#include <immintrin.h>

__attribute__((target("avx2"))) static void gather8(const unsigned char *base, size_t first)
{
	int at[8], word[8];
	for (int i = 0; i < 8; i++)
		at[i] = first / 4 + i * (7 * MIB / 4 + 1024);
	__m256i got = _mm256_i32gather_epi32((const int *)base, _mm256_loadu_si256((const __m256i *)at), 4);
	_mm256_storeu_si256((__m256i *)word, got);
	for (int i = 0; i < 8; i++)
		if ((uint32_t)word[i] != word_at((size_t)at[i] * 4))
			printf("gather of 8 at %zu, lane %d\n", first, i);
}

__attribute__((target("avx512f"))) static void gather16(const unsigned char *base, size_t first)
{
	int at[16], word[16];
	for (int i = 0; i < 16; i++)
		at[i] = first / 4 + i * (3 * MIB / 4 + 2048);
	__m512i got = _mm512_i32gather_epi32(_mm512_loadu_si512(at), base, 4);
	_mm512_storeu_si512(word, got);
	for (int i = 0; i < 16; i++)
		if ((uint32_t)word[i] != word_at((size_t)at[i] * 4))
			printf("gather of 16 at %zu, lane %d\n", first, i);
}
#endif

int main(int count, char **arguments)
{
	(void)count;
	unsigned char *base = (unsigned char *)map_file(arguments, PROT_READ, MAP_SHARED);
	size_t half = file_length / 2;
	for (int epoch = 0; epoch < 3; epoch++) {
#if defined(__x86_64__)
		__builtin_cpu_init();
		for (size_t at = 0; at < 8 * MIB; at += 64 * 1024 + PAGE) {
			if (__builtin_cpu_supports("avx2"))
				gather8(base, at);
			if (__builtin_cpu_supports("avx512f"))
				gather16(base, at);
		}
		for (size_t at = PAGE; at < half; at += MIB) {
			const unsigned char *from = base + at, *to = base + half + at;
			long left = 3 * PAGE;
			/* Equal to itself at the other place? The words differ: it stops at the first. */
			__asm__ volatile("repe cmpsb" : "+S"(from), "+D"(to), "+c"(left) : : "memory", "cc");
			from = base + at, to = base + half + at, left = 3 * PAGE;
			/* Differs all along, but for chance: runs over pages of both. */
			__asm__ volatile("1: repne scasb" : "+D"(to), "+c"(left) : "a"(0) : "memory", "cc");
			unsigned char copy[2 * PAGE], *target = copy;
			left = sizeof copy;
			from = base + at + 3 * MIB / 4;
			__asm__ volatile("rep movsb" : "+S"(from), "+D"(target), "+c"(left) : : "memory");
			if (*(uint32_t *)(copy + PAGE) != word_at(at + 3 * MIB / 4 + PAGE))
				printf("copied wrong at %zu\n", at);
		}
#endif
		for (size_t at = 64 * 1024; at < file_length; at += 64 * 1024) {
			uint64_t word;
			memcpy(&word, base + at - 4, 8);
			if (word != ((uint64_t)word_at(at) << 32 | word_at(at - 4)))
				printf("straddled wrong at %zu\n", at);
		}
		if (memcmp(base, base, file_length) || !memcmp(base, base + half, half))
			puts("compared wrong");
		if (epoch == 1)
			rendezvous();
	}
	/* A locked operation on a page that is neither open nor private yet; it takes a write to both. */
	unsigned char *own = mmap(NULL, file_length, PROT_READ | PROT_WRITE, MAP_PRIVATE, file_descriptor, 0);
	for (size_t at = 0; at < file_length; at += MIB) {
		uint32_t before = __atomic_fetch_add((uint32_t *)(own + at + PAGE), 1, __ATOMIC_SEQ_CST);
		if (before != word_at(at + PAGE) || *(uint32_t *)(own + at + PAGE) != before + 1)
			printf("added wrong at %zu\n", at);
	}
	/* Here and there, where neither of two pages is open. */
	const unsigned char *scattered = mmap(NULL, file_length, PROT_READ, MAP_SHARED, file_descriptor, 0);
	for (size_t turn = 0; turn < 24; turn++) {
		size_t at = turn * 29 % 64 * MIB + (turn + 1) * 64 * 1024 % MIB;
		uint64_t word = *(const volatile uint64_t *)(scattered + at - 4);
		if (word != ((uint64_t)word_at(at) << 32 | word_at(at - 4)))
			printf("straddled wrong at %zu, alone\n", at);
	}
	puts("all retired");
	return 0;
}
