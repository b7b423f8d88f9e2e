/* Expected: a thread that the C library begins for a timer, with all signals blocked, reads mapped data as if none were, finds
 * blocked what it finds natively, and may end as it likes; also those of more functions than a program has for timers.
 * @counter active_readers 2 */
#include "signals.h"
#include <semaphore.h>
#include <time.h>

static sem_t done;
static volatile unsigned long long mask;

static void expired(union sigval value)
{
	mask = mask_now();
	read_on(value.sival_int * MIB);
	sem_post(&done);
}

static void expired_and_exits(union sigval value)
{
	expired(value);
	pthread_exit(NULL);
}

static void run(void (*function)(union sigval), int mebibytes)
{
	struct sigevent event = { .sigev_notify = SIGEV_THREAD, .sigev_notify_function = function, .sigev_value.sival_int = mebibytes };
	struct itimerspec soon = { .it_value.tv_nsec = 1 };
	timer_t timer;
	if (timer_create(CLOCK_MONOTONIC, &event, &timer) || timer_settime(timer, 0, &soon, NULL))
		fail("timer");
	while (sem_wait(&done))
		;
	printf("%s\n", letters(mask));
	timer_delete(timer);
}

#define ONE_MORE(name) static void name(union sigval value) { expired(value); }
ONE_MORE(a) ONE_MORE(b) ONE_MORE(c) ONE_MORE(d) ONE_MORE(e) ONE_MORE(f) ONE_MORE(g) ONE_MORE(h)

int main(int count, char **arguments)
{
	(void)count;
	sem_init(&done, 0, 0);
	base = map_file(arguments, PROT_READ, MAP_SHARED);
	read_on(2 * MIB);
	run(expired, 20);
	rendezvous();
	run(expired_and_exits, 20);
	run(expired, 10);
	/* Others are told by signals, and by nothing. */
	struct sigevent none = { .sigev_notify = SIGEV_NONE };
	timer_t timers[2];
	int made = timer_create(CLOCK_MONOTONIC, NULL, &timers[0]), unheard = timer_create(CLOCK_MONOTONIC, &none, &timers[1]);
	printf("%d %d\n", made, unheard);
	fflush(stdout);
	pid_t child = fork();
	if (child == 0) {
		read_on(MIB);
		void (*more[])(union sigval) = { a, b, c, d, e, f, g, h };
		for (int i = 0; i < 8; i++)
			run(more[i], 2);
		fflush(stdout);
		_exit(0);
	}
	int status;
	waitpid(child, &status, 0);
	printf("child %d\n", status);
	return 0;
}
