/* Expected: a parent whose own mapping cannot be armed has children that map for themselves, each on its own. */
#include "common.h"

int main(int count, char **arguments)
{
	(void)count;
	char copy[4096];
	snprintf(copy, sizeof copy, "%s.refused-%d", arguments[1], getpid());
	int file = open(copy, O_RDWR | O_CREAT | O_EXCL, 0600);
	if (file < 0 || ftruncate(file, 40 * MIB))
		fail(copy);
	unlink(copy);
	if (mmap(NULL, 40 * MIB, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0) == MAP_FAILED)
		fail("mmap");
	for (int child = 0; child < 3; child++)
		if (fork() == 0) {
			volatile unsigned char *base = map_file(arguments, PROT_READ, MAP_SHARED);
			read_pages(base, child * 8 * MIB, file_length);
			_exit(0);
		}
	for (int child = 0; child < 3; child++) {
		int status;
		wait(&status);
		printf("status %d\n", status);
	}
	return 0;
}
