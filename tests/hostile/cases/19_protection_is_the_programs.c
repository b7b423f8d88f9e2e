/* Expected: whatever the program does to a mapping with closed pages in it, it gets the protection that it asked for and
 * keeps every byte: mprotect, pkey_mprotect, mremap in all its forms, MAP_FIXED, madvise, remap_file_pages. */
#include "hostile.h"
#include "../../reader/programs/maps.h"

static unsigned char *base;

static void show(const char *when)
{
	show_mappings(when, base, base + file_length);
}

static void map_anew(void)
{
	/* Room around it, so that nobody else's mapping is seen or in the way. */
	unsigned char *room = mmap(NULL, 4 * file_length, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	munmap(room, 4 * file_length);
	base = mmap(room + file_length, file_length, PROT_READ, MAP_SHARED | MAP_FIXED, file_descriptor, 0);
	if (base == MAP_FAILED)
		fail("mmap");
	read_pages(base, 0, 3 * MIB);
}

static sigjmp_buf out;

static void handler(int signal)
{
	(void)signal;
	siglongjmp(out, 1);
}

int main(int count, char **arguments)
{
	(void)count;
	munmap((void *)map_file(arguments, PROT_READ, MAP_SHARED), file_length);

	map_anew();
	mprotect(base + 2 * MIB, 4 * MIB, PROT_NONE);
	show("closed by the program");
	signal(SIGSEGV, handler);
	if (!sigsetjmp(out, 1))
		(void)*(volatile unsigned char *)(base + 3 * MIB);
	else
		puts("and stays so");
	signal(SIGSEGV, SIG_DFL);
	mprotect(base + 2 * MIB, 4 * MIB, PROT_READ);
	show("opened again");
	read_pages(base, 0, file_length);
	munmap(base, file_length);

	map_anew();
	int key = pkey_alloc(0, 0);
	printf("key protection %d\n", pkey_mprotect(base + MIB, 8 * MIB, PROT_READ, key < 0 ? -1 : key));
	show("by key");
	read_pages(base, 0, file_length);
	munmap(base, file_length);

	map_anew();
	unsigned char *moved = mremap(base, file_length, 2 * file_length, MREMAP_MAYMOVE);
	base = moved;
	show("grown");
	read_pages(base, 0, file_length);
	rendezvous();
	munmap(base, 2 * file_length);

	map_anew();
	moved = mremap(base + 8 * MIB, 16 * MIB, 16 * MIB, MREMAP_MAYMOVE | MREMAP_FIXED, base + 2 * file_length);
	printf("moved %d\n", moved == base + 2 * file_length);
	for (size_t at = 0; at < 16 * MIB; at += PAGE)
		if (*(uint32_t *)(moved + at) != word_at(8 * MIB + at))
			printf("wrong at %zu\n", at);
	show("a hole");
	read_pages(base, 0, 8 * MIB);
	read_pages(base, 24 * MIB, file_length);
	/* Over ourselves. */
	moved = mremap(moved, 16 * MIB, 16 * MIB, MREMAP_MAYMOVE | MREMAP_FIXED, base + 32 * MIB);
	show("moved over the rest");
	for (size_t at = 0; at < 16 * MIB; at += PAGE)
		if (*(uint32_t *)(moved + at) != word_at(8 * MIB + at))
			printf("wrong at %zu\n", at);
	munmap(base, file_length);

	map_anew();
	printf("in place %d\n", mremap(base, file_length, file_length / 2, 0) == (void *)base);
	show("shrunk");
	read_pages(base, 0, file_length / 2);
	munmap(base, file_length);

	map_anew();
	munmap(base, MIB);
	munmap(base + file_length - MIB, MIB);
	show("both ends gone");
	read_pages(base, MIB, file_length - MIB);
	munmap(base, file_length);

	map_anew();
	unsigned char *over = mmap(base + 3 * MIB, 4 * MIB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
	memset(over, 9, 4 * MIB);
	over = mmap(base + 20 * MIB, 8 * MIB, PROT_READ, MAP_SHARED | MAP_FIXED, file_descriptor, 0);
	for (size_t at = 0; at < 8 * MIB; at += PAGE)
		if (*(uint32_t *)(over + at) != word_at(at))
			printf("wrong at %zu\n", at);
	for (size_t at = 3 * MIB; at < 7 * MIB; at += PAGE)
		if (base[at] != 9)
			printf("wrong at %zu\n", at);
	read_pages(base, 8 * MIB, 20 * MIB);
	munmap(base, file_length);

	map_anew();
	printf("madvise %d %d %d\n", madvise(base, file_length, MADV_DONTNEED), madvise(base, file_length, MADV_RANDOM),
	       madvise(base + 5 * MIB, MIB, MADV_REMOVE));
	read_pages(base, 0, file_length);
	munmap(base, file_length);

	map_anew();
	printf("remap_file_pages %d\n", remap_file_pages(base + 4 * MIB, MIB, 0, 0, 0));
	printf("%d\n", *(uint32_t *)(base + 4 * MIB) == word_at(0));
	munmap(base, file_length);
	return 0;
}
