/* What several threads do at once. Nothing of it changes what any page holds, so what each finds is the same in whatever
 * order they come. */
#include "soak.h"

enum { THREADS = 4 };

static pthread_t threads[THREADS];
static pthread_barrier_t begin, end;
static struct {
	Random random;
	Findings findings;
	int scratch;
	unsigned char copy[16 * PAGE];
} work[THREADS];
static volatile bool over;

static void write_some(int number)
{
	Range range = any_range(&work[number].random, 16);
	range.count = readable_pages(range);
	ssize_t length = range.count * PAGE;
	if (length == 0)
		return;
	/* It may be cut short where another thread maps the same pages anew at this moment (docs/limitations.md). */
	for (ssize_t done = 0, more; done < length; done += more)
		if ((more = pwrite(work[number].scratch, (char *)at(range) + done, length - done, done)) <= 0)
			fail("pwrite");
	if (pread(work[number].scratch, work[number].copy, length, 0) != length)
		fail("pread");
	check_copy(work[number].copy, range.start * PAGE, length);
}

/* Changes that leave everything as it is, under the other threads' feet. */
static void change_nothing(int number)
{
	Random *random = &work[number].random;
	Range range = uniform_range(random, 1024);
	if (range.count == 0 || model[range.start].is_private)
		return;
	const Page *first = &model[range.start];
	size_t length = range.count * PAGE;
	switch (below(random, 4)) {
	case 0:
	case 1:
		if (mmap(at(range), length, first->protection, MAP_SHARED | MAP_FIXED, files[first->backing].descriptor,
			    first->backing_page * PAGE) != at(range))
			fail("mmap");
		break;
	case 2:
		if (mprotect(at(range), length, first->protection))
			fail("mprotect");
		break;
	default:
		if (madvise(at(range), length, MADV_DONTNEED))
			fail("madvise");
	}
}

static void fork_reader(int number)
{
	Random *random = &work[number].random;
	Range range = any_range(random, 256);
	pid_t child = fork();
	if (child < 0)
		fail("fork");
	if (child == 0) {
		read_range(random, &work[number].findings, range);
		read_steadily(random, 16);
		_exit(0);
	}
	int status;
	while (waitpid(child, &status, 0) != child)
		if (errno != EINTR)
			fail("waitpid");
	if (status)
		wrong("the status of a thread's child", status, 0);
}

static void read_blocked(int number)
{
	sigset_t fault, before;
	sigemptyset(&fault);
	sigaddset(&fault, SIGSEGV);
	pthread_sigmask(SIG_BLOCK, &fault, &before);
	read_range(&work[number].random, &work[number].findings, any_range(&work[number].random, 64));
	pthread_sigmask(SIG_SETMASK, &before, NULL);
}

static void do_one(int number)
{
	Random *random = &work[number].random;
	size_t dice = below(random, 64);
	if (dice < 1)
		fork_reader(number);
	else if (dice < 8)
		change_nothing(number);
	else if (dice < 20)
		write_some(number);
	else if (dice < 26)
		op_elsewhere(random, &work[number].findings);
	else if (dice < 32)
		read_blocked(number);
	else if (dice < 44)
		read_steadily(random, 16);
	else
		read_range(random, &work[number].findings, any_range(random, 64));
}

static void *run(void *argument)
{
	int number = (int)(intptr_t)argument;
	for (;;) {
		pthread_barrier_wait(&begin);
		if (over)
			return NULL;
		for (size_t left = 4 + below(&work[number].random, 20); left > 0; left--)
			do_one(number);
		pthread_barrier_wait(&end);
	}
}

void start_threads(void)
{
	sigset_t others, before;
	pthread_barrier_init(&begin, NULL, THREADS + 1);
	pthread_barrier_init(&end, NULL, THREADS + 1);
	/* Signals that are sent, and alarms, are the main thread's. */
	sigfillset(&others);
	sigdelset(&others, SIGSEGV);
	sigdelset(&others, SIGBUS);
	pthread_sigmask(SIG_BLOCK, &others, &before);
	for (int number = 0; number < THREADS; number++) {
		work[number].scratch = memfd_create("scratch", 0);
		if (work[number].scratch < 0 || pthread_create(&threads[number], NULL, run, (void *)(intptr_t)number))
			fail("pthread_create");
	}
	pthread_sigmask(SIG_SETMASK, &before, NULL);
}

void op_parallel(Random *random, Findings *findings)
{
	for (int number = 0; number < THREADS; number++) {
		work[number].random.state = next(random);
		work[number].findings.hash = 0;
	}
	pthread_barrier_wait(&begin);
	/* The whole of what all others read, mapped over itself. */
	Random own = {next(random)};
	read_steadily(&own, 32);
	if (mmap((void *)steady, files[0].length, PROT_READ, MAP_SHARED | MAP_FIXED, files[0].descriptor, 0) != steady)
		fail("mmap");
	read_steadily(&own, 32);
	pthread_barrier_wait(&end);
	for (int number = 0; number < THREADS; number++)
		note(findings, work[number].findings.hash);
}

void end_threads(void)
{
	over = true;
	pthread_barrier_wait(&begin);
	for (int number = 0; number < THREADS; number++)
		pthread_join(threads[number], NULL);
}
