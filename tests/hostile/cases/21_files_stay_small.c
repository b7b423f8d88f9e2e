/* Expected: with a limit on the size of files that is enough for the program, nobody gets SIGXFSZ: neither who has mapped, nor who
 * maps, nor a child. */
#include "hostile.h"
#include <sys/resource.h>

static void read_in_child(const volatile unsigned char *base, uint64_t from, uint64_t to)
{
	int status;
	fflush(stdout);
	pid_t child = fork();
	if (child == 0) {
		printf("child: %x\n", read_pages(base, from, to));
		exit(0);
	}
	if (waitpid(child, &status, 0) != child)
		fail("a child");
	printf("its end: %x\n", status);
}

int main(int count, char **arguments)
{
	(void)count;
	struct rlimit little = { 100 << 10, 100 << 10 };
	volatile unsigned char *base = map_file(arguments, PROT_READ, MAP_SHARED);
	printf("first: %x\n", read_pages(base, 0, file_length / 4));
	rendezvous();
	/* Whoever runs this may ignore it, as Python does. */
	signal(SIGXFSZ, SIG_DFL);
	if (setrlimit(RLIMIT_FSIZE, &little))
		fail("setrlimit");
	read_in_child(base, file_length / 4, file_length / 2);
	volatile unsigned char *again = map_file(arguments, PROT_READ, MAP_SHARED);
	printf("again: %x\n", read_pages(again, 0, file_length / 4));
	printf("rest: %x\n", read_pages(base, file_length / 2, file_length));
	return 0;
}
