/* Expected: files in memory (tmpfs, memfd, sealed and huge ones) and on overlays are read and changed as natively. */
#include "hostile.h"
#include <sys/mount.h>

static void copy_of(char **arguments, const char *name, int file)
{
	unsigned char *from = (unsigned char *)map_file(arguments, PROT_READ, MAP_SHARED);
	if (file < 0) {
		printf("%s: none\n", name);
		return;
	}
	for (size_t at = 0; at < file_length; at += 4 * MIB)
		if (write(file, from + at, 4 * MIB) != (ssize_t)(4 * MIB))
			fail(name);
	munmap(from, file_length);
	for (int shared = 0; shared < 2; shared++) {
		volatile unsigned char *base = mmap(NULL, file_length, PROT_READ, shared ? MAP_SHARED : MAP_PRIVATE, file, 0);
		if (base == MAP_FAILED)
			fail(name);
		uint32_t sum = read_pages(base, 0, 30 * MIB);
		madvise((void *)base, file_length, MADV_HUGEPAGE);
		uint32_t word = 77;
		pwrite(file, &word, 4, 50 * MIB);
		printf("%s: %x, %u\n", name, sum, *(volatile uint32_t *)(base + 50 * MIB));
		word = word_at(50 * MIB);
		pwrite(file, &word, 4, 50 * MIB);
		for (int epoch = 0; epoch < 2; epoch++)
			read_pages(base, 0, file_length);
		munmap((void *)base, file_length);
	}
	close(file);
}

int main(int count, char **arguments)
{
	(void)count;
	copy_of(arguments, "memfd", memfd_create("data", 0));
	int shm = open("/dev/shm", O_TMPFILE | O_RDWR, 0600);
	copy_of(arguments, "tmpfs", shm);
	rendezvous();
	/* Huge pages, if the machine has any to give. */
	int huge = memfd_create("huge", MFD_HUGETLB);
	if (huge >= 0 && !ftruncate(huge, file_length)) {
		unsigned char *base = mmap(NULL, file_length, PROT_READ | PROT_WRITE, MAP_SHARED, huge, 0);
		if (base != MAP_FAILED) {
			munmap(base, file_length);
			base = mmap(NULL, file_length, PROT_READ, MAP_SHARED, huge, 0);
			printf("huge: %d\n", base[file_length - 1]);
		} else {
			puts("no huge pages");
		}
	}
	int plain = open(".", O_TMPFILE | O_RDWR, 0600);
	copy_of(arguments, "disk", plain);
	return 0;
}
