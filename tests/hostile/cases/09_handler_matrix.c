/* Expected: whatever way and whatever flags a handler is set with, the program reads back what it set, and the handler
 * runs with that mask, on that stack, at that distance from its context, and with that siginfo; it may read mapped data.
 * @compile -Wno-deprecated-declarations
 * @counter forwarded 100 */
#include "signals.h"

typedef void (*simple)(int);

extern simple bsd_signal(int, simple);

static sigjmp_buf out;
static volatile int code, on_alternate, depth;
static void *volatile where;
static volatile unsigned long long inside;
static char alternate[64 * 1024];

static void look(void *frame)
{
	on_alternate = (char *)frame >= alternate && (char *)frame < alternate + sizeof alternate;
	inside = mask_now();
	read_on(256 * 1024);
}

static void with_info(int signal, siginfo_t *info, void *context)
{
	(void)signal;
	code = info->si_code;
	where = info->si_addr;
	/* The kernel's frame lies right above: nobody called on its way here. */
	depth = (char *)context - (char *)__builtin_frame_address(0);
	look(__builtin_frame_address(0));
	siglongjmp(out, 1);
}

static void plain(int signal)
{
	code = signal;
	where = NULL;
	depth = 0;
	look(__builtin_frame_address(0));
	siglongjmp(out, 1);
}

static void tell(const char *how)
{
	struct sigaction now;
	unsigned long long set;
	sigaction(SIGSEGV, NULL, &now);
	memcpy(&set, &now.sa_mask, sizeof set);
	printf("%s: flags %x, mask %s, %s\n", how, now.sa_flags, letters(set),
	       now.sa_handler == SIG_DFL ? "default" : now.sa_handler == SIG_IGN ? "ignored" :
	       now.sa_handler == plain ? "plain" : now.sa_sigaction == with_info ? "with info" : "strange");
}

static void try(const char *how)
{
	tell(how);
	code = 0;
	if (!sigsetjmp(out, 1))
		fault();
	printf("  code %d, address %p, alternate %d, depth %d\n  inside  %s\n  outside %s\n", code, where,
	       on_alternate, depth, letters(inside), letters(mask_now()));
	tell("  after");
}

int main(int count, char **arguments)
{
	(void)count;
	stack_t stack = { .ss_sp = alternate, .ss_size = sizeof alternate };
	sigaltstack(&stack, NULL);
	base = map_file(arguments, PROT_READ, MAP_SHARED);
	static const int flags[] = { SA_SIGINFO, SA_RESETHAND, SA_NODEFER, SA_ONSTACK, SA_RESTART, SA_NOCLDSTOP };
	static const unsigned long long masks[] = { 0, 1ULL << (SIGUSR1 - 1), ~0ULL, 1ULL << (SIGSEGV - 1) };
	for (unsigned which = 0; which < 64; which++)
		for (unsigned mask = 0; mask < 4; mask++) {
			struct sigaction action = { .sa_flags = 0 };
			char how[64];
			for (int bit = 0; bit < 6; bit++)
				if (which >> bit & 1)
					action.sa_flags |= flags[bit];
			if (action.sa_flags & SA_SIGINFO)
				action.sa_sigaction = with_info;
			else
				action.sa_handler = plain;
			memcpy(&action.sa_mask, &masks[mask], sizeof masks[mask]);
			if (sigaction(SIGSEGV, &action, NULL))
				fail("sigaction");
			snprintf(how, sizeof how, "flags %u, mask %u", which, mask);
			try(how);
		}
	rendezvous();
	printf("signal: old %s\n", signal(SIGSEGV, plain) == SIG_ERR ? "error" : "some");
	try("signal");
	bsd_signal(SIGSEGV, plain);
	try("bsd_signal");
	printf("ssignal: old %d\n", ssignal(SIGSEGV, plain) == plain);
	try("ssignal");
	sysv_signal(SIGSEGV, plain);
	try("sysv_signal");
	siginterrupt(SIGSEGV, 1);
	tell("siginterrupt on");
	signal(SIGSEGV, plain);
	try("signal after siginterrupt");
	siginterrupt(SIGSEGV, 0);
	tell("siginterrupt off");
	printf("signal(SIG_ERR): %d, errno %d\n", signal(SIGSEGV, SIG_ERR) == SIG_ERR, errno);
	tell("unchanged");
	printf("sigset: old %d\n", sigset(SIGSEGV, plain) == plain);
	try("sigset");
	printf("sigset hold: old %d\n", sigset(SIGSEGV, SIG_HOLD) == plain);
	printf("  %s\n", letters(mask_now()));
	printf("sigset hold again: held %d\n", sigset(SIGSEGV, SIG_HOLD) == SIG_HOLD);
	read_on(512 * 1024);
	printf("sigset: held %d\n", sigset(SIGSEGV, plain) == SIG_HOLD);
	printf("  %s\n", letters(mask_now()));
	try("sigset after hold");
	sigignore(SIGSEGV);
	tell("sigignore");
	raise(SIGSEGV);
	signal(SIGSEGV, SIG_DFL);
	tell("signal default");
	struct sigaction strange = { .sa_handler = SIG_DFL, .sa_flags = SA_NODEFER | SA_ONSTACK };
	sigaction(SIGSEGV, &strange, NULL);
	tell("default with flags");
	errno = 0;
	printf("no such signal: %d, errno %d\n", sigaction(65, NULL, NULL), errno);
	return 0;
}
