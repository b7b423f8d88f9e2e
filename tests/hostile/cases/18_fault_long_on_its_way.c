/* Expected: a thread that is stopped between its fault and its handler reads on when it is let go of, though the mapping, and a hundred
 * more, have left the table meanwhile; a fault of the program's own is handled. */
#include "signals.h"
#include <sys/prctl.h>
#include <sys/ptrace.h>

enum { DEPARTURES = 100 };

static int events[2], go[2];
static sigjmp_buf out;

static void handler(int signal, siginfo_t *info, void *context)
{
	(void)signal, (void)context;
	printf("handled %p\n", info->si_addr);
	siglongjmp(out, 1);
}

static void send_to(int *ends, int what)
{
	if (write(ends[1], &what, sizeof what) != sizeof what)
		fail("write");
}

static int take_from(int *ends)
{
	int what;
	if (read(ends[0], &what, sizeof what) != sizeof what)
		fail("read");
	return what;
}

static void *reader(void *argument)
{
	(void)argument;
	send_to(go, gettid());
	take_from(events);
	uint32_t sum = read_pages(base, 30 * MIB, 31 * MIB);
	/* Natively nobody has stopped it. */
	send_to(go, 0);
	take_from(events);
	printf("read %x\n", sum);
	return NULL;
}

/* Stops the thread at its first fault, until it is told to go on. */
static void watch(int *threads, int *ready)
{
	int thread = take_from(threads), status;
	int is_seized = !ptrace(PTRACE_SEIZE, thread, 0, 0);
	send_to(ready, is_seized);
	if (!is_seized)
		_exit(0);
	while (waitpid(thread, &status, __WALL) == thread && WIFSTOPPED(status)) {
		if (WSTOPSIG(status) == SIGSEGV) {
			send_to(go, 0);
			take_from(ready + 2);
			ptrace(PTRACE_DETACH, thread, 0, SIGSEGV);
			break;
		}
		ptrace(PTRACE_CONT, thread, 0, WSTOPSIG(status));
	}
	_exit(0);
}

int main(int count, char **arguments)
{
	(void)count;
	int threads[2], ready[4];
	pthread_t thread;
	if (pipe(events) || pipe(go) || pipe(threads) || pipe(ready) || pipe(ready + 2))
		fail("pipe");
	prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY);
	pid_t tracer = fork();
	if (tracer == 0)
		watch(threads, ready);
	struct sigaction action = { .sa_sigaction = handler, .sa_flags = SA_SIGINFO };
	sigaction(SIGSEGV, &action, NULL);
	unsigned char *mapping = (unsigned char *)map_file(arguments, PROT_READ, MAP_SHARED);
	base = mapping;
	read_pages(base, 0, 4 * MIB);
	pthread_create(&thread, NULL, reader, NULL);
	send_to(threads, take_from(go));
	if (!take_from(ready)) {
		printf("right to trace a child's parent\n");
		return 77;
	}
	send_to(events, 0);
	take_from(go);
	/* From here on it is the program's own, and open. */
	if (mprotect(mapping, file_length, PROT_READ))
		fail("mprotect");
	for (int i = 0; i < DEPARTURES; i++) {
		volatile unsigned char *other = mmap(NULL, file_length, PROT_READ, MAP_SHARED, file_descriptor, 0);
		if (other == MAP_FAILED || munmap((void *)other, file_length))
			fail("mmap");
	}
	send_to(ready + 2, 0);
	send_to(events, 0);
	pthread_join(thread, NULL);
	kill(tracer, SIGKILL);
	waitpid(tracer, NULL, 0);
	rendezvous();
	if (!sigsetjmp(out, 1))
		fault();
	volatile unsigned char *again = mmap(NULL, file_length, PROT_READ, MAP_SHARED, file_descriptor, 0);
	printf("%x\n", read_pages(again, 0, file_length));
	return 0;
}
