/* Expected: calls that fill memory of the mapping store every byte, and no datagram is lost or taken twice.
 * @own-data
 * @no-guards private mappings have none
 * @counter lifted_for_calls 1 */
#include "hostile.h"
#include <dirent.h>
#include <sys/syscall.h>

static void expect(const char *what, ssize_t got, ssize_t wanted)
{
	if (got != wanted)
		printf("%s: %zd instead of %zd (%s)\n", what, got, wanted, strerror(errno));
	if (got >= 0)
		errno_stays(what);
}

static void fill(const char *what, unsigned char *base)
{
	int pair[2], source = memfd_create("source", 0);
	unsigned char *pattern = malloc(300000);
	for (size_t i = 0; i < 300000; i++)
		pattern[i] = i * 31 + (i >> 8);
	if (socketpair(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK, 0, pair) || write(source, pattern, 300000) != 300000)
		fail("source");
	errno = PLANTED;
	for (size_t at = MIB; at + 2 * MIB < file_length; at += 5 * MIB + 4096) {
		unsigned char *to = base + at;
		expect("pread", pread(source, to, 300000, 0), 300000);
		if (memcmp(to, pattern, 300000))
			printf("%s: pread at %zu stored other bytes\n", what, at);
		to += 400000;
		lseek(source, 0, SEEK_SET);
		struct iovec parts[2] = { { to, 5000 }, { to + 100000, 5000 } };
		expect("readv", readv(source, parts, 2), 10000);
		if (memcmp(to + 100000, pattern + 5000, 5000))
			printf("%s: readv at %zu stored other bytes\n", what, at);
		to += 200000;
		for (int i = 0; i < 3; i++)
			expect("send", send(pair[0], pattern + i, 5000, 0), 5000);
		expect("recv", recv(pair[1], to, 5000, 0), 5000);
		struct msghdr message = { .msg_iov = parts, .msg_iovlen = 1 };
		parts[0].iov_base = to + 100000;
		expect("recvmsg", recvmsg(pair[1], &message, 0), 5000);
		struct sockaddr_storage from;
		socklen_t from_length = sizeof from;
		expect("recvfrom", recvfrom(pair[1], to + 200000, 5000, 0, (void *)&from, &from_length), 5000);
		for (int i = 0; i < 3; i++)
			if (memcmp(to + i * 100000, pattern + i, 5000))
				printf("%s: datagram %d at %zu is another\n", what, i, at);
		expect("nothing left", recv(pair[1], to, 5000, 0), -1);
		errno = PLANTED;
		if (at < file_length / 2 && at + 5 * MIB + 4096 >= file_length / 2)
			rendezvous();
	}
	/* A bad buffer stays bad, and takes no datagram. */
	expect("send", send(pair[0], pattern, 100, 0), 100);
	expect("recv nowhere", recv(pair[1], (void *)8, 100, 0), -1);
	printf("%s: %s\n", what, strerror(errno));
	close(pair[0]), close(pair[1]), close(source);
	free(pattern);
}

int main(int count, char **arguments)
{
	(void)count;
	fill("private", (unsigned char *)map_file(arguments, PROT_READ | PROT_WRITE, MAP_PRIVATE));
	int file = open(arguments[1], O_RDWR);
	unsigned char *shared = mmap(NULL, file_length, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
	if (shared == MAP_FAILED)
		fail("mmap");
	fill("shared", shared);
	return 0;
}
