/* Expected: once the program has made an io_uring, whose requests nobody sees, system calls past libc read closed pages
 * of old and new mappings as if they were open, for everything is.
 * @report the program makes system calls past libc */
#include "hostile.h"
#include <linux/io_uring.h>
#include <sys/syscall.h>

/* As a library with system calls of its own makes them. */
static long raw_pwrite(int file, const void *buffer, size_t length, off_t offset)
{
#if defined(__x86_64__)
	long result;
	register off_t at __asm__("r10") = offset;
	__asm__ volatile("syscall" : "=a"(result) : "a"(SYS_pwrite64), "D"(file), "S"(buffer), "d"(length), "r"(at) : "rcx", "r11", "memory");
	return result;
#else
	return pwrite(file, buffer, length, offset);
#endif
}

int main(int count, char **arguments)
{
	(void)count;
	unsigned char *base = (unsigned char *)map_file(arguments, PROT_READ, MAP_SHARED);
	read_pages(base, 0, 20 * MIB);
	rendezvous();
	struct io_uring_params parameters = { 0 };
	long ring = syscall(SYS_io_uring_setup, 4, &parameters);
	if (ring < 0)
		printf("no ring: %s\n", strerror(errno));
	unsigned char *later = mmap(NULL, file_length, PROT_READ, MAP_SHARED, file_descriptor, 0);
	int copy = memfd_create("copy", 0);
	for (size_t at = 0; at < file_length; at += 4 * MIB)
		if (raw_pwrite(copy, base + at, 4 * MIB, at) != (long)(4 * MIB) || raw_pwrite(copy, later + at, 4 * MIB, at) != (long)(4 * MIB))
			printf("cut short at %zu\n", at);
	read_pages(base, 0, file_length);
	read_pages(later, 0, file_length);
	return 0;
}
