/* Expected: a child that a signal handler forks in the middle of a call that starts a program, under a blocked or an ignored
 * SIGSEGV, returns from that call and reads what it maps then through checkpoints, as does its parent. The handler reads what
 * is mapped already, also in a forked child that has not read any of it. The child may unmap what it inherits, whatever was
 * being done to that. */
#include "signals.h"
#include "held_thread.h"
#include <spawn.h>

extern char **environ;
static char *words[] = { "nothing", NULL };
static pid_t child = -1;
static struct hold held;
static pthread_t first;

static void map_and_read(size_t length)
{
	base = mmap(NULL, file_length, PROT_READ, MAP_SHARED, file_descriptor, 0);
	if (base == MAP_FAILED)
		fail("mmap");
	printf("%x\n", read_pages(base, 0, length));
	fflush(stdout);
}

/* On top of the call. */
static void forks(int signal)
{
	(void)signal;
	int status;
	read_pages(base, 0, 8 * MIB);
	if ((child = fork()) == 0) {
		must_be_served(40);
		map_and_read(4 * MIB);
		return;
	}
	waitpid(child, &status, 0);
	printf("child: %d\n", status);
	fflush(stdout);
}

static void *interrupt(void *unused)
{
	await_held(&held);
	pthread_kill(first, SIGUSR1);
	let_go(&held);
	return unused;
}

/* Makes the call, with a signal while it is at the system call of this number. */
static void during(long number, void call(void))
{
	pthread_t thread;
	volatile unsigned char *inherited = base;
	child = -1;
	held = new_hold();
	if (pthread_create(&thread, NULL, interrupt, NULL))
		fail("pthread_create");
	hold(&held, getpid(), 0, number);
	call();
	if (child == 0) {
		munmap((void *)inherited, file_length);
		map_and_read(file_length);
		_exit(0);
	}
	*held.over = 1;
	pthread_join(thread, NULL);
	end_hold(&held);
	printf("forked: %d\n", child > 0);
	map_and_read(file_length);
}

static void with_shell(void)
{
	FILE *pipe = popen("echo from the shell", "r");
	char line[64] = "";
	printf("%s", pipe && fgets(line, sizeof line, pipe) ? line : "nothing read\n");
	pclose(pipe);
}

static void in_vain(void)
{
	execve("/nothing", words, environ);
	printf("%m\n");
}

/* What is mapped may be opened by mprotect when the first call begins; where it is not, the second one is the first such. */
static void in_vain_and_protect(void)
{
	execve("/nothing", words, environ);
	int error = errno;
	mprotect((void *)held.over, PAGE, PROT_READ | PROT_WRITE);
	printf("%s\n", strerror(error));
}

static void spawned(void)
{
	pid_t unknown;
	printf("%s\n", strerror(posix_spawn(&unknown, "/nothing", NULL, NULL, words, environ)));
}

int main(int count, char **arguments)
{
	(void)count;
	first = pthread_self();
	must_be_served(40);
	base = map_file(arguments, PROT_READ, MAP_SHARED);
	read_on(4 * MIB);
	signal(SIGUSR1, forks);
	set_mask(1ULL << (SIGSEGV - 1));
	during(SYS_pipe2, with_shell);
	rendezvous();
	during(SYS_execve, in_vain);
	during(SYS_mprotect, in_vain_and_protect);
	fflush(stdout);
	pid_t forked = fork();
	int status;
	if (forked == 0) {
		must_be_served(40);
		during(SYS_execve, in_vain);
		_exit(0);
	}
	waitpid(forked, &status, 0);
	printf("forked child: %d\n", status);
	set_mask(0);
	signal(SIGSEGV, SIG_IGN);
	during(SYS_munmap, spawned);
	return 0;
}
