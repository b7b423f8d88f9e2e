# Expected: other preloaded libraries, before and after ours, whose constructors, allocators and interposers map and read
# the file before anybody else, that look up what they pass calls on to in the C library, or that answer dlsym themselves,
# work as they do alone; so does a library that is loaded and closed later. A program is accelerated whose own libraries,
# which are initialized before all preloaded ones, handle SIGSEGV, in whatever way they set that.
# @counter active_readers 4
set -e
data=$1
cat > other.c <<'C'
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
static volatile unsigned char *base;
static size_t length;
static uint32_t read_it(void)
{
	uint32_t sum = 0;
	for (size_t at = 0; at < length; at += 300 * 1024)
		sum = sum * 31 + *(volatile uint32_t *)(base + at);
	return sum;
}
/* Allocation reads mapped data, as a malloc hook that copies out of it does. */
void *calloc(size_t count, size_t size)
{
	static char early[65536];
	static size_t used;
	static __thread int within;
	static void *(*next)(size_t, size_t);
	if (!next && !within) {
		within = 1;
		next = dlsym(RTLD_NEXT, "calloc");
		within = 0;
	}
	if (!next) {
		void *place = early + used;
		used += (count * size + 15) / 16 * 16;
		return place;
	}
	if (base)
		(void)base[(count * 4096 * 77) % length];
	return next(count, size);
}
/* Passes on to what it finds in the C library itself, each time anew. */
ssize_t pread(int file, void *to, size_t size, off_t at)
{
	static __thread int depth;
	if (depth++) {
		write(1, "it was passed on to itself\n", 27);
		_exit(1);
	}
	ssize_t (*next)(int, void *, size_t, off_t) = dlsym(dlopen("libc.so.6", RTLD_LAZY), "pread");
	ssize_t got = next(file, to, size, at);
	depth--;
	return got;
}
__attribute__((constructor)) static void early(void)
{
	const char *name = getenv("HOSTILE_DATA");
	int file = name ? open(name, O_RDONLY) : -1;
	struct stat status;
	if (file < 0 || fstat(file, &status))
		return;
	length = status.st_size;
	base = mmap(NULL, length, PROT_READ, MAP_SHARED, file, 0);
	char text[64], first;
	if (pread(file, &first, 1, 0) != 1)
		return;
	snprintf(text, sizeof text, "constructor: %x\n", read_it());
	write(1, text, strlen(text));
}
__attribute__((destructor)) static void late(void)
{
	char text[64];
	snprintf(text, sizeof text, "destructor: %x\n", base ? read_it() : 0);
	write(1, text, strlen(text));
}
C
cat > main.c <<'C'
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
int main(int count, char **arguments)
{
	char byte;
	free(calloc(3, 5));
	printf("pread %zd\n", pread(fileno(fopen("/dev/zero", "r")), &byte, 1, 0));
	if (count > 1) {
		void *library = dlopen(arguments[1], RTLD_NOW | RTLD_LOCAL);
		printf("loaded %d\n", library != NULL);
		fflush(stdout);
		printf("closed %d\n", dlclose(library));
	}
	puts("done");
	return 0;
}
C
cc -shared -fPIC -O1 -o other.so other.c -ldl
cc -O1 -o main main.c -ldl
export HOSTILE_DATA="$data"
ours=$LD_PRELOAD

LD_PRELOAD="$ours:$PWD/other.so" ./main
printf x > "$HOSTILE_RENDEZVOUS/reached"; head -c1 "$HOSTILE_RENDEZVOUS/go" > /dev/null
LD_PRELOAD="$PWD/other.so:$ours" ./main
LD_PRELOAD="$ours" ./main "$PWD/other.so"

cat > answering.c <<'C'
#define _GNU_SOURCE
#include <dlfcn.h>
#include <string.h>
static int answer(void)
{
	return 42;
}
void *dlsym(void *library, const char *name)
{
	if (!strcmp(name, "answer"))
		return (void *)answer;
	void *(*next)(void *, const char *) = dlvsym(RTLD_NEXT, "dlsym", "GLIBC_2.34");
	return next(library, name);
}
C
cat > asking.c <<'C'
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
int main(void)
{
	void *libraries[] = { RTLD_DEFAULT, dlopen("libc.so.6", RTLD_LAZY) };
	for (int i = 0; i < 2; i++) {
		int (*answer)(void) = (int (*)(void))dlsym(libraries[i], "answer");
		printf("%d, qsort %d\n", answer ? answer() : -1, dlsym(libraries[i], "qsort") != NULL);
	}
	return 0;
}
C
cc -shared -fPIC -O1 -o answering.so answering.c -ldl
cc -O1 -o asking asking.c -ldl
LD_PRELOAD="$ours:$PWD/answering.so" ./asking
LD_PRELOAD="$PWD/answering.so:$ours" ./asking

cat > linked.c <<'C'
#include <signal.h>
#include <stddef.h>
#include <unistd.h>
static void handler(int signal)
{
	(void)signal;
	write(1, "handled\n", 8);
	_exit(0);
}
__attribute__((constructor)) static void early(void)
{
#ifdef HISTORIC
	signal(SIGSEGV, handler);
#else
	struct sigaction action = { .sa_handler = handler };
	sigaction(SIGSEGV, &action, NULL);
#endif
}
C
cat > reader.c <<'C'
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
int main(int count, char **arguments)
{
	(void)count;
	int file = open(arguments[1], O_RDONLY);
	struct stat status;
	fstat(file, &status);
	volatile unsigned char *base = mmap(NULL, status.st_size, PROT_READ, MAP_SHARED, file, 0);
	uint32_t sum = 0;
	for (off_t at = 0; at < status.st_size; at += 300 * 1024)
		sum = sum * 31 + *(volatile uint32_t *)(base + at);
	printf("%x\n", sum);
	fflush(stdout);
	*(volatile int *)8 = 1;
	return 0;
}
C
for historic in "" -DHISTORIC; do
	cc -shared -fPIC -O1 $historic -o liblinked.so linked.c
	cc -O1 -o reader reader.c -Wl,--no-as-needed -L. -llinked -Wl,-rpath,"$PWD"
	HOSTILE_DATA='' ./reader "$data"
done
