/* Expected: a private mapping that was written to here and there, while what lies between had not been read yet, is one mapping to
 * mremap: it grows, in its place or at another, moves, shrinks, and leaves its place behind, by function or by number, once and
 * again, and all that was written is there. What cannot be done fails and leaves it where it was.
 * @report the program changed the mapping itself */
#include "hostile.h"
#include <sys/resource.h>
#include <sys/syscall.h>

#ifndef MREMAP_DONTUNMAP
#define MREMAP_DONTUNMAP 4
#endif

static unsigned char *low;
static size_t span;

/* Pages that are written to, far from each other; the last one lies in the last MiB. */
static const size_t written[] = { 0, 9 * MIB, 17 * MIB + 3 * PAGE, 30 * MIB, 44 * MIB, 63 * MIB + 9 * PAGE };
enum { WRITTEN = sizeof written / sizeof *written };

/* In the middle of room for four files, written to. */
static unsigned char *map_anew(void)
{
	span = 4 * file_length;
	low = mmap(NULL, span, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	munmap(low, span);
	unsigned char *base = mmap(low + file_length, file_length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_FIXED, file_descriptor, 0);
	if (base == MAP_FAILED)
		fail("mmap");
	for (int i = 0; i < WRITTEN; i++)
		base[written[i] + 8] = 100 + i;
	return base;
}

static void gone(void)
{
	munmap(low, span);
}

/* All is there that was in the file, and all that was written, up to `length`. */
static void check(const char *when, const unsigned char *place, size_t length)
{
	int found = 0, wrong = 0;
	for (size_t at = 0; at < length; at += PAGE)
		wrong += *(volatile uint32_t *)(place + at) != word_at(at);
	for (int i = 0; i < WRITTEN; i++)
		found += written[i] < length && place[written[i] + 8] == 100 + i;
	printf("%s: %d wrong, %d found\n", when, wrong, found);
}

static unsigned char *said(const char *what, void *result)
{
	printf("%s: ", what);
	if (result == MAP_FAILED)
		printf("%s\n", strerror(errno));
	else if ((unsigned char *)result >= low && (unsigned char *)result < low + span)
		printf("+%zx\n", (size_t)((unsigned char *)result - low));
	else
		puts("elsewhere");
	return result;
}

/* Whether there is anything at this page. */
static int is_there(const unsigned char *place)
{
	unsigned char core;
	return mincore((void *)((uintptr_t)place & -PAGE), PAGE, &core) == 0;
}

/* What RLIMIT_DATA counts, in bytes. */
static size_t data_in_use(void)
{
	char line[128];
	size_t kib = 0;
	FILE *status = fopen("/proc/self/status", "r");
	while (fgets(line, sizeof line, status))
		sscanf(line, "VmData: %zu kB", &kib);
	fclose(status);
	return kib << 10;
}

/* In a child with so few kernel mappings left, or a few less. */
static void near_the_bound(int left)
{
	fflush(stdout);
	pid_t child = fork();
	if (child == 0) {
		const size_t most = 200000;
		unsigned char *base = map_anew(), *place = low + 2 * file_length;
		/* The whole is opened before the mappings run out. */
		mprotect(base + 5 * MIB, PAGE, PROT_READ | PROT_WRITE);
		unsigned char *many = mmap(NULL, most * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
		size_t at = 1;
		while (at < most && mprotect(many + at * PAGE, PAGE, PROT_READ) == 0)
			at += 2;
		for (; left && at > 2; left--, at -= 2)
			munmap(many + (at - 2) * PAGE, PAGE);
		unsigned char *result = mremap(base, file_length, file_length + MIB, MREMAP_MAYMOVE | MREMAP_FIXED, place);
		check("near the bound", result == MAP_FAILED ? base : result, file_length);
		fflush(stdout);
		_exit(result == MAP_FAILED && errno != ENOMEM);
	}
	int status;
	waitpid(child, &status, 0);
	if (status)
		printf("ended: %d\n", status);
}

int main(int count, char **arguments)
{
	(void)count;
	munmap((void *)map_file(arguments, PROT_READ, MAP_SHARED), file_length);

	unsigned char *base = map_anew();
	said("grown", mremap(base, file_length, file_length + 8 * MIB, 0));
	check("in its place", base, file_length);
	printf("behind it %d\n", is_there(base + file_length + 7 * MIB));
	said("and once more", mremap(base, file_length + 8 * MIB, file_length + 16 * MIB, MREMAP_MAYMOVE));
	check("twice", base, file_length);
	gone();

	base = map_anew();
	unsigned char *wall = mmap(base + file_length, PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
	if (wall == MAP_FAILED)
		fail("mmap");
	said("no room", mremap(base, file_length, file_length + 8 * MIB, 0));
	check("no room", base, file_length);
	unsigned char *result = mremap(base, file_length, file_length + 8 * MIB, MREMAP_MAYMOVE);
	printf("with room elsewhere: %s\n", result == MAP_FAILED ? strerror(errno) : result == base ? "stays" : "moved");
	if (result != MAP_FAILED) {
		check("elsewhere", result, file_length);
		printf("left %d %d, behind it %d\n", is_there(base), is_there(base + file_length - PAGE),
				is_there(result + file_length + 7 * MIB));
		/* It is in parts there, too. */
		unsigned char *again = said("back", mremap(result, file_length + 8 * MIB, file_length + 9 * MIB,
				MREMAP_MAYMOVE | MREMAP_FIXED, low));
		if (again != MAP_FAILED)
			check("back", again, file_length);
		printf("left %d\n", is_there(result));
	}
	gone();

	base = map_anew();
	rendezvous();
	said("to a place", mremap(base, file_length, file_length, MREMAP_MAYMOVE | MREMAP_FIXED, low + 2 * file_length));
	check("to a place", low + 2 * file_length, file_length);
	printf("left %d\n", is_there(base + 20 * MIB));
	gone();

	base = map_anew();
	memset(mmap(low + 3 * file_length, file_length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0), 9, file_length);
	said("smaller, by number", (void *)syscall(SYS_mremap, base + 9 * MIB, 40 * MIB, 30 * MIB, MREMAP_MAYMOVE | MREMAP_FIXED,
			low + 3 * file_length));
	printf("%d %d %d, behind it %d, left %d %d %d\n", low[3 * file_length + 8], low[3 * file_length + 8 * MIB + 3 * PAGE + 8],
			low[3 * file_length + 21 * MIB + 8], low[3 * file_length + 30 * MIB], is_there(base + 8 * MIB),
			is_there(base + 9 * MIB), is_there(base + 48 * MIB));
	printf("stays %d %d\n", base[8], base[63 * MIB + 9 * PAGE + 8]);
	gone();

	base = map_anew();
	said("left behind", mremap(base, file_length, file_length, MREMAP_MAYMOVE | MREMAP_DONTUNMAP | MREMAP_FIXED, low));
	check("moved", low, file_length);
	/* The file's own byte. */
	printf("left %d\n", base[written[1] + 8] == 101);
	gone();

	/* Where memory is limited it moves as a whole, or stays: with no room, and with room for some of its parts. */
	for (int room = 0; room < 2; room++) {
		base = map_anew();
		struct rlimit limit, none;
		getrlimit(RLIMIT_DATA, &none);
		limit = none;
		limit.rlim_cur = room ? data_in_use() + 12 * MIB : 1;
		setrlimit(RLIMIT_DATA, &limit);
		result = mremap(base, file_length, file_length, MREMAP_MAYMOVE | MREMAP_FIXED, low + 2 * file_length);
		setrlimit(RLIMIT_DATA, &none);
		int stayed = result == MAP_FAILED && errno == ENOMEM;
		check("limited", stayed ? base : low + 2 * file_length, file_length);
		printf("elsewhere %d\n", is_there(stayed ? low + 2 * file_length : base));
		gone();
	}

	/* Where the kernel has hardly any mappings left, too. */
	for (int left = 2; left < 14; left++)
		near_the_bound(left);

	/* Across four GiB of a file. */
	int large = open("large", O_RDWR | O_CREAT | O_EXCL, 0600);
	if (large < 0 || ftruncate(large, 5L << 30))
		fail("large");
	base = mmap(NULL, 256 * MIB, PROT_READ | PROT_WRITE, MAP_PRIVATE, large, (4L << 30) - 128 * MIB);
	if (base == MAP_FAILED)
		fail("mmap");
	for (int i = 0; i < 25; i++)
		base[i * 10 * MIB] = i;
	result = mremap(base, 256 * MIB, 300 * MIB, MREMAP_MAYMOVE);
	for (int i = 0; result != MAP_FAILED && i < 25; i++)
		if (result[i * 10 * MIB] != i)
			printf("%d is wrong\n", i);
	printf("across 4 GiB: %s\n", result == MAP_FAILED ? strerror(errno) : "moved");
	munmap(result, 300 * MIB);
	close(large), unlink("large");

	/* Across what else is there, over itself, to what is no place. */
	base = map_anew();
	if (mmap(base + file_length, PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == MAP_FAILED)
		fail("mmap");
	said("across", mremap(base, file_length + PAGE, file_length + 2 * PAGE, MREMAP_MAYMOVE));
	said("over itself", mremap(base, file_length, file_length, MREMAP_MAYMOVE | MREMAP_FIXED, base + MIB));
	said("to no place", mremap(base, file_length, file_length, MREMAP_MAYMOVE | MREMAP_FIXED, (void *)1));
	said("fixed alone", mremap(base, file_length, file_length, MREMAP_FIXED, low));
	said("smaller", mremap(base, file_length, 20 * MIB, 0));
	check("afterwards", base, 20 * MIB);
	gone();
	return 0;
}
