/* What the small readers share: a mapped file in which every word tells its place. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#define MIB ((size_t)1 << 20)
#define PAGE ((size_t)4096)

static int file_descriptor;
static size_t file_length;

static void fail(const char *what)
{
	fprintf(stderr, "%s: %s\n", what, strerror(errno));
	exit(99);
}

/* Opens the file named on the command line. */
static inline void open_file(char **arguments)
{
	struct stat status;
	file_descriptor = open(arguments[1], O_RDONLY);
	if (file_descriptor < 0 || fstat(file_descriptor, &status))
		fail(arguments[1]);
	file_length = status.st_size;
}

/* The same, so that it may be written to. */
static inline void open_to_write(char **arguments)
{
	open_file(arguments);
	close(file_descriptor);
	if ((file_descriptor = open(arguments[1], O_RDWR)) < 0)
		fail("open");
}

/* Opens it, and maps it. */
static inline volatile unsigned char *map_file(char **arguments, int protection, int flags)
{
	open_file(arguments);
	void *address = mmap(NULL, file_length, protection, flags, file_descriptor, 0);
	if (address == MAP_FAILED)
		fail("mmap");
	return address;
}

/* The word that belongs at this offset. */
static uint32_t word_at(size_t offset)
{
	return (uint32_t)(offset / 4) * 2654435761u;
}

/* Reads one word per page of a range; a wrong one ends the program. */
static uint32_t read_pages(const volatile unsigned char *base, size_t from, size_t to)
{
	uint32_t sum = 0;
	for (size_t at = from; at < to; at += PAGE) {
		uint32_t word = *(const volatile uint32_t *)(base + at);
		if (word != word_at(at)) {
			fprintf(stderr, "wrong word %x at %zu\n", word, at);
			exit(98);
		}
		sum = sum * 31 + word;
	}
	return sum;
}
