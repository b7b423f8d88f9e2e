/* Expected: while other threads read the same mappings over and over, so that pages behind them are closed again, no
 * call stops short, and no datagram is lost.
 * @counter lifted_for_calls 10 */
#include "hostile.h"

static volatile unsigned char *volatile base, *volatile own;
static volatile int stop;

static void *reader(void *argument)
{
	volatile unsigned char *volatile *latest = argument;
	/* Each epoch elsewhere, so that single pages and sentinels come and go. */
	for (size_t epoch = 0; !stop; epoch++) {
		volatile unsigned char *mapping = *latest;
		for (size_t at = epoch % 13 * 5 * PAGE; at < file_length && !stop; at += (1 + epoch % 3) * MIB / 4)
			(void)mapping[at];
	}
	return NULL;
}

int main(int count, char **arguments)
{
	(void)count;
	base = map_file(arguments, PROT_READ, MAP_SHARED);
	own = mmap(NULL, file_length, PROT_READ | PROT_WRITE, MAP_PRIVATE, file_descriptor, 0);
	int copy = memfd_create("copy", 0), null = open("/dev/null", O_WRONLY), pair[2], wrong = 0;
	pthread_t readers[4];
	for (int i = 0; i < 4; i++)
		pthread_create(&readers[i], NULL, reader, (void *)(i % 2 ? &own : &base));
	if (socketpair(AF_UNIX, SOCK_DGRAM, 0, pair))
		fail("socketpair");
	FILE *stream = fdopen(dup(null), "w");
	char *out = malloc(50000), *expected = malloc(50000);
	for (int i = 0; i < 50000; i++)
		out[i] = expected[i] = i * 7;
	for (int round = 0; round < 400; round++) {
		/* All of a new one is closed: how often calls meet closed pages of the old one depends on the machine. */
		if (round % 40 == 39)
			base = mmap(NULL, file_length, PROT_READ, MAP_SHARED, file_descriptor, 0);
		size_t at = (size_t)round * 37 * PAGE * 3 % (file_length - 4 * MIB);
		/* Copied into memory, not to /dev/null: that reads nothing. */
		if (pwrite(copy, (char *)base + at, 3 * MIB, 0) != (ssize_t)(3 * MIB))
			wrong++;
		for (int part = 0; part < 4; part++) {
			size_t place = (size_t)round * 113 * PAGE % (file_length - MIB) + part * 100000;
			out[0] = expected[0] = round + part;
			if (send(pair[0], out, 50000, 0) != 50000 || recv(pair[1], (char *)own + place, 50000, 0) != 50000 ||
			    memcmp((char *)own + place, expected, 50000))
				wrong++;
		}
		if (fwrite((char *)base + at, 1, 2 * MIB, stream) != 2 * MIB)
			wrong++;
		if (round == 200)
			rendezvous();
	}
	stop = 1;
	for (int i = 0; i < 4; i++)
		pthread_join(readers[i], NULL);
	printf("%d calls went wrong\n", wrong);
	return 0;
}
