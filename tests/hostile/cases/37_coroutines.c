/* Expected: coroutines on small stacks of their own read closed pages, switch while others are in the middle of it, and are
 * switched to from within the program's own SIGSEGV handler. */
#include "hostile.h"
#include <ucontext.h>

enum { COROUTINES = 8, STACK = 16384 };

static volatile unsigned char *base;
static ucontext_t contexts[COROUTINES], scheduler, rescue;
static char stacks[COROUTINES + 1][STACK] __attribute__((aligned(16)));
static uint32_t sums[COROUTINES];
static int rescued;

static void coroutine(int number)
{
	for (size_t at = number * 8 * MIB; at < (number + 1) * 8 * MIB; at += 96 * 1024) {
		sums[number] = sums[number] * 31 + *(volatile uint32_t *)(base + at / PAGE * PAGE);
		swapcontext(&contexts[number], &scheduler);
	}
}

static void after_fault(void)
{
	rescued += *(volatile uint32_t *)(base + (size_t)rescued * MIB) == word_at((size_t)rescued * MIB);
	setcontext(&scheduler);
}

static void handler(int signal, siginfo_t *info, void *context)
{
	(void)signal, (void)info, (void)context;
	/* Leaves for good, on another stack. */
	getcontext(&rescue);
	rescue.uc_stack.ss_sp = stacks[COROUTINES];
	rescue.uc_stack.ss_size = STACK;
	rescue.uc_link = NULL;
	sigemptyset(&rescue.uc_sigmask);
	makecontext(&rescue, after_fault, 0);
	setcontext(&rescue);
}

int main(int count, char **arguments)
{
	(void)count;
	struct sigaction action = { .sa_sigaction = handler, .sa_flags = SA_SIGINFO | SA_NODEFER };
	sigaction(SIGSEGV, &action, NULL);
	base = map_file(arguments, PROT_READ, MAP_SHARED);
	for (int i = 0; i < COROUTINES; i++) {
		getcontext(&contexts[i]);
		contexts[i].uc_stack.ss_sp = stacks[i];
		contexts[i].uc_stack.ss_size = STACK;
		contexts[i].uc_link = &scheduler;
		makecontext(&contexts[i], (void (*)(void))coroutine, 1, i);
	}
	static volatile int round;
	for (round = 0; round < 60; round++) {
		for (volatile int i = 0; i < COROUTINES; i++)
			swapcontext(&scheduler, &contexts[i]);
		if (round == 30)
			rendezvous();
		static volatile int faulted;
		faulted = 0;
		getcontext(&scheduler);
		if (!faulted) {
			faulted = 1;
			*(volatile int *)16 = 1;
		}
	}
	printf("rescued %d times\n", rescued);
	for (int i = 0; i < COROUTINES; i++)
		printf("%x\n", sums[i]);
	return 0;
}
