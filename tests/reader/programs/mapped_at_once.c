/* Expected: 32 threads that map the file at the same moment, in each of 20 processes of which nothing is known yet, and
 * children that are forked meanwhile and map it, too, read what belongs there. */
#include "common.h"

enum { PROCESSES = 20, THREADS = 32, CHILDREN = 8 };

static pthread_barrier_t barrier;

static void map_and_read(void)
{
	void *base = mmap(NULL, file_length, PROT_READ, MAP_SHARED, file_descriptor, 0);
	if (base == MAP_FAILED)
		fail("mmap");
	read_pages(base, 0, 2 * MIB);
}

static void *reader(void *arguments)
{
	pthread_barrier_wait(&barrier);
	map_and_read();
	return arguments;
}

static void await(int children)
{
	for (int end; children--;)
		if (wait(&end) < 0 || end)
			printf("a child ended with %x\n", end);
}

int main(int count, char **arguments)
{
	(void)count;
	open_file(arguments);
	for (int i = 0; i < PROCESSES; i++) {
		pid_t process = fork();
		if (process == 0) {
			pthread_t threads[THREADS];
			pthread_barrier_init(&barrier, NULL, THREADS + 1);
			for (int j = 0; j < THREADS; j++)
				if (pthread_create(&threads[j], NULL, reader, NULL))
					fail("pthread_create");
			pthread_barrier_wait(&barrier);
			for (int j = 0; j < CHILDREN; j++) {
				pid_t child = fork();
				if (child == 0) {
					map_and_read();
					exit(0);
				}
				if (child < 0)
					fail("fork");
			}
			for (int j = 0; j < THREADS; j++)
				pthread_join(threads[j], NULL);
			await(CHILDREN);
			exit(0);
		}
		if (process < 0)
			fail("fork");
		await(1);
	}
	return 0;
}
