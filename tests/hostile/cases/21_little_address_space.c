/* Expected: with RLIMIT_AS just above what the program needs, its own allocations succeed and fail as natively. */
#include "hostile.h"
#include <sys/resource.h>

static size_t used(void)
{
	size_t pages = 0;
	FILE *file = fopen("/proc/self/statm", "r");
	if (!file || fscanf(file, "%zu", &pages) != 1)
		fail("statm");
	fclose(file);
	return pages * PAGE;
}

int main(int count, char **arguments)
{
	(void)count;
	size_t file_size = 64 * MIB, room = 2 * file_size + 8 * MIB;
	struct rlimit limit = { used() + room, used() + room };
	if (setrlimit(RLIMIT_AS, &limit))
		fail("setrlimit");
	unsigned char *base = (unsigned char *)map_file(arguments, PROT_READ, MAP_SHARED);
	printf("%x\n", read_pages(base, 0, 30 * MIB));
	void *second = mmap(NULL, file_length, PROT_READ, MAP_SHARED, file_descriptor, 0);
	printf("second %d\n", second != MAP_FAILED);
	void *third = mmap(NULL, file_length, PROT_READ, MAP_SHARED, file_descriptor, 0);
	printf("third %d %s\n", third != MAP_FAILED, strerror(errno));
	rendezvous();
	for (int i = 0; i < 6; i++)
		printf("%d", malloc(MIB) != NULL);
	printf("\n%x\n", read_pages(second, 0, file_length));
	return 0;
}
