/* Expected: a SIGSEGV that is sent while it is blocked stays pending until it is unblocked or waited for, or another
 * thread takes it; a fault while it is blocked kills. Reading goes on.
 * @report a SIGSEGV was sent to the program while it blocks it */
#include "signals.h"

static volatile int handled, sender, thread_of_handler;
static volatile unsigned long long inside;

static void handler(int signal, siginfo_t *info, void *context)
{
	(void)signal, (void)context;
	handled++;
	sender = info->si_code;
	inside = mask_now();
	thread_of_handler = gettid() == getpid();
	read_on(MIB);
}

static void block(int how)
{
	sigset_t segv;
	sigemptyset(&segv);
	sigaddset(&segv, SIGSEGV);
	sigprocmask(how, &segv, NULL);
}

static int pending(void)
{
	sigset_t set;
	sigpending(&set);
	return sigismember(&set, SIGSEGV);
}

static void install(int flags)
{
	struct sigaction action = { .sa_sigaction = handler, .sa_flags = SA_SIGINFO | flags };
	sigaction(SIGSEGV, &action, NULL);
}

static void raised(void)
{
	install(0);
	read_on(4 * MIB);
	block(SIG_BLOCK);
	read_on(2 * MIB);
	raise(SIGSEGV);
	printf("handled %d, pending %d\n  %s\n", handled, pending(), letters(mask_now()));
	read_on(8 * MIB);
	block(SIG_UNBLOCK);
	printf("handled %d, pending %d, code %d\n  %s\n  %s\n", handled, pending(), sender, letters(inside),
	       letters(mask_now()));
	read_on(8 * MIB);
}

static void killed(void)
{
	install(0);
	read_on(4 * MIB);
	block(SIG_BLOCK);
	kill(getpid(), SIGSEGV);
	printf("handled %d, pending %d\n", handled, pending());
	read_on(8 * MIB);
	sigset_t none;
	sigemptyset(&none);
	printf("sigsuspend %d\n", sigsuspend(&none));
	printf("handled %d, pending %d, code %d\n  %s\n", handled, pending(), sender, letters(mask_now()));
}

static void waited_for(void)
{
	sigset_t segv;
	siginfo_t info;
	sigemptyset(&segv);
	sigaddset(&segv, SIGSEGV);
	read_on(4 * MIB);
	block(SIG_BLOCK);
	sigqueue(getpid(), SIGSEGV, (union sigval){ .sival_int = 42 });
	int signal = sigwaitinfo(&segv, &info);
	printf("waited for %d, code %d, value %d, pending %d\n", signal, info.si_code, info.si_value.sival_int, pending());
	read_on(8 * MIB);
}

static pthread_barrier_t barrier;

static void *waiter(void *argument)
{
	(void)argument;
	sigset_t full;
	int signal;
	sigfillset(&full);
	pthread_barrier_wait(&barrier);
	sigwait(&full, &signal);
	printf("the waiting thread got %d\n", signal);
	return NULL;
}

static void waited_for_in_a_thread(void)
{
	pthread_t id;
	sigset_t full;
	sigfillset(&full);
	sigprocmask(SIG_SETMASK, &full, NULL);
	pthread_barrier_init(&barrier, NULL, 2);
	pthread_create(&id, NULL, waiter, NULL);
	read_on(4 * MIB);
	pthread_barrier_wait(&barrier);
	kill(getpid(), SIGSEGV);
	pthread_join(id, NULL);
	printf("pending %d\n", pending());
	read_on(8 * MIB);
}

static void *open_thread(void *argument)
{
	(void)argument;
	pthread_barrier_wait(&barrier);
	while (!handled)
		sched_yield();
	pthread_barrier_wait(&barrier);
	return NULL;
}

static void taken_by_another(void)
{
	pthread_t id;
	install(0);
	pthread_barrier_init(&barrier, NULL, 2);
	pthread_create(&id, NULL, open_thread, NULL);
	block(SIG_BLOCK);
	read_on(4 * MIB);
	pthread_barrier_wait(&barrier);
	kill(getpid(), SIGSEGV);
	pthread_barrier_wait(&barrier);
	pthread_join(id, NULL);
	printf("handled %d by the main thread %d, pending %d\n", handled, thread_of_handler, pending());
}

static void again_in_the_handler(int signal)
{
	if (handled++ == 0) {
		raise(signal);
		printf("raised in the handler: handled %d, pending %d\n", handled, pending());
	}
}

static void raised_in_handler(void)
{
	signal(SIGSEGV, again_in_the_handler);
	read_on(4 * MIB);
	raise(SIGSEGV);
	printf("handled %d\n", handled);
	read_on(4 * MIB);
}

static void default_and_raise(int signal_number)
{
	/* As crash reporters do. */
	signal(signal_number, SIG_DFL);
	raise(signal_number);
	printf("reported\n");
	fflush(stdout);
}

static void reported(void)
{
	signal(SIGSEGV, default_and_raise);
	read_on(4 * MIB);
	fault();
}

static void fault_while_blocked(void)
{
	install(0);
	read_on(4 * MIB);
	block(SIG_BLOCK);
	read_on(4 * MIB);
	fflush(stdout);
	fault();
}

static void fault_while_ignored(void)
{
	signal(SIGSEGV, SIG_IGN);
	read_on(4 * MIB);
	fflush(stdout);
	fault();
}

static void faulting_handler(int signal)
{
	(void)signal;
	if (handled++ > 2)
		_exit(7);
	read_on(MIB);
	fault();
}

static void fault_in_handler(void)
{
	signal(SIGSEGV, faulting_handler);
	read_on(4 * MIB);
	fault();
}

static void fault_in_handler_without_defer(void)
{
	struct sigaction action = { .sa_handler = faulting_handler, .sa_flags = SA_NODEFER };
	sigaction(SIGSEGV, &action, NULL);
	read_on(4 * MIB);
	fault();
}

static void fault_in_handler_that_blocks_it(void)
{
	struct sigaction action = { .sa_handler = faulting_handler, .sa_flags = SA_NODEFER };
	sigfillset(&action.sa_mask);
	sigaction(SIGSEGV, &action, NULL);
	read_on(4 * MIB);
	fault();
}

int main(int count, char **arguments)
{
	(void)count;
	base = map_file(arguments, PROT_READ, MAP_SHARED);
	read_on(MIB);
	rendezvous();
	apart("raised", raised);
	apart("killed", killed);
	apart("waited for", waited_for);
	apart("waited for in a thread", waited_for_in_a_thread);
	apart("taken by another thread", taken_by_another);
	apart("raised in its handler", raised_in_handler);
	apart("default and raise", reported);
	apart("fault while blocked", fault_while_blocked);
	apart("fault while ignored", fault_while_ignored);
	apart("fault in the handler", fault_in_handler);
	apart("with SA_NODEFER", fault_in_handler_without_defer);
	apart("with a mask", fault_in_handler_that_blocks_it);
	read_pages(base, 0, file_length);
	return 0;
}
