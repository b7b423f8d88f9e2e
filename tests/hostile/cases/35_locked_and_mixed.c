/* Expected: a mapping parts of which the program locks and unlocks by page, under whatever protects checkpoints, is read in
 * every order, and forks. */
#include "hostile.h"
#include <sys/resource.h>

int main(int count, char **arguments)
{
	(void)count;
	struct rlimit limit = { RLIM_INFINITY, RLIM_INFINITY };
	setrlimit(RLIMIT_MEMLOCK, &limit);
	for (int round = 0; round < 4; round++) {
		unsigned char *base = (unsigned char *)map_file(arguments, PROT_READ, round % 2 ? MAP_SHARED : MAP_PRIVATE);
		uint32_t sum = read_pages(base, 0, 3 * MIB);
		fflush(stdout);
		if (fork() == 0) {
			/* The child's locks are its own. */
			mlock(base + 10 * MIB, 4 * MIB);
			_exit(read_pages(base, 0, file_length) == 0);
		}
		int status;
		wait(&status);
		sum += read_pages(base, 10 * MIB, 12 * MIB);
		for (size_t at = 20 * MIB; at < 30 * MIB; at += MIB)
			if (mlock(base + at, PAGE))
				fail("mlock");
		for (size_t at = 20 * MIB; at < 30 * MIB; at += 2 * MIB)
			munlock(base + at, PAGE);
		sum += read_pages(base, 0, file_length);
		printf("%x %d\n", sum, status);
		munmap(base, file_length);
		if (round == 1)
			rendezvous();
	}
	return 0;
}
