/* Expected: a program that may make no memory executable any more (PR_SET_MDWE) reads on and maps on as natively, and finds
 * its calls refused as natively. */
#include "hostile.h"
#include <dlfcn.h>
#include <sys/prctl.h>

enum { SET_MDWE = 65, REFUSE_EXEC_GAIN = 1 };

static volatile unsigned char *map_and_read(char **arguments, int protection, int flags)
{
	volatile unsigned char *base = map_file(arguments, protection, flags);
	printf("%x\n", read_pages(base, 0, 30 * MIB));
	return base;
}

int main(int count, char **arguments)
{
	(void)count;
	volatile unsigned char *before = map_and_read(arguments, PROT_READ, MAP_SHARED);
	if (prctl(SET_MDWE, REFUSE_EXEC_GAIN, 0, 0, 0)) {
		puts("PR_SET_MDWE");
		return 77;
	}
	rendezvous();
	read_pages(before, 0, file_length);
	volatile unsigned char *shared = map_and_read(arguments, PROT_READ, MAP_SHARED);
	volatile unsigned char *private = map_and_read(arguments, PROT_READ | PROT_WRITE, MAP_PRIVATE);
	private[0]++;
	errno = 0;
	int result = mprotect((void *)shared, 16 * MIB, PROT_READ | PROT_EXEC);
	printf("executable: %d, %s\n", result, strerror(errno));
	read_pages(shared, 0, file_length);
	printf("a library: %d\n", dlopen("libm.so.6", RTLD_NOW) != NULL);
	fflush(stdout);
	if (fork() == 0) {
		read_pages(private, MIB, file_length);
		_exit(0);
	}
	int status;
	wait(&status);
	printf("child: %d\n", status);
	return 0;
}
