/* Operations on mappings. */
#include "soak.h"

/* Most of what is mapped is long enough to get checkpoints: a mebibyte or more. */
static size_t mapping_length(Random *random)
{
	return one_in(random, 4) ? 1 + below(random, 256) : 256 + below(random, 1024);
}

void op_read(Random *random, Findings *findings)
{
	read_range(random, findings, any_range(random, one_in(random, 8) ? 1024 : 32));
}

static void map_file(Random *random, Findings *findings, bool is_private, int protection)
{
	int file = below(random, FILES);
	size_t count = mapping_length(random);
	if (count > files[file].pages)
		count = files[file].pages;
	/* Now and then beyond the end. */
	size_t page = below(random, files[file].pages - count + (one_in(random, 4) ? 8 : 1));
	Range range = {below(random, ARENA_PAGES - count + 1), count};
	int flags = (is_private ? MAP_PRIVATE : MAP_SHARED) | MAP_FIXED;
	if (mmap(at(range), count * PAGE, protection, flags, files[file].descriptor, page * PAGE) != at(range))
		fail("mmap");
	set_backing(range, file, page, is_private, protection);
	if (one_in(random, 2))
		read_range(random, findings, (Range){range.start, 1 + below(random, count)});
}

void op_map(Random *random, Findings *findings)
{
	map_file(random, findings, false, one_in(random, 16) ? PROT_NONE : PROT_READ);
}

void op_map_private(Random *random, Findings *findings)
{
	map_file(random, findings, true, one_in(random, 4) ? PROT_READ : PROT_READ | PROT_WRITE);
}

void op_map_memory(Random *random, Findings *findings)
{
	Range range = any_range(random, 512);
	int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED;
	if (mmap(at(range), range.count * PAGE, PROT_READ | PROT_WRITE, flags, -1, 0) != at(range))
		fail("mmap");
	set_backing(range, -1, 0, true, PROT_READ | PROT_WRITE);
	read_range(random, findings, range);
}

void op_unmap(Random *random, Findings *findings)
{
	Range range = any_range(random, 1024);
	note_call(findings, munmap(at(range), range.count * PAGE));
	reserve(range);
}

void op_protect(Random *random, Findings *findings)
{
	static const int kinds[] = {PROT_NONE, PROT_READ, PROT_READ, PROT_READ | PROT_WRITE};
	int protection = kinds[below(random, 4)];
	/* The data files cannot be written: a range with a shared mapping of them in it would be changed up to there. */
	Range range = protection & PROT_WRITE ? uniform_range(random, 512) : any_range(random, 512);
	if (range.count == 0)
		return;
	int result = mprotect(at(range), range.count * PAGE, protection);
	note_call(findings, result);
	for (size_t page = range.start; result == 0 && page < range.start + range.count; page++)
		model[page].protection = protection;
}

void op_advise(Random *random, Findings *findings)
{
	enum { POPULATE_READ = 22, COLD = 20 };
	static const int kinds[] = {MADV_NORMAL, MADV_RANDOM, MADV_SEQUENTIAL, MADV_WILLNEED, MADV_DONTNEED, MADV_DONTNEED,
		POPULATE_READ, COLD};
	static unsigned char resident[ARENA_PAGES];
	Range range = any_range(random, 512);
	size_t kind = below(random, sizeof kinds / sizeof *kinds + 2);
	if (kind == 8) {
		note_call(findings, msync(at(range), range.count * PAGE, MS_ASYNC));
		return;
	}
	if (kind == 9) {
		note_call(findings, mincore(at(range), range.count * PAGE, resident));
		return;
	}
	int result = madvise(at(range), range.count * PAGE, kinds[kind]);
	note_call(findings, result);
	for (size_t page = range.start; kinds[kind] == MADV_DONTNEED && page < range.start + range.count; page++) {
		model[page].content = model[page].backing;
		model[page].content_page = model[page].backing_page;
		model[page].stamp = 0;
	}
}

void op_move(Random *random, Findings *findings)
{
	static Page moved[ARENA_PAGES];
	Range from = uniform_range(random, 1024), to = {0, from.count};
	if (from.count == 0)
		return;
	to.start = below(random, ARENA_PAGES - from.count + 1);
	if (from.start < to.start + from.count && to.start < from.start + from.count)
		return;
	void *place = mremap(at(from), from.count * PAGE, from.count * PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, at(to));
	if (place != at(to))
		fail("mremap");
	memcpy(moved, &model[from.start], from.count * sizeof *moved);
	memcpy(&model[to.start], moved, from.count * sizeof *moved);
	reserve(from);
	read_range(random, findings, to);
}

void op_resize(Random *random, Findings *findings)
{
	Range range = uniform_range(random, 1024);
	if (range.count < 2 || range.start + range.count == ARENA_PAGES)
		return;
	if (one_in(random, 4)) {
		/* What comes after is taken. Which error that is depends on how many kernel mappings the range consists of: natively EFAULT
		 * for parts of a private mapping that were first written while they were apart (docs/decisions.md, 19). */
		void *place = mremap(at(range), range.count * PAGE, (range.count + 1) * PAGE, 0);
		errno = 0;
		note_call(findings, place == MAP_FAILED ? -1 : 0);
		return;
	}
	size_t kept = 1 + below(random, range.count - 1);
	if (mremap(at(range), range.count * PAGE, kept * PAGE, 0) != at(range))
		fail("mremap");
	reserve((Range){range.start + kept, range.count - kept});
	read_range(random, findings, (Range){range.start, kept});
}

void op_lock(Random *random, Findings *findings)
{
	Range range = any_range(random, 128);
	note_call(findings, mlock(at(range), range.count * PAGE));
	read_range(random, findings, range);
	note_call(findings, munlock(at(range), range.count * PAGE));
}

static void read_file(Random *random, Findings *findings, volatile uint32_t *base, int file, size_t from, size_t to)
{
	size_t step = one_in(random, 3) ? 1 : 1 + below(random, 40);
	for (size_t page = from; page < to; page += step) {
		size_t index = page * WORDS + below(random, WORDS);
		if (base[index] != file_word(file, index))
			wrong("a word of a mapping elsewhere", base[index], file_word(file, index));
		note(findings, base[index]);
	}
}

/* A mapping where the kernel likes, that lives for one operation. */
void op_elsewhere(Random *random, Findings *findings)
{
	int file = below(random, FILES);
	size_t pages = files[file].pages, mapped = one_in(random, 3) ? pages / 2 : pages;
	int flags = one_in(random, 3) ? MAP_PRIVATE : MAP_SHARED;
	unsigned char *base = mmap(NULL, mapped * PAGE, PROT_READ, flags, files[file].descriptor, 0);
	if (base == MAP_FAILED)
		fail("mmap");
	read_file(random, findings, (uint32_t *)base, file, below(random, mapped), mapped);
	if (mapped < pages) {
		base = mremap(base, mapped * PAGE, pages * PAGE, MREMAP_MAYMOVE);
		if (base == MAP_FAILED)
			fail("mremap");
		read_file(random, findings, (uint32_t *)base, file, below(random, pages), pages);
	}
	size_t from = below(random, pages - 1), to = from + 1 + below(random, pages - from);
	if (to > pages)
		to = pages;
	/* A part first: in the middle or at an end. */
	if (munmap(base + from * PAGE, (to - from) * PAGE))
		fail("munmap");
	read_file(random, findings, (uint32_t *)base, file, 0, from < 64 ? from : 64);
	if ((from > 0 && munmap(base, from * PAGE)) || (to < pages && munmap(base + to * PAGE, (pages - to) * PAGE)))
		fail("munmap");
}
