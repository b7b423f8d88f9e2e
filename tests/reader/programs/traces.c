/* Expected: no descriptor, no thread, no changed errno or rounding mode tells of precache, and closing every
 * descriptor is harmless. */
#include "common.h"
#include <dirent.h>
#include <fenv.h>

static int entries(const char *path)
{
	int count = 0;
	DIR *folder = opendir(path);
	while (readdir(folder))
		count++;
	closedir(folder);
	return count;
}

int main(int count, char **arguments)
{
	(void)count;
	errno = 1234;
	volatile unsigned char *base = map_file(arguments, PROT_READ, MAP_SHARED);
	printf("errno after mmap %d\n", errno);
	fesetround(FE_UPWARD);
	volatile double third = 1.0;
	for (size_t at = 0; at < file_length / 2; at += MIB) {
		volatile double before = third / 3;
		read_pages(base, at, at + PAGE);
		if (errno != 1234 || fegetround() != FE_UPWARD || before != third / 3)
			printf("noticed at %zu\n", at);
	}
	fesetround(FE_TONEAREST);
	printf("descriptors %d, threads %d\n", entries("/proc/self/fd"), entries("/proc/self/task"));
	for (int number = 3; number < 1024; number++)
		close(number);
	int next = open(arguments[1], O_RDONLY);
	printf("next descriptor %d\n", next);
	read_pages(base, 0, file_length);
	return 0;
}
