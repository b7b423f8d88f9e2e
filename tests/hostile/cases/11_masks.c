/* Expected: a program that blocks SIGSEGV, in whatever way, reads back that it is blocked, and reads mapped data as if
 * it were not; threads and children inherit what it set.
 * @compile -Wno-deprecated-declarations
 * @counter active_readers 3 */
#include "signals.h"
#include <poll.h>
#include <sys/epoll.h>
#include <sys/select.h>

static void tell(const char *what)
{
	printf("%-28s %s\n", what, letters(mask_now()));
	read_on(MIB + MIB / 2);
}

static void *thread(void *name)
{
	tell(name);
	return NULL;
}

static void in_thread(const char *name, const pthread_attr_t *attributes)
{
	pthread_t id;
	if (pthread_create(&id, attributes, thread, (void *)name))
		fail("pthread_create");
	pthread_join(id, NULL);
}

static void child(void)
{
	tell("  in the child");
}

static volatile unsigned long long inside;

/* Runs under the mask of the call that it interrupts, and that of its own. */
static void on_alarm(int signal)
{
	(void)signal;
	inside = mask_now();
	read_on(MIB);
}

static void waited(const char *what)
{
	printf("%-28s %s\n", what, letters(inside));
	printf("%-28s %s\n", "  afterwards", letters(mask_now()));
}

int main(int count, char **arguments)
{
	sigset_t segv, full, empty, almost, old;
	if (count == 3) {
		base = map_file(arguments, PROT_READ, MAP_SHARED);
		tell("  executed");
		return 0;
	}
	base = map_file(arguments, PROT_READ, MAP_SHARED);
	sigemptyset(&empty);
	sigfillset(&full);
	sigemptyset(&segv);
	sigaddset(&segv, SIGSEGV);
	sigfillset(&almost);
	sigdelset(&almost, SIGSEGV);
	sigdelset(&almost, SIGBUS);

	tell("nothing");
	sigprocmask(SIG_BLOCK, &segv, NULL);
	tell("sigprocmask block");
	in_thread("  in a thread", NULL);
	apart("fork", child);
	sigprocmask(SIG_BLOCK, &full, &old);
	printf("had blocked %d\n", sigismember(&old, SIGSEGV));
	tell("sigprocmask block all");
	in_thread("  in a thread", NULL);
	sigprocmask(SIG_UNBLOCK, &segv, NULL);
	tell("sigprocmask unblock");
	sigprocmask(SIG_SETMASK, &almost, &old);
	printf("had blocked %d\n", sigismember(&old, SIGSEGV));
	tell("sigprocmask all but two");
	pthread_sigmask(SIG_SETMASK, &empty, NULL);
	tell("pthread_sigmask none");
	pthread_sigmask(SIG_SETMASK, &full, NULL);
	tell("pthread_sigmask all");
	printf("bad how: %d\n", pthread_sigmask(77, &segv, NULL));
	pthread_sigmask(SIG_SETMASK, &empty, NULL);
	sighold(SIGSEGV);
	tell("sighold");
	sigrelse(SIGSEGV);
	tell("sigrelse");
	printf("sigblock: %x\n", sigblock(1 << (SIGSEGV - 1) | 1 << (SIGUSR1 - 1)));
	tell("sigblock");
	printf("siggetmask: %x\n", siggetmask());
	printf("sigsetmask: %x\n", sigsetmask(1 << (SIGUSR2 - 1)));
	tell("sigsetmask");
	printf("sigsetmask: %x\n", sigsetmask(0));
	tell("none");

	rendezvous();
	pthread_attr_t attributes;
	pthread_attr_init(&attributes);
	pthread_attr_setsigmask_np(&attributes, &segv);
	pthread_attr_getsigmask_np(&attributes, &old);
	printf("attribute: %d\n", sigismember(&old, SIGSEGV));
	in_thread("attribute", &attributes);
	tell("creator");

	/* The mask of a handler of another signal. */
	struct sigaction action = { .sa_handler = on_alarm };
	sigfillset(&action.sa_mask);
	sigaction(SIGALRM, &action, NULL);
	raise(SIGALRM);
	waited("handler that blocks all");
	sigaction(SIGALRM, NULL, &action);
	printf("its mask: %d %d\n", sigismember(&action.sa_mask, SIGSEGV), sigismember(&action.sa_mask, 16));

	/* Masks of calls. */
	sigemptyset(&action.sa_mask);
	sigaction(SIGALRM, &action, NULL);
	sigset_t but_alarm = full, alarm_too = empty;
	sigdelset(&but_alarm, SIGALRM);
	sigaddset(&alarm_too, SIGALRM);
	struct timespec minute = { .tv_sec = 60 };
	int epoll = epoll_create1(0);
	struct epoll_event event;
	sigprocmask(SIG_SETMASK, &alarm_too, NULL);
#define WAIT(call) (inside = 0, raise(SIGALRM), errno = 0, printf("%d %d\n", (call), errno), waited(#call))
	WAIT(ppoll(NULL, 0, &minute, &but_alarm));
	WAIT(pselect(0, NULL, NULL, NULL, &minute, &but_alarm));
	WAIT(epoll_pwait(epoll, &event, 1, 60000, &but_alarm));
	WAIT(epoll_pwait2(epoll, &event, 1, &minute, &but_alarm));
	WAIT(sigsuspend(&but_alarm));
	WAIT(sigpause(SIGALRM));
	sigprocmask(SIG_BLOCK, &segv, NULL);
	WAIT(ppoll(NULL, 0, &minute, &empty));
	WAIT(sigsuspend(&empty));
	tell("blocked as before");

	/* What jumps and contexts restore. */
	sigjmp_buf jump;
	if (!sigsetjmp(jump, 1)) {
		sigprocmask(SIG_SETMASK, &empty, NULL);
		siglongjmp(jump, 1);
	}
	tell("siglongjmp to blocked");
	ucontext_t context;
	volatile int again = 0;
	getcontext(&context);
	if (!again++) {
		sigprocmask(SIG_SETMASK, &empty, NULL);
		setcontext(&context);
	}
	tell("setcontext to blocked");

	fflush(stdout);
	if (fork() == 0) {
		char *next[] = { arguments[0], arguments[1], "executed", NULL };
		execv(next[0], next);
		_exit(99);
	}
	int status;
	wait(&status);
	printf("executed: %d\n", status);
	return 0;
}
