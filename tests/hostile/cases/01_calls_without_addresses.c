/* Expected: calls that take no address are left alone, whatever lies in the registers that they do not read: no checkpoint is
 * hit for them, and nothing is kept open for one that never returns.
 * @at-most lifted_for_calls 1
 * @at-most all_pinned 0 */
#include "hostile.h"
#include <sys/syscall.h>

static volatile unsigned char *base;

/* A place that nobody has touched. */
static const void *closed(void)
{
	static size_t turn;
	return (const void *)(base + (turn++ % 32 + 16) * MIB + 3 * PAGE);
}

static void *ended_by_number(void *unused)
{
	syscall(SYS_exit, 0, closed(), closed(), closed(), closed());
	return unused;
}

int main(int count, char **arguments)
{
	(void)count;
	base = map_file(arguments, PROT_READ, MAP_SHARED);
	for (int call = 0; call < 32; call++)
		if (syscall(SYS_gettid, closed(), closed(), closed()) != getpid() || syscall(SYS_sched_yield, closed(), closed()))
			fail("by number");
	for (int turn = 0; turn < 200; turn++) {
		pthread_t thread;
		if (pthread_create(&thread, NULL, ended_by_number, NULL) || pthread_join(thread, NULL))
			fail("thread");
	}
	rendezvous();
	int null = open("/dev/null", O_WRONLY);
	printf("%zd\n", write(null, (const void *)(base + 63 * MIB), 2 * PAGE));
	printf("%08x\n", read_pages(base, 0, file_length));
	return 0;
}
