/* The data files. */
#include "soak.h"

File files[FILES];
int scratch_file, sockets[2], pipes[2];
volatile uint32_t *steady;

/* The last one ends within a page. */
static const size_t lengths[FILES] = {16 << 20, 6 << 20, (2 << 20) + 1236};

uint32_t file_word(int file, size_t index)
{
	return index * 4 < lengths[file] ? (uint32_t)(index * FILES + file) * 2654435761u : 0;
}

static void make(const char *path, int file)
{
	FILE *stream = fopen(path, "w");
	if (!stream)
		fail(path);
	for (size_t index = 0; index < lengths[file] / 4; index++) {
		uint32_t word = file_word(file, index);
		fwrite(&word, sizeof word, 1, stream);
	}
	if (fclose(stream))
		fail(path);
}

void open_files(const char *folder)
{
	char path[4096];
	for (int file = 0; file < FILES; file++) {
		struct stat status;
		snprintf(path, sizeof path, "%s/soak-%d", folder, file);
		if (stat(path, &status) || (size_t)status.st_size != lengths[file])
			make(path, file);
		files[file].descriptor = open(path, O_RDONLY);
		if (files[file].descriptor < 0)
			fail(path);
		files[file].length = lengths[file];
		files[file].pages = (lengths[file] + PAGE - 1) / PAGE;
	}
	scratch_file = memfd_create("scratch", 0);
	if (scratch_file < 0 || socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, sockets) || pipe2(pipes, O_NONBLOCK))
		fail("scratch");
	steady = mmap(NULL, files[0].length, PROT_READ, MAP_SHARED, files[0].descriptor, 0);
	if (steady == MAP_FAILED)
		fail("mmap");
}

void read_steadily(Random *random, size_t pages)
{
	size_t page = below(random, files[0].pages - pages);
	for (size_t end = page + pages; page < end; page++) {
		size_t index = page * WORDS + below(random, WORDS);
		if (steady[index] != file_word(0, index))
			wrong("a word of the steady mapping", steady[index], file_word(0, index));
	}
}
