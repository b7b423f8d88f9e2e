/* Expected: on the smallest stacks, on alternate stacks of the program's own, changed or switched off meanwhile, reading
 * works, and a stack overflow reaches the handler that asked for it.
 * @compile -Wno-infinite-recursion
 * @counter active_readers 2 */
#include "signals.h"
#include <limits.h>

enum { SMALLEST = 8192 };

static sigjmp_buf out;
static char *alternate;
static size_t alternate_size;
static volatile int on_alternate;

static void handler(int signal, siginfo_t *info, void *context)
{
	(void)signal, (void)info, (void)context;
	char *here = __builtin_frame_address(0);
	on_alternate = here >= alternate && here < alternate + alternate_size;
	/* A trip here takes another frame. */
	if (alternate_size != SMALLEST)
		read_on(MIB / 4);
	siglongjmp(out, 1);
}

static void *tiny(void *argument)
{
	(void)argument;
	/* On what little is left of it. */
	read_on(2 * MIB);
	return NULL;
}

__attribute__((noinline)) static int recurse(int depth)
{
	volatile char frame[1024];
	frame[0] = depth;
	return recurse(depth + 1) + frame[0];
}

static void use_alternate(size_t size)
{
	alternate = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	alternate_size = size;
	stack_t stack = { .ss_sp = alternate, .ss_size = size };
	if (sigaltstack(&stack, NULL))
		fail("sigaltstack");
}

static void overflow(void)
{
	recurse(0);
}

static void caught_overflow(void)
{
	if (!sigsetjmp(out, 1))
		recurse(0);
	printf("overflow caught, on the alternate stack %d\n", on_alternate);
	read_on(4 * MIB);
}

int main(int count, char **arguments)
{
	(void)count;
	base = map_file(arguments, PROT_READ, MAP_SHARED);
	pthread_attr_t attributes;
	pthread_t id;
	pthread_attr_init(&attributes);
	for (int i = 0; i < 8; i++) {
		size_t size = i < 4 ? (size_t)PTHREAD_STACK_MIN : 32 * 1024;
		if (pthread_attr_setstacksize(&attributes, size) || pthread_create(&id, &attributes, tiny, NULL))
			fail("pthread_create");
		pthread_join(id, NULL);
	}
	rendezvous();
	struct sigaction action = { .sa_sigaction = handler, .sa_flags = SA_SIGINFO | SA_ONSTACK };
	sigaction(SIGSEGV, &action, NULL);
	/* No alternate stack, then the smallest that has room for a handler in front of this one, then others. */
	for (int i = 0; i < 6; i++) {
		if (i > 0)
			use_alternate(SMALLEST + 4096 * (i - 1));
		for (int round = 0; round < 4; round++) {
			read_on(MIB / 2);
			if (!sigsetjmp(out, 1))
				fault();
			printf("%d", on_alternate);
		}
		stack_t now;
		sigaltstack(NULL, &now);
		printf(" stack %d, flags %d\n", i, now.ss_flags);
	}
	apart("overflow", caught_overflow);
	action.sa_flags = SA_SIGINFO;
	sigaction(SIGSEGV, &action, NULL);
	if (!sigsetjmp(out, 1))
		fault();
	printf("not asked for: %d\n", on_alternate);
	apart("overflow without", overflow);
	signal(SIGSEGV, SIG_DFL);
	apart("overflow by default", overflow);
	stack_t none = { .ss_flags = SS_DISABLE };
	sigaltstack(&none, NULL);
	read_on(8 * MIB);
	return 0;
}
