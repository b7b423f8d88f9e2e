/* Expected: locking and populating mapped memory succeeds or fails as natively, closed pages or not, and so does what is
 * read afterwards. */
#include "hostile.h"
#include <sys/resource.h>

#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ 22
#endif

static void say(const char *what, int result)
{
	printf("%s: %d %s\n", what, result, result ? strerror(errno) : "");
}

int main(int count, char **arguments)
{
	(void)count;
	struct rlimit limit = { RLIM_INFINITY, RLIM_INFINITY };
	setrlimit(RLIMIT_MEMLOCK, &limit);
	unsigned char *base = (unsigned char *)map_file(arguments, PROT_READ, MAP_SHARED);
	read_pages(base, 0, 3 * MIB);
	say("populate", madvise(base + 2 * MIB, 20 * MIB, MADV_POPULATE_READ));
	say("mlock", mlock(base + 30 * MIB, 2 * MIB));
	say("munlock", munlock(base + 30 * MIB, 2 * MIB));
	unsigned char *other = mmap(NULL, file_length, PROT_READ, MAP_SHARED, file_descriptor, 0);
	read_pages(other, 0, 3 * MIB);
	say("mlock2", mlock2(other + 10 * MIB, MIB, MLOCK_ONFAULT));
	rendezvous();
	unsigned char *third = mmap(NULL, file_length, PROT_READ, MAP_SHARED, file_descriptor, 0);
	read_pages(third, 0, 3 * MIB);
	say("mlockall", mlockall(MCL_CURRENT));
	read_pages(third, 0, file_length);
	say("munlockall", munlockall());
	/* Locked from the beginning: no guard can be placed there. */
	unsigned char *locked = mmap(NULL, file_length, PROT_READ, MAP_SHARED | MAP_LOCKED, file_descriptor, 0);
	say("MAP_LOCKED", locked == MAP_FAILED);
	for (int epoch = 0; epoch < 2; epoch++)
		read_pages(locked, 0, file_length);
	say("mlockall of what comes", mlockall(MCL_FUTURE));
	unsigned char *future = mmap(NULL, file_length, PROT_READ, MAP_SHARED, file_descriptor, 0);
	say("mmap", future == MAP_FAILED);
	read_pages(future, 0, file_length);
	say("populate outside", madvise((void *)(base + file_length + 64 * MIB), PAGE, 99));
	printf("%x\n", read_pages(base, 0, file_length));
	return 0;
}
