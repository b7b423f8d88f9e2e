/* Expected: another process that reads the program's memory, as debuggers do (/proc/PID/mem) or as ranks of MPI do
 * (process_vm_readv), gets the right bytes or an error, and never others; the program reads on. */
#include "hostile.h"
#include <sys/uio.h>

static volatile unsigned char *base;
static pid_t program;

static ssize_t by_file(int memory, void *to, size_t at)
{
	return pread(memory, to, sizeof(uint32_t), (off_t)(uintptr_t)(base + at));
}

static ssize_t by_call(int memory, void *to, size_t at)
{
	(void)memory;
	struct iovec own = { to, sizeof(uint32_t) }, other = { (void *)(base + at), sizeof(uint32_t) };
	return process_vm_readv(program, &own, 1, &other, 1, 0);
}

/* What has been read must be there, but for checkpoints; what has not may be refused. */
static void look(const char *how, ssize_t (*get)(int, void *, size_t), int memory)
{
	long wrong = 0, missing = 0;
	for (size_t at = 0; at < file_length; at += PAGE) {
		uint32_t word = 0;
		ssize_t got = get(memory, &word, at);
		int is_right = got == sizeof word && word == word_at(at), is_refused = got == -1 && (errno == EFAULT || errno == EIO);
		wrong += !is_right && !is_refused;
		missing += is_refused && at < 8 * MIB;
	}
	/* A sentinel is a step of 16 pages, and there is at most one in each of 48 cells of the file. */
	printf("%s: %ld wrong; much is missing: %d\n", how, wrong, missing > 8 * 16);
}

int main(int count, char **arguments)
{
	(void)count;
	base = map_file(arguments, PROT_READ, MAP_SHARED);
	read_pages(base, 0, 16 * MIB);
	rendezvous();
	program = getpid();
	fflush(stdout);
	pid_t other = fork();
	if (other == 0) {
		char name[32];
		snprintf(name, sizeof name, "/proc/%d/mem", program);
		int memory = open(name, O_RDONLY);
		if (memory < 0)
			fail(name);
		look("mem", by_file, memory);
		look("process_vm_readv", by_call, memory);
		fflush(stdout);
		_exit(0);
	}
	int status;
	waitpid(other, &status, 0);
	printf("%d, %x\n", status, read_pages(base, 0, file_length));
	return 0;
}
