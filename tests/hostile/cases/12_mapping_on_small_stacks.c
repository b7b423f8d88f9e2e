/* Expected: who maps, protects and unmaps on an alternate stack that has a page beside what the kernel needs of it does not
 * overflow it: a crash handler that finds its way through the stack does so.
 * @counter active_readers 1 */
#include "signals.h"
#include <sys/auxv.h>

static void *data;
static volatile int done;

static void handler(int signal)
{
	(void)signal;
	char *memory = mmap(NULL, 16 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (memory == MAP_FAILED || mprotect(memory, PAGE, PROT_READ))
		return;
	memory[PAGE] = 1;
	if (mmap(memory, PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) != memory)
		return;
	done = !munmap(memory, 16 * PAGE) && (!data || !munmap(data, file_length));
}

int main(int count, char **arguments)
{
	(void)count;
	base = map_file(arguments, PROT_READ, MAP_SHARED);
	read_on(2 * MIB);
	rendezvous();
	size_t size = (getauxval(AT_MINSIGSTKSZ) + 2 * PAGE - 1) / PAGE * PAGE;
	char *alternate = mmap(NULL, size + PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	stack_t stack = { .ss_sp = alternate + PAGE, .ss_size = size };
	if (mprotect(alternate, PAGE, PROT_NONE) || sigaltstack(&stack, NULL))
		fail("sigaltstack");
	struct sigaction action = { .sa_handler = handler, .sa_flags = SA_ONSTACK };
	sigaction(SIGUSR1, &action, NULL);
	for (int round = 0; round < 2; round++) {
		done = 0;
		raise(SIGUSR1);
		printf("%d\n", done);
		/* What it unmaps next is data, and armed. */
		data = mmap(NULL, file_length, PROT_READ, MAP_SHARED, file_descriptor, 0);
		read_pages(data, 0, 2 * MIB);
	}
	read_on(20 * MIB);
	return 0;
}
