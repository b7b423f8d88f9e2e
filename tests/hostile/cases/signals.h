/* What the cases about signals share. */
#include "hostile.h"
#include <sys/syscall.h>
#include <ucontext.h>

/* The calling thread's mask, as the C library tells it. */
static inline unsigned long long mask_now(void)
{
	sigset_t mask;
	unsigned long long word;
	pthread_sigmask(SIG_SETMASK, NULL, &mask);
	memcpy(&word, &mask, sizeof word);
	return word;
}

static inline void set_mask(unsigned long long word)
{
	sigset_t mask;
	sigemptyset(&mask);
	memcpy(&mask, &word, sizeof word);
	pthread_sigmask(SIG_SETMASK, &mask, NULL);
}

/* Bits of a mask that say something, one letter each. */
static inline const char *letters(unsigned long long mask)
{
	static __thread char text[8][65];
	static __thread int turn;
	char *to = text[turn = (turn + 1) % 8];
	for (int bit = 0; bit < 64; bit++)
		to[bit] = mask >> bit & 1 ? 'X' : '.';
	return to;
}

/* Runs one part in a process of its own and prints how it ended. */
static inline void apart(const char *name, void (*part)(void))
{
	fflush(stdout);
	pid_t pid = fork();
	if (pid == 0) {
		part();
		fflush(stdout);
		_exit(0);
	}
	int status;
	while (waitpid(pid, &status, 0) < 0)
		;
	if (WIFSIGNALED(status))
		printf("%s: signal %d\n", name, WTERMSIG(status));
	else
		printf("%s: exit %d\n", name, WEXITSTATUS(status));
	fflush(stdout);
}

static volatile unsigned char *base;
static size_t position;

/* Reads on by so much, through as many checkpoints as there are. */
static inline void read_on(size_t length)
{
	if (position + length > file_length)
		position = 0;
	read_pages(base, position, position + length);
	position += length;
}

__attribute__((noinline, unused)) static void fault(void)
{
	*(volatile int *)8 = 1;
}
