/* Expected: a file in memory that lies in huge pages (tmpfs, huge=always) is read as natively through mappings with checkpoints,
 * shared and private, and so it is when it is asked to lie in huge pages, or in none, while pages are closed.
 * @root
 * @counter active_readers 1 */
#include "hostile.h"
#include <sched.h>
#include <sys/mount.h>
#include <sys/sendfile.h>

#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE 25
#endif

/* What the kernel says of the mapping that begins at this address, in KiB. */
static long told(const void *address, const char *what)
{
	char line[512], begin[32], wanted[32];
	FILE *areas = fopen("/proc/self/smaps", "r");
	long found = -1;
	int is_it = 0;
	snprintf(begin, sizeof begin, "%lx-", (unsigned long)address);
	snprintf(wanted, sizeof wanted, "%s: %%ld", what);
	while (fgets(line, sizeof line, areas)) {
		if (!strncmp(line, begin, strlen(begin)))
			is_it = 1;
		if (is_it && sscanf(line, wanted, &found) == 1)
			break;
	}
	fclose(areas);
	return found;
}

/* Whether huge pages back the file: of a mapping that we leave alone, for it is shared and writable. */
static int is_huge(int file)
{
	unsigned char *plain = mmap(NULL, file_length, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
	if (plain == MAP_FAILED)
		fail("mmap");
	read_pages(plain, 0, 32 * MIB);
	long huge = told(plain, "ShmemPmdMapped");
	munmap(plain, file_length);
	return huge > 0;
}

static volatile unsigned char *map(int file, int protection, int flags)
{
	void *base = mmap(NULL, file_length, protection, flags, file, 0);
	if (base == MAP_FAILED)
		fail("mmap");
	return base;
}

int main(int count, char **arguments)
{
	(void)count;
	open_file(arguments);
	if (mkdir("memory", 0755))
		fail("memory");
	int alone = !unshare(CLONE_NEWNS) && !mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL);
	if (!alone || mount("none", "memory", "tmpfs", 0, "huge=always,size=256m")) {
		puts("the right to mount, and a kernel with huge pages for files in memory");
		return 77;
	}
	int writer = open("memory/data", O_RDWR | O_CREAT, 0644), file = open("memory/data", O_RDONLY);
	if (writer < 0 || ftruncate(writer, file_length))
		fail("memory/data");
	for (size_t at = 0; at < file_length;) {
		ssize_t moved = sendfile(writer, file_descriptor, NULL, file_length - at);
		if (moved <= 0)
			fail("sendfile");
		at += moved;
	}
	if (!is_huge(writer)) {
		puts("huge pages for a file in memory");
		return 77;
	}
	volatile unsigned char *shared = map(file, PROT_READ, MAP_SHARED), *private = map(file, PROT_READ | PROT_WRITE, MAP_PRIVATE);
	printf("%x\n", read_pages(shared, 0, 20 * MIB));
	printf("%x\n", read_pages(private, 0, 20 * MIB));
	rendezvous();
	int advice[] = { MADV_HUGEPAGE, MADV_COLLAPSE, MADV_NOHUGEPAGE };
	for (int i = 0; i < 3; i++) {
		size_t from = (20 + i * 8) * MIB, to = from + 8 * MIB;
		volatile unsigned char *again = map(file, PROT_READ, MAP_SHARED);
		printf("%x\n", read_pages(again, 0, 4 * MIB));
		errno = PLANTED;
		printf("advice %d: %d", advice[i], madvise((void *)again, file_length, advice[i]));
		printf(", %d\n", errno);
		printf("%x\n", read_pages(again, 4 * MIB, file_length));
		/* Beside the word that is looked at. */
		for (size_t at = from; at < to; at += PAGE)
			private[at + 5] = i + 1;
		printf("%x %x\n", read_pages(shared, from, to), read_pages(private, from, to));
		munmap((void *)again, file_length);
	}
	uint32_t written = 0;
	for (int epoch = 0; epoch < 3; epoch++)
		for (size_t at = 0; at < file_length; at += PAGE)
			written = written * 31 + private[at + 5];
	printf("%x\n", written);
	/* A hole splits a huge page, and the rest is as it was. */
	if (fallocate(writer, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 50 * MIB + 3 * PAGE, PAGE))
		fail("fallocate");
	printf("%x\n", shared[50 * MIB + 3 * PAGE]);
	printf("%x %x\n", read_pages(shared, 50 * MIB, 50 * MIB + 3 * PAGE), read_pages(shared, 50 * MIB + 4 * PAGE, file_length));
	printf("huge: %d\n", is_huge(writer));
	return 0;
}
