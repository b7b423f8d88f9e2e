/* Expected: some hundred calls of system() and popen() from three threads, while another trips in mappings that come and go, each
 * give the shell's own answer, and leave actions, masks and what the program has as they were.
 * @counter active_readers 1 */
#include "hostile.h"
#include "possessions.h"

static volatile int stop;
static int wrong;

static void *reader(void *unused)
{
	while (!stop) {
		volatile unsigned char *base = mmap(NULL, file_length, PROT_READ, MAP_SHARED, file_descriptor, 0);
		if (base == MAP_FAILED)
			fail("mmap");
		read_pages(base, 0, file_length);
		munmap((void *)base, file_length);
	}
	return unused;
}

static void expect(int is_right)
{
	if (!is_right)
		__atomic_add_fetch(&wrong, 1, __ATOMIC_RELAXED);
}

static void *shells(void *first)
{
	int each = rounds(50);
	for (int round = 0; round < each; round++) {
		int number = ((int)(size_t)first + round) % 200;
		char command[64], line[64] = "";
		/* What it prints comes from a program of its own every other time. */
		snprintf(command, sizeof command, round % 2 ? "echo %d" : "env printf '%%d\\n' %d", number);
		FILE *pipe = popen(command, "r");
		expect(pipe && fgets(line, sizeof line, pipe) && atoi(line) == number && pclose(pipe) == 0);
		snprintf(command, sizeof command, "exit %d", number);
		int status = system(command);
		expect(WIFEXITED(status) && WEXITSTATUS(status) == number);
		if (round % 10 == 0) {
			status = system("kill -SEGV $$");
			expect(WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV);
		}
	}
	return NULL;
}

static void storm(void)
{
	pthread_t threads[3], other;
	stop = 0;
	pthread_create(&other, NULL, reader, NULL);
	for (size_t i = 0; i < 3; i++)
		pthread_create(&threads[i], NULL, shells, (void *)(i * 50));
	for (int i = 0; i < 3; i++)
		pthread_join(threads[i], NULL);
	stop = 1;
	pthread_join(other, NULL);
}

int main(int count, char **arguments)
{
	(void)count;
	struct sigaction interrupts, quits;
	sigset_t blocked;
	open_file(arguments);
	Possessions first = possessions();
	storm();
	rendezvous();
	storm();
	sigaction(SIGINT, NULL, &interrupts), sigaction(SIGQUIT, NULL, &quits), sigprocmask(SIG_SETMASK, NULL, &blocked);
	printf("wrong: %d\n", wrong);
	printf("as before: %d %d\n", interrupts.sa_handler == SIG_DFL && quits.sa_handler == SIG_DFL, sigismember(&blocked, SIGCHLD));
	print_leaks(&first);
	return 0;
}
