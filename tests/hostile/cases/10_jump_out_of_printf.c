/* Expected: a program that leaves printf by a jump again and again prints and reads on; what keeps pages open for such a call is taken
 * over by the next one, and told.
 * @counter all_pinned 30 */
#include "signals.h"

static sigjmp_buf out;

static ssize_t leave(void *cookie, const char *text, size_t length)
{
	(void)cookie, (void)text, (void)length;
	siglongjmp(out, 1);
}

static ssize_t take(void *cookie, const char *text, size_t length)
{
	(void)text;
	*(size_t *)cookie += length;
	return length;
}

__attribute__((noinline)) static void print(FILE *stream, int number)
{
	fprintf(stream, "number %d\n", number);
}

int main(int count, char **arguments)
{
	(void)count;
	static size_t taken;
	base = map_file(arguments, PROT_READ, MAP_SHARED);
	read_on(4 * MIB);
	FILE *leaving = fopencookie(NULL, "w", (cookie_io_functions_t){ .write = leave });
	FILE *taking = fopencookie(&taken, "w", (cookie_io_functions_t){ .write = take });
	setvbuf(leaving, NULL, _IONBF, 0);
	setvbuf(taking, NULL, _IONBF, 0);
	volatile int jumps = 0;
	for (volatile int round = 0; round < 30; round++)
		if (!sigsetjmp(out, 1))
			print(leaving, round);
		else
			jumps++;
	print(taking, 30);
	rendezvous();
	printf("%d jumps, %zu bytes\n", jumps, taken);
	for (int pass = 0; pass < 20; pass++)
		read_on(file_length);
	return 0;
}
