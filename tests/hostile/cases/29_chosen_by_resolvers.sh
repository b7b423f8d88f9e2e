# Expected: a resolver (IFUNC), which the loader calls when it binds a function's name, opens, maps, reads and unmaps a file, asks
# for an action and writes from closed pages: before the program begins, and while a library is loaded.
# @counter active_readers 1
set -e
cat > chosen.c <<'C'
#define _GNU_SOURCE
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
static int one(void)
{
	return 1;
}
static int other(void)
{
	return 2;
}
/* The name is asked of the kernel: the C library may not know it yet. */
static const char *data(void)
{
	static char words[8192];
	int file = open("/proc/self/cmdline", O_RDONLY);
	long length = read(file, words, sizeof words - 1), at = 0;
	close(file);
	while (at < length && words[at])
		at++;
	return words + at + 1;
}
static int (*resolve(void))(void)
{
	int ends[2], file = open(data(), O_RDONLY);
	struct sigaction action;
	struct stat status;
	uint32_t sum = 0, word = 0;
	if (file < 0 || fstat(file, &status) || pipe(ends))
		return one;
	unsigned char *base = mmap(NULL, status.st_size, PROT_READ, MAP_SHARED, file, 0);
	if (base == MAP_FAILED)
		return one;
	for (long at = 0; at < status.st_size / 2; at += 4096)
		sum = sum * 31 + *(volatile uint32_t *)(base + at);
	for (long at = status.st_size / 2; at < status.st_size; at += 1 << 20)
		if (write(ends[1], base + at + 3 * 4096, 4) == 4 && read(ends[0], &word, 4) == 4)
			sum = sum * 31 + word;
	if (sigaction(SIGSEGV, NULL, &action) || action.sa_handler != SIG_DFL)
		sum = 0;
	munmap(base, status.st_size);
	close(file), close(ends[0]), close(ends[1]);
	return sum == SUM ? other : one;
}
int chosen(void) __attribute__((ifunc("resolve")));
C
cat > later.c <<'C'
int chosen(void);
int (*bound)(void) = chosen;
int later(void)
{
	return bound();
}
C
cat > sum.c <<'C'
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
int main(int count, char **arguments)
{
	FILE *file = fopen(arguments[count - 1], "r");
	fseek(file, 0, SEEK_END);
	long length = ftell(file);
	uint32_t sum = 0, word;
	for (long at = 0; at < length; at += at < length / 2 ? 4096 : 1 << 20) {
		fseek(file, at < length / 2 ? at : at + 3 * 4096, SEEK_SET);
		if (fread(&word, 4, 1, file) == 1)
			sum = sum * 31 + word;
	}
	printf("%uu", sum);
	return 0;
}
C
cat > main.c <<'C'
#include <dlfcn.h>
#include <stdio.h>
#ifdef BOUND
int chosen(void);
int (*bound)(void) = chosen;
#endif
int main(void)
{
#ifdef BOUND
	printf("before: %d\n", bound());
#else
	void *library = dlopen("./later.so", RTLD_NOW);
	int (*later)(void) = library ? (int (*)(void))dlsym(library, "later") : NULL;
	printf("loaded: %d\n", later ? later() : 0);
#endif
	return 0;
}
C
cc -O1 -o sum sum.c
cc -shared -fPIC -O1 -Wl,-z,now -DSUM="$(PRECACHE=off ./sum "$1")" -o chosen.so chosen.c
cc -shared -fPIC -O1 -Wl,-z,now -o later.so later.c ./chosen.so
cc -O1 -o before main.c -DBOUND ./chosen.so -ldl
cc -O1 -o loading main.c -ldl
./before "$1"
./loading "$1"
printf x > "$HOSTILE_RENDEZVOUS/reached"; head -c1 "$HOSTILE_RENDEZVOUS/go" > /dev/null
./before "$1"
./loading "$1"
