/* Expected: a program that begins with SIGSEGV blocked, and whose threads begin before it maps anything, reads on. */
#include "common.h"

static volatile unsigned char *base;
static pthread_barrier_t barrier;

static void *reader(void *argument)
{
	(void)argument;
	pthread_barrier_wait(&barrier);
	read_pages(base, 16 * MIB, file_length);
	return NULL;
}

int main(int count, char **arguments)
{
	if (count == 2) {
		sigset_t all;
		sigfillset(&all);
		sigprocmask(SIG_SETMASK, &all, NULL);
		char *again[] = { arguments[0], arguments[1], "again", NULL };
		execv(again[0], again);
		fail("execv");
	}
	pthread_t thread;
	pthread_barrier_init(&barrier, NULL, 2);
	pthread_create(&thread, NULL, reader, NULL);
	base = map_file(arguments, PROT_READ, MAP_SHARED);
	pthread_barrier_wait(&barrier);
	read_pages(base, 0, 16 * MIB);
	pthread_join(thread, NULL);
	puts("read");
	return 0;
}
