/* Expected: a vfork child that maps and reads data before its parent has mapped any leaves the parent to itself: its handler
 * is the one that it sets, and it is served from its first mapping on, for longer than that child lives.
 * @counter trips 40
 * @at-most unserved 0 */
#include "hostile.h"
#include <setjmp.h>

static sigjmp_buf back;

static void before(int signal)
{
	siglongjmp(back, 100 + signal);
}

static void after(int signal)
{
	siglongjmp(back, 200 + signal);
}

int main(int count, char **arguments)
{
	(void)count;
	signal(SIGSEGV, before);
	pid_t guest = vfork();
	if (guest == 0) {
		int file = open(arguments[1], O_RDONLY);
		unsigned char *base = mmap(NULL, 64 * MIB, PROT_READ, MAP_SHARED, file, 0);
		int wrong = base == MAP_FAILED || *(volatile uint32_t *)(base + 8 * MIB) != word_at(8 * MIB);
		wrong |= pwrite(file, base + 20 * MIB, PAGE, 0) != -1 || errno != EBADF;
		_exit(wrong);
	}
	int status;
	waitpid(guest, &status, 0);
	printf("vfork child: %d\n", status);
	printf("was set: %d\n", signal(SIGSEGV, after) == before);
	int how = sigsetjmp(back, 1);
	if (how == 0)
		*(volatile char *)8 = 1;
	printf("handler: %d\n", how);
	must_be_served(20);
	volatile unsigned char *base = map_file(arguments, PROT_READ, MAP_SHARED);
	read_pages(base, 0, file_length / 2);
	rendezvous();
	read_pages(base, file_length / 2, file_length);
	return 0;
}
