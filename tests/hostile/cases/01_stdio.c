/* Expected: stdio writes all of what lies in closed pages, and reads all of it into them, under each name that it has, with
 * those that headers declare for fortified programs; so do the fortified names of read and recv. (The length of a text is measured
 * first, in the program: of texts nothing is closed any more when the kernel comes.)
 * @own-data
 * @counter lifted_for_calls 22 */
#include "hostile.h"
#include <stdarg.h>

/* So much that stdio leaves its own buffer out. */
enum { LENGTH = 300000 };

extern size_t __fread_chk(void *, size_t, size_t, size_t, FILE *), __fread_unlocked_chk(void *, size_t, size_t, size_t, FILE *);
extern ssize_t __read_chk(int, void *, size_t, size_t), __pread_chk(int, void *, size_t, off_t, size_t);
extern ssize_t __pread64_chk(int, void *, size_t, off_t, size_t), __recv_chk(int, void *, size_t, size_t, int);
extern ssize_t __recvfrom_chk(int, void *, size_t, size_t, int, struct sockaddr *, socklen_t *);
extern int __printf_chk(int, const char *, ...), __fprintf_chk(FILE *, int, const char *, ...);
extern int __dprintf_chk(int, int, const char *, ...), __vprintf_chk(int, const char *, va_list);
extern int __vfprintf_chk(FILE *, int, const char *, va_list), __vdprintf_chk(int, int, const char *, va_list);

static unsigned char *from, *to;
static char text[LENGTH + 1], back[LENGTH + 1];

static unsigned char *map_anew(int protection, int flags)
{
	volatile unsigned char *base = mmap(NULL, file_length, protection, flags, file_descriptor, 0);
	if (base == MAP_FAILED)
		fail("mmap");
	for (size_t at = 62 * MIB; at < 63 * MIB; at += PAGE)
		(void)base[at];
	return (unsigned char *)base;
}

/* A text that nobody has touched, in no order. After some such jumps a mapping is taken for one that is read in no order, and
 * opened: then others. */
static size_t fresh(void)
{
	static size_t turn;
	if (turn % 5 == 0) {
		from = map_anew(PROT_READ, MAP_SHARED);
		to = map_anew(PROT_READ | PROT_WRITE, MAP_PRIVATE);
	}
	return turn++ * 37 % 61 * MIB + 3 * PAGE;
}

/* A file that holds so much of the text, at its beginning. */
static FILE *holding(size_t size)
{
	FILE *stream = tmpfile();
	if (!stream || pwrite(fileno(stream), text, size, 0) != (ssize_t)size)
		fail("tmpfile");
	return stream;
}

/* What was written is there, and this after it; the call gave what it should. */
static void expect_written(const char *what, FILE *stream, long got, long wanted, const char *end)
{
	size_t size = LENGTH + strlen(end);
	errno_stays(what);
	if (fflush(stream))
		printf("%s: %s\n", what, strerror(errno));
	if (got != wanted)
		printf("%s: %ld instead of %ld\n", what, got, wanted);
	if (pread(fileno(stream), back, sizeof back, 0) != (ssize_t)size || memcmp(back, text, LENGTH) || memcmp(back + LENGTH, end, strlen(end)))
		printf("%s: other bytes\n", what);
	fclose(stream);
}

static void expect_read(const char *what, const unsigned char *place, long got, long wanted)
{
	if (got != wanted)
		printf("%s: %ld instead of %ld (%s)\n", what, got, wanted, strerror(errno));
	errno_stays(what);
	if (memcmp(place, text, LENGTH))
		printf("%s: other bytes\n", what);
}

/* Calls that write to a stream of their own. */
#define WRITES(name, call, wanted)                                    \
	do {                                                          \
		size_t at = fresh();                                  \
		const char *string = (const char *)from + at;         \
		FILE *stream = holding(0);                            \
		errno = PLANTED;                                      \
		long got = call;                                      \
		expect_written(name, stream, got, wanted, "");        \
	} while (0)

/* And those that write to standard output, which is another file meanwhile. */
#define PRINTS(name, call, wanted, end)                               \
	do {                                                          \
		size_t at = fresh();                                  \
		const char *string = (const char *)from + at;         \
		FILE *stream = holding(0);                            \
		fflush(stdout);                                       \
		int kept = dup(1);                                    \
		dup2(fileno(stream), 1);                              \
		errno = PLANTED;                                      \
		long got = call;                                      \
		fflush(stdout);                                       \
		dup2(kept, 1);                                        \
		close(kept);                                          \
		expect_written(name, stream, got, wanted, end);       \
	} while (0)

#define READS(name, call, wanted)                                     \
	do {                                                          \
		size_t at = fresh();                                  \
		unsigned char *place = to + at;                       \
		FILE *stream = holding(LENGTH);                       \
		errno = PLANTED;                                      \
		long got = call;                                      \
		expect_read(name, place, got, wanted);                \
		fclose(stream);                                       \
	} while (0)

static int listed(int (*call)(FILE *, const char *, va_list), FILE *stream, const char *format, ...)
{
	va_list list;
	va_start(list, format);
	int got = call(stream, format, list);
	va_end(list);
	return got;
}
static int to_output(FILE *stream, const char *format, va_list list)
{
	(void)stream;
	return vprintf(format, list);
}
static int to_output_checked(FILE *stream, const char *format, va_list list)
{
	(void)stream;
	return __vprintf_chk(1, format, list);
}
static int to_stream_checked(FILE *stream, const char *format, va_list list)
{
	return __vfprintf_chk(stream, 1, format, list);
}
static int to_descriptor(FILE *stream, const char *format, va_list list)
{
	return vdprintf(fileno(stream), format, list);
}
static int to_descriptor_checked(FILE *stream, const char *format, va_list list)
{
	return __vdprintf_chk(fileno(stream), 1, format, list);
}

static void write_all(void)
{
	WRITES("fwrite", fwrite(string, 100, LENGTH / 100, stream), LENGTH / 100);
	WRITES("fwrite_unlocked", fwrite_unlocked(string, 1, LENGTH, stream), LENGTH);
	WRITES("fputs", fputs(string, stream) >= 0, 1);
	WRITES("fputs_unlocked", fputs_unlocked(string, stream) >= 0, 1);
	WRITES("fprintf", fprintf(stream, "%s", string), LENGTH);
	WRITES("vfprintf", listed(vfprintf, stream, "%s", string), LENGTH);
	WRITES("dprintf", dprintf(fileno(stream), "%s", string), LENGTH);
	WRITES("vdprintf", listed(to_descriptor, stream, "%s", string), LENGTH);
	WRITES("__fprintf_chk", __fprintf_chk(stream, 1, "%s", string), LENGTH);
	WRITES("__vfprintf_chk", listed(to_stream_checked, stream, "%s", string), LENGTH);
	WRITES("__dprintf_chk", __dprintf_chk(fileno(stream), 1, "%s", string), LENGTH);
	WRITES("__vdprintf_chk", listed(to_descriptor_checked, stream, "%s", string), LENGTH);
	PRINTS("puts", puts(string) >= 0, 1, "\n");
	PRINTS("printf", printf("%s", string), LENGTH, "");
	PRINTS("vprintf", listed(to_output, stdout, "%s", string), LENGTH, "");
	PRINTS("__printf_chk", __printf_chk(1, "%s", string), LENGTH, "");
	PRINTS("__vprintf_chk", listed(to_output_checked, stdout, "%s", string), LENGTH, "");
}

static void read_all(void)
{
	READS("fread", fread(place, 100, LENGTH / 100, stream), LENGTH / 100);
	READS("fread_unlocked", fread_unlocked(place, 1, LENGTH, stream), LENGTH);
	READS("__fread_chk", __fread_chk(place, MIB, 100, LENGTH / 100, stream), LENGTH / 100);
	READS("__fread_unlocked_chk", __fread_unlocked_chk(place, MIB, 1, LENGTH, stream), LENGTH);
	READS("__read_chk", (lseek(fileno(stream), 0, SEEK_SET), __read_chk(fileno(stream), place, LENGTH, MIB)), LENGTH);
	READS("__pread_chk", __pread_chk(fileno(stream), place, LENGTH, 0, MIB), LENGTH);
	READS("__pread64_chk", __pread64_chk(fileno(stream), place, LENGTH, 0, MIB), LENGTH);
}

static void receive_all(void)
{
	int pair[2];
	if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair))
		fail("socketpair");
	for (int from_whom = 0; from_whom < 2; from_whom++) {
		unsigned char *place = to + fresh();
		/* What fits into a socket of anybody's. */
		ssize_t sent = send(pair[0], text, 50000, MSG_DONTWAIT);
		errno = PLANTED;
		ssize_t got = from_whom ? __recvfrom_chk(pair[1], place, LENGTH, MIB, 0, NULL, NULL) : __recv_chk(pair[1], place, LENGTH, MIB, 0);
		errno_stays("received");
		if (got != sent || memcmp(place, text, got))
			printf("%s: %zd of %zd (%s)\n", from_whom ? "__recvfrom_chk" : "__recv_chk", got, sent, strerror(errno));
	}
	close(pair[0]), close(pair[1]);
}

int main(int count, char **arguments)
{
	(void)count;
	open_file(arguments);
	for (size_t i = 0; i < LENGTH; i++)
		text[i] = 'a' + i % 26 + (i / 4096 % 2 ? 'A' - 'a' : 0);
	int file = open(arguments[1], O_RDWR);
	for (size_t at = 3 * PAGE; at < file_length; at += MIB)
		if (pwrite(file, text, sizeof text, at) != sizeof text)
			fail("pwrite");
	/* stdio's own buffer is there before it is measured. */
	puts("texts");
	for (int pass = 0; pass < 2; pass++) {
		write_all();
		read_all();
		receive_all();
		if (!pass)
			rendezvous();
	}
	puts("done");
	return 0;
}
