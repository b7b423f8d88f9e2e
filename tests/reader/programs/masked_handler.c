/* Expected: a handler of another signal that blocks everything while it runs may read mapped data. */
#include "common.h"

static volatile unsigned char *base;
static volatile size_t position;

static void on_alarm(int signal)
{
	(void)signal;
	size_t from = position;
	read_pages(base, from, from + 2 * MIB);
	position = from + 2 * MIB;
}

int main(int count, char **arguments)
{
	(void)count;
	base = map_file(arguments, PROT_READ, MAP_SHARED);
	struct sigaction action = { .sa_handler = on_alarm };
	sigfillset(&action.sa_mask);
	sigaction(SIGALRM, &action, NULL);
	while (position + 2 * MIB <= file_length)
		raise(SIGALRM);
	printf("read to %zu\n", (size_t)position);
	return 0;
}
