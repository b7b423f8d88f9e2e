/* Expected: a child whose parent mapped the file and is gone before the child reads is served all the same. */
#include "common.h"
#include <sys/prctl.h>

int main(int count, char **arguments)
{
	(void)count;
	int done[2];
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	if (pipe(done))
		fail("pipe");
	if (fork() == 0) {
		volatile unsigned char *base = map_file(arguments, PROT_READ, MAP_SHARED);
		if (fork() != 0)
			_exit(0);
		/* Until the grandparent has closed its end. */
		char byte;
		close(done[1]);
		if (read(done[0], &byte, 1))
			_exit(1);
		read_pages(base, 0, file_length);
		_exit(0);
	}
	int status;
	wait(&status);
	/* The parent of the orphan has been waited for: it is gone. */
	close(done[0]);
	close(done[1]);
	wait(&status);
	printf("orphan's status %d\n", status);
	return 0;
}
