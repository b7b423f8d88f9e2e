/* A range of addresses in which everything is mapped, and what each page of it must hold. */
#include "soak.h"

Page model[ARENA_PAGES];
unsigned char *arena;

static const Page reserved = {.backing = -1, .content = -1, .protection = PROT_NONE, .is_private = true};

void make_arena(void)
{
	arena = mmap(NULL, ARENA_PAGES * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (arena == MAP_FAILED)
		fail("mmap");
	set_reserved((Range){0, ARENA_PAGES});
}

void clear_arena(void)
{
	Range all = {0, ARENA_PAGES};
	if (munmap(arena, ARENA_PAGES * PAGE))
		fail("munmap");
	reserve(all);
}

Range any_range(Random *random, size_t longest)
{
	size_t count = 1 + below(random, longest);
	return (Range){below(random, ARENA_PAGES - count + 1), count};
}

static bool goes_on(const Page *page, const Page *next)
{
	return next->backing == page->backing && next->protection == page->protection &&
	       next->is_private == page->is_private && next->backing_page == page->backing_page + 1;
}

Range uniform_range(Random *random, size_t longest)
{
	Range range = {below(random, ARENA_PAGES), 0};
	if (model[range.start].backing < 0)
		return range;
	size_t wanted = 1 + below(random, longest);
	do
		range.count++;
	while (range.count < wanted && range.start + range.count < ARENA_PAGES &&
	       goes_on(&model[range.start + range.count - 1], &model[range.start + range.count]));
	return range;
}

void set_reserved(Range range)
{
	for (size_t i = 0; i < range.count; i++)
		model[range.start + i] = reserved;
}

void set_backing(Range range, int file, size_t page, bool is_private, int protection)
{
	for (size_t i = 0; i < range.count; i++) {
		uint32_t here = file < 0 ? 0 : page + i;
		model[range.start + i] = (Page){file, file, protection, is_private, here, here, 0};
	}
}

void reserve(Range range)
{
	int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE;
	/* The address of what was just unmapped, in the hands of somebody else. */
	unsigned char *place = mmap(at(range), range.count * PAGE, PROT_READ | PROT_WRITE, flags, -1, 0);
	if (place != at(range))
		fail("mmap of free addresses");
	for (size_t i = 0; i < range.count; i += 1 + range.count / 4)
		if (place[i * PAGE])
			wrong("new memory", place[i * PAGE], 0);
	if (mprotect(place, range.count * PAGE, PROT_NONE))
		fail("mprotect");
	set_reserved(range);
}

bool is_beyond_end(size_t page)
{
	return model[page].backing >= 0 && model[page].backing_page >= files[model[page].backing].pages;
}

bool is_readable(size_t page)
{
	return model[page].protection & PROT_READ && !is_beyond_end(page);
}

uint32_t expected_word(size_t page, size_t word)
{
	const Page *what = &model[page];
	if (word == 0 && what->stamp)
		return what->stamp;
	return what->content < 0 ? 0 : file_word(what->content, what->content_page * WORDS + word);
}

void read_range(Random *random, Findings *findings, Range range)
{
	for (size_t page = range.start; page < range.start + range.count; page++) {
		if (!is_readable(page))
			continue;
		size_t word = one_in(random, 2) ? 0 : below(random, WORDS);
		uint32_t found = ((volatile uint32_t *)arena)[page * WORDS + word];
		if (found != expected_word(page, word))
			wrong("a word", found, expected_word(page, word));
		note(findings, found);
	}
}

size_t readable_pages(Range range)
{
	size_t count = 0;
	while (count < range.count && is_readable(range.start + count))
		count++;
	return count;
}

void check_copy(const unsigned char *copy, size_t offset, size_t length)
{
	for (size_t i = (4 - offset % 4) % 4; i + 4 <= length; i += 4) {
		size_t place = offset + i;
		uint32_t found, expected = expected_word(place / PAGE, place % PAGE / 4);
		memcpy(&found, copy + i, sizeof found);
		if (found != expected)
			wrong("a copied word", found, expected);
	}
}
