/* Expected: system calls that read from the mapping transfer every byte, wherever the buffer begins: in a
 * closed page, or so that one lies in its middle.
 * @counter lifted_for_calls 1 */
#include "hostile.h"

static size_t position;

static void expect(const char *what, ssize_t got, size_t wanted)
{
	if (got != (ssize_t)wanted)
		printf("%s at %zu: %zd instead of %zu (%s)\n", what, position, got, wanted, strerror(errno));
	errno_stays(what);
}

static void expect_same(const char *what, const void *got, const void *wanted, size_t length)
{
	if (memcmp(got, wanted, length))
		printf("%s at %zu: other bytes\n", what, position);
}

/* A pipe takes 64 KiB at most: the rest is the same call again. */
static void through_pipe(unsigned char *buffer, char *back)
{
	int ends[2];
	if (pipe(ends))
		fail("pipe");
	expect("write to a pipe", write(ends[1], buffer, 65536), 65536);
	size_t got = 0;
	for (ssize_t part; got < 65536 && (part = read(ends[0], back + got, 65536 - got)) > 0;)
		got += part;
	expect_same("write to a pipe", back, buffer, 65536);
	close(ends[0]), close(ends[1]);
}

/* Each datagram arrives once. */
static void through_datagrams(unsigned char *buffer, char *back)
{
	int pair[2];
	if (socketpair(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK, 0, pair))
		fail("socketpair");
	struct iovec parts[2] = { { buffer, 5000 }, { buffer + 600000, 5000 } };
	struct msghdr message = { .msg_iov = parts, .msg_iovlen = 2 };
	expect("send", send(pair[0], buffer, 5000, 0), 5000);
	expect("sendto", sendto(pair[0], buffer + 5000, 5000, 0, NULL, 0), 5000);
	expect("sendmsg", sendmsg(pair[0], &message, 0), 10000);
	expect("recv", recv(pair[1], back, 20000, 0), 5000);
	expect_same("send", back, buffer, 5000);
	expect("recv", recv(pair[1], back, 20000, 0), 5000);
	expect_same("sendto", back, buffer + 5000, 5000);
	expect("recv", recv(pair[1], back, 20000, 0), 10000);
	expect_same("sendmsg", back, buffer, 5000);
	expect_same("sendmsg", back + 5000, buffer + 600000, 5000);
	if (recv(pair[1], back, 20000, 0) != -1 || errno != EAGAIN)
		printf("one datagram too many at %zu\n", position);
	errno = PLANTED;
	close(pair[0]), close(pair[1]);
}

static void to_file(int copy, unsigned char *buffer, char *back, size_t length)
{
	struct iovec parts[2] = { { buffer, length }, { buffer + 2 * length, length } };
	expect("pwrite", pwrite(copy, buffer, length, 0), length);
	expect("pread", pread(copy, back, length, 0), length);
	expect_same("pwrite", back, buffer, length);
	lseek(copy, 0, SEEK_SET);
	expect("writev", writev(copy, parts, 2), 2 * length);
	expect("pread", pread(copy, back, length, length), length);
	expect_same("writev", back, buffer + 2 * length, length);
	parts[0].iov_base = buffer + 3 * length;
	expect("pwritev", pwritev(copy, parts, 1, 0), length);
	expect("pread", pread(copy, back, length, 0), length);
	expect_same("pwritev", back, buffer + 3 * length, length);
	parts[0].iov_base = buffer + 4 * length;
	expect("pwritev2", pwritev2(copy, parts, 1, 0, 0), length);
	expect("pread", pread(copy, back, length, 0), length);
	expect_same("pwritev2", back, buffer + 4 * length, length);
}

int main(int count, char **arguments)
{
	(void)count;
	unsigned char *base = (unsigned char *)map_file(arguments, PROT_READ, MAP_SHARED);
	char name[] = "copy-XXXXXX";
	int on_disk = mkstemp(name), in_memory = memfd_create("copy", 0);
	size_t length = 300000;
	char *back = malloc(length);
	errno = PLANTED;
	/* Three distances and three pages at a time: the buffers begin before, at and behind closed pages. */
	for (position = 0; position + 6 * length < file_length; position += 3 * MIB + 12288) {
		through_pipe(base + position, back);
		through_datagrams(base + position + 65536, back);
		to_file(on_disk, base + position, back, length);
		to_file(in_memory, base + position + 100, back, length);
		if (position < file_length / 2 && position + 3 * MIB + 12288 >= file_length / 2)
			rendezvous();
	}
	printf("done at %zu\n", position);
	return 0;
}
