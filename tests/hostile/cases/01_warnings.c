/* Expected: while other threads read the same mapping over and over, so that pages behind them are closed again, warn(3), err(3) and
 * their kin, perror(3) and those of signals and hosts write all of a long text in it to a standard error that has a buffer, and end the program as they should.
 * @own-data */
#include "hostile.h"
#include <err.h>
#include <netdb.h>
#include <stdarg.h>

/* So much that stdio leaves its own buffer out, and the kernel is at it for a while. */
enum { LENGTH = 4 * MIB };

static volatile unsigned char *base;
static volatile int stop;
static char back[LENGTH + 200];
static char *text;

static void *reader(void *unused)
{
	for (size_t epoch = 0; !stop; epoch++)
		for (size_t at = epoch % 13 * 5 * PAGE; at < file_length && !stop; at += (1 + epoch % 3) * MIB / 4)
			(void)base[at];
	return unused;
}

static void listed(void (*call)(const char *, va_list), const char *format, ...)
{
	va_list list;
	va_start(list, format);
	call(format, list);
	va_end(list);
}

static void ending(void (*call)(int, const char *, va_list), int status, const char *format, ...)
{
	va_list list;
	va_start(list, format);
	call(status, format, list);
	va_end(list);
}

/* Many arguments, some of them no words. */
#define MANY "%s%s%d%d%d%d%d%g%g", (char *)base + at, " ", 1, 2, 3, 4, 5, 6.5, 7.25
#define SAID " 123456.57.25"

static void tell(int how, size_t at)
{
	errno = ENOENT;
	switch (how) {
	case 0: warn(MANY); break;
	case 1: warnx(MANY); break;
	case 2: listed(vwarn, MANY); break;
	case 3: listed(vwarnx, MANY); break;
	case 4: err(5, MANY); break;
	case 5: errx(6, MANY); break;
	case 6: ending(verr, 7, MANY); break;
	case 7: ending(verrx, 8, MANY); break;
	}
}

/* What has been written is all of the text, with what comes before and after it. */
static int is_whole(int how, int file)
{
	ssize_t length = pread(file, back, sizeof back - 1, 0);
	const char *end = how % 2 ? SAID "\n" : SAID ": No such file or directory\n";
	back[length < 0 ? 0 : length] = 0;
	const char *found = strstr(back, ": ");
	return found && strncmp(found + 2, text, LENGTH) == 0 && strcmp(found + 2 + LENGTH, end) == 0;
}

/* Begins with the text, and goes on so. */
static int begins(int how, int file)
{
	static const char *const after[] = { ": No such file or directory\n", ": User defined signal 1\n", ": User defined signal 1 (", ": Unknown host\n" };
	ssize_t length = pread(file, back, sizeof back - 1, 0);
	back[length < 0 ? 0 : length] = 0;
	return strncmp(back, text, LENGTH) == 0 && strncmp(back + LENGTH, after[how], strlen(after[how])) == 0;
}

static void explain(int how, size_t at)
{
	const siginfo_t what = { .si_signo = SIGUSR1, .si_code = SI_USER };
	const char *there = (const char *)base + at;
	errno = ENOENT;
	h_errno = HOST_NOT_FOUND;
	switch (how) {
	case 0: perror(there); break;
	case 1: psignal(SIGUSR1, there); break;
	case 2: psiginfo(&what, there); break;
	case 3: herror(there); break;
	}
}

int main(int count, char **arguments)
{
	(void)count;
	open_file(arguments);
	text = malloc(LENGTH + 1);
	for (int i = 0; i < LENGTH; i++)
		text[i] = 'a' + i % 26 + (i / 4096 % 2 ? 'A' - 'a' : 0);
	text[LENGTH] = 0;
	int file = open(arguments[1], O_RDWR), output = memfd_create("stderr", 0), kept = dup(2);
	for (size_t at = 0; at + LENGTH < file_length; at += 5 * MIB)
		if (pwrite(file, text, LENGTH + 1, at) != LENGTH + 1)
			fail("pwrite");
	base = map_file(arguments, PROT_READ, MAP_SHARED);
	pthread_t readers[4];
	for (int i = 0; i < 4; i++)
		pthread_create(&readers[i], NULL, reader, NULL);
	dup2(output, 2);
	setvbuf(stderr, NULL, _IOFBF, 1 << 16);
	int wrong = 0;
	for (int round = 0; round < 200; round++) {
		if (ftruncate(output, 0) || lseek(output, 0, SEEK_SET))
			fail("a memory file");
		tell(round % 4, round % 12 * 5 * MIB);
		fflush(stderr);
		wrong += !is_whole(round % 4, output);
		if (ftruncate(output, 0) || lseek(output, 0, SEEK_SET))
			fail("a memory file");
		explain(round % 4, round % 12 * 5 * MIB);
		fflush(stderr);
		wrong += !begins(round % 4, output);
		if (round == 100)
			rendezvous();
	}
	stop = 1;
	for (int i = 0; i < 4; i++)
		pthread_join(readers[i], NULL);
	for (int how = 4; how < 8; how++) {
		if (ftruncate(output, 0) || lseek(output, 0, SEEK_SET))
			fail("a memory file");
		pid_t child = fork();
		if (child == 0) {
			tell(how, how * 5 * MIB);
			_exit(0);
		}
		int status;
		waitpid(child, &status, 0);
		printf("%d: %s\n", WEXITSTATUS(status), is_whole(how, output) ? "all of it" : "other bytes");
	}
	dup2(kept, 2);
	printf("%d went wrong\n", wrong);
	return 0;
}
