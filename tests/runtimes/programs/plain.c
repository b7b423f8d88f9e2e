/* Reads the file; half-way, by its second argument: "crash" by a null pointer, or waits for a byte from the pipe of this name. */
#include "../../reader/programs/common.h"

const volatile unsigned char *base;
char *heap;

__attribute__((noinline)) void half_way(void)
{
	__asm__ volatile("" ::: "memory");
}

static void await_byte(const char *name)
{
	char byte;
	int pipe = open(name, O_RDONLY);
	if (pipe < 0 || read(pipe, &byte, 1) != 1)
		fail(name);
	close(pipe);
}

int main(int count, char **arguments)
{
	base = map_file(arguments, PROT_READ, MAP_SHARED);
	heap = malloc(64);
	snprintf(heap, 64, "made at %s", "run time");
	printf("%x\n", read_pages(base, 0, file_length / 2));
	fflush(stdout);
	half_way();
	/* Cores have file mappings, too. */
	int filter = open("/proc/self/coredump_filter", O_WRONLY);
	if (filter < 0 || write(filter, "0x3f", 4) != 4)
		fail("coredump_filter");
	if (count > 2 && !strcmp(arguments[2], "crash"))
		*(volatile int *)8 = 1;
	else if (count > 2)
		await_byte(arguments[2]);
	printf("%x\n", read_pages(base, file_length / 2, file_length));
	return 3;
}
