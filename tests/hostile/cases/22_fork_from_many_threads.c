/* Expected: children forked from several threads at once, while others trip, read every byte of what they touch first, and
 * unmap what threads of their parent were at work in; so do their parent and the child that it forks at exit, and nothing is
 * left over.
 * @counter processes 20 */
#include "hostile.h"
#include "possessions.h"

enum { FORKERS = 4, READERS = 3, PLACES = 40 };

static int wanted;
static Possessions first;
static volatile unsigned char *base, *own[READERS];
static volatile int stop;
static int wrong[FORKERS + READERS];

static bool is_wrong(const volatile unsigned char *mapping, size_t at)
{
	return *(const volatile uint32_t *)(mapping + at) != word_at(at);
}

/* Trips most of the time: its mapping is made anew, and closed, at the same place. */
static void *reader(void *argument)
{
	long number = (long)argument;
	volatile unsigned char *mine = own[number];
	for (size_t step = number; !stop; step++) {
		if (mmap((void *)mine, file_length, PROT_READ, MAP_SHARED | MAP_FIXED, file_descriptor, 0) == MAP_FAILED)
			fail("mmap");
		for (size_t i = 0; i < PLACES; i++)
			wrong[number] += is_wrong(mine, (step + i * 977) * 16 * PAGE % file_length);
		wrong[number] += is_wrong(base, step * 977 * PAGE % file_length);
	}
	return NULL;
}

/* What a child does; its exit status. */
static int child(long forker, int round)
{
	size_t from = (forker * 16 + round * 5 % 16) * MIB;
	for (size_t i = 0; i < PLACES; i++)
		if (is_wrong(base, (from + i * 3 * 16 * PAGE) % file_length))
			return 1;
	for (int i = 0; i < READERS; i++)
		if (is_wrong(own[i], from) || munmap((void *)own[i], file_length))
			return 2;
	return 0;
}

static void *forker(void *argument)
{
	long number = (long)argument;
	for (int round = 0; round < wanted / FORKERS; round++) {
		if (number == 0 && round == wanted / FORKERS / 2)
			rendezvous();
		pid_t pid = fork();
		if (pid == 0)
			_exit(child(number, round));
		int status;
		if (waitpid(pid, &status, 0) != pid || status)
			wrong[READERS + number]++;
	}
	return NULL;
}

static void at_exit(void)
{
	fflush(stdout);
	pid_t pid = fork();
	if (pid == 0) {
		printf("at exit: %x\n", read_pages(base, 0, file_length));
		fflush(stdout);
		_exit(0);
	}
	int status;
	waitpid(pid, &status, 0);
	printf("parent at exit: %x, %d\n", read_pages(base, 0, file_length), status);
	munmap((void *)base, file_length);
	print_leaks(&first);
	fflush(stdout);
}

int main(int count, char **arguments)
{
	(void)count;
	wanted = rounds(240);
	munmap((void *)map_file(arguments, PROT_READ, MAP_SHARED), file_length);
	first = possessions();
	base = mmap(NULL, file_length, PROT_READ, MAP_SHARED, file_descriptor, 0);
	read_pages(base, 0, MIB);
	pthread_t readers[READERS], forkers[FORKERS];
	for (long i = 0; i < READERS; i++) {
		own[i] = mmap(NULL, file_length, PROT_READ, MAP_SHARED, file_descriptor, 0);
		pthread_create(&readers[i], NULL, reader, (void *)i);
	}
	for (long i = 0; i < FORKERS; i++)
		pthread_create(&forkers[i], NULL, forker, (void *)i);
	for (int i = 0; i < FORKERS; i++)
		pthread_join(forkers[i], NULL);
	stop = 1;
	int sum = 0;
	for (int i = 0; i < READERS; i++) {
		pthread_join(readers[i], NULL);
		munmap((void *)own[i], file_length);
	}
	for (int i = 0; i < FORKERS + READERS; i++)
		sum += wrong[i];
	printf("%d wrong\n", sum);
	atexit(at_exit);
	return 0;
}
