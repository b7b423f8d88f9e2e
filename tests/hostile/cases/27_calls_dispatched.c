/* Expected: a program that has its system calls raise SIGSYS (PR_SET_SYSCALL_USER_DISPATCH), by function or by number, reads
 * meanwhile what is still closed, without a call; so it does when it has taken that back, or was refused it.
 * @report the program forbids itself system calls */
#include "hostile.h"
#include <sys/prctl.h>
#include <sys/syscall.h>

enum { SET_DISPATCH = 59, OFF = 0, ON = 1, ALLOW = 0, BLOCK = 1 };

static volatile unsigned char *base;
static volatile char selector = ALLOW;

static long dispatch(int by_number, long mode, volatile char *switched)
{
	return by_number ? syscall(SYS_prctl, SET_DISPATCH, mode, 0L, 0L, switched) : prctl(SET_DISPATCH, mode, 0L, 0L, switched);
}

static uint32_t sum_of(size_t from, size_t to)
{
	uint32_t sum = 0;
	for (size_t at = from; at < to; at += 16 * PAGE)
		sum = sum * 31 + *(volatile uint32_t *)(base + at);
	return sum;
}

static void in_child(int by_number)
{
	fflush(stdout);
	pid_t child = fork();
	if (child == 0) {
		read_pages(base, 20 * MIB, 22 * MIB);
		int refused = dispatch(by_number, ON, (char *)-1L);
		read_pages(base, 22 * MIB, 24 * MIB);
		if (dispatch(by_number, ON, &selector))
			_exit(3);
		selector = BLOCK;
		uint32_t sum = sum_of(0, file_length);
		selector = ALLOW;
		dispatch(by_number, OFF, NULL);
		printf("refused %d, read %x, afterwards %x\n", refused, sum, read_pages(base, 0, file_length));
		fflush(stdout);
		_exit(0);
	}
	int status;
	waitpid(child, &status, 0);
	printf("%d\n", status);
}

int main(int count, char **arguments)
{
	(void)count;
	if (prctl(SET_DISPATCH, OFF, 0L, 0L, NULL)) {
		printf("no PR_SET_SYSCALL_USER_DISPATCH\n");
		return 77;
	}
	base = map_file(arguments, PROT_READ, MAP_SHARED);
	read_pages(base, 0, 10 * MIB);
	in_child(0);
	rendezvous();
	in_child(1);
	read_pages(base, 10 * MIB, 20 * MIB);
	return 0;
}
