/* Expected: calls that make, change or pin mappings, say how they are read, set actions, masks and stacks of signals, wait with
 * masks, start programs, load libraries, limit the program or hand memory over by rarer names leave errno as they do natively,
 * while pages are closed: where they succeed, as they found it.
 * @compile -lrt -Wno-deprecated-declarations
 * @counter lifted_for_calls 10
 * @report the program changed the mapping itself
 * @report gave the mapping to asynchronous calls
 * @report forbids itself system calls */
#include "hostile.h"
#include <aio.h>
#include <dlfcn.h>
#include <err.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <netdb.h>
#include <poll.h>
#include <sched.h>
#include <spawn.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/select.h>
#include <sys/shm.h>
#include <sys/syscall.h>
#include <time.h>
#include <ucontext.h>

extern char **environ;
typedef void (*simple)(int);
extern simple bsd_signal(int, simple);

static void expect(const char *what, ssize_t got, ssize_t wanted)
{
	if (got != wanted)
		printf("%s: %zd instead of %zd (%s)\n", what, got, wanted, strerror(errno));
	errno_stays(what);
}

/* A mapping with pages closed: those before it that was let go of are gone. */
static unsigned char *armed(void)
{
	unsigned char *base = mmap(NULL, file_length, PROT_READ, MAP_SHARED, file_descriptor, 0);
	if (base == MAP_FAILED)
		fail("mmap");
	errno_stays("mmap");
	read_pages(base, 0, 3 * MIB);
	return base;
}

/* A call on such a mapping. */
#define ON_ARMED(what, call, wanted)                                  \
	do {                                                          \
		unsigned char *base = armed();                        \
		errno = PLANTED;                                      \
		expect(what, call, wanted);                           \
		expect("munmap", munmap(base, file_length), 0);       \
	} while (0)

static int moves(unsigned char *base)
{
	unsigned char *moved = mremap(base + 40 * MIB, MIB, MIB, MREMAP_MAYMOVE | MREMAP_FIXED, base + 20 * MIB);
	return moved == base + 20 * MIB;
}

static void mappings(void)
{
	int segment = shmget(IPC_PRIVATE, 2 * MIB, 0600), self = syscall(SYS_pidfd_open, getpid(), 0);
	unsigned char *place;
	errno = PLANTED;
	ON_ARMED("mmap over it", mmap(base + 5 * MIB, MIB, PROT_READ, MAP_SHARED | MAP_FIXED, file_descriptor, 0) == base + 5 * MIB, 1);
	ON_ARMED("mmap64", (place = mmap64(NULL, MIB, PROT_READ, MAP_SHARED, file_descriptor, 0)) != MAP_FAILED, 1);
	expect("munmap", munmap(place, MIB), 0);
	ON_ARMED("mremap", moves(base), 1);
	ON_ARMED("mprotect", mprotect(base + 8 * MIB, MIB, PROT_NONE), 0);
	ON_ARMED("pkey_mprotect", pkey_mprotect(base + 8 * MIB, MIB, PROT_NONE, -1), 0);
	ON_ARMED("remap_file_pages", remap_file_pages(base + 8 * MIB, MIB, 0, 0, 0), 0);
	ON_ARMED("shmat", (place = shmat(segment, base + 8 * MIB, SHM_REMAP)) == base + 8 * MIB, 1);
	ON_ARMED("mlock", mlock(base + 8 * MIB, MIB), 0);
	ON_ARMED("mlock2", mlock2(base + 8 * MIB, MIB, MLOCK_ONFAULT), 0);
	ON_ARMED("mlockall", mlockall(MCL_CURRENT | MCL_ONFAULT), 0);
	munlockall();
	int advice[] = { MADV_NORMAL, MADV_RANDOM, MADV_SEQUENTIAL, MADV_WILLNEED, MADV_DONTNEED, MADV_DONTFORK, MADV_COLD, MADV_POPULATE_READ };
	for (size_t i = 0; i < sizeof advice / sizeof *advice; i++) {
		ON_ARMED("madvise", madvise(base + 4 * MIB, 2 * MIB, advice[i]), 0);
		ON_ARMED("madvise by number", syscall(SYS_madvise, base + 4 * MIB, 2 * MIB, (long)advice[i]), 0);
	}
	int advised[] = { POSIX_MADV_NORMAL, POSIX_MADV_RANDOM, POSIX_MADV_SEQUENTIAL, POSIX_MADV_WILLNEED };
	for (size_t i = 0; i < sizeof advised / sizeof *advised; i++) {
		ON_ARMED("posix_madvise", posix_madvise(base + 4 * MIB, 2 * MIB, advised[i]), 0);
		ON_ARMED("posix_fadvise", posix_fadvise(file_descriptor, 4 * MIB, 2 * MIB, advised[i]), 0);
		ON_ARMED("posix_fadvise64", posix_fadvise64(file_descriptor, 4 * MIB, 2 * MIB, advised[i]), 0);
	}
	ON_ARMED("process_madvise", syscall(SYS_process_madvise, self, &(struct iovec){ base, MIB }, 1L, (long)MADV_COLD, 0L), MIB);
	ON_ARMED("readahead", readahead(file_descriptor, 5 * MIB, MIB), 0);
	ON_ARMED("mmap by number", syscall(SYS_mmap, base, MIB, (long)PROT_READ, (long)MAP_SHARED | MAP_FIXED, file_descriptor, 0L), (ssize_t)base);
	ON_ARMED("mprotect by number", syscall(SYS_mprotect, base + 8 * MIB, MIB, (long)PROT_NONE), 0);
	ON_ARMED("munmap by number", syscall(SYS_munmap, base + 8 * MIB, MIB), 0);
	shmctl(segment, IPC_RMID, NULL);
	close(self);
}

static void nothing(int signal)
{
	(void)signal;
}

static void actions(void)
{
	int signals[] = { SIGSEGV, SIGBUS, SIGUSR1 };
	struct sigaction action = { .sa_handler = nothing }, before;
	for (size_t i = 0; i < sizeof signals / sizeof *signals; i++) {
		int number = signals[i];
		unsigned char *base = armed();
		expect("sigaction", sigaction(number, &action, &before), 0);
		expect("sigaction", sigaction(number, NULL, &action), 0);
		expect("signal", signal(number, nothing) == nothing, 1);
		expect("bsd_signal", bsd_signal(number, nothing) == nothing, 1);
		expect("ssignal", ssignal(number, nothing) == nothing, 1);
		expect("sysv_signal", sysv_signal(number, nothing) == nothing, 1);
		expect("siginterrupt", siginterrupt(number, 1), 0);
		read_pages(base, 4 * MIB, 20 * MIB);
		expect("sigset", sigset(number, SIG_HOLD) == nothing, 1);
		expect("sigset", sigset(number, nothing) == SIG_HOLD, 1);
		expect("sighold", sighold(number), 0);
		expect("sigrelse", sigrelse(number), 0);
		expect("sigignore", sigignore(number), 0);
		expect("sigset", sigset(number, SIG_DFL) == SIG_IGN, 1);
		action.sa_handler = nothing;
		expect("sigaction by number", syscall(SYS_rt_sigaction, number, NULL, NULL, 8L), 0);
		read_pages(base, 20 * MIB, 40 * MIB);
		munmap(base, file_length);
	}
}

static void masks(void)
{
	sigset_t segv, none, before;
	struct timespec now = { 0, 0 };
	unsigned char *base = armed();
	sigemptyset(&none);
	sigemptyset(&segv);
	sigaddset(&segv, SIGSEGV);
	int polls = epoll_create1(0);
	struct epoll_event event;
	fd_set empty;
	FD_ZERO(&empty);
	expect("sigprocmask", sigprocmask(SIG_BLOCK, &segv, &before), 0);
	expect("pthread_sigmask", pthread_sigmask(SIG_UNBLOCK, &segv, &before), 0);
	expect("sigblock", sigblock(1 << (SIGSEGV - 1)), 0);
	expect("sigsetmask", sigsetmask(0), 1 << (SIGSEGV - 1));
	expect("siggetmask", siggetmask(), 0);
	expect("sigprocmask by number", syscall(SYS_rt_sigprocmask, (long)SIG_BLOCK, &none, &before, 8L), 0);
	const sigset_t *during[] = { &segv, &none, NULL };
	for (int i = 0; i < 3; i++) {
		expect("ppoll", ppoll(NULL, 0, &now, during[i]), 0);
		expect("pselect", pselect(0, &empty, NULL, NULL, &now, during[i]), 0);
		expect("epoll_pwait", epoll_pwait(polls, &event, 1, 0, during[i]), 0);
		expect("epoll_pwait2", syscall(SYS_epoll_pwait2, polls, &event, 1L, &now, during[i], 8L), 0);
		read_pages(base, (4 + i * 8) * MIB, (12 + i * 8) * MIB);
	}
	pthread_attr_t attributes;
	pthread_attr_init(&attributes);
	expect("pthread_attr_setsigmask_np", pthread_attr_setsigmask_np(&attributes, &segv), 0);
	expect("pthread_attr_getsigmask_np", pthread_attr_getsigmask_np(&attributes, &before), 0);
	close(polls);
	munmap(base, file_length);
}

static void stacks_and_timers(void)
{
	static char room[1 << 16];
	static ucontext_t here, there;
	volatile int turn = 0;
	stack_t stack = { .ss_sp = room, .ss_size = sizeof room }, old;
	unsigned char *base = armed();
	expect("sigaltstack", sigaltstack(&stack, &old), 0);
	expect("sigaltstack", sigaltstack(&(stack_t){ .ss_flags = SS_DISABLE }, &stack), 0);
	getcontext(&here);
	if (turn++ == 0)
		setcontext(&here);
	expect("setcontext", turn, 2);
	getcontext(&there);
	if (turn++ == 2)
		swapcontext(&here, &there);
	expect("swapcontext", turn, 4);
	timer_t timer;
	struct sigevent how = { .sigev_notify = SIGEV_THREAD };
	expect("timer_create", timer_create(CLOCK_MONOTONIC, &how, &timer), 0);
	expect("timer_delete", timer_delete(timer), 0);
	read_pages(base, 4 * MIB, 20 * MIB);
	munmap(base, file_length);
}

static void ends(const char *what, pid_t child)
{
	int status = -1;
	expect(what, child > 0, 1);
	expect(what, waitpid(child, &status, 0), child);
	expect(what, status, 0);
}

static void programs(void)
{
	char *words[] = { "true", NULL };
	pid_t child = -1;
	unsigned char *base = armed();
	expect("posix_spawnp", posix_spawnp(&child, "true", NULL, NULL, words, environ), 0);
	ends("posix_spawnp", child);
	expect("posix_spawn", posix_spawn(&child, "/bin/true", NULL, NULL, words, environ), 0);
	ends("posix_spawn", child);
	expect("posix_spawn of nothing", posix_spawn(&child, "/no/such/program", NULL, NULL, words, environ), ENOENT);
	expect("system", system("exit 3") >> 8, 3);
	FILE *pipe = popen("true", "r");
	expect("popen", pipe != NULL && getc(pipe) == EOF, 1);
	expect("pclose", pclose(pipe), 0);
	if ((child = fork()) == 0) {
		read_pages(base, 4 * MIB, 20 * MIB);
		_exit(errno == PLANTED ? 0 : 1);
	}
	ends("fork", child);
	if ((child = _Fork()) == 0) {
		read_pages(base, 4 * MIB, 20 * MIB);
		_exit(errno == PLANTED ? 0 : 1);
	}
	ends("_Fork", child);
	errno = 0;
	printf("execv of nothing: %d", execv("/no/such/program", words));
	printf(", %s\n", strerror(errno));
	errno = PLANTED;
	read_pages(base, 4 * MIB, 20 * MIB);
	munmap(base, file_length);
}

static void lent(void)
{
	unsigned char *base = armed();
	static char back[MIB];
	int copy = memfd_create("copy", 0);
	struct aiocb out = { .aio_fildes = copy, .aio_buf = base + 9 * MIB, .aio_nbytes = MIB }, in = out, *one[1] = { &out };
	errno = PLANTED;
	expect("aio_write", aio_write(&out), 0);
	expect("aio_suspend", aio_suspend((const struct aiocb *const *)one, 1, NULL), 0);
	expect("aio_return", aio_return(&out), MIB);
	in.aio_buf = back, one[0] = &in;
	expect("aio_read", aio_read(&in), 0);
	expect("aio_suspend", aio_suspend((const struct aiocb *const *)one, 1, NULL), 0);
	expect("aio_return", aio_return(&in), MIB);
	out.aio_lio_opcode = LIO_WRITE, one[0] = &out;
	expect("lio_listio", lio_listio(LIO_WAIT, one, 1, NULL), 0);
	expect("content", memcmp(back, base + 9 * MIB, MIB), 0);
	close(copy);
	munmap(base, file_length);
	base = armed();
	struct addrinfo numeric = { .ai_flags = AI_NUMERICHOST };
	struct gaicb name = { .ar_name = "127.0.0.1", .ar_request = &numeric }, *names[1] = { &name };
	expect("getaddrinfo_a", getaddrinfo_a(GAI_WAIT, names, 1, NULL), 0);
	freeaddrinfo(name.ar_result);
	munmap(base, file_length);
}

static void libraries(void)
{
	unsigned char *base = armed();
	void *library = dlopen("libm.so.6", RTLD_NOW);
	expect("dlopen", library != NULL, 1);
	expect("dlsym", dlsym(library, "cos") != NULL, 1);
	expect("dlsym of ours", dlsym(RTLD_DEFAULT, "mmap") != NULL, 1);
	expect("dlsym of nothing", dlsym(library, "no_such_function") != NULL, 0);
	expect("dlclose", dlclose(library), 0);
	read_pages(base, 4 * MIB, 20 * MIB);
	library = dlmopen(LM_ID_NEWLM, "libm.so.6", RTLD_NOW);
	expect("dlmopen", library != NULL, 1);
	read_pages(base, 20 * MIB, 30 * MIB);
	munmap(base, file_length);
}

/* Names that other cases leave out, with memory that nobody has touched. */
static void other_names(void)
{
	static unsigned char back[MIB];
	int copy = memfd_create("copy", 0), ends[2];
	unsigned char *from = armed(), *to = mmap(NULL, file_length, PROT_READ | PROT_WRITE, MAP_PRIVATE, file_descriptor, 0);
	read_pages(to, 0, 3 * MIB);
	struct iovec given[1] = { { from + 5 * MIB, MIB } }, room[1] = { { to + 6 * MIB, MIB } }, own[1] = { { back, MIB } };
#define NEXT(part) ((part)->iov_base = (char *)(part)->iov_base + 3 * MIB, (part))
	errno = PLANTED;
	expect("pwritev64", pwritev64(copy, given, 1, 0), MIB);
	expect("pwritev64v2", pwritev64v2(copy, NEXT(given), 1, 0, 0), MIB);
	expect("pwrite64", pwrite64(copy, NEXT(given)->iov_base, MIB, 0), MIB);
	expect("preadv", preadv(copy, room, 1, 0), MIB);
	expect("preadv2", preadv2(copy, NEXT(room), 1, 0, 0), MIB);
	expect("preadv64", preadv64(copy, NEXT(room), 1, 0), MIB);
	expect("preadv64v2", preadv64v2(copy, NEXT(room), 1, 0, 0), MIB);
	expect("pread64", pread64(copy, NEXT(room)->iov_base, MIB, 0), MIB);
	expect("getrandom", getrandom(NEXT(room)->iov_base, 200, 0), 200);
	expect("process_vm_readv", process_vm_readv(getpid(), own, 1, NEXT(given), 1, 0), MIB);
	expect("process_vm_writev", process_vm_writev(getpid(), NEXT(given), 1, own, 1, 0), MIB);
	if (pipe(ends))
		fail("pipe");
	given->iov_len = 2 * PAGE;
	expect("vmsplice", vmsplice(ends[1], NEXT(given), 1, 0), 2 * PAGE);
	expect("read", read(ends[0], NEXT(room)->iov_base, 2 * PAGE), 2 * PAGE);
	int other = open64("/dev/null", O_RDONLY), another = openat64(AT_FDCWD, "/dev/null", O_RDONLY);
	expect("open64", other >= 0 && another >= 0, 1);
	close(ends[0]), close(ends[1]), close(copy), close(other), close(another);
	warn("warn"), warnx("warnx"), perror("perror"), psignal(SIGSEGV, "psignal"), herror("herror");
	errno_stays("what tells of errors");
	munmap(from, file_length), munmap(to, file_length);
}

/* Last: what it does cannot be undone. */
static void limits(void)
{
	struct rlimit limit;
	getrlimit(RLIMIT_DATA, &limit);
	ON_ARMED("setrlimit", setrlimit(RLIMIT_DATA, &limit), 0);
	ON_ARMED("prlimit", prlimit(0, RLIMIT_DATA, &limit, NULL), 0);
	struct sock_filter allow = BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	struct sock_fprog filter = { 1, &allow };
	expect("prctl", prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
	ON_ARMED("a filter", prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter), 0);
	ON_ARMED("a filter by number", syscall(SYS_seccomp, (long)SECCOMP_SET_MODE_FILTER, 0L, &filter), 0);
}

int main(int count, char **arguments)
{
	(void)count;
	/* Some calls take only what could be written to; nobody does. */
	open_to_write(arguments);
	errno = PLANTED;
	mappings();
	actions();
	masks();
	rendezvous();
	errno = PLANTED;
	stacks_and_timers();
	other_names();
	lent();
	programs();
	libraries();
	limits();
	puts("done");
	return 0;
}
