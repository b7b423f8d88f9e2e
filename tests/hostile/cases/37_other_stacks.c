/* Expected: coroutines that swap stacks, in the program's SIGSEGV handler and after it, read mapped data on each of them. */
#include "signals.h"

static ucontext_t main_context, coroutines[4];
static char stacks[4][64 * 1024];
static volatile int faults, steps;

static void coroutine(int number)
{
	for (int step = 0; step < 8; step++) {
		steps++;
		read_on(MIB / 2);
		swapcontext(&coroutines[number], &main_context);
	}
	printf("coroutine %d done: %s\n", number, letters(mask_now()));
	for (;;)
		swapcontext(&coroutines[number], &main_context);
}

static void handler(int signal, siginfo_t *info, void *context)
{
	(void)signal, (void)info;
	/* Away from inside the handler, and back. */
	for (int number = 0; number < 4; number++) {
		read_on(MIB / 8);
		swapcontext(&main_context, &coroutines[number]);
	}
	faults++;
	/* Past the faulting instruction, whose length the program knows: it is skipped by its label. */
	extern char after_fault[];
	((ucontext_t *)context)->uc_mcontext.gregs[REG_RIP] = (uintptr_t)after_fault;
}

__attribute__((noinline, noclone)) static void skipped_fault(void)
{
	__asm__ volatile("movl $1, 8\n\t.globl after_fault\nafter_fault:" ::: "memory");
}

int main(int count, char **arguments)
{
	(void)count;
	base = map_file(arguments, PROT_READ, MAP_SHARED);
	struct sigaction action = { .sa_sigaction = handler, .sa_flags = SA_SIGINFO };
	sigaction(SIGSEGV, &action, NULL);
	for (int number = 0; number < 4; number++) {
		getcontext(&coroutines[number]);
		coroutines[number].uc_stack.ss_sp = stacks[number];
		coroutines[number].uc_stack.ss_size = sizeof stacks[number];
		makecontext(&coroutines[number], (void (*)(void))coroutine, 1, number);
	}
	rendezvous();
	for (int round = 0; round < 12; round++) {
		skipped_fault();
		printf("round %d: %d faults, %d steps, %s\n", round, faults, steps, letters(mask_now()));
		read_on(MIB);
	}
	return 0;
}
