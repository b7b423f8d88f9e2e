/* Prints what calls cost whose buffers lie elsewhere, while files are mapped: name and nanoseconds, the best of many. */
#include "common.h"
#include <sys/syscall.h>
#include <time.h>

static double now(void)
{
	struct timespec time;
	clock_gettime(CLOCK_MONOTONIC, &time);
	return time.tv_sec * 1e9 + time.tv_nsec;
}

#define MEASURE(name, call)                                                    \
	do {                                                                   \
		double best = 1e9;                                             \
		for (int batch = 0; batch < 2000; batch++) {                   \
			double start = now();                                  \
			for (int i = 0; i < 200; i++)                          \
				(void)!(call);                                 \
			double each = (now() - start) / 200;                   \
			best = each < best ? each : best;                      \
		}                                                              \
		fprintf(results, "%-24s %.1f\n", name, best);                 \
	} while (0)

int main(int count, char **arguments)
{
	(void)count;
	FILE *results = fdopen(dup(1), "w"), *null = fopen("/dev/null", "w");
	if (!freopen("/dev/null", "w", stdout))
		fail("/dev/null");
	volatile unsigned char *base[4];
	for (int i = 0; i < 4; i++) {
		base[i] = map_file(arguments, PROT_READ, MAP_SHARED);
		read_pages(base[i], 0, 8 * MIB);
	}
	char on_stack[64] = "text", *on_heap = malloc(64);
	/* Between the mappings, where addresses alone do not tell. */
	char *between = mmap(NULL, 4 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	munmap((void *)base[1], file_length);
	char *hole = mmap((void *)(base[1] + file_length / 2), PAGE, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
	strcpy(on_heap, "text"), strcpy(between, "text"), strcpy(hole, "text");
	struct { const char *name; char *buffer; } places[] = { { "stack", on_stack }, { "heap", on_heap }, { "mmap", between }, { "hole", hole } };
	for (int i = 0; i < 4; i++) {
		char name[64], *buffer = places[i].buffer;
		struct iovec part = { buffer, 8 };
		struct msghdr message = { .msg_iov = &part, .msg_iovlen = 1 };
#define NAMED(call) (snprintf(name, sizeof name, "%s %s", call, places[i].name), name)
		MEASURE(NAMED("write"), write(-1, buffer, 8));
		MEASURE(NAMED("read"), read(-1, buffer, 8));
		MEASURE(NAMED("send"), send(-1, buffer, 8, 0));
		MEASURE(NAMED("writev"), writev(-1, &part, 1));
		MEASURE(NAMED("sendmsg"), sendmsg(-1, &message, 0));
		MEASURE(NAMED("fwrite"), fwrite_unlocked(buffer, 1, 8, null));
		MEASURE(NAMED("fputs"), fputs_unlocked(buffer, null));
		MEASURE(NAMED("fprintf"), fprintf(null, "%s", buffer));
		MEASURE(NAMED("syscall write"), syscall(SYS_write, -1, buffer, 8L));
	}
	MEASURE("syscall getppid", syscall(SYS_getppid));
	return 0;
}
