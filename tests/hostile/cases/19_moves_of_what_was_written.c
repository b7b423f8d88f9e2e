/* Expected: a private mapping that was first written here and there, while all around was still closed, is grown, moved and cut by
 * mremap as a whole, in a thread's program and in a child that was forked before anything was read; its bytes are those that were
 * written, and the file's, also where the file is written to afterwards.
 * @own-data
 * @no-guards private mappings that may be written to get none
 * @report the program changed the mapping itself */
#include "hostile.h"

static const size_t places[] = { 10, 40, 25, 50, 3, 61 };
enum { PLACES = sizeof places / sizeof *places };

static volatile unsigned char *map_anew(void)
{
	volatile unsigned char *base = mmap(NULL, file_length, PROT_READ | PROT_WRITE, MAP_PRIVATE, file_descriptor, 0);
	if (base == MAP_FAILED)
		fail("mmap");
	return base;
}

static void write_there(volatile unsigned char *base, size_t place)
{
	*(volatile uint32_t *)(base + place * MIB + 2 * PAGE) = place;
}

static void *write_second_half(void *base)
{
	for (int i = PLACES / 2; i < PLACES; i++)
		write_there(base, places[i]);
	return NULL;
}

static void check(const char *when, volatile unsigned char *base, size_t length)
{
	int wrong = 0;
	for (size_t at = 0; at < length; at += PAGE) {
		uint32_t wanted = word_at(at);
		for (int i = 0; i < PLACES; i++)
			if (at == places[i] * MIB + 2 * PAGE)
				wanted = places[i];
		wrong += *(volatile uint32_t *)(base + at) != wanted;
	}
	printf("%s: %d wrong\n", when, wrong);
}

static void move(const char *when, volatile unsigned char *base)
{
	static const struct { const char *name; size_t length; } moves[] = { { "grown", 65 }, { "as it is", 64 }, { "cut", 45 }, { "grown again", 64 } };
	size_t length = file_length;
	for (size_t i = 0; i < sizeof moves / sizeof *moves; i++) {
		void *result = mremap((void *)base, length, moves[i].length * MIB, MREMAP_MAYMOVE);
		printf("%s, %s: %s\n", when, moves[i].name, result == MAP_FAILED ? strerror(errno) : "there");
		if (result == MAP_FAILED)
			return;
		base = result;
		length = moves[i].length * MIB;
		if (i < 3)
			check(moves[i].name, base, length < file_length ? length : file_length);
	}
	munmap((void *)base, length);
}

/* Pages that have only been read are the file's still. */
static void rewrite(const char *file)
{
	volatile unsigned char *base = map_anew();
	uint32_t before = 0, after = 0, new = 0x12345678;
	int writable = open(file, O_RDWR);
	for (size_t at = 0; at < file_length; at += MIB)
		before += *(volatile uint32_t *)(base + at);
	for (size_t at = 0; at < file_length; at += 8 * MIB) {
		uint32_t old = word_at(at);
		if (pwrite(writable, &new, sizeof new, at) != sizeof new)
			fail("pwrite");
		after += *(volatile uint32_t *)(base + at) == new;
		if (pwrite(writable, &old, sizeof old, at) != sizeof old)
			fail("pwrite");
	}
	printf("read %x, %u of 8 are new\n", before, after);
	munmap((void *)base, file_length);
	close(writable);
}

int main(int count, char **arguments)
{
	(void)count;
	open_file(arguments);
	rewrite(arguments[1]);
	volatile unsigned char *base = map_anew();
	for (int i = 0; i < PLACES; i++)
		write_there(base, places[i]);
	move("written", base);

	base = map_anew();
	/* Read first, elsewhere. */
	for (size_t at = 30 * MIB; at < 31 * MIB; at += PAGE)
		(void)base[at];
	pthread_t thread;
	pthread_create(&thread, NULL, write_second_half, (void *)base);
	for (int i = 0; i < PLACES / 2; i++)
		write_there(base, places[i]);
	pthread_join(thread, NULL);
	rendezvous();
	move("by two threads", base);

	base = map_anew();
	fflush(stdout);
	pid_t child = fork();
	for (int i = 0; i < PLACES; i++)
		write_there(base, places[i]);
	if (child)
		waitpid(child, NULL, 0);
	move(child ? "by the parent" : "by the child", base);
	return 0;
}
