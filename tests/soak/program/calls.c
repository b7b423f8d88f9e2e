/* Operations in which the kernel reads or fills mapped memory. */
#include "soak.h"

enum { LONGEST = 48 };

static unsigned char copy[LONGEST * PAGE];

/* Takes out of the pipe or socket what went in. */
static void drain(int from, size_t length)
{
	for (size_t done = 0; done < length;) {
		ssize_t part = read(from, copy + done, length - done);
		if (part <= 0)
			fail("read");
		done += part;
	}
}

/* A range in bytes that begins and ends within pages. */
static size_t any_bytes(Random *random, Range range, size_t *start)
{
	size_t skipped = below(random, PAGE);
	*start = range.start * PAGE + skipped;
	return 1 + below(random, range.count * PAGE - skipped);
}

void op_write_file(Random *random, Findings *findings)
{
	Range range = any_range(random, LONGEST);
	size_t start, length = any_bytes(random, range, &start);
	size_t readable = readable_pages(range) * PAGE;
	readable = readable < start % PAGE ? 0 : readable - start % PAGE;
	bool all = length <= readable, to_file = false;
	size_t half = length / 2;
	struct iovec parts[] = {{arena + start, half}, {arena + start + half, length - half}};
	ssize_t result;
	switch (below(random, all ? 6 : 3)) {
	case 0:
		to_file = true;
		result = pwrite(scratch_file, arena + start, length, 0);
		break;
	case 1:
		to_file = true;
		result = pwritev(scratch_file, parts, 2, 0);
		break;
	case 2:
		to_file = true;
		if (lseek(scratch_file, 0, SEEK_SET))
			fail("lseek");
		result = write(scratch_file, arena + start, length);
		break;
	case 3:
		/* As much as it takes at a time. */
		result = write(pipes[1], arena + start, length);
		drain(pipes[0], result > 0 ? result : 0);
		all = false;
		break;
	case 4:
		result = send(sockets[0], arena + start, length, 0);
		drain(sockets[1], result > 0 ? result : 0);
		break;
	default:
		result = writev(sockets[0], parts, 2);
		drain(sockets[1], result > 0 ? result : 0);
		break;
	}
	note_call(findings, result);
	if (all && (size_t)result != length)
		wrong("bytes written", result, length);
	if (result <= 0)
		return;
	if (to_file && pread(scratch_file, copy, result, 0) != result)
		fail("pread");
	check_copy(copy, start, result);
}

/* glibc's own writes, past any interposed one. */
void op_write_stream(Random *random, Findings *findings)
{
	static FILE *stream;
	static char buffer[BUFSIZ];
	Range range = any_range(random, LONGEST);
	range.count = readable_pages(range);
	if (range.count == 0)
		return;
	if (!stream) {
		stream = fdopen(scratch_file, "r+");
		if (!stream || setvbuf(stream, buffer, _IOFBF, sizeof buffer))
			fail("fdopen");
	}
	size_t start, length = any_bytes(random, range, &start);
	if (ftruncate(scratch_file, 0))
		fail("ftruncate");
	rewind(stream);
	size_t result = fwrite(arena + start, 1, length, stream);
	note(findings, result);
	if (result != length || fflush(stream))
		wrong("bytes written to a stream", result, length);
	if (pread(scratch_file, copy, length, 0) != (ssize_t)length)
		fail("pread");
	check_copy(copy, start, length);
}

void op_copy(Random *random, Findings *findings)
{
	Range range = any_range(random, LONGEST);
	size_t start, length = any_bytes(random, range, &start);
	struct iovec to = {copy, length}, from = {arena + start, length};
	ssize_t result = process_vm_readv(getpid(), &to, 1, &from, 1, 0);
	note_call(findings, result);
	if (result > 0)
		check_copy(copy, start, result);
}

/* From a data file, whole pages, into memory of the program's own. */
void op_receive(Random *random, Findings *findings)
{
	Range range = any_range(random, LONGEST);
	int file = below(random, FILES);
	size_t writable = 0;
	while (writable < range.count && model[range.start + writable].protection & PROT_WRITE &&
	       !is_beyond_end(range.start + writable))
		writable++;
	if (writable > 0)
		range.count = writable;
	size_t page = below(random, files[file].pages - range.count), length = range.count * PAGE;
	struct iovec parts[] = {{at(range), PAGE / 2}, {arena + range.start * PAGE + PAGE / 2, length - PAGE / 2}};
	ssize_t result = one_in(random, 2) ? pread(files[file].descriptor, at(range), length, page * PAGE)
					   : preadv(files[file].descriptor, parts, 2, page * PAGE);
	note_call(findings, result);
	if (writable == 0)
		return;
	if (result != (ssize_t)length)
		wrong("bytes read", result, length);
	for (size_t i = 0; i < range.count; i++) {
		model[range.start + i].content = file;
		model[range.start + i].content_page = page + i;
		model[range.start + i].stamp = 0;
	}
	read_range(random, findings, range);
}

/* The numbers that the program gets are those of a program alone. */
void op_descriptors(Random *random, Findings *findings)
{
	int opened = open("/dev/null", O_RDONLY), twin = dup(files[below(random, FILES)].descriptor);
	note(findings, opened);
	note(findings, twin);
	if (opened < 0 || twin < 0 || close(opened))
		fail("open");
	note(findings, dup(twin) == opened);
	if (close(opened) || close(twin))
		fail("close");
}
