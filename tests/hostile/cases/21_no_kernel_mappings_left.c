/* Expected: a program that has used up its kernel mappings, before or after a file is armed, reads on, and so does the kernel
 * for it; nothing that is closed stays so because opening would take one more, and the report says why.
 * @report the kernel refused to protect pages */
#include "hostile.h"

/* More than a process may have. */
static size_t enough(void)
{
	size_t limit = 0;
	FILE *file = fopen("/proc/sys/vm/max_map_count", "r");
	if (!file || fscanf(file, "%zu", &limit) != 1)
		fail("max_map_count");
	fclose(file);
	return limit + 5000;
}

/* Uses up all mappings but so many; returns how many it took. */
static size_t fill(unsigned char **areas, size_t most, int leave)
{
	/* One area, every other page of which becomes a mapping of its own. */
	size_t length = 2 * most * PAGE, made = 0;
	*areas = mmap(NULL, length, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (*areas == MAP_FAILED)
		fail("mmap");
	for (; made < most; made++)
		if (mprotect(*areas + 2 * made * PAGE, PAGE, PROT_NONE))
			break;
	/* Back to back pages join: each gives two back. */
	for (int i = 0; i < leave && made; i++)
		mprotect(*areas + 2 * --made * PAGE, PAGE, PROT_READ);
	return made;
}

/* The kernel raises no signal for itself: where a page stays closed, the call fails. */
static void print_written(const volatile unsigned char *from, size_t at)
{
	static char copy[3 * PAGE];
	int ends[2];
	if (pipe(ends))
		fail("pipe");
	ssize_t length = write(ends[1], (const void *)(from + at), sizeof copy);
	printf("written %zd, %s\n", length, length < 0 ? strerror(errno) : "");
	close(ends[1]);
	if (read(ends[0], copy, sizeof copy) != length || memcmp(copy, (const void *)(from + at), sizeof copy))
		puts("not what is there");
	close(ends[0]);
}

int main(int count, char **arguments)
{
	(void)count;
	size_t most = enough();
	unsigned char *areas, *base = (unsigned char *)map_file(arguments, PROT_READ, MAP_SHARED);
	read_pages(base, 0, 5 * MIB);
	/* Full while it is armed: every further trip wants to split or join. */
	fill(&areas, most, 0);
	uint32_t sum = read_pages(base, 0, 30 * MIB);
	print_written(base, 45 * MIB);
	for (size_t at = 63 * MIB; at > 30 * MIB; at -= MIB)
		sum = sum * 31 + read_pages(base, at, at + 3 * PAGE);
	printf("%x\n", sum);
	rendezvous();
	munmap(areas, 2 * most * PAGE);
	/* Nearly full before it is armed. */
	for (int leave = 0; leave < 12; leave += 1) {
		fill(&areas, most, leave);
		unsigned char *other = mmap(NULL, file_length, PROT_READ, MAP_SHARED, file_descriptor, 0);
		if (other != MAP_FAILED) {
			print_written(other, 50 * MIB);
			sum = read_pages(other, 20 * MIB, 28 * MIB) + read_pages(other, 0, 5 * MIB) + read_pages(other, 40 * MIB, file_length);
			printf("%d: %x\n", leave, sum);
			/* Forgetting a part of it needs one more, too. */
			munmap(other, file_length);
		}
		munmap(areas, 2 * most * PAGE);
	}
	printf("%x\n", read_pages(base, 0, file_length));
	return 0;
}
