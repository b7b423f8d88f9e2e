/* Expected: what sigaction returns as the old action is what the program set, and can be set again; a handler that calls
 * the one that a raw system call says was there before it does not call itself.
 * @compile -Wno-restrict */
#include "signals.h"
#include "raw_call.h"

static volatile int calls[3];
static sigjmp_buf out;
static struct sigaction before;

struct kernel_action {
	void *handler;
	unsigned long flags;
	void *restorer;
	unsigned long mask;
} raw;

static void first(int signal, siginfo_t *info, void *context)
{
	(void)signal, (void)info, (void)context;
	calls[0]++;
	siglongjmp(out, 1);
}

static void second(int signal, siginfo_t *info, void *context)
{
	if (calls[1]++ > 100)
		_exit(3);
	before.sa_sigaction(signal, info, context);
}

/* As libraries do that look past libc. */
static void third(int signal, siginfo_t *info, void *context)
{
	if (calls[2]++ > 100)
		_exit(4);
	if (raw.handler == SIG_DFL || raw.handler == SIG_IGN)
		_exit(5);
	((void (*)(int, siginfo_t *, void *))raw.handler)(signal, info, context);
}

static void try(void)
{
	if (!sigsetjmp(out, 1))
		fault();
	printf("%d %d %d\n", calls[0], calls[1], calls[2]);
	read_on(4 * MIB);
}

static void is(const char *what, const struct sigaction *action)
{
	printf("%s: %s, flags %x\n", what, action->sa_handler == SIG_DFL ? "default" :
	       action->sa_sigaction == first ? "first" : action->sa_sigaction == second ? "second" :
	       action->sa_sigaction == third ? "third" : "strange", action->sa_flags);
}

static void chain_to_raw(void)
{
	struct sigaction action = { .sa_sigaction = third, .sa_flags = SA_SIGINFO };
	/* Natively nothing is there. */
	struct sigaction none = { .sa_handler = SIG_DFL };
	sigaction(SIGSEGV, &none, NULL);
	raw_call(SYS_rt_sigaction, SIGSEGV, 0, (long)&raw, 8);
	sigaction(SIGSEGV, &action, NULL);
	if (raw.handler == SIG_DFL) {
		/* What the default action would do. */
		sigaction(SIGSEGV, &none, NULL);
	}
	fault();
}

int main(int count, char **arguments)
{
	(void)count;
	struct sigaction one = { .sa_sigaction = first, .sa_flags = SA_SIGINFO };
	struct sigaction two = { .sa_sigaction = second, .sa_flags = SA_SIGINFO | SA_NODEFER }, old;
	sigaction(SIGSEGV, NULL, &old);
	is("at first", &old);
	sigaction(SIGSEGV, &one, &old);
	is("before mapping", &old);
	base = map_file(arguments, PROT_READ, MAP_SHARED);
	read_on(4 * MIB);
	sigaction(SIGSEGV, NULL, &old);
	is("after mapping", &old);
	rendezvous();
	try();
	sigaction(SIGSEGV, &two, &before);
	is("replaced", &before);
	try();
	sigaction(SIGSEGV, &two, &old);
	is("replaced by itself", &old);
	sigaction(SIGSEGV, &before, &old);
	is("given back", &old);
	try();
	/* In and out at the same place. */
	old = two;
	sigaction(SIGSEGV, &old, &old);
	is("exchanged in place", &old);
	sigaction(SIGSEGV, &old, &old);
	is("and back", &old);
	printf("signal: %d\n", signal(SIGSEGV, SIG_DFL) == (void *)first);
	apart("a handler that chains past libc", chain_to_raw);
	read_on(8 * MIB);
	return 0;
}
