# Expected: where two threads map the same part of a file anew at once, each with a part of what the other maps, all of it can be
# read, and the program's handler hears nothing of it. One of the two calls is not over before what the other one has mapped has
# been read.
set -e
data=$1
cat > between.c <<'C'
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/types.h>
__thread void (*before_return)(void);
/* Comes after whoever else stands before the C library: the call is made by then. */
void *mmap(void *address, size_t length, int protection, int flags, int file, off_t offset)
{
	void *(*next)(void *, size_t, int, int, int, off_t) =
		(void *(*)(void *, size_t, int, int, int, off_t))dlsym(RTLD_NEXT, "mmap");
	void *place = next(address, length, protection, flags, file, offset);
	if (before_return)
		before_return();
	return place;
}
C
cat > main.c <<'C'
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>
enum { MIB = 1 << 20, PAGE = 4096, SIZE = 16 * MIB, FROM = 2 * MIB, TO = 14 * MIB };
extern __thread void (*before_return)(void);
static char *ground, *elsewhere;
static int file;
static pthread_barrier_t is_made, is_read;
static void map(size_t from, size_t to)
{
	if (mmap(ground + from, to - from, PROT_READ, MAP_SHARED | MAP_FIXED, file, from) != ground + from)
		abort();
}
static void check(size_t from, size_t to, size_t step)
{
	for (size_t at = from; at < to; at += step) {
		uint32_t word;
		if (pread(file, &word, sizeof word, at) != sizeof word || *(volatile uint32_t *)(ground + at) != word)
			abort();
	}
}
static void on_fault(int signal)
{
	(void)signal;
	write(1, "a fault\n", 8);
	_exit(1);
}
static void wait_for_the_other(void)
{
	before_return = NULL;
	pthread_barrier_wait(&is_made);
	pthread_barrier_wait(&is_read);
}
static void *late(void *unused)
{
	(void)unused;
	before_return = wait_for_the_other;
	map(FROM, TO);
	return NULL;
}
static void *again(void *unused)
{
	(void)unused;
	for (int i = 0; i < 30; i++)
		map(FROM, TO);
	return NULL;
}
int main(int count, char **arguments)
{
	(void)count;
	signal(SIGSEGV, on_fault);
	file = open(arguments[1], O_RDONLY);
	/* Has the first place in any table, and leaves it to the call that is over last. */
	elsewhere = mmap(NULL, SIZE, PROT_READ, MAP_SHARED, file, 0);
	ground = mmap(NULL, SIZE, PROT_READ, MAP_SHARED, file, 0);
	pthread_barrier_init(&is_made, NULL, 2);
	pthread_barrier_init(&is_read, NULL, 2);
	pthread_t thread;
	pthread_create(&thread, NULL, late, NULL);
	pthread_barrier_wait(&is_made);
	map(0, SIZE);
	for (size_t step = 1; step < 64; step++)
		check(0, SIZE, step * 37 * PAGE);
	munmap(elsewhere, SIZE);
	pthread_barrier_wait(&is_read);
	pthread_join(thread, NULL);
	check(0, SIZE, PAGE);
	pthread_create(&thread, NULL, again, NULL);
	for (int i = 0; i < 30; i++) {
		map(0, SIZE);
		check(0, SIZE, MIB / 4);
	}
	pthread_join(thread, NULL);
	check(0, SIZE, PAGE);
	puts("all was read");
	return 0;
}
C
cc -shared -fPIC -O1 -o libbetween.so between.c -ldl
cc -O1 -pthread -o main main.c -L. -lbetween -Wl,-rpath,"$PWD"
./main "$data"
printf x > "$HOSTILE_RENDEZVOUS/reached"; head -c1 "$HOSTILE_RENDEZVOUS/go" > /dev/null
./main "$data"
