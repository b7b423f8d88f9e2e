/* Holds a thread of this process where it makes system calls, by a child that traces it. */
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>

#ifndef PTRACE_GET_SYSCALL_INFO
#define PTRACE_GET_SYSCALL_INFO 0x420e
#endif

/* The beginning of what that tells: 1 is an entry, 2 an exit. */
struct call {
	uint8_t kind, unused[3];
	uint32_t architecture;
	uint64_t instruction, stack, number;
};

struct hold {
	pid_t tracer;
	/* The thread has gone past the place where it was to be held; shared with the tracer. */
	volatile int *over;
	int begun[2], held[2], go[2];
};

static struct hold new_hold(void)
{
	struct hold hold = { .over = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0) };
	if (hold.over == MAP_FAILED || pipe(hold.begun) || pipe(hold.held) || pipe(hold.go))
		fail("pipe");
	return hold;
}

static void trace(struct hold *hold, pid_t thread, int turns, uint64_t number)
{
	struct call call = { 0 };
	int status, at_rest = 0;
	char byte = 'r';
	close(hold->begun[0]), close(hold->held[0]), close(hold->go[1]);
	if (ptrace(PTRACE_SEIZE, thread, NULL, PTRACE_O_TRACESYSGOOD) || ptrace(PTRACE_INTERRUPT, thread, NULL, NULL))
		_exit(1);
	while (waitpid(thread, &status, __WALL) == thread && WIFSTOPPED(status)) {
		int is_call = WSTOPSIG(status) == (SIGTRAP | 0x80), is_event = status >> 16;
		if (!at_rest++ && write(hold->begun[1], &byte, 1) != 1)
			_exit(1);
		if (is_call && (turns--, ptrace(PTRACE_GET_SYSCALL_INFO, thread, sizeof call, &call) < 0))
			_exit(1);
		int is_there = number ? is_call && call.kind == 1 && call.number == number : turns <= 0;
		if (is_there || *hold->over) {
			if (write(hold->held[1], &byte, 1) != 1 || read(hold->go[0], &byte, 1) != 1)
				_exit(1);
			ptrace(PTRACE_DETACH, thread, NULL, NULL);
			_exit(0);
		}
		ptrace(PTRACE_SYSCALL, thread, NULL, is_call || is_event ? 0 : WSTOPSIG(status));
	}
	_exit(1);
}

/* From here on the thread stops when it enters the call of this number, or, if that is 0, at so many of the places where it
 * enters a call or returns from one. */
static void hold(struct hold *hold, pid_t thread, int turns, uint64_t number)
{
	char byte;
	prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0);
	*hold->over = 0;
	fflush(stdout);
	if ((hold->tracer = fork()) == 0)
		trace(hold, thread, turns, number);
	close(hold->begun[1]), close(hold->held[1]), close(hold->go[0]);
	if (read(hold->begun[0], &byte, 1) == 1)
		return;
	puts("the right to trace a process");
	exit(77);
}

static void await_held(struct hold *hold)
{
	char byte;
	if (read(hold->held[0], &byte, 1) != 1)
		fail("the tracer has gone");
}

static void let_go(struct hold *hold)
{
	if (write(hold->go[1], "g", 1) != 1)
		fail("go");
}

/* When the thread may run on. */
static void end_hold(struct hold *hold)
{
	int status;
	while (waitpid(hold->tracer, &status, 0) < 0)
		;
	if (status)
		fail("the tracer has failed");
	close(hold->begun[0]), close(hold->held[0]), close(hold->go[1]);
	munmap((void *)hold->over, PAGE);
}
