/* Expected: a thread that is cancelled in a call which waits under a mask, or reads, runs its cleanup handlers and those of
 * its thread-specific data, which read mapped data. */
#include "signals.h"
#include <poll.h>
#include <sys/epoll.h>
#include <sys/select.h>

static pthread_barrier_t barrier;
static pthread_key_t key;
static int ends[2];
static volatile int way;

static void cleanup(void *what)
{
	read_on(MIB);
	printf("  cleaned up %s\n", (char *)what);
}

static void of_the_key(void *what)
{
	read_on(MIB);
	printf("  key %s\n", (char *)what);
}

static void *waits(void *argument)
{
	sigset_t full;
	struct epoll_event event;
	char byte;
	(void)argument;
	sigfillset(&full);
	pthread_setspecific(key, "dropped");
	pthread_cleanup_push(cleanup, "outer");
	pthread_cleanup_push(cleanup, "inner");
	pthread_barrier_wait(&barrier);
	switch (way) {
	case 0: ppoll(NULL, 0, NULL, &full); break;
	case 1: pselect(0, NULL, NULL, NULL, NULL, &full); break;
	case 2: epoll_pwait(epoll_create1(0), &event, 1, -1, &full); break;
	case 3: sigsuspend(&full); break;
	case 4: if (read(ends[0], &byte, 1) != 1) puts("end"); break;
	}
	pthread_cleanup_pop(0);
	pthread_cleanup_pop(0);
	return NULL;
}

int main(int count, char **arguments)
{
	(void)count;
	base = map_file(arguments, PROT_READ, MAP_SHARED);
	pthread_key_create(&key, of_the_key);
	if (pipe(ends))
		fail("pipe");
	read_on(4 * MIB);
	rendezvous();
	for (way = 0; way < 5; way++) {
		pthread_t thread;
		void *result;
		pthread_barrier_init(&barrier, NULL, 2);
		pthread_create(&thread, NULL, waits, NULL);
		pthread_barrier_wait(&barrier);
		pthread_cancel(thread);
		pthread_join(thread, &result);
		printf("way %d: cancelled %d\n", way, result == PTHREAD_CANCELED);
		read_on(4 * MIB);
	}
	return 0;
}
