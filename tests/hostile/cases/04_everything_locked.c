/* Expected: locking all memory, what is there, what comes, or only what is touched, succeeds or fails as natively whatever
 * is armed; locked mappings are read, forked, unlocked, unmapped in part, and the limit counts what it counts natively. */
#include "hostile.h"
#include <sys/resource.h>

#ifndef MCL_ONFAULT
#define MCL_ONFAULT 4
#endif

/* What is locked of a mapping, and whether all of it is mapped to pages. */
static void show(const char *when, const unsigned char *base)
{
	char line[512];
	FILE *maps = fopen("/proc/self/smaps", "r");
	int inside = 0, locked = 0, parts = 0;
	long mapped = 0, resident = 0, kilobytes;
	while (fgets(line, sizeof line, maps)) {
		uintptr_t start, end;
		if (sscanf(line, "%lx-%lx ", &start, &end) == 2)
			inside = start < (uintptr_t)base + file_length && (uintptr_t)base < end;
		else if (inside && sscanf(line, "Size: %ld", &kilobytes) == 1)
			mapped += kilobytes;
		else if (inside && sscanf(line, "Rss: %ld", &kilobytes) == 1)
			resident += kilobytes;
		else if (inside && !strncmp(line, "VmFlags:", 8))
			parts++, locked += strstr(line, " lo") != NULL;
	}
	fclose(maps);
	printf("%s: %s, %s\n", when, locked == parts ? "locked" : locked ? "locked in part" : "not locked",
	       resident == mapped ? "all there" : "not all there");
}

static void say(const char *what, int result)
{
	printf("%s: %s\n", what, result ? strerror(errno) : "done");
	fflush(stdout);
}

static unsigned char *map_again(void)
{
	unsigned char *base = mmap(NULL, file_length, PROT_READ, MAP_SHARED, file_descriptor, 0);
	if (base == MAP_FAILED)
		fail("mmap");
	read_pages(base, 0, 3 * MIB);
	return base;
}

int main(int count, char **arguments)
{
	(void)count;
	struct rlimit limit = { RLIM_INFINITY, RLIM_INFINITY };
	setrlimit(RLIMIT_MEMLOCK, &limit);
	unsigned char *base = (unsigned char *)map_file(arguments, PROT_READ, MAP_SHARED);
	read_pages(base, 0, 3 * MIB);
	say("what is there", mlockall(MCL_CURRENT));
	show("armed before", base);
	read_pages(base, 0, file_length);
	say("nothing", munlockall());
	show("unlocked", base);

	unsigned char *second = map_again();
	say("on fault", mlockall(MCL_CURRENT | MCL_ONFAULT));
	read_pages(second, 0, 20 * MIB);
	munmap(second + 4 * MIB, 4 * MIB);
	printf("%d\n", munlock(second + 16 * MIB, 4 * MIB));
	say("what comes", mlockall(MCL_FUTURE));
	unsigned char *third = map_again();
	rendezvous();
	read_pages(third, 0, file_length);
	show("what came", third);
	fflush(stdout);
	pid_t child = fork();
	if (child == 0) {
		/* Locks are not inherited. */
		show("in the child", third);
		unsigned char *own = map_again();
		printf("%x %x\n", read_pages(third, 0, file_length), read_pages(own, 0, file_length));
		fflush(stdout);
		_exit(0);
	}
	int status;
	waitpid(child, &status, 0);
	say("nothing", munlockall());

	/* For who may lock little: too much, and a part that is little enough. */
	if (geteuid() == 0 && (child = fork()) == 0) {
		struct rlimit little = { MIB, MIB };
		unsigned char *mine = map_again();
		setrlimit(RLIMIT_MEMLOCK, &little);
		if (setgid(65534) || setuid(65534))
			fail("setuid");
		say("too much", mlockall(MCL_CURRENT));
		say("too much of one", mlock(mine, file_length));
		say("a page", mlock(mine + 30 * MIB, PAGE));
		printf("%x\n", read_pages(mine, 0, file_length));
		fflush(stdout);
		_exit(0);
	}
	waitpid(child, &status, 0);
	printf("%x\n", read_pages(base, 0, file_length));
	return 0;
}
