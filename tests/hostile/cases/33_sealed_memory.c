/* Expected: memory files that are sealed against writing, now or from now on, are read, and refuse what they refuse, as
 * natively. */
#include "hostile.h"

#ifndef F_SEAL_FUTURE_WRITE
#define F_SEAL_FUTURE_WRITE 0x0010
#endif

static void read_sealed(char **arguments, const char *what, int seals)
{
	unsigned char *from = (unsigned char *)map_file(arguments, PROT_READ, MAP_SHARED), *early = NULL;
	int file = memfd_create("sealed", MFD_ALLOW_SEALING);
	for (size_t at = 0; at < file_length; at += 4 * MIB)
		if (write(file, from + at, 4 * MIB) != (ssize_t)(4 * MIB))
			fail("write");
	munmap(from, file_length);
	if (seals & F_SEAL_FUTURE_WRITE)
		early = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
	if (fcntl(file, F_ADD_SEALS, seals | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL))
		fail("F_ADD_SEALS");
	volatile unsigned char *shared = mmap(NULL, file_length, PROT_READ, MAP_SHARED, file, 0);
	volatile unsigned char *private = mmap(NULL, file_length, PROT_READ | PROT_WRITE, MAP_PRIVATE, file, 0);
	if (shared == MAP_FAILED || private == MAP_FAILED)
		fail("mmap");
	printf("%s: %x", what, read_pages(shared, 0, 30 * MIB));
	private[file_length - 1] = 1;
	printf(", %x", read_pages(private, 30 * MIB, file_length - MIB));
	errno = 0;
	printf(", write: %zd, %s", pwrite(file, "x", 1, 0), strerror(errno));
	printf(", cut: %d, %s", ftruncate(file, 0), strerror(errno));
	printf(", writable: %d, %s", mprotect((void *)shared, file_length, PROT_READ | PROT_WRITE), strerror(errno));
	if (early)
		early[8] = 9, printf(", %d", shared[8]);
	printf(", %x\n", read_pages(shared, MIB, file_length));
	munmap((void *)shared, file_length), munmap((void *)private, file_length);
	close(file);
}

int main(int count, char **arguments)
{
	(void)count;
	read_sealed(arguments, "sealed", F_SEAL_WRITE);
	rendezvous();
	read_sealed(arguments, "sealed from now on", F_SEAL_FUTURE_WRITE);
	return 0;
}
