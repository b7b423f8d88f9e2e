/* Expected: a read into mapped memory that is interrupted by a signal, whose handler forks, stores every byte when it goes
 * on, in the parent and in the child.
 * @counter active_readers 2 */
#include "hostile.h"
#include <sys/syscall.h>

static volatile unsigned char *base;
static int ends[2];
static char text[3 * PAGE];

static void handler(int signal)
{
	(void)signal;
	pid_t child = fork();
	/* The child's first look at its inheritance: all of it is closed anew, what the read fills as well. */
	if (child == 0 && *(volatile uint32_t *)(base + 50 * MIB) != word_at(50 * MIB))
		_exit(3);
	int status = 0;
	if (child && (waitpid(child, &status, 0) != child || status))
		_exit(4);
	/* What the read waits for. */
	if (write(ends[1], text, sizeof text) != sizeof text)
		_exit(5);
}

/* Sends the signal once the main thread waits in its read. */
static void *interrupt(void *main_thread)
{
	char path[64];
	long call = -1;
	snprintf(path, sizeof path, "/proc/self/task/%d/syscall", getpid());
	while (call != SYS_read) {
		FILE *now = fopen(path, "r");
		if (!now)
			fail(path);
		if (fscanf(now, "%ld", &call) != 1)
			call = -1;
		fclose(now);
	}
	pthread_kill(*(pthread_t *)main_thread, SIGUSR1);
	return NULL;
}

int main(int count, char **arguments)
{
	(void)count;
	base = map_file(arguments, PROT_READ, MAP_SHARED);
	char *buffer = mmap(NULL, file_length, PROT_READ | PROT_WRITE, MAP_PRIVATE, file_descriptor, 0);
	buffer += 20 * MIB - PAGE;
	read_pages(base, 0, MIB);
	rendezvous();
	memset(text, 'x', sizeof text);
	struct sigaction action = { .sa_handler = handler, .sa_flags = SA_RESTART };
	sigaction(SIGUSR1, &action, NULL);
	if (pipe(ends))
		fail("pipe");
	pid_t parent = getpid();
	pthread_t self = pthread_self(), other;
	pthread_create(&other, NULL, interrupt, &self);
	ssize_t got = read(ends[0], buffer, sizeof text);
	printf("%s: %zd, %s\n", getpid() == parent ? "parent" : "child", got, got < 0 ? strerror(errno) : "");
	printf("%s\n", memcmp(buffer, text, sizeof text) ? "wrong" : "all of it");
	return 0;
}
