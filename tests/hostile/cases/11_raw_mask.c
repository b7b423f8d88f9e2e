/* Expected: a thread that blocked SIGSEGV by a system call past libc maps a file and reads it; a thread that it starts does so
 * too. Both find SIGSEGV blocked. */
#include "signals.h"
#include "raw_call.h"

static void block(unsigned long long word)
{
	if (raw_call(SYS_rt_sigprocmask, SIG_SETMASK, (long)&word, 0, 8))
		fail("rt_sigprocmask");
}

static void *reader(void *argument)
{
	(void)argument;
	printf("thread %s\n", letters(mask_now()));
	read_on(32 * MIB);
	return NULL;
}

int main(int count, char **arguments)
{
	(void)count;
	pthread_t thread;
	block(1ULL << (SIGSEGV - 1) | 1ULL << (SIGUSR1 - 1));
	base = map_file(arguments, PROT_READ, MAP_SHARED);
	printf("main   %s\n", letters(mask_now()));
	read_on(4 * MIB);
	rendezvous();
	pthread_create(&thread, NULL, reader, NULL);
	pthread_join(thread, NULL);
	read_on(16 * MIB);
	printf("main   %s\n", letters(mask_now()));
	return 0;
}
