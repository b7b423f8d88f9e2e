/* Expected: 32 threads that map the file at the same moment, in each of 20 processes of which nothing is known yet, read
 * what belongs there. */
#include "common.h"

enum { PROCESSES = 20, THREADS = 32 };

static pthread_barrier_t barrier;

static void *reader(void *arguments)
{
	pthread_barrier_wait(&barrier);
	void *base = mmap(NULL, file_length, PROT_READ, MAP_SHARED, file_descriptor, 0);
	if (base == MAP_FAILED)
		fail("mmap");
	read_pages(base, 0, 2 * MIB);
	return arguments;
}

int main(int count, char **arguments)
{
	(void)count;
	struct stat status;
	file_descriptor = open(arguments[1], O_RDONLY);
	if (file_descriptor < 0 || fstat(file_descriptor, &status))
		fail(arguments[1]);
	file_length = status.st_size;
	for (int i = 0; i < PROCESSES; i++) {
		int end;
		if (fork() == 0) {
			pthread_t threads[THREADS];
			pthread_barrier_init(&barrier, NULL, THREADS);
			for (int j = 0; j < THREADS; j++)
				if (pthread_create(&threads[j], NULL, reader, NULL))
					fail("pthread_create");
			for (int j = 0; j < THREADS; j++)
				pthread_join(threads[j], NULL);
			exit(0);
		}
		wait(&end);
		printf("%d\n", end);
	}
	return 0;
}
