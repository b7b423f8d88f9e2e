/* A system call that no library sees, with up to four words. */
#include <sys/syscall.h>

static inline long raw_call(long number, long a, long b, long c, long d)
{
#if defined(__x86_64__)
	long result;
	register long fourth __asm__("r10") = d;
	__asm__ volatile("syscall" : "=a"(result) : "a"(number), "D"(a), "S"(b), "d"(c), "r"(fourth) : "rcx", "r11", "memory");
	return result;
#else
	return syscall(number, a, b, c, d);
#endif
}
