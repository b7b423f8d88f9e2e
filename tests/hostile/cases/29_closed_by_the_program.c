/* Expected: a program that closes every library that it finds loaded, ours too, more often than anybody opened it, reads on through
 * checkpoints, old and new, and its calls and handlers work as before.
 * @counter lifted_for_calls 1 */
#include "hostile.h"
#include <dlfcn.h>
#include <link.h>

static const char *ours;
static int found;
static char names[64][4096];
static int count_of_names;

static int note(struct dl_phdr_info *object, size_t size, void *unused)
{
	(void)size, (void)unused;
	if (*object->dlpi_name && count_of_names < 64)
		snprintf(names[count_of_names++], sizeof *names, "%s", object->dlpi_name);
	return 0;
}

static void close_all(void)
{
	count_of_names = 0;
	dl_iterate_phdr(note, NULL);
	for (int i = 0; i < count_of_names; i++) {
		void *library = dlopen(names[i], RTLD_NOW | RTLD_NOLOAD);
		if (!library)
			continue;
		found += ours && !strncmp(names[i], ours, strlen(names[i]));
		for (int again = 0; again < 5; again++)
			dlclose(library);
	}
}

static void caught(int signal)
{
	(void)signal;
	static const char text[] = "caught\n";
	write(1, text, strlen(text));
	_exit(7);
}

int main(int count, char **arguments)
{
	(void)count;
	ours = getenv("LD_PRELOAD");
	volatile unsigned char *base = map_file(arguments, PROT_READ, MAP_SHARED);
	printf("%x\n", read_pages(base, 0, 10 * MIB));
	close_all();
	printf("found: %d\n", found == (ours != NULL));
	printf("%x\n", read_pages(base, 10 * MIB, 30 * MIB));
	rendezvous();
	close_all();
	volatile unsigned char *again = mmap(NULL, file_length, PROT_READ, MAP_SHARED, file_descriptor, 0);
	printf("%x\n", read_pages(again, 0, 20 * MIB));
	int copy = memfd_create("copy", 0);
	printf("%zd\n", write(copy, (unsigned char *)again + 30 * MIB, 3 * MIB));
	munmap((void *)again, file_length);
	signal(SIGSEGV, caught);
	printf("%x\n", read_pages(base, 30 * MIB, file_length));
	fflush(stdout);
	raise(SIGSEGV);
	return 0;
}
