/* Expected: one thread maps and reads while another starts programs that inherit an ignored SIGSEGV: none is lost, and what is
 * mapped afterwards is accelerated.
 * @counter trips 150 */
#include "signals.h"
#include <spawn.h>
#include <stdatomic.h>

extern char **environ;
static atomic_int left;

static void *spawning(void *argument)
{
	char *words[] = { "true", NULL };
	for (; left > 0; left--) {
		pid_t child;
		int status = -1;
		if (posix_spawnp(&child, "true", NULL, NULL, words, environ) || waitpid(child, &status, 0) != child || status)
			printf("spawned: %d\n", status);
	}
	return argument;
}

int main(int count, char **arguments)
{
	(void)count;
	pthread_t thread;
	base = map_file(arguments, PROT_READ, MAP_SHARED);
	read_on(4 * MIB);
	rendezvous();
	signal(SIGSEGV, SIG_IGN);
	left = rounds(60);
	pthread_create(&thread, NULL, spawning, NULL);
	do {
		base = mmap(NULL, file_length, PROT_READ, MAP_SHARED, file_descriptor, 0);
		position = 0;
		for (int i = 0; i < 4; i++)
			read_on(MIB);
		munmap((void *)base, file_length);
	} while (left > 0);
	pthread_join(thread, NULL);
	for (int i = 0; i < 20; i++) {
		base = mmap(NULL, file_length, PROT_READ, MAP_SHARED, file_descriptor, 0);
		position = 0;
		read_on(8 * MIB);
		munmap((void *)base, file_length);
	}
	puts("done");
	return 0;
}
