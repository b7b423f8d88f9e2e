/* Expected: the action that a thread sets for SIGSEGV while another one is starting a program, with SIGSEGV ignored so far,
 * is what the program has from then on. */
#include "hostile.h"
#include <spawn.h>

extern char **environ;

static void handler(int signal)
{
	char text[] = "handled\n";
	write(1, text, signal ? 8 : 0);
	_exit(5);
}

/* When the child has begun, and before it goes on. */
static void *other(void *unused)
{
	int begun = open("begun", O_RDONLY);
	signal(SIGSEGV, handler);
	int go = open("go", O_WRONLY);
	close(begun), close(go);
	return unused;
}

int main(int count, char **arguments)
{
	(void)count;
	volatile unsigned char *base = map_file(arguments, PROT_READ, MAP_SHARED);
	read_pages(base, 0, 2 * MIB);
	rendezvous();
	if (mkfifo("begun", 0600) || mkfifo("go", 0600))
		fail("mkfifo");
	signal(SIGSEGV, SIG_IGN);
	pthread_t thread;
	posix_spawn_file_actions_t actions;
	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_addopen(&actions, 10, "begun", O_WRONLY, 0);
	posix_spawn_file_actions_addopen(&actions, 11, "go", O_RDONLY, 0);
	char *const words[] = { "true", NULL };
	pid_t child;
	int status;
	if (pthread_create(&thread, NULL, other, NULL) || posix_spawn(&child, "/bin/true", &actions, NULL, words, environ))
		fail("posix_spawn");
	pthread_join(thread, NULL);
	waitpid(child, &status, 0);
	struct sigaction now;
	sigaction(SIGSEGV, NULL, &now);
	printf("true: %d; it is %s\n", status, now.sa_handler == handler ? "the handler" : "something else");
	read_pages(base, 0, file_length);
	fflush(stdout);
	*(volatile int *)8 = 1;
	return 0;
}
