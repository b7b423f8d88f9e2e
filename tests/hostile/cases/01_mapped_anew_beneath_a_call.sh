# Expected: a call that reads a mapping of a file which another thread maps anew at the same moment reads it, also where a third one
# has read the same page by the time the call fails: then nothing is closed any more that could have made it fail.
set -e
data=$1
cat > between.c <<'C'
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/types.h>
__thread void (*before_mapping)(void), (*before_writing)(void), (*after_writing)(void);
/* These come after whoever else stands before the C library: what that does before a call is done by then. */
void *mmap(void *address, size_t length, int protection, int flags, int file, off_t offset)
{
	void *(*next)(void *, size_t, int, int, int, off_t) =
		(void *(*)(void *, size_t, int, int, int, off_t))dlsym(RTLD_NEXT, "mmap");
	if (before_mapping)
		before_mapping();
	return next(address, length, protection, flags, file, offset);
}
ssize_t pwrite(int file, const void *buffer, size_t length, off_t offset)
{
	ssize_t (*next)(int, const void *, size_t, off_t) = (ssize_t(*)(int, const void *, size_t, off_t))dlsym(RTLD_NEXT, "pwrite");
	if (before_writing)
		before_writing();
	ssize_t result = next(file, buffer, length, offset);
	if (after_writing)
		after_writing();
	return result;
}
C
cat > main.c <<'C'
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
enum { MIB = 1 << 20, PAGE = 4096, SIZE = 16 * MIB };
extern __thread void (*before_mapping)(void), (*before_writing)(void), (*after_writing)(void);
static char *ground;
static size_t at;
static int file;
static pthread_barrier_t is_gone, may_map, is_mapped;
static void wait_until_called(void)
{
	before_mapping = NULL;
	pthread_barrier_wait(&is_gone);
	pthread_barrier_wait(&may_map);
}
static void *map_anew(void *unused)
{
	(void)unused;
	before_mapping = wait_until_called;
	if (mmap(ground, SIZE, PROT_READ, MAP_SHARED | MAP_FIXED, file, 0) != ground)
		abort();
	pthread_barrier_wait(&is_mapped);
	return NULL;
}
static void wait_until_mapped(void)
{
	before_writing = NULL;
	pthread_barrier_wait(&may_map);
	pthread_barrier_wait(&is_mapped);
}
static void read_the_same(void)
{
	int why = errno;
	after_writing = NULL;
	(void)*(volatile char *)(ground + at);
	errno = why;
}
int main(int count, char **arguments)
{
	(void)count;
	char wanted[PAGE], written[PAGE];
	file = open(arguments[1], O_RDONLY);
	ground = mmap(NULL, SIZE, PROT_READ, MAP_SHARED, file, 0);
	int copy = memfd_create("copy", 0);
	pthread_barrier_init(&is_gone, NULL, 2);
	pthread_barrier_init(&may_map, NULL, 2);
	pthread_barrier_init(&is_mapped, NULL, 2);
	for (at = 0; at < SIZE; at += MIB) {
		pthread_t thread;
		pthread_create(&thread, NULL, map_anew, NULL);
		pthread_barrier_wait(&is_gone);
		before_writing = wait_until_mapped;
		after_writing = read_the_same;
		ssize_t result = pwrite(copy, ground + at, PAGE, 0);
		if (result != PAGE)
			printf("pwrite: %zd (%s)\n", result, strerror(errno));
		pthread_join(thread, NULL);
		if (pread(file, wanted, PAGE, at) != PAGE || pread(copy, written, PAGE, 0) != PAGE || memcmp(wanted, written, PAGE))
			puts("other bytes");
	}
	puts("all was written");
	return 0;
}
C
cc -shared -fPIC -O1 -o libbetween.so between.c -ldl
cc -O1 -pthread -o main main.c -L. -lbetween -Wl,-rpath,"$PWD"
./main "$data"
printf x > "$HOSTILE_RENDEZVOUS/reached"; head -c1 "$HOSTILE_RENDEZVOUS/go" > /dev/null
./main "$data"
