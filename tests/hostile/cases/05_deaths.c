/* Expected: faults of the program's own end it with the native signal, siginfo and registers: the instruction pointer at
 * the end is that of the faulting instruction, as a core would show it. */
#include "signals.h"
#include <sys/ptrace.h>
#include <sys/user.h>

static void null_pointer(void)
{
	fault();
}

static void wild_pointer(void)
{
	*(volatile char *)0x123456789000 = 1;
}

static void not_canonical(void)
{
	*(volatile char *)0x8000000000000123 = 1;
}

static void jump(void)
{
	((void (*)(void))0x1230)();
}

static void jump_into(volatile unsigned char *data)
{
	((void (*)(void))data)();
}

static void jump_into_closed(void)
{
	jump_into(base + 60 * MIB);
}

/* After a ring was made nothing is armed any more, and everything is open. */
static void open_all(void)
{
	unsigned long ring = 0;
	syscall(SYS_io_setup, 1, &ring);
}

static void jump_into_open(void)
{
	open_all();
	jump_into(base + 60 * MIB);
}

static void jump_into_reused(void)
{
	munmap((void *)base, file_length);
	void *heap = mmap((void *)base, file_length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
	if (heap != base)
		fail("mmap");
	memset(heap, 0xc3, MIB);
	jump_into(base + PAGE);
}

/* A guard region of the program's own, of which nobody hears. */
static void read_own_guard(void)
{
	open_all();
	long result, guard_install = 102;
	register const volatile void *place __asm__("rdi") = base + 60 * MIB;
	__asm__ volatile("syscall" : "=a"(result) : "0"(SYS_madvise), "r"(place), "S"(PAGE), "d"(guard_install) : "rcx", "r11", "memory");
	(void)base[60 * MIB + 5];
}

static void write_to_read_only(void)
{
	base[60 * MIB] = 1;
}

static void read_past_the_end(void)
{
	/* SIGBUS */
	volatile char *past = mmap(NULL, file_length + PAGE, PROT_READ, MAP_SHARED, file_descriptor, 0);
	(void)past[file_length];
}

static void trap(void)
{
	__builtin_trap();
}

/* Lets the child run to its end; every stop by a signal that the program caused is passed on. */
static void traced(const char *name, void (*part)(void))
{
	int status;
	struct user_regs_struct registers = { .rip = 0 };
	siginfo_t info = { .si_code = 0 };
	fflush(stdout);
	pid_t pid = fork();
	if (pid == 0) {
		ptrace(PTRACE_TRACEME, 0, 0, 0);
		raise(SIGSTOP);
		read_on(8 * MIB);
		part();
		_exit(0);
	}
	waitpid(pid, &status, 0);
	ptrace(PTRACE_SETOPTIONS, pid, 0, PTRACE_O_TRACEEXIT | PTRACE_O_EXITKILL);
	ptrace(PTRACE_CONT, pid, 0, 0);
	while (waitpid(pid, &status, 0) == pid && WIFSTOPPED(status)) {
		int signal = WSTOPSIG(status);
		if (status >> 16 == PTRACE_EVENT_EXIT) {
			ptrace(PTRACE_GETREGS, pid, 0, &registers);
			signal = 0;
		} else {
			ptrace(PTRACE_GETSIGINFO, pid, 0, &info);
		}
		ptrace(PTRACE_CONT, pid, 0, signal);
	}
	uintptr_t code = (uintptr_t)(part == null_pointer ? fault : part);
	/* The address of a trap is that of the instruction. */
	uintptr_t address = (uintptr_t)info.si_addr - (WTERMSIG(status) == SIGSEGV ? 0 : code);
	printf("%s: signal %d, code %d, address %#lx, at %+ld\n", name, WTERMSIG(status), info.si_code, address,
	       (long)(registers.rip - code));
}

int main(int count, char **arguments)
{
	(void)count;
	base = map_file(arguments, PROT_READ, MAP_SHARED);
	read_on(MIB);
	rendezvous();
	struct { const char *name; void (*part)(void); } parts[] = {
		{ "null_pointer", null_pointer }, { "wild_pointer", wild_pointer }, { "not_canonical", not_canonical },
		{ "trap", trap }, { "jump", jump }, { "jump_into_closed", jump_into_closed }, { "jump_into_open", jump_into_open },
		{ "jump_into_reused", jump_into_reused }, { "read_own_guard", read_own_guard },
		{ "write_to_read_only", write_to_read_only }, { "read_past_the_end", read_past_the_end },
	};
	/* Of the others, addresses differ from run to run, and so does where a jump ends. */
	unsigned with_addresses = 4;
	for (unsigned i = 0; i < sizeof parts / sizeof *parts; i++) {
		apart(parts[i].name, parts[i].part);
		if (i < with_addresses)
			traced(parts[i].name, parts[i].part);
	}
	read_on(file_length - 2 * MIB);
	fflush(stdout);
	fault();
	return 0;
}
