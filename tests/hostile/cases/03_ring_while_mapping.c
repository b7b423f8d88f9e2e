/* Expected: one thread makes a ring while another maps the file: from then on the kernel can read it past libc, whichever was
 * first. */
#include "hostile.h"
#include <stdatomic.h>
#include <sys/syscall.h>

static atomic_int begun;
static int delay;

static void *make_ring(void *argument)
{
	unsigned long ring = 0;
	while (!begun)
		;
	for (volatile int i = 0; i < delay; i++)
		;
	syscall(SYS_io_setup, 1, &ring);
	return argument;
}

/* A write that nobody sees. */
static long raw_write(int file, const void *buffer, size_t length)
{
	long result;
	__asm__ volatile("syscall" : "=a"(result) : "0"(SYS_write), "D"(file), "S"(buffer), "d"(length) : "rcx", "r11", "memory");
	return result;
}

static int both(void)
{
	pthread_t thread;
	int ends[2];
	if (pipe(ends))
		fail("pipe");
	pthread_create(&thread, NULL, make_ring, NULL);
	begun = 1;
	unsigned char *base = mmap(NULL, file_length, PROT_READ, MAP_SHARED, file_descriptor, 0);
	pthread_join(thread, NULL);
	return raw_write(ends[1], base + file_length / 2, PAGE) == (long)PAGE;
}

int main(int count, char **arguments)
{
	(void)count;
	volatile unsigned char *base = map_file(arguments, PROT_READ, MAP_SHARED);
	read_pages(base, 0, 8 * MIB);
	rendezvous();
	for (int i = 0; i < rounds(80); i++) {
		int status;
		delay = i % 40 * 1000;
		pid_t child = fork();
		if (child == 0)
			_exit(both());
		waitpid(child, &status, 0);
		if (status != 1 << 8)
			printf("round %d: %x\n", i, status);
	}
	printf("%x\n", read_pages(base, 0, file_length));
	return 0;
}
