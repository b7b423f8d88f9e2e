/* Expected: what is mapped is open when a program ends itself by abort or a failed assert, as its core would hold it: a system call
 * past libc reads all of it. A handler that jumps out of that reads on.
 * @report a fault of the program's own took its default action */
#include "hostile.h"
#include <assert.h>
#include <sys/syscall.h>

static unsigned char *base;
static sigjmp_buf out;

static long raw_write(int file, const void *buffer, size_t length)
{
#if defined(__x86_64__)
	long result;
	__asm__ volatile("syscall" : "=a"(result) : "a"(SYS_write), "D"(file), "S"(buffer), "d"(length) : "rcx", "r11", "memory");
	return result;
#else
	return write(file, buffer, length);
#endif
}

static void handler(int signal)
{
	(void)signal;
	siglongjmp(out, 1);
}

static void by_abort(void)
{
	abort();
}

static void by_assert(void)
{
	assert(!base);
}

static void by_error(void)
{
	assert_perror(ENOENT);
}

static void in_child(const char *what, void (*end)(void))
{
	fflush(stdout);
	pid_t child = fork();
	if (child == 0) {
		int copy = memfd_create("copy", 0);
		read_pages(base, 0, 10 * MIB);
		if (!sigsetjmp(out, 1))
			end();
		printf("%s: %ld\n", what, raw_write(copy, base, file_length));
		read_pages(base, 0, file_length);
		signal(SIGABRT, SIG_DFL);
		fflush(stdout);
		end();
	}
	int status;
	waitpid(child, &status, 0);
	printf("%d\n", WTERMSIG(status));
}

int main(int count, char **arguments)
{
	(void)count;
	struct sigaction action = { .sa_handler = handler };
	sigaction(SIGABRT, &action, NULL);
	base = (unsigned char *)map_file(arguments, PROT_READ, MAP_SHARED);
	read_pages(base, 0, 10 * MIB);
	in_child("abort", by_abort);
	rendezvous();
	in_child("assert", by_assert);
	in_child("assert_perror", by_error);
	read_pages(base, 10 * MIB, 20 * MIB);
	return 0;
}
