/* Expected: a checkpoint that is hit while the thread holds the allocator's lock, a stream's, the loader's, or those that
 * fork takes, is passed like any other: nothing needs a lock that is held. */
#include "hostile.h"
#include <dlfcn.h>
#include <link.h>

static volatile unsigned char *volatile base;
static size_t position;

/* Reads on by a step, through a checkpoint each time that there is one. */
static void read_on(void)
{
	if (!base)
		return;
	size_t at = __atomic_fetch_add(&position, 64 * 1024, __ATOMIC_RELAXED) % file_length;
	if (*(volatile uint32_t *)(base + at) != word_at(at))
		_exit(98);
}

/* The program's allocator: one lock, not recursive, that is held while mapped data is read. */
static pthread_mutex_t arena = PTHREAD_MUTEX_INITIALIZER;
static unsigned char heap[64 << 20] __attribute__((aligned(16)));
static size_t used, calls;

void *malloc(size_t size)
{
	pthread_mutex_lock(&arena);
	calls++;
	read_on();
	size_t *block = (size_t *)(heap + used);
	used += (size + 31) / 16 * 16;
	if (used > sizeof heap)
		abort();
	pthread_mutex_unlock(&arena);
	block[1] = size;
	return block + 2;
}

void free(void *block)
{
	if (!block)
		return;
	pthread_mutex_lock(&arena);
	read_on();
	pthread_mutex_unlock(&arena);
}

void *calloc(size_t count, size_t size)
{
	return memset(malloc(count * size), 0, count * size);
}

void *realloc(void *block, size_t size)
{
	void *larger = malloc(size);
	if (block)
		memcpy(larger, block, ((size_t *)block)[-1] < size ? ((size_t *)block)[-1] : size);
	return larger;
}

static ssize_t take(void *cookie, const char *text, size_t length)
{
	(void)cookie, (void)text;
	read_on();
	return length;
}

static int visit(struct dl_phdr_info *info, size_t size, void *count)
{
	(void)info, (void)size;
	read_on();
	/* Mapping a file in here looks through the objects once more. */
	void *again = mmap(NULL, file_length, PROT_READ, MAP_SHARED, file_descriptor, 0);
	(void)*(volatile char *)again;
	munmap(again, file_length);
	return ++*(int *)count > 2;
}

static void *reader(void *unused)
{
	for (int i = 0; i < 2000; i++)
		read_on();
	return unused;
}

int main(int count, char **arguments)
{
	(void)count;
	unsigned char *mapped = (unsigned char *)map_file(arguments, PROT_READ, MAP_SHARED);
	static char buffer[1 << 16];
	setvbuf(stdout, buffer, _IOFBF, sizeof buffer);
	pthread_t threads[4];
	for (int i = 0; i < 4; i++)
		pthread_create(&threads[i], NULL, reader, NULL);
	base = mapped;

	for (int i = 0; i < 1000; i++)
		free(malloc(100));
	puts("the allocator's");
	rendezvous();

	cookie_io_functions_t functions = { .write = take };
	FILE *stream = fopencookie(NULL, "w", functions);
	setvbuf(stream, NULL, _IONBF, 0);
	for (int i = 0; i < 500; i++) {
		flockfile(stream), flockfile(stdout);
		read_on();
		fputs("text", stream);
		funlockfile(stdout), funlockfile(stream);
	}
	puts("a stream's");

	int visited = 0;
	for (int i = 0; i < 100; i++)
		dl_iterate_phdr(visit, &visited);
	puts("the loader's");

	pthread_atfork(read_on, read_on, read_on);
	for (int i = 0; i < 50; i++) {
		pid_t child = fork();
		if (child == 0)
			_exit(0);
		int status;
		waitpid(child, &status, 0);
		if (status)
			printf("a child ended with %x\n", status);
	}
	puts("fork's");
	for (int i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
	printf("%x\n", read_pages(mapped, 0, file_length));
	return 0;
}
