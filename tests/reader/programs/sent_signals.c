/* Expected: a SIGSEGV that is sent, not caused, does what it does without precache: ignored, handled with the sender's
 * siginfo, or deadly; one that claims the address of a checkpoint lifts nothing. */
#include "common.h"
#include <sys/syscall.h>

static volatile int code, value;

static void handler(int signal, siginfo_t *info, void *context)
{
	(void)signal, (void)context;
	code = info->si_code;
	value = info->si_value.sival_int;
}

int main(int count, char **arguments)
{
	(void)count;
	volatile unsigned char *base = map_file(arguments, PROT_READ, MAP_SHARED);
	read_pages(base, 0, 4 * MIB);
	signal(SIGSEGV, SIG_IGN);
	raise(SIGSEGV);
	puts("ignored");
	struct sigaction action = { .sa_sigaction = handler, .sa_flags = SA_SIGINFO };
	sigaction(SIGSEGV, &action, NULL);
	sigqueue(getpid(), SIGSEGV, (union sigval){ .sival_int = 42 });
	printf("code %d, value %d\n", code, value);
	siginfo_t forged = { .si_signo = SIGSEGV, .si_code = SI_QUEUE };
	forged.si_addr = (void *)(base + 32 * MIB);
	syscall(SYS_rt_sigqueueinfo, getpid(), SIGSEGV, &forged);
	printf("forged: code %d\n", code);
	read_pages(base, 4 * MIB, file_length);
	signal(SIGSEGV, SIG_DFL);
	fflush(stdout);
	raise(SIGSEGV);
	return 0;
}
