/* What a process has of what can leak, to be compared with what it has many rounds later. */
#include <dirent.h>
#include <stdbool.h>

typedef struct {
	long mappings, descriptors, threads, address_space, private_memory;
} Possessions;

static long entries(const char *folder)
{
	long count = 0;
	DIR *stream = opendir(folder);
	if (!stream)
		fail(folder);
	while (readdir(stream))
		count++;
	closedir(stream);
	return count;
}

/* Sizes in KiB. */
static Possessions possessions(void)
{
	static char line[4096];
	Possessions has = {0};
	FILE *stream = fopen("/proc/self/maps", "r");
	while (stream && fgets(line, sizeof line, stream))
		has.mappings++;
	if (!stream || fclose(stream) || !(stream = fopen("/proc/self/status", "r")))
		fail("/proc/self");
	while (fgets(line, sizeof line, stream)) {
		sscanf(line, "VmSize: %ld", &has.address_space);
		sscanf(line, "RssAnon: %ld", &has.private_memory);
		sscanf(line, "Threads: %ld", &has.threads);
	}
	fclose(stream);
	has.descriptors = entries("/proc/self/fd");
	return has;
}

/* When no more threads are left than that, or after some seconds: one that has been joined is counted until the kernel has taken
 * it away, which nothing tells. */
static inline Possessions possessions_with(long threads)
{
	Possessions has = possessions();
	for (int pauses = 0; has.threads > threads && pauses < 5000; pauses++) {
		usleep(1000);
		has = possessions();
	}
	return has;
}

static bool is_childless(void)
{
	return waitpid(-1, NULL, WNOHANG) == -1 && errno == ECHILD;
}

/* Says what a case has more of than it had at first. Page tables are filled, and stacks and areas kept, as threads happen to
 * meet: what leaks with every round is more than that. */
static inline void print_leaks(const Possessions *first)
{
	Possessions last = possessions_with(first->threads);
	long mappings = last.mappings - first->mappings, memory = last.private_memory - first->private_memory;
	printf("descriptors %+ld, threads %+ld, ", last.descriptors - first->descriptors, last.threads - first->threads);
	printf("mappings %s, private memory %s, %s\n", mappings > 32 ? "more" : "as before",
		memory > 4096 ? "more" : "as before", is_childless() ? "no child is left" : "a child is left");
}
