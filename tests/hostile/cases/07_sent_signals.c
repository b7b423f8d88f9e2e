/* Expected: a SIGSEGV that is sent, not caused, in whatever way, reaches the handler with its sender's siginfo, is
 * ignored, or kills; one that claims the address of a checkpoint lifts nothing. */
#include "signals.h"

static volatile int seen;

static void handler(int signal, siginfo_t *info, void *context)
{
	(void)signal, (void)context;
	seen++;
	printf("  code %d, value %d, sender me %d\n", info->si_code, info->si_value.sival_int,
	       info->si_code > 0 || info->si_pid == getpid());
}

static int forged(int code)
{
	siginfo_t info = { .si_signo = SIGSEGV, .si_code = code };
	info.si_addr = (void *)(base + 48 * MIB);
	return syscall(SYS_rt_sigqueueinfo, getpid(), SIGSEGV, &info);
}

static void send_all(void)
{
	union sigval value = { .sival_int = 42 };
	printf("kill\n");
	kill(getpid(), SIGSEGV);
	printf("raise\n");
	raise(SIGSEGV);
	printf("tgkill\n");
	syscall(SYS_tgkill, getpid(), gettid(), SIGSEGV);
	printf("tkill\n");
	syscall(SYS_tkill, gettid(), SIGSEGV);
	printf("sigqueue\n");
	sigqueue(getpid(), SIGSEGV, value);
	printf("pthread_sigqueue\n");
	pthread_sigqueue(pthread_self(), SIGSEGV, value);
	read_on(MIB);
}

static void by_default(void)
{
	read_on(MIB);
	raise(SIGSEGV);
}

static void by_default_from_a_queue(void)
{
	read_on(MIB);
	forged(SI_QUEUE);
}

static void by_default_as_by_the_kernel(void)
{
	read_on(MIB);
	forged(SEGV_ACCERR);
}

int main(int count, char **arguments)
{
	(void)count;
	base = map_file(arguments, PROT_READ, MAP_SHARED);
	read_on(4 * MIB);
	rendezvous();
	signal(SIGSEGV, SIG_IGN);
	send_all();
	struct sigaction action = { .sa_sigaction = handler, .sa_flags = SA_SIGINFO };
	sigaction(SIGSEGV, &action, NULL);
	send_all();
	printf("forged: %d\n", seen);
	forged(SI_QUEUE);
	printf("forged as by the kernel: %d\n", seen);
	forged(SEGV_ACCERR);
	forged(SEGV_MAPERR);
	printf("seen: %d\n", seen);
	action.sa_handler = SIG_IGN;
	sigaction(SIGSEGV, &action, NULL);
	printf("no handler: %d %d\n", forged(SI_QUEUE), forged(SEGV_ACCERR));
	read_on(file_length - position);
	signal(SIGSEGV, SIG_DFL);
	apart("raised", by_default);
	apart("queued", by_default_from_a_queue);
	apart("queued as by the kernel", by_default_as_by_the_kernel);
	fflush(stdout);
	raise(SIGSEGV);
	return 0;
}
