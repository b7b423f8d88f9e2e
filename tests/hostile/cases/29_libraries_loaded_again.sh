# Expected: a library that is loaded for all (RTLD_GLOBAL), looked into, closed, replaced and loaded again is the new one, and its
# destructors ran; an allocator that looks up what it passes calls on to in a library that is loaded for itself alone works.
# @counter active_readers 1
set -e
cat > library.c <<'C'
#include <stdio.h>
int version(void)
{
	return VERSION;
}
__attribute__((destructor)) static void late(void)
{
	printf("version %d goes\n", VERSION);
}
C
cat > main.c <<'C'
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
int main(int count, char **arguments)
{
	(void)count;
	int file = open(arguments[1], O_RDONLY);
	struct stat status;
	fstat(file, &status);
	volatile unsigned char *base = mmap(NULL, status.st_size, PROT_READ, MAP_SHARED, file, 0);
	for (int turn = 1; turn <= 2; turn++) {
		char name[] = "./version1.so";
		name[9] = '0' + turn;
		unlink("./now.so");
		if (link(name, "./now.so"))
			perror(name);
		void *library = dlopen("./now.so", RTLD_NOW | RTLD_GLOBAL);
		int (*version)(void) = (int (*)(void))dlsym(library, "version");
		printf("version %d\n", version());
		dlclose(library);
		uint32_t sum = 0;
		for (off_t at = 0; at < status.st_size / 2; at += 4096)
			sum = sum * 31 + *(volatile uint32_t *)(base + at);
		printf("%x\n", sum);
	}
	return 0;
}
C
cat > backing.c <<'C'
#include <stddef.h>
static char memory[1 << 20];
static size_t used;
void *take(size_t size)
{
	void *place = memory + used;
	used += (size + 15) / 16 * 16;
	return place;
}
C
cat > allocator.c <<'C'
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stddef.h>
#include <string.h>
#include <unistd.h>
static char early[1 << 20];
static size_t used;
static void *backing;
static void *(*take)(size_t);
static int depth;
void *malloc(size_t size)
{
	if (!backing) {
		void *place = early + used;
		used += (size + 15) / 16 * 16;
		return place;
	}
	if (depth++) {
		write(1, "allocating to look up\n", 22);
		_exit(1);
	}
	take = (void *(*)(size_t))dlsym(backing, "take");
	depth--;
	return take(size);
}
void free(void *place)
{
	(void)place;
}
void *calloc(size_t count, size_t size)
{
	return malloc(count * size);
}
void *realloc(void *old, size_t size)
{
	void *place = malloc(size);
	return old ? memmove(place, old, size) : place;
}
int main(void)
{
	backing = dlopen("./backing.so", RTLD_NOW);
	write(1, malloc(10) ? "allocated\n" : "nothing\n", 10);
	return 0;
}
C
cc -shared -fPIC -O1 -DVERSION=1 -o version1.so library.c
cc -shared -fPIC -O1 -DVERSION=2 -o version2.so library.c
cc -shared -fPIC -O1 -o backing.so backing.c
cc -O1 -o main main.c -ldl
cc -O1 -fno-builtin -o allocator allocator.c -ldl
./main "$1"
printf x > "$HOSTILE_RENDEZVOUS/reached"; head -c1 "$HOSTILE_RENDEZVOUS/go" > /dev/null
./main "$1"
./allocator
# Our library is there, and left alone.
PRECACHE=off ./main "$1"
