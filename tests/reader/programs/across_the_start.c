/* Expected: a path that begins 5 bytes before 16 MiB is found, by function and by number, where checkpoints begin there. */
#include "common.h"
#include <sys/syscall.h>

int main(int count, char **arguments)
{
	(void)count;
	open_file(arguments);
	size_t at = 16 * MIB - 5;
	int data = open(arguments[1], O_WRONLY);
	if (pwrite(data, "/dev/null", 10, at) != 10)
		fail("pwrite");
	for (int by_number = 0; by_number < 2; by_number++) {
		char *base = mmap(NULL, file_length, PROT_READ, MAP_SHARED, file_descriptor, 0);
		if (base == MAP_FAILED)
			fail("mmap");
		errno = 0;
		long found = by_number ? syscall(SYS_access, base + at, R_OK) : access(base + at, R_OK);
		printf("%ld %s\n", found, strerror(errno));
	}
	return 0;
}
