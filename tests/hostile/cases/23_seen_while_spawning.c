/* Expected: while one thread starts a program with SIGSEGV ignored, another one finds it ignored and SIGSTKFLT as it was set,
 * and so does a child that it forks, which reads what it maps through checkpoints, also if its own vfork child was the first
 * to map; what a vfork child sets is that one's own. The program finds SIGSEGV ignored, and SIGSTKFLT only once that is, too.
 * @counter active_readers 7 */
#include "signals.h"
#include <spawn.h>

extern char **environ;

static void handler(int signal)
{
	(void)signal;
}

static void tell(const char *who)
{
	struct sigaction segv, stkflt;
	sigaction(SIGSEGV, NULL, &segv);
	sigaction(SIGSTKFLT, NULL, &stkflt);
	printf("%s: %s, flags %x, mask %d; %s\n", who, segv.sa_handler == SIG_IGN ? "ignored" : "not ignored", segv.sa_flags,
	       sigismember(&segv.sa_mask, SIGUSR1), stkflt.sa_handler == handler ? "handled" :
	       stkflt.sa_handler == SIG_IGN ? "ignored" : "default");
	fflush(stdout);
}

static void child_that_maps(int guest_is_first)
{
	int status;
	pid_t guest = guest_is_first ? vfork() : -1;
	if (guest == 0)
		_exit(mmap(NULL, file_length, PROT_READ, MAP_SHARED, file_descriptor, 0) == MAP_FAILED);
	if (guest_is_first) {
		waitpid(guest, &status, 0);
		printf("its vfork child: %d\n", status);
	}
	tell("forked child");
	unsigned char *again = mmap(NULL, file_length, PROT_READ, MAP_SHARED, file_descriptor, 0);
	printf("%x\n", read_pages(again, 0, file_length));
	tell("forked child, later");
	signal(SIGSEGV, SIG_DFL);
	fault();
}

/* When the child has begun, and before it goes on. */
static void *other(void *unused)
{
	int status, begun = open("begun", O_RDONLY);
	tell("meanwhile");
	pid_t child = vfork();
	if (child == 0) {
		signal(SIGSEGV, SIG_DFL);
		_exit(0);
	}
	waitpid(child, &status, 0);
	tell("after the vfork child");
	fflush(stdout);
	for (int guest_is_first = 0; guest_is_first < 2; guest_is_first++) {
		if ((child = fork()) == 0)
			child_that_maps(guest_is_first);
		waitpid(child, &status, 0);
		printf("ended: %d\n", status);
		fflush(stdout);
	}
	int go = open("go", O_WRONLY);
	close(begun), close(go);
	return unused;
}

static void spawn(void)
{
	pthread_t thread;
	posix_spawn_file_actions_t actions;
	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_addopen(&actions, 10, "begun", O_WRONLY, 0);
	posix_spawn_file_actions_addopen(&actions, 11, "go", O_RDONLY, 0);
	char *const words[] = { "grep", "^SigIgn", "/proc/self/status", NULL }, *const bare[] = { "PATH=/usr/bin:/bin", NULL };
	pid_t child;
	int status;
	if (pthread_create(&thread, NULL, other, NULL) || posix_spawnp(&child, "grep", &actions, NULL, words, bare))
		fail("posix_spawn");
	pthread_join(thread, NULL);
	waitpid(child, &status, 0);
	printf("grep: %d\n", status);
	tell("afterwards");
}

int main(int count, char **arguments)
{
	(void)count;
	base = map_file(arguments, PROT_READ, MAP_SHARED);
	read_on(2 * MIB);
	rendezvous();
	if (mkfifo("begun", 0600) || mkfifo("go", 0600))
		fail("mkfifo");
	struct sigaction ignore = { .sa_handler = SIG_IGN, .sa_flags = SA_RESTART };
	sigaddset(&ignore.sa_mask, SIGUSR1);
	signal(SIGSTKFLT, handler);
	sigaction(SIGSEGV, &ignore, NULL);
	spawn();
	signal(SIGSTKFLT, SIG_IGN);
	spawn();
	signal(SIGSTKFLT, SIG_DFL);
	spawn();
	read_on(8 * MIB);
	return 0;
}
