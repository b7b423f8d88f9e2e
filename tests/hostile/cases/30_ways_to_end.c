/* Expected: closed pages can be read in exit handlers, destructors of libraries and threads, and after the end of the main
 * thread; every way to end is that of the program; thousands of threads leave nothing behind. */
#include "hostile.h"

static volatile unsigned char *base;
static pthread_key_t key;
static _Thread_local size_t place;

static void check(size_t at, const char *when)
{
	if (*(volatile uint32_t *)(base + at) != word_at(at)) {
		fprintf(stderr, "wrong %s\n", when);
		abort();
	}
}

static void at_exit(void)
{
	check(33 * MIB, "at exit");
	write(1, "at exit\n", 8);
}

static void at_quick_exit_(void)
{
	check(34 * MIB, "at quick exit");
	write(1, "at quick exit\n", 14);
}

static void thread_ends(void *value)
{
	check((size_t)value, "at a thread's end");
	check(((size_t)value + 17 * MIB) % file_length, "at a thread's end");
}

static void *brief(void *argument)
{
	place = (size_t)argument;
	pthread_setspecific(key, (void *)(place + 64 * 1024));
	check(place, "in a thread");
	return NULL;
}

static void *last(void *argument)
{
	pthread_join(*(pthread_t *)argument, NULL);
	check(50 * MIB, "after the main thread");
	exit(6);
}

static void in_child(const char *what, void (*end)(void))
{
	fflush(stdout);
	pid_t child = fork();
	if (child == 0) {
		end();
		_exit(99);
	}
	int status;
	waitpid(child, &status, 0);
	printf("%s: %d, %d\n", what, WIFEXITED(status) ? WEXITSTATUS(status) : -1, WIFSIGNALED(status) ? WTERMSIG(status) : -1);
}

static void by_exit(void) { exit(3); }
static void by_quick_exit(void) { quick_exit(4); }
static void by_abort(void) { check(MIB, "before abort"); abort(); }
static void by_signal(void) { check(2 * MIB, "before the signal"); raise(SIGTERM); }
static void by_main_thread(void)
{
	static pthread_t self, other;
	self = pthread_self();
	pthread_create(&other, NULL, last, &self);
	pthread_exit(NULL);
}

static size_t mappings(void)
{
	size_t lines = 0;
	FILE *maps = fopen("/proc/self/maps", "r");
	for (int c; (c = getc(maps)) != EOF;)
		lines += c == '\n';
	fclose(maps);
	return lines;
}

int main(int count, char **arguments)
{
	(void)count;
	base = map_file(arguments, PROT_READ, MAP_SHARED);
	pthread_key_create(&key, thread_ends);
	atexit(at_exit);
	at_quick_exit(at_quick_exit_);
	size_t before = 0;
	for (long i = 0; i < 10L * rounds(300); i++) {
		pthread_t thread;
		pthread_create(&thread, NULL, brief, (void *)(i * 37 % 1000 * 15 * PAGE));
		pthread_join(thread, NULL);
		if (i == 500)
			before = mappings();
	}
	/* The curtain takes a few, bounded. */
	printf("left behind: %d\n", mappings() > before + 200);
	in_child("exit", by_exit);
	in_child("quick_exit", by_quick_exit);
	rendezvous();
	in_child("abort", by_abort);
	in_child("signal", by_signal);
	in_child("main thread first", by_main_thread);
	return 5;
}
