/* Expected: a program that bounds its data (RLIMIT_DATA), by function or by number, reads and writes its private mappings as
 * natively, those that it has and those that it makes.
 * @report the kernel refused to protect pages */
#include "hostile.h"
#include <sys/resource.h>
#include <sys/syscall.h>

/* Reads and writes all of it. */
static void use(const char *what, volatile unsigned char *base)
{
	uint32_t sum = 0;
	for (size_t at = 0; at < file_length; at += 16 * PAGE) {
		sum = sum * 31 + *(volatile uint32_t *)(base + at);
		base[at + 5]++;
	}
	printf("%s: %x\n", what, sum);
}

static void bounded(const char *what, int way, char **arguments)
{
	fflush(stdout);
	pid_t child = fork();
	if (child == 0) {
		struct rlimit limit;
		volatile unsigned char *base = map_file(arguments, PROT_READ | PROT_WRITE, MAP_PRIVATE);
		volatile unsigned char *shared = mmap(NULL, file_length, PROT_READ, MAP_SHARED, file_descriptor, 0);
		read_pages(base, 0, 2 * MIB);
		getrlimit(RLIMIT_DATA, &limit);
		/* Less than there is. */
		limit.rlim_cur = 1 << 20;
		int result = way == 0 ? setrlimit(RLIMIT_DATA, &limit)
			: way == 1 ? prlimit(0, RLIMIT_DATA, &limit, NULL)
			: way == 2 ? (int)syscall(SYS_setrlimit, RLIMIT_DATA, &limit)
			: (int)syscall(SYS_prlimit64, 0, RLIMIT_DATA, &limit, NULL);
		if (result)
			fail("RLIMIT_DATA");
		use(what, base);
		printf("shared: %x\n", read_pages(shared, 0, file_length));
		void *other = mmap(NULL, file_length, PROT_READ | PROT_WRITE, MAP_PRIVATE, file_descriptor, 0);
		printf("one more: %s\n", other == MAP_FAILED ? strerror(errno) : "mapped");
		fflush(stdout);
		_exit(0);
	}
	int status;
	waitpid(child, &status, 0);
	printf("%d\n", status);
}

int main(int count, char **arguments)
{
	(void)count;
	volatile unsigned char *shared = map_file(arguments, PROT_READ, MAP_SHARED);
	read_pages(shared, 0, 2 * MIB);
	bounded("setrlimit", 0, arguments);
	bounded("prlimit", 1, arguments);
	rendezvous();
	bounded("setrlimit by number", 2, arguments);
	bounded("prlimit by number", 3, arguments);
	struct rlimit limit;
	getrlimit(RLIMIT_DATA, &limit);
	limit.rlim_cur = 1L << 30;
	if (setrlimit(RLIMIT_DATA, &limit))
		fail("RLIMIT_DATA");
	/* What is mapped under a bound is used up to it, and then refused. */
	volatile unsigned char *base = map_file(arguments, PROT_READ | PROT_WRITE, MAP_PRIVATE);
	read_pages(base, 0, 4 * MIB);
	size_t taken = 0;
	while (mmap(NULL, 16 * MIB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) != MAP_FAILED)
		taken++;
	printf("some were refused: %d\n", taken < 64);
	use("beside them", base);
	read_pages(shared, 2 * MIB, file_length);
	return 0;
}
