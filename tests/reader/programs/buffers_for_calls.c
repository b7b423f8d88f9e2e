/* Expected: system calls and stdio that read from the mapping transfer every byte, wherever the buffer begins. */
#include "common.h"

static size_t position;

static void expect(const char *what, ssize_t got, size_t wanted)
{
	if (got != (ssize_t)wanted)
		printf("%s at %zu: %zd instead of %zu (%s)\n", what, position, got, wanted, strerror(errno));
}

int main(int count, char **arguments)
{
	(void)count;
	volatile unsigned char *base = map_file(arguments, PROT_READ, MAP_SHARED);
	char name[] = "/tmp/precache-buffers-XXXXXX";
	int copy = mkstemp(name), pair[2];
	unlink(name);
	FILE *stream = fdopen(dup(copy), "r+");
	if (socketpair(AF_UNIX, SOCK_DGRAM, 0, pair))
		fail("socketpair");
	size_t length = 300000;
	char *back = malloc(length);
	for (position = 0; position + 4 * length < file_length; position += 3 * MIB + 12288) {
		unsigned char *buffer = (unsigned char *)base + position;
		expect("write", pwrite(copy, buffer, length, 0), length);
		expect("pread", pread(copy, back, length, 0), length);
		if (memcmp(back, buffer, length))
			printf("other bytes at %zu\n", position);
		lseek(copy, 0, SEEK_SET);
		expect("write", write(copy, buffer + length, length), length);
		struct iovec parts[2] = { { buffer + 2 * length, 5000 }, { buffer + 3 * length, 5000 } };
		expect("writev", writev(copy, parts, 2), 10000);
		rewind(stream);
		expect("fwrite", fwrite(buffer + 3 * length, 1, length, stream), length);
		fflush(stream);
		expect("send", send(pair[0], buffer + 4 * length - 5000, 5000, 0), 5000);
		expect("recv", recv(pair[1], back, length, 0), 5000);
		if (memcmp(back, buffer + 4 * length - 5000, 5000))
			printf("other bytes were sent at %zu\n", position);
		struct msghdr message = { .msg_iov = parts, .msg_iovlen = 2 };
		expect("sendmsg", sendmsg(pair[0], &message, 0), 10000);
		expect("recv", recv(pair[1], back, length, 0), 10000);
	}
	printf("done at %zu\n", position);
	return 0;
}
