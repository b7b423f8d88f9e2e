/* The program's own faults, handlers and masks. */
#include "soak.h"

/* What a handler saw. */
static volatile struct {
	int signal, code;
	uintptr_t address;
	uint64_t mask;
	bool on_own_stack;
} seen;
/* What it does about it. */
static volatile enum { SURPRISED, LEAVE, REPAIR, RETURN } purpose;
static volatile int repaired_protection;
static sigjmp_buf back;
static volatile uint64_t sent, alarms;
static char stack[1 << 16];

static uint64_t blocked(void)
{
	sigset_t set;
	uint64_t bits = 0;
	pthread_sigmask(SIG_SETMASK, NULL, &set);
	for (int signal = 1; signal <= 64; signal++)
		bits |= (uint64_t)(sigismember(&set, signal) == 1) << (signal - 1);
	return bits;
}

static void on_fault(int signal, siginfo_t *info, void *context)
{
	(void)context;
	char here;
	uintptr_t address = info ? (uintptr_t)info->si_addr : 0;
	if (purpose == SURPRISED) {
		fprintf(stderr, "signal %d, code %d, at page %zd of the arena\n", signal, info ? info->si_code : 0,
			info ? ((ssize_t)address - (ssize_t)(uintptr_t)arena) / (ssize_t)PAGE : -1);
		wrong("an unexpected signal", signal, 0);
	}
	seen.signal = signal;
	seen.code = info ? info->si_code : 0;
	seen.address = info && info->si_code > 0 ? address - (uintptr_t)arena : 0;
	seen.mask = blocked();
	seen.on_own_stack = &here >= stack && &here < stack + sizeof stack;
	if (purpose == LEAVE)
		siglongjmp(back, 1);
	if (purpose == REPAIR) {
		void *page = arena + (size_t)seen.address / PAGE * PAGE;
		if (mprotect(page, PAGE, repaired_protection))
			fail("mprotect in a handler");
	}
}

static void on_fault_plain(int signal)
{
	on_fault(signal, NULL, NULL);
}

static void on_sent(int signal, siginfo_t *info, void *context)
{
	(void)context;
	Random random = {signal + sent};
	read_steadily(&random, 4);
	sent = mixed(sent + signal + info->si_code + info->si_value.sival_int);
}

/* Comes at any time: it only looks. */
static void on_alarm(int signal)
{
	int before = errno;
	Random random = {alarms += signal};
	read_steadily(&random, 2);
	errno = before;
}

/* The action of SIGSEGV and SIGBUS. */
static struct sigaction action_now;

static void set_actions(Findings *findings)
{
	struct sigaction old;
	for (int i = 0; i < 2; i++) {
		if (sigaction(i ? SIGBUS : SIGSEGV, &action_now, &old))
			fail("sigaction");
		note(findings, old.sa_flags);
		note(findings, old.sa_handler == SIG_DFL ? 0 : old.sa_sigaction == on_fault ? 1 : 2);
		note(findings, sigismember(&old.sa_mask, SIGUSR1) * 2 + sigismember(&old.sa_mask, SIGSEGV));
	}
}

static void choose_action(Random *random)
{
	action_now = (struct sigaction){0};
	if (one_in(random, 4))
		action_now.sa_handler = on_fault_plain;
	else {
		action_now.sa_sigaction = on_fault;
		action_now.sa_flags = SA_SIGINFO;
	}
	static const int flags[] = {SA_ONSTACK, SA_NODEFER, SA_RESETHAND, SA_RESTART};
	for (int i = 0; i < 4; i++)
		if (one_in(random, 3))
			action_now.sa_flags |= flags[i];
	if (one_in(random, 2))
		sigaddset(&action_now.sa_mask, SIGUSR1);
	if (one_in(random, 4))
		sigaddset(&action_now.sa_mask, SIGSEGV);
}

void start_signals(void)
{
	stack_t own = {.ss_sp = stack, .ss_size = sizeof stack};
	struct sigaction action = {.sa_sigaction = on_sent, .sa_flags = SA_SIGINFO | SA_RESTART};
	Findings findings = {0};
	if (sigaltstack(&own, NULL) || sigaction(SIGUSR1, &action, NULL) || sigaction(SIGUSR2, &action, NULL))
		fail("sigaction");
	action = (struct sigaction){.sa_handler = on_alarm, .sa_flags = SA_RESTART};
	struct itimerval period = {{0, 3000}, {0, 3000}};
	if (sigaction(SIGALRM, &action, NULL) || setitimer(ITIMER_REAL, &period, NULL))
		fail("setitimer");
	action_now = (struct sigaction){.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO};
	set_actions(&findings);
}

void op_action(Random *random, Findings *findings)
{
	choose_action(random);
	set_actions(findings);
}

void op_mask(Random *random, Findings *findings)
{
	static const int signals[] = {SIGSEGV, SIGSEGV, SIGBUS, SIGUSR1, SIGUSR2, SIGTERM, SIGALRM};
	sigset_t set;
	note(findings, blocked());
	sigemptyset(&set);
	if (one_in(random, 8))
		sigfillset(&set);
	else
		for (int i = 0; i < 7; i++)
			if (one_in(random, 3))
				sigaddset(&set, signals[i]);
	static const int how[] = {SIG_BLOCK, SIG_UNBLOCK, SIG_SETMASK, SIG_UNBLOCK};
	if (pthread_sigmask(how[below(random, 4)], &set, NULL))
		fail("pthread_sigmask");
	note(findings, blocked());
	note(findings, sent);
}

void op_signal(Random *random, Findings *findings)
{
	if (one_in(random, 2))
		raise(SIGUSR1);
	else {
		union sigval value = {.sival_int = below(random, 1000)};
		if (pthread_sigqueue(pthread_self(), SIGUSR2, value))
			fail("pthread_sigqueue");
	}
	note(findings, sent);
}

/* Accesses one page, however that ends. */
void op_fault(Random *random, Findings *findings)
{
	size_t page = below(random, ARENA_PAGES);
	Page *what = &model[page];
	volatile uint32_t *word = (volatile uint32_t *)(arena + page * PAGE);
	bool writes = one_in(random, 2), repairs = one_in(random, 2);
	bool allowed = what->protection & (writes ? PROT_WRITE : PROT_READ);
	uint32_t stamp = 1 + below(random, 1000000);
	if (!allowed || is_beyond_end(page)) {
		uint64_t forbidding = 1ull << (SIGSEGV - 1) | 1ull << (SIGBUS - 1);
		if (blocked() & forbidding)
			return;
		purpose = LEAVE;
		/* A shared mapping cannot be made writable; a plain handler does not know where. */
		if (repairs && !allowed && !is_beyond_end(page) && (!writes || what->is_private) &&
		    action_now.sa_flags & SA_SIGINFO) {
			purpose = REPAIR;
			repaired_protection = writes ? PROT_READ | PROT_WRITE : PROT_READ;
		}
	}
	bool expected = purpose != SURPRISED, repaired = purpose == REPAIR;
	seen.signal = 0;
	if (sigsetjmp(back, 1) == 0) {
		if (writes)
			*word = stamp;
		else if (*word != expected_word(page, 0))
			wrong("a word", *word, expected_word(page, 0));
	}
	purpose = SURPRISED;
	if (repaired)
		what->protection = repaired_protection;
	if ((allowed || repaired) && writes && !is_beyond_end(page))
		what->stamp = stamp;
	if ((seen.signal != 0) != expected)
		wrong("a fault", seen.signal, expected);
	if (!expected)
		return;
	if (seen.address && seen.address / PAGE != page)
		wrong("the address of a fault", seen.address / PAGE, page);
	note(findings, seen.signal * 16 + seen.code);
	note(findings, seen.mask);
	note(findings, seen.on_own_stack);
	if (action_now.sa_flags & SA_RESETHAND)
		set_actions(findings);
}

void die(Random *random)
{
	sigset_t fault;
	sigemptyset(&fault);
	sigaddset(&fault, SIGSEGV);
	if (mprotect(arena, PAGE, PROT_NONE))
		fail("mprotect");
	size_t way = below(random, 5);
	if (way != 1)
		signal(SIGSEGV, SIG_DFL);
	/* 1: the handler is there, but may not run. */
	pthread_sigmask(way == 1 || way == 2 ? SIG_BLOCK : SIG_UNBLOCK, &fault, NULL);
	if (way == 2) {
		raise(SIGSEGV);
		Findings findings = {0};
		read_range(random, &findings, any_range(random, 512));
		pthread_sigmask(SIG_UNBLOCK, &fault, NULL);
	}
	if (way == 3)
		abort();
	if (way == 4)
		signal(SIGSEGV, SIG_IGN);
	*(volatile unsigned char *)arena = 1;
	wrong("life", way, 0);
}
