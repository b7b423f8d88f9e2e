/* Expected: a handler for SIGSEGV that one thread sets while another one starts a program, with SIGSEGV ignored so far, is
 * what the program has from then on, in whichever of its system calls that other thread is. */
#include "hostile.h"
#include "held_thread.h"
#include <spawn.h>

extern char **environ;

static struct hold spawning;
static sigjmp_buf out;
static volatile int caught, past, wrong;

static void handler(int signal)
{
	caught += signal == SIGSEGV;
	siglongjmp(out, 1);
}

/* Whether what is set is in force, too. */
static void check(const char *when, int turns)
{
	struct sigaction now;
	int before = caught;
	sigaction(SIGSEGV, NULL, &now);
	if (now.sa_handler != handler) {
		wrong++;
		fprintf(stderr, "%s, call %d: %s\n", when, turns, now.sa_handler == SIG_DFL ? "default" : "ignored");
		return;
	}
	if (!sigsetjmp(out, 1))
		*(volatile int *)8 = 1;
	wrong += caught != before + 1;
}

static void *other(void *turns)
{
	await_held(&spawning);
	past = *spawning.over;
	if (signal(SIGSEGV, handler) != SIG_IGN)
		wrong++, fprintf(stderr, "call %d: was not ignored before\n", *(int *)turns);
	check("at once", *(int *)turns);
	let_go(&spawning);
	return NULL;
}

int main(int count, char **arguments)
{
	(void)count;
	volatile unsigned char *base = map_file(arguments, PROT_READ, MAP_SHARED);
	read_pages(base, 0, 2 * MIB);
	rendezvous();
	char *const words[] = { "true", NULL };
	for (int turns = 1; !past && turns < 200; turns++) {
		signal(SIGSEGV, SIG_IGN);
		pthread_t thread;
		pid_t child;
		int status;
		spawning = new_hold();
		if (pthread_create(&thread, NULL, other, &turns))
			fail("pthread_create");
		hold(&spawning, getpid(), turns, 0);
		if (posix_spawn(&child, "/bin/true", NULL, NULL, words, environ))
			fail("posix_spawn");
		*spawning.over = 1;
		pthread_join(thread, NULL);
		end_hold(&spawning);
		waitpid(child, &status, 0);
		check("afterwards", turns);
	}
	printf("all moments: %d, %d wrong\n", past, wrong);
	signal(SIGSEGV, SIG_IGN);
	base = mmap(NULL, file_length, PROT_READ, MAP_SHARED, file_descriptor, 0);
	printf("%x\n", read_pages(base, 0, file_length));
	return 0;
}
