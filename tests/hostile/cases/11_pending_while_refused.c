/* Expected: a SIGSEGV that the program has blocked past libc, and that is pending, stays pending while it maps what cannot be
 * armed.
 * @own-data
 * @no-trap nothing is armed
 * @report not accelerated */
#include "hostile.h"
#include "raw_call.h"

int main(int count, char **arguments)
{
	(void)count;
	unsigned long set = 1ul << (SIGSEGV - 1), pending = 0;
	if (raw_call(SYS_rt_sigprocmask, SIG_BLOCK, (long)&set, 0, sizeof set) || kill(getpid(), SIGSEGV))
		fail("a pending signal");
	int file = open(arguments[1], O_RDWR);
	volatile unsigned char *base = mmap(NULL, 64 * MIB, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
	if (base == MAP_FAILED)
		fail("mmap");
	rendezvous();
	printf("read: %x\n", read_pages(base, 0, 64 * MIB));
	syscall(SYS_rt_sigpending, &pending, sizeof pending);
	printf("pending: %d\n", (pending & set) == set);
	return 0;
}
