/* Expected: handlers that read closed pages while their thread starts programs with SIGSEGV blocked find what is there, and
 * the programs inherit the mask. */
#include "hostile.h"
#include <spawn.h>
#include <sys/time.h>

enum { ROUNDS = 100 };

extern char **environ;
static volatile unsigned char *base;
static volatile size_t place;
static volatile int wrong;

static void on_alarm(int signal)
{
	(void)signal;
	/* A page that nobody has touched. */
	size_t at = place++ % (file_length / MIB) * MIB + place * 7 % 16 * 16 * PAGE;
	wrong += *(volatile uint32_t *)(base + at) != word_at(at);
}

static void start(const char *path, char *const words[], const posix_spawnattr_t *attributes)
{
	pid_t child;
	int status, error = posix_spawn(&child, path, NULL, attributes, words, environ);
	if (error) {
		errno = error;
		fail(path);
	}
	while (waitpid(child, &status, 0) != child)
		;
	if (status)
		printf("%s: %d\n", path, status);
}

int main(int count, char **arguments)
{
	if (count == 1) {
		sigset_t inherited;
		sigprocmask(SIG_SETMASK, NULL, &inherited);
		printf("blocked: %d %d %d\n", sigismember(&inherited, SIGSEGV), sigismember(&inherited, SIGUSR2),
			sigismember(&inherited, SIGUSR1));
		return 0;
	}
	base = map_file(arguments, PROT_READ, MAP_SHARED);
	sigset_t blocked, none;
	sigemptyset(&none);
	sigemptyset(&blocked);
	sigaddset(&blocked, SIGSEGV);
	sigaddset(&blocked, SIGUSR2);
	pthread_sigmask(SIG_BLOCK, &blocked, NULL);
	struct sigaction action = {.sa_handler = on_alarm, .sa_flags = SA_RESTART};
	sigaction(SIGALRM, &action, NULL);
	struct itimerval period = {{0, 300}, {0, 300}};
	setitimer(ITIMER_REAL, &period, NULL);
	char *const words[] = {"true", NULL};
	for (int round = 0; round < ROUNDS; round++) {
		if (round % 10 == 0 && mmap((void *)base, file_length, PROT_READ, MAP_SHARED | MAP_FIXED, file_descriptor, 0) != base)
			fail("mmap");
		start("/bin/true", words, NULL);
		if (round == ROUNDS / 2)
			rendezvous();
	}
	setitimer(ITIMER_REAL, &(struct itimerval){0}, NULL);
	printf("%d wrong\n", wrong);
	fflush(stdout);
	char *const told[] = {arguments[0], NULL};
	start(arguments[0], told, NULL);
	posix_spawnattr_t attributes;
	posix_spawnattr_init(&attributes);
	start(arguments[0], told, &attributes);
	posix_spawnattr_setsigmask(&attributes, &none);
	posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK);
	start(arguments[0], told, &attributes);
	return 0;
}
