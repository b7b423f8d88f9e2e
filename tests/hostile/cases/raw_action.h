/* A handler that no library sees. */
#include "raw_call.h"

struct raw_action {
	void (*handler)(int, siginfo_t *, void *);
	unsigned long flags;
	void (*restorer)(void);
	unsigned long mask;
};

__attribute__((unused)) static void reporting_handler(int signal, siginfo_t *info, void *context)
{
	(void)context;
	char text[80];
	int length = snprintf(text, sizeof text, "signal %d, code %d, address %p\n", signal, info->si_code, info->si_addr);
	if (write(1, text, length) != length)
		_exit(2);
	_exit(6);
}

static void install_raw(void (*handler)(int, siginfo_t *, void *))
{
	/* libc's restorer, from an action that it set. */
	struct raw_action action;
	struct sigaction usual = { .sa_handler = SIG_IGN };
	sigaction(SIGUSR2, &usual, NULL);
	raw_call(SYS_rt_sigaction, SIGUSR2, 0, (long)&action, 8);
	action.handler = handler;
	action.flags |= SA_SIGINFO | SA_ONSTACK;
	action.mask = ~0UL;
	if (raw_call(SYS_rt_sigaction, SIGSEGV, (long)&action, 0, 8))
		fail("rt_sigaction");
}
