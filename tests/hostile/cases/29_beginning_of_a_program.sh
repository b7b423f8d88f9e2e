# Expected: before `main` nothing is allocated but what is without us, served or left alone; and where the program is left
# alone, another preloaded library's function is called also if libc has one of its name for old programs alone.
# @no-trap no data file is mapped
# @not-killed no data file is mapped
set -e
cat > counting.c <<'C'
#include <stddef.h>
#include <string.h>
static char memory[1 << 20];
static size_t used;
static int allocations;
int allocated(void)
{
	return allocations;
}
void *malloc(size_t size)
{
	allocations++;
	void *place = memory + used;
	used += (size + 15) / 16 * 16;
	return place;
}
void free(void *place)
{
	(void)place;
}
void *calloc(size_t count, size_t size)
{
	return malloc(count * size);
}
void *realloc(void *place, size_t size)
{
	void *larger = malloc(size);
	return place ? memcpy(larger, place, size) : larger;
}
C
cat > old.c <<'C'
#include <unistd.h>
int sigvec(int signal, const void *new, void *old)
{
	(void)signal, (void)new, (void)old;
	/* It has versions, for it depends on one of libc's. */
	return getpid() > 0 ? 7 : 0;
}
C
cat > main.c <<'C'
#include <stddef.h>
#include <stdio.h>
extern int allocated(void) __attribute__((weak));
#ifdef __x86_64__
extern int old_sigvec(int, const void *, void *);
__asm__(".symver old_sigvec, sigvec@GLIBC_2.2.5");
#endif
int main(void)
{
	if (allocated)
		printf("allocated %d\n", allocated());
#ifdef __x86_64__
	else
		printf("sigvec %d\n", old_sigvec(0, NULL, NULL));
#endif
	return 0;
}
C
cc -shared -fPIC -O1 -o counting.so counting.c
cc -shared -fPIC -O1 -o old.so old.c
cc -O1 -o main main.c
ours=$LD_PRELOAD
LD_PRELOAD="$ours:$PWD/counting.so" ./main
PRECACHE=off LD_PRELOAD="$ours:$PWD/counting.so" ./main
PRECACHE=off LD_PRELOAD="$ours:$PWD/old.so" ./main
