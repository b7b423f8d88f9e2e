/* Expected: SIGSEGV blocked by number, for good, while a call waits or while another signal's handler runs, and a handler for it set
 * by number, do not keep closed pages from being read, and are what the program reads back, by number and by name; what is no set
 * or action is answered with EFAULT. */
#include "signals.h"
#include <poll.h>
#include <sys/epoll.h>
#include <sys/select.h>

struct kernel_action {
	void *handler;
	unsigned long flags;
	void *restorer;
	unsigned long mask;
};

enum { EPOLL_PWAIT2 = 441 };

#define BIT(signal) (1UL << ((signal) - 1))

static sigjmp_buf out;

static void tell(const char *what, long got)
{
	printf("%s: %ld (%s)\n", what, got, got < 0 ? strerror(errno) : "");
}

static void reading(int signal)
{
	(void)signal;
	unsigned long mask = 0;
	syscall(SYS_rt_sigprocmask, SIG_BLOCK, NULL, &mask, 8);
	read_on(2 * MIB);
	printf("in a handler %s %d\n", letters(mask), mask == mask_now());
}

static void jumping(int signal, siginfo_t *info, void *context)
{
	(void)signal, (void)context;
	printf("handled %p\n", info->si_addr);
	siglongjmp(out, 1);
}

static void is(const char *what, int signal)
{
	struct kernel_action raw;
	struct sigaction action;
	long result = syscall(SYS_rt_sigaction, signal, NULL, &raw, 8);
	sigaction(signal, NULL, &action);
	printf("%s: %ld, %s, %d, flags %lx, mask %s\n", what, result, raw.handler == SIG_DFL ? "default" : raw.handler == jumping ?
	       "jumping" : raw.handler == reading ? "reading" : "strange", raw.handler == (void *)action.sa_handler,
	       raw.flags & ~0x04000000UL, letters(raw.mask));
}

/* libc's restorer comes with any action that it has set. */
static void set_by_number(int signal, void *handler, unsigned long flags, unsigned long mask)
{
	struct kernel_action action, old = { 0 };
	struct sigaction usual = { .sa_handler = SIG_IGN };
	sigaction(SIGWINCH, &usual, NULL);
	syscall(SYS_rt_sigaction, SIGWINCH, NULL, &action, 8);
	action.handler = handler, action.flags |= flags, action.mask = mask;
	long result = syscall(SYS_rt_sigaction, signal, &action, &old, 8);
	printf("set %ld, before: %d %s\n", result, old.handler == SIG_DFL, letters(old.mask));
}

static void change(int how, unsigned long set)
{
	unsigned long old = 0;
	long result = syscall(SYS_rt_sigprocmask, how, &set, &old, 8);
	printf("%ld: before %s, now %s\n", result, letters(old), letters(mask_now()));
	read_on(2 * MIB);
}

static void waits(void)
{
	unsigned long mask = BIT(SIGSEGV) | BIT(SIGUSR2), both[2] = { (unsigned long)&mask, 8 };
	struct timespec soon = { 0, 1000 };
	struct epoll_event event;
	int epoll = epoll_create1(0);
	sigset_t usr1;
	sigemptyset(&usr1);
	sigaddset(&usr1, SIGUSR1);
	sigprocmask(SIG_BLOCK, &usr1, NULL);
	for (int way = 0; way < 5; way++) {
		raise(SIGUSR1);
		long got = way == 0 ? syscall(SYS_rt_sigsuspend, &mask, 8L) :
			   way == 1 ? syscall(SYS_ppoll, NULL, 0L, NULL, &mask, 8L) :
			   way == 2 ? syscall(SYS_pselect6, 0L, NULL, NULL, NULL, NULL, both) :
			   way == 3 ? syscall(SYS_epoll_pwait, epoll, &event, 1L, -1L, &mask, 8L) :
				      syscall(EPOLL_PWAIT2, epoll, &event, 1L, NULL, &mask, 8L);
		tell("waited", got);
	}
	tell("of another size", syscall(SYS_ppoll, NULL, 0L, &soon, &mask, 16L));
	tell("without a mask", syscall(SYS_ppoll, NULL, 0L, &soon, NULL, 8L));
	tell("without either", syscall(SYS_pselect6, 0L, NULL, NULL, NULL, &soon, NULL));
	both[0] = 0;
	tell("without a mask", syscall(SYS_pselect6, 0L, NULL, NULL, NULL, &soon, both));
	sigprocmask(SIG_UNBLOCK, &usr1, NULL);
	close(epoll);
}

static void bad(char *closed)
{
	unsigned long set = 0, both[2] = { (unsigned long)closed, 8 };
	tell("set", syscall(SYS_rt_sigprocmask, SIG_BLOCK, closed, NULL, 8));
	tell("set of another size", syscall(SYS_rt_sigprocmask, SIG_BLOCK, &set, NULL, 16));
	tell("action", syscall(SYS_rt_sigaction, SIGSEGV, closed, NULL, 8));
	tell("place for an action", syscall(SYS_rt_sigaction, SIGSEGV, NULL, closed, 8));
	/* Set all the same, before there is no place for what was. */
	static const char constant[64];
	int signals[] = { SIGSEGV, SIGUSR2 };
	for (int i = 0; i < 2; i++) {
		struct kernel_action ignore = { .handler = SIG_IGN };
		struct sigaction old, now;
		sigaction(signals[i], NULL, &old);
		tell("constant place", syscall(SYS_rt_sigaction, signals[i], &ignore, constant, 8L));
		sigaction(signals[i], NULL, &now);
		printf("ignored: %d\n", now.sa_handler == SIG_IGN);
		sigaction(signals[i], &old, NULL);
	}
	tell("suspend", syscall(SYS_rt_sigsuspend, closed, 8L));
	tell("ppoll", syscall(SYS_ppoll, NULL, 0L, NULL, closed, 8L));
	tell("pselect6", syscall(SYS_pselect6, 0L, NULL, NULL, NULL, NULL, closed));
	tell("pselect6", syscall(SYS_pselect6, 0L, NULL, NULL, NULL, NULL, both));
	tell("no signal", syscall(SYS_rt_sigaction, 99, NULL, NULL, 8));
}

static void all(void)
{
	change(SIG_BLOCK, BIT(SIGSEGV) | BIT(SIGUSR2));
	change(SIG_SETMASK, ~0UL);
	change(SIG_UNBLOCK, BIT(SIGSEGV));
	change(SIG_SETMASK, 0);
	waits();
	set_by_number(SIGUSR1, reading, 0, ~0UL);
	is("SIGUSR1", SIGUSR1);
	raise(SIGUSR1);
	set_by_number(SIGSEGV, jumping, SA_SIGINFO, BIT(SIGUSR2));
	is("SIGSEGV", SIGSEGV);
	read_on(2 * MIB);
	if (!sigsetjmp(out, 1))
		fault();
	read_on(2 * MIB);
	set_by_number(SIGSEGV, SIG_DFL, 0, 0);
	is("SIGSEGV", SIGSEGV);
}

int main(int count, char **arguments)
{
	(void)count;
	char *closed = mmap(NULL, PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	signal(SIGUSR1, reading);
	/* Before anything is mapped a handler set by number is the program's, and not one installed past us. */
	set_by_number(SIGSEGV, jumping, SA_SIGINFO, 0);
	bad(closed);
	base = map_file(arguments, PROT_READ, MAP_SHARED);
	is("SIGSEGV", SIGSEGV);
	read_on(2 * MIB);
	bad(closed);
	all();
	rendezvous();
	all();
	fflush(stdout);
	fault();
	return 0;
}
