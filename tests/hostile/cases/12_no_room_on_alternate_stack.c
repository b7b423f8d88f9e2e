/* Expected: reading goes on, and nothing below it is written, when the program gives itself an alternate stack that has no room for
 * a handler of ours; a handler of its own that fits there runs there.
 * @counter active_readers 1
 * @report an alternate signal stack has no room for our handler */
#include "signals.h"
#include <sys/auxv.h>

/* The kernel's MINSIGSTKSZ: the one of the C library may be a call that tells more. */
#ifdef __aarch64__
enum { KERNEL_MINIMUM = 5120 };
#else
enum { KERNEL_MINIMUM = 2048 };
#endif

static char *alternate;
static void *out[5];
static volatile int on_alternate;

static void handler(int signal)
{
	(void)signal;
	char *here = __builtin_frame_address(0);
	on_alternate = here >= alternate && here < alternate + 4 * PAGE;
	/* Without the loader, which takes more of the stack the first time. */
	__builtin_longjmp(out, 1);
}

/* Below it is a page that nobody may write to. */
static void use_alternate(size_t size, int by_number)
{
	alternate = mmap(NULL, 5 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (mprotect(alternate, PAGE, PROT_NONE))
		fail("mprotect");
	alternate += PAGE;
	stack_t stack = { .ss_sp = alternate, .ss_size = size }, now;
	if (by_number ? syscall(SYS_sigaltstack, &stack, NULL) : sigaltstack(&stack, NULL))
		fail("sigaltstack");
	sigaltstack(NULL, &now);
	printf("size %s, flags %d\n", now.ss_size == size ? "as set" : "another", now.ss_flags);
}

static void *smallest(void *by_number)
{
	/* What the kernel takes, and no more: less than it needs to call any handler where registers are wide. */
	use_alternate(KERNEL_MINIMUM, by_number != NULL);
	read_on(4 * MIB);
	return NULL;
}

static void in_a_thread(void *by_number)
{
	pthread_t id;
	if (pthread_create(&id, NULL, smallest, by_number) || pthread_join(id, NULL))
		fail("thread");
}

static void by_name(void)
{
	in_a_thread(NULL);
}

static void by_number(void)
{
	in_a_thread("");
}

int main(int count, char **arguments)
{
	(void)count;
	base = map_file(arguments, PROT_READ, MAP_SHARED);
	stack_t none = { .ss_flags = SS_DISABLE };
	if (sigaltstack(&none, NULL) || sigaltstack((stack_t *)8, NULL) == 0 || errno != EFAULT)
		fail("sigaltstack");
	read_on(2 * MIB);
	rendezvous();
	read_on(MIB);
	apart("by name", by_name);
	apart("by number", by_number);
	/* Here a handler just fits. */
	use_alternate(getauxval(AT_MINSIGSTKSZ) + 1024, 0);
	read_on(8 * MIB);
	struct sigaction action = { .sa_handler = handler, .sa_flags = SA_ONSTACK | SA_NODEFER };
	sigaction(SIGSEGV, &action, NULL);
	for (int round = 0; round < 4; round++) {
		if (!__builtin_setjmp(out))
			fault();
		printf("on the alternate stack %d\n", on_alternate);
		read_on(8 * MIB);
	}
	return 0;
}
