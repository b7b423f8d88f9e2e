/* What the hostile cases in C share: the readers' mapped file, and the rendezvous. */
#include "../../reader/programs/common.h"

/* Half-way: tells the harness, and waits until it has done to the optimizer what it wants to do. */
static inline void rendezvous(void)
{
	const char *folder = getenv("HOSTILE_RENDEZVOUS");
	char name[4096], byte = 0;
	int file;
	if (!folder)
		return;
	fflush(stdout);
	snprintf(name, sizeof name, "%s/reached", folder);
	if ((file = open(name, O_WRONLY)) < 0 || write(file, &byte, 1) != 1)
		fail(name);
	close(file);
	snprintf(name, sizeof name, "%s/go", folder);
	if ((file = open(name, O_RDONLY)) < 0)
		fail(name);
	while (read(file, &byte, 1) != 1)
		if (errno != EINTR)
			fail(name);
	close(file);
}

/* This process must be a reader in the report, under its own number and with at least so many trips; of those that do not say
 * so none may be. */
static inline void must_be_served(int least)
{
	const char *folder = getenv("HOSTILE_RENDEZVOUS");
	char name[4096];
	int file;
	if (!folder)
		return;
	snprintf(name, sizeof name, "%s/served", folder);
	if ((file = open(name, O_WRONLY | O_CREAT | O_APPEND, 0600)) < 0 || dprintf(file, "%d %d\n", getpid(), least) < 0)
		fail(name);
	close(file);
}

/* How many rounds a case goes: as many as HOSTILE_ROUNDS says, which a long run sets. */
static inline int rounds(int usual)
{
	const char *wanted = getenv("HOSTILE_ROUNDS");
	return wanted ? atoi(wanted) : usual;
}

/* Is in errno before each call where it must stay: no call sets it to this. */
enum { PLANTED = 1234 };

/* Tells what a call that succeeded, or others since the last time, left in errno, if it is not what was there: natively it would
 * be the same. */
static inline void errno_stays(const char *what)
{
	if (errno != PLANTED)
		printf("%s: leaves errno %d\n", what, errno);
	errno = PLANTED;
}

/* Parts of files' mappings that nobody may access, as a curtain is. */
static inline int closed_areas(void)
{
	char line[256];
	FILE *maps = fopen("/proc/self/maps", "r");
	int closed = 0;
	while (fgets(line, sizeof line, maps)) {
		unsigned long start, end;
		char protection[5];
		if (sscanf(line, "%lx-%lx %4s", &start, &end, protection) == 3 && !strcmp(protection, "---s"))
			closed++;
	}
	fclose(maps);
	return closed;
}
