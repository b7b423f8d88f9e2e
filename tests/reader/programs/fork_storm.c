/* Expected: a thousand children, each of which reads a little, and a parent that goes on reading. */
#include "common.h"

int main(int count, char **arguments)
{
	(void)count;
	volatile unsigned char *base = map_file(arguments, PROT_READ, MAP_SHARED);
	int wrong = 0;
	for (int child = 0; child < 1000; child++) {
		pid_t pid = fork();
		if (pid == 0) {
			size_t at = child % 60 * MIB;
			read_pages(base, at, at + 4 * PAGE);
			_exit(0);
		}
		int status;
		waitpid(pid, &status, 0);
		wrong += status != 0;
		read_pages(base, child * PAGE * 16, child * PAGE * 16 + PAGE);
	}
	printf("%d children went wrong\n", wrong);
	return 0;
}
