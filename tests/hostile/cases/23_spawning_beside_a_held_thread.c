/* Expected: who starts a program that is to find SIGSEGV ignored waits for a thread that is held up while it opens pages: before
 * that is over nothing else of the mapping can be opened, and whoever reads there would be killed. Without us nobody waits.
 * @counter trips 5 */
#include "signals.h"
#include "held_thread.h"
#include <spawn.h>
#include <sys/resource.h>

extern char **environ;

/* Sleeps that no start of a program takes by itself: it waits for its child, and for what else there is in the kernel. At 60 us
 * each they last longer than a program that dies waits: whoever gave up after that would leave the mapping closed. */
enum { SLEEPS = 12000 };

static volatile pid_t reader, starter;
static volatile int started, slept;
static unsigned sum;
static int go[2];

static int sleeps(void)
{
	struct rusage usage;
	if (getrusage(RUSAGE_THREAD, &usage))
		fail("getrusage");
	return usage.ru_nvcsw;
}

static void *reading(void *over)
{
	char byte;
	reader = syscall(SYS_gettid);
	if (read(go[0], &byte, 1) != 1)
		fail("go");
	sum = read_pages(base, position, file_length);
	*(volatile int *)over = 1;
	/* Where nothing is opened the thread is held here. */
	sched_yield();
	return over;
}

static void *starting(void *argument)
{
	char *words[] = { "true", NULL };
	pid_t child;
	int status = -1, before = sleeps();
	starter = syscall(SYS_gettid);
	if (posix_spawnp(&child, "true", NULL, NULL, words, environ))
		fail("posix_spawnp");
	slept = sleeps() - before;
	started = 1;
	if (waitpid(child, &status, 0) != child || status)
		printf("started: %d\n", status);
	return argument;
}

/* How often the thread has slept so far. */
static int sleeps_of(pid_t thread)
{
	char name[64], line[128];
	int sleeps = 0;
	snprintf(name, sizeof name, "/proc/self/task/%d/status", thread);
	FILE *file = fopen(name, "r");
	while (file && fgets(line, sizeof line, file))
		sscanf(line, "voluntary_ctxt_switches: %d", &sleeps);
	if (file)
		fclose(file);
	return sleeps;
}

int main(int count, char **arguments)
{
	(void)count;
	pthread_t readers, starters;
	base = map_file(arguments, PROT_READ, MAP_SHARED);
	read_on(4 * MIB);
	rendezvous();
	signal(SIGSEGV, SIG_IGN);
	if (pipe(go))
		fail("pipe");
	struct hold held = new_hold();
	pthread_create(&readers, NULL, reading, (void *)held.over);
	while (!reader)
		sched_yield();
	/* Pages are opened by this call. */
	hold(&held, reader, 0, SYS_mprotect);
	if (write(go[1], "g", 1) != 1)
		fail("go");
	await_held(&held);
	pthread_create(&starters, NULL, starting, NULL);
	while (!started && (!starter || sleeps_of(starter) < SLEEPS + 100))
		sched_yield();
	int waits = !*held.over;
	let_go(&held);
	pthread_join(readers, NULL);
	end_hold(&held);
	pthread_join(starters, NULL);
	if (waits && slept < SLEEPS)
		puts("started without a wait");
	printf("read: %x\n", sum);
	return 0;
}
