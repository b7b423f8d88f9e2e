/* Expected: what a vfork child sets for SIGSEGV, and blocks, is its own: the parent, whose memory it shares, keeps what it
 * set; an ignored or blocked SIGSEGV is inherited by what is executed. */
#include "signals.h"
#include <spawn.h>

extern char **environ;

static sigjmp_buf out;
static volatile int caught;

static void handler(int signal)
{
	(void)signal;
	caught++;
	siglongjmp(out, 1);
}

static void tell(void)
{
	struct sigaction now;
	sigaction(SIGSEGV, NULL, &now);
	printf("  %s, flags %x, %s\n", now.sa_handler == SIG_DFL ? "default" : now.sa_handler == SIG_IGN ? "ignored" :
	       now.sa_handler == handler ? "handled" : "strange", now.sa_flags, letters(mask_now()));
	fflush(stdout);
}

/* What a program finds that has no library of ours: the lines of its own status that tell. */
static char *grep[] = { "grep", "-E", "^Sig(Blk|Ign)", "/proc/self/status", NULL };
static char *bare[] = { "PATH=/usr/bin:/bin", NULL };

static void finish(const char *how, pid_t pid)
{
	int status;
	waitpid(pid, &status, 0);
	printf("%s: %d\n", how, status);
	tell();
}

static void all_ways(char **arguments)
{
	char *again[] = { arguments[0], arguments[1], "again", NULL };
	tell();
	pid_t pid = vfork();
	if (pid == 0) {
		signal(SIGSEGV, SIG_DFL);
		volatile unsigned char touched = base[position + 3 * MIB];
		(void)touched;
		_exit(0);
	}
	finish("default in the child", pid);
	if ((pid = vfork()) == 0) {
		set_mask(~0ULL);
		signal(SIGSEGV, SIG_IGN);
		execve(arguments[0], again, environ);
		_exit(1);
	}
	finish("ignored in the child", pid);
	if ((pid = vfork()) == 0) {
		execve("/nowhere", again, environ);
		execvpe("grep", grep, bare);
		_exit(1);
	}
	finish("executed without us", pid);
	if (posix_spawnp(&pid, "grep", NULL, NULL, grep, bare))
		fail("posix_spawnp");
	finish("spawned without us", pid);
	if (posix_spawn(&pid, arguments[0], NULL, NULL, again, environ))
		fail("posix_spawn");
	finish("spawned", pid);
	posix_spawnattr_t attributes;
	sigset_t set;
	posix_spawnattr_init(&attributes);
	posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
	sigemptyset(&set);
	sigaddset(&set, SIGSEGV);
	posix_spawnattr_setsigmask(&attributes, &set);
	posix_spawnattr_setsigdefault(&attributes, &set);
	if (posix_spawn(&pid, arguments[0], NULL, &attributes, again, environ))
		fail("posix_spawn");
	finish("spawned with attributes", pid);
	printf("execve fails: %d\n", execve("/nowhere", again, environ));
	tell();
	read_on(2 * MIB);
}

int main(int count, char **arguments)
{
	base = map_file(arguments, PROT_READ, MAP_SHARED);
	if (count == 3) {
		tell();
		read_on(4 * MIB);
		return 0;
	}
	read_on(4 * MIB);
	rendezvous();
	signal(SIGSEGV, handler);
	all_ways(arguments);
	if (!sigsetjmp(out, 1))
		fault();
	printf("caught %d\n", caught);
	set_mask(1ULL << (SIGSEGV - 1) | 1ULL << (SIGUSR1 - 1));
	all_ways(arguments);
	set_mask(0);
	signal(SIGSEGV, SIG_IGN);
	all_ways(arguments);
	read_on(8 * MIB);
	return 0;
}
