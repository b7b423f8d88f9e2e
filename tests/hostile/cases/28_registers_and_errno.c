/* Expected: a checkpoint changes neither errno nor rounding mode, vector, x87 or mask registers, and a call that succeeds leaves errno
 * as it found it. */
#include "hostile.h"
#include <fenv.h>
#if defined(__x86_64__)
#include <immintrin.h>

/* Vector registers and flags across a load that trips: filled, loaded, compared, with no call in between. */
static int vectors_stay(const volatile unsigned char *address)
{
	unsigned char before[16 * 16] __attribute__((aligned(64))), after[16 * 16] __attribute__((aligned(64)));
	for (size_t i = 0; i < sizeof before; i++)
		before[i] = i * 7 + 3;
	unsigned int control_before = 0x5f80, control_after; /* round towards minus infinity, all masked */
	unsigned long carry;
	__asm__ volatile("ldmxcsr %[cb]\n"
			 "movaps (%[b]), %%xmm0\n movaps 16(%[b]), %%xmm1\n movaps 32(%[b]), %%xmm2\n movaps 48(%[b]), %%xmm3\n"
			 "movaps 64(%[b]), %%xmm4\n movaps 80(%[b]), %%xmm5\n movaps 96(%[b]), %%xmm6\n movaps 112(%[b]), %%xmm7\n"
			 "movaps 128(%[b]), %%xmm8\n movaps 144(%[b]), %%xmm9\n movaps 160(%[b]), %%xmm10\n movaps 176(%[b]), %%xmm11\n"
			 "movaps 192(%[b]), %%xmm12\n movaps 208(%[b]), %%xmm13\n movaps 224(%[b]), %%xmm14\n movaps 240(%[b]), %%xmm15\n"
			 "stc\n"
			 "movb (%[p]), %%al\n"
			 "setc %b[cy]\n"
			 "stmxcsr %[ca]\n"
			 "movaps %%xmm0, (%[a])\n movaps %%xmm1, 16(%[a])\n movaps %%xmm2, 32(%[a])\n movaps %%xmm3, 48(%[a])\n"
			 "movaps %%xmm4, 64(%[a])\n movaps %%xmm5, 80(%[a])\n movaps %%xmm6, 96(%[a])\n movaps %%xmm7, 112(%[a])\n"
			 "movaps %%xmm8, 128(%[a])\n movaps %%xmm9, 144(%[a])\n movaps %%xmm10, 160(%[a])\n movaps %%xmm11, 176(%[a])\n"
			 "movaps %%xmm12, 192(%[a])\n movaps %%xmm13, 208(%[a])\n movaps %%xmm14, 224(%[a])\n movaps %%xmm15, 240(%[a])\n"
			 : [cy] "=&q"(carry), [ca] "=m"(control_after)
			 : [b] "r"(before), [a] "r"(after), [p] "r"(address), [cb] "m"(control_before)
			 : "rax", "cc", "memory", "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9",
			   "xmm10", "xmm11", "xmm12", "xmm13", "xmm14", "xmm15");
	unsigned int standard = 0x1f80;
	__asm__ volatile("ldmxcsr %0" : : "m"(standard));
	return !memcmp(before, after, sizeof before) && control_after == control_before && (carry & 1);
}

#define EIGHT(each, ten) each(ten##0) each(ten##1) each(ten##2) each(ten##3) each(ten##4) each(ten##5) each(ten##6) each(ten##7)
#define ALL_MASKS(each) EIGHT(each, )
#define ALL_VECTORS(each) \
	EIGHT(each, ) each(8) each(9) EIGHT(each, 1) each(18) each(19) EIGHT(each, 2) each(28) each(29) each(30) each(31)
#define FILL_VECTOR(number) "vmovups " #number "*64(%[b]), %%zmm" #number "\n"
#define FILL_MASK(number) "kmovw 2048+" #number "*2(%[b]), %%k" #number "\n"
#define KEEP_VECTOR(number) "vmovups %%zmm" #number ", " #number "*64(%[a])\n"
#define KEEP_MASK(number) "kmovw %%k" #number ", 2048+" #number "*2(%[a])\n"

/* The same of all 512 bits of 32 registers, and of the masks. */
__attribute__((target("avx512f"))) static int wide_vectors_stay(const volatile unsigned char *address)
{
	static unsigned char before[32 * 64 + 8 * 2], after[sizeof before];
	for (size_t i = 0; i < sizeof before; i++)
		before[i] = i * 13 + i / 64 + 5;
	__asm__ volatile(ALL_VECTORS(FILL_VECTOR) ALL_MASKS(FILL_MASK)
			 "movb (%[p]), %%al\n"
			 ALL_VECTORS(KEEP_VECTOR) ALL_MASKS(KEEP_MASK)
			 :
			 : [b] "r"(before), [a] "r"(after), [p] "r"(address)
			 : "rax", "memory", "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10",
			   "xmm11", "xmm12", "xmm13", "xmm14", "xmm15", "xmm16", "xmm17", "xmm18", "xmm19", "xmm20", "xmm21", "xmm22",
			   "xmm23", "xmm24", "xmm25", "xmm26", "xmm27", "xmm28", "xmm29", "xmm30", "xmm31", "k1", "k2", "k3", "k4", "k5",
			   "k6", "k7");
	return !memcmp(before, after, sizeof before);
}

static int has_wide_vectors(void)
{
	return __builtin_cpu_supports("avx512f");
}
#else
static int vectors_stay(const volatile unsigned char *address)
{
	return *address >= 0;
}

static int wide_vectors_stay(const volatile unsigned char *address)
{
	return *address >= 0;
}

static int has_wide_vectors(void)
{
	return 0;
}
#endif

int main(int count, char **arguments)
{
	(void)count;
	volatile unsigned char *base = map_file(arguments, PROT_READ, MAP_SHARED);
	int wrong_errno = 0, wrong_mode = 0, wrong_vectors = 0, wrong_x87 = 0;
	for (size_t at = 0; at + MIB <= file_length; at += MIB) {
		wrong_vectors += !vectors_stay(base + at + 3 * PAGE);
		/* A step further: it trips, too. */
		wrong_vectors += has_wide_vectors() && !wide_vectors_stay(base + at + 100 * PAGE);
		fesetround(at / MIB % 2 ? FE_UPWARD : FE_TOWARDZERO);
		feclearexcept(FE_ALL_EXCEPT);
		errno = 1234;
		long double third = 1.0L / 3.0L;
		volatile long double sum = third + base[at + 300 * 1024];
		/* The compiler may keep what it stored: nothing that it knows of has touched errno. */
		__asm__ volatile("" : : : "memory");
		wrong_x87 += sum != third + base[at + 300 * 1024];
		wrong_errno += errno != 1234;
		wrong_mode += fegetround() != (at / MIB % 2 ? FE_UPWARD : FE_TOWARDZERO);
		fesetround(FE_TONEAREST);
		if (at == file_length / 2)
			rendezvous();
	}
	printf("changed: errno %d, rounding %d, vectors %d, x87 %d\n", wrong_errno, wrong_mode, wrong_vectors, wrong_x87);

	/* Calls with a hand in arming: errno stays on success, and is theirs on failure. */
	int copy = memfd_create("copy", 0);
	errno = 1234;
	unsigned char *again = mmap(NULL, file_length, PROT_READ, MAP_SHARED, file_descriptor, 0);
	printf("mmap %d\n", errno);
	ssize_t written = write(copy, again + 5 * MIB, 2 * MIB);
	printf("write %zd %d\n", written, errno);
	printf("mprotect %d %d\n", mprotect(again + 8 * MIB, MIB, PROT_NONE), errno);
	printf("madvise %d %d\n", madvise(again, MIB, MADV_WILLNEED), errno);
	printf("munmap %d %d\n", munmap(again, file_length), errno);
	struct sigaction action;
	printf("sigaction %d %d\n", sigaction(SIGSEGV, NULL, &action), errno);
	printf("munmap nothing %d %d\n", munmap((void *)1, 5), errno);
	errno = 1234;
	printf("write nowhere %zd %d\n", write(copy, (void *)8, 5), errno);
	return 0;
}
