/* Expected: a C++ program that throws out of its SIGSEGV handler catches that where it faulted, again and again, and data goes
 * on being read through checkpoints.
 * @compile -fnon-call-exceptions
 * @not-killed it is C++, and the rendezvous is C */
#include <csignal>
#include <cstdio>
#include <fcntl.h>
#include <stdexcept>
#include <sys/mman.h>
#include <sys/stat.h>

static const volatile unsigned char *base;
static size_t length, place;

static void handler(int, siginfo_t *info, void *)
{
	throw std::runtime_error(info->si_addr ? "elsewhere" : "null");
}

/* A byte of each page of the next so many bytes, around the end. */
static unsigned long read_on(size_t bytes)
{
	unsigned long sum = 0;
	for (size_t done = 0; done < bytes; done += 4096, place = (place + 4096) % length)
		sum += base[place];
	return sum;
}

__attribute__((noinline)) static int fault(const volatile int *where)
{
	return *where;
}

int main(int, char **arguments)
{
	struct stat status;
	int file = open(arguments[1], O_RDONLY), caught = 0;
	if (file < 0 || fstat(file, &status))
		return 1;
	length = status.st_size;
	base = static_cast<unsigned char *>(mmap(nullptr, length, PROT_READ, MAP_SHARED, file, 0));

	struct sigaction action = {};
	action.sa_sigaction = handler;
	/* The handler is never left by returning, so nothing would open the mask again. */
	action.sa_flags = SA_SIGINFO | SA_NODEFER;
	sigaction(SIGSEGV, &action, nullptr);
	for (int i = 0; i < 1000; i++) {
		try {
			fault(nullptr);
		} catch (const std::runtime_error &error) {
			caught += error.what()[0] == 'n';
		}
		if (i % 20 == 0)
			printf("%lu\n", read_on(length / 100));
	}
	printf("%d caught\n", caught);
	return 0;
}
