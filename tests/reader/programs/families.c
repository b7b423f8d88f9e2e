/* Expected: forked children, their children, vforked and spawned ones read every byte, and so does the parent after. */
#include "common.h"

extern char **environ;

int main(int count, char **arguments)
{
	volatile unsigned char *base = map_file(arguments, PROT_READ, MAP_SHARED);
	if (count > 2) {
		read_pages(base, 0, file_length);
		printf("executed child: %s\n", arguments[2]);
		return 3;
	}
	read_pages(base, 0, 20 * MIB);
	for (int child = 0; child < 4; child++) {
		fflush(stdout);
		pid_t pid = fork();
		if (pid == 0) {
			uint32_t sum = read_pages(base, child * MIB, file_length);
			if (fork() == 0) {
				read_pages(base, 0, file_length);
				_exit(5);
			}
			int status;
			wait(&status);
			printf("child %d: %x, grandchild %d\n", child, sum, WEXITSTATUS(status));
			fflush(stdout);
			_exit(child);
		}
		int status;
		waitpid(pid, &status, 0);
		printf("status %d\n", status);
	}
	char *again[] = { arguments[0], arguments[1], "by vfork", NULL };
	fflush(stdout);
	pid_t pid = vfork();
	if (pid == 0) {
		volatile unsigned char touched = base[30 * MIB];
		(void)touched;
		execve(again[0], again, environ);
		_exit(1);
	}
	int status;
	waitpid(pid, &status, 0);
	printf("vforked %d\n", WEXITSTATUS(status));
	read_pages(base, 0, file_length);
	for (int i = 0; i < 200; i++) {
		if ((pid = fork()) == 0)
			_exit(base[i * PAGE * 7] == 256);
		waitpid(pid, &status, 0);
		if (status)
			printf("short-lived child %d: %d\n", i, status);
	}
	puts("parent done");
	return 0;
}
