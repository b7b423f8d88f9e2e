/* Expected: a child whose parent mapped the file, closed it and is gone before the child reads, of which nobody can tell the optimizer,
 * goes on as without precache after some seconds: its mapping is one area again. (It may be that the optimizer has not found the
 * parent dead by then.) */
#include "common.h"
#include <poll.h>
#include <string.h>
#include <sys/prctl.h>

/* Some hundred steps of 20 ms, each over a checkpoint. */
#define STEP (50 * PAGE)

/* Areas of this process that the file is mapped in. */
static int areas(const char *path)
{
	char line[8192], resolved[4096];
	int count = 0;
	FILE *maps = fopen("/proc/self/maps", "r");
	if (!maps || !realpath(path, resolved))
		fail("maps");
	while (fgets(line, sizeof line, maps))
		count += strstr(line, resolved) != NULL;
	fclose(maps);
	return count;
}

int main(int count, char **arguments)
{
	(void)count;
	int done[2];
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	if (pipe(done))
		fail("pipe");
	if (fork() == 0) {
		volatile unsigned char *base = map_file(arguments, PROT_READ, MAP_SHARED);
		close(file_descriptor);
		if (fork() != 0)
			_exit(0);
		/* Until the grandparent has closed its end. */
		char byte;
		close(done[1]);
		if (read(done[0], &byte, 1))
			_exit(1);
		/* Slowly, until nothing is closed any more. */
		size_t at = 0;
		do {
			read_pages(base, at, at + STEP);
			at += STEP;
			poll(NULL, 0, areas(arguments[1]) > 1 ? 20 : 0);
		} while (areas(arguments[1]) > 1 && at + STEP < file_length);
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
