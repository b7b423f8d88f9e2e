/* Expected: what a call is given right below an armed mapping is taken for no part of it: no checkpoint is hit for the call,
 * however often it is made.
 * @at-most lifted_for_calls 0 */
#include "hostile.h"
#include <poll.h>
#include <sys/syscall.h>

int main(int count, char **arguments)
{
	(void)count;
	open_file(arguments);
	char *below = mmap(NULL, MIB + file_length, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (below == MAP_FAILED)
		fail("mmap");
	volatile unsigned char *base =
		mmap(below + MIB, file_length, PROT_READ, MAP_SHARED | MAP_FIXED, file_descriptor, 0);
	if (base == MAP_FAILED || mprotect(below, MIB, PROT_READ | PROT_WRITE))
		fail("mmap");
	/* In the last page before it, and in each page as far away as a path or a structure may reach. */
	for (size_t distance = 512; distance <= 256 << 10; distance *= 2) {
		char *place = below + MIB - distance;
		for (int call = 0; call < 20; call++) {
			if (fstat(file_descriptor, (struct stat *)place))
				fail("fstat");
			strcpy(place, "/dev/null");
			if (access(place, R_OK) || open(place, O_RDONLY) != file_descriptor + 1 || close(file_descriptor + 1))
				fail(place);
			if (syscall(SYS_access, place, R_OK))
				fail("access by number");
			struct pollfd *polled = (struct pollfd *)place;
			*polled = (struct pollfd) { file_descriptor, POLLIN, 0 };
			if (poll(polled, 1, 0) != 1)
				fail("poll");
		}
	}
	rendezvous();
	printf("%08x\n", read_pages(base, 0, file_length));
	return 0;
}
