/* Expected: a program that becomes another user and back while its threads read, whose children become others for good, fork,
 * map files and execute programs, reads on, and the dynamic loader has nothing to say about us.
 * @root */
#include "hostile.h"

#define NOBODY 65534

extern char **environ;
static volatile int over;

static void *reader(void *unused)
{
	(void)unused;
	while (!over) {
		void *base = mmap(NULL, file_length, PROT_READ, MAP_SHARED, file_descriptor, 0);
		if (base == MAP_FAILED)
			fail("mmap");
		read_pages(base, 0, 4 * MIB);
		munmap(base, file_length);
	}
	return NULL;
}

static void end_of(const char *what, pid_t child)
{
	int status;
	waitpid(child, &status, 0);
	printf("%s: %x\n", what, status);
	fflush(stdout);
}

static void become_nobody(void)
{
	if (setgid(NOBODY) || setuid(NOBODY))
		fail("setuid");
}

int main(int count, char **arguments)
{
	if (count > 2) {
		/* Executed by nobody, who has the file open and could not open it. */
		file_descriptor = atoi(arguments[2]);
		struct stat status;
		fstat(file_descriptor, &status);
		file_length = status.st_size;
		void *base = mmap(NULL, file_length, PROT_READ, MAP_SHARED, file_descriptor, 0);
		printf("%d reads %x\n", geteuid(), read_pages(base, 0, file_length));
		return 0;
	}
	int program = open("/proc/self/exe", O_RDONLY);
	volatile unsigned char *base = map_file(arguments, PROT_READ, MAP_SHARED);
	read_pages(base, 0, 3 * MIB);
	fflush(stdout);

	pid_t child = fork();
	if (child == 0) {
		become_nobody();
		printf("%d reads %x\n", geteuid(), read_pages(base, 0, file_length / 2));
		void *again = mmap(NULL, file_length, PROT_READ, MAP_SHARED, file_descriptor, 0);
		printf("and maps %x\n", read_pages(again, 0, file_length));
		fflush(stdout);
		if (fork() == 0)
			_exit(read_pages(base, 0, file_length) != read_pages(again, 0, file_length));
		int status;
		wait(&status);
		_exit(status);
	}
	end_of("a child that reads", child);

	child = fork();
	if (child == 0) {
		char number[16], *again[] = { arguments[0], arguments[1], number, NULL };
		sprintf(number, "%d", file_descriptor);
		become_nobody();
		fexecve(program, again, environ);
		_exit(77);
	}
	end_of("a child that executes", child);

	child = fork();
	if (child == 0) {
		char *words[] = { "sh", "-c", "echo $(id -u); true; /bin/true", NULL };
		become_nobody();
		execv("/bin/sh", words);
		_exit(77);
	}
	end_of("a shell", child);
	rendezvous();

	/* Back and forth: glibc stops each thread by a signal to change its user too. */
	pthread_t threads[4];
	for (int i = 0; i < 4; i++)
		pthread_create(&threads[i], NULL, reader, NULL);
	for (int i = 0; i < 30; i++)
		if (seteuid(i % 2 ? 0 : NOBODY))
			fail("seteuid");
	over = 1;
	for (int i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
	printf("%d reads %x\n", geteuid(), read_pages(base, 0, file_length));
	return 0;
}
