/* Expected: with one descriptor left the file is mapped and read as ever. */
#include "common.h"
#include <sys/resource.h>

int main(int count, char **arguments)
{
	(void)count;
	open_file(arguments);
	struct rlimit limit = { file_descriptor + 2, file_descriptor + 2 };
	if (setrlimit(RLIMIT_NOFILE, &limit))
		fail("setrlimit");
	void *base = mmap(NULL, file_length, PROT_READ, MAP_SHARED, file_descriptor, 0);
	if (base == MAP_FAILED)
		fail("mmap");
	printf("%u\n", read_pages(base, 0, file_length));
	int last = open(arguments[1], O_RDONLY);
	printf("%d %d\n", last - file_descriptor, open(arguments[1], O_RDONLY));
	return 0;
}
