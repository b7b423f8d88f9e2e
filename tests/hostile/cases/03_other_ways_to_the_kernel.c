/* Expected: the rarer ways by which the kernel reads or fills mapped memory work from and into closed pages: syscall(),
 * vmsplice, process_vm_readv, sendmmsg, recvmmsg, aio, long texts by printf and kin, paths; and bad addresses stay bad.
 * @compile -lrt -Wno-nonnull -Wno-format-overflow
 * @own-data
 * @counter lifted_for_calls 1 */
#include "hostile.h"
#include <aio.h>
#include <sys/random.h>
#include <sys/syscall.h>

static const size_t length = 300000;
static size_t position;
static char *back;

static void expect(const char *what, ssize_t got, ssize_t wanted)
{
	if (got != wanted)
		printf("%s at %zu: %zd instead of %zd (%s)\n", what, position, got, wanted, strerror(errno));
}

static void expect_file(const char *what, int file, const void *wanted, size_t size)
{
	memset(back, 0, size);
	expect(what, pread(file, back, size, 0), size);
	if (memcmp(back, wanted, size))
		printf("%s at %zu: other bytes\n", what, position);
}

static void by_number(int copy, unsigned char *from)
{
	expect("SYS_pwrite64", syscall(SYS_pwrite64, copy, from, length, 0L), length);
	expect_file("SYS_pwrite64", copy, from, length);
	struct iovec part = { from + length, length };
	expect("SYS_pwritev", syscall(SYS_pwritev, copy, &part, 1L, 0L, 0L), length);
	expect_file("SYS_pwritev", copy, from + length, length);
	/* Six arguments, of which the last counts. */
	expect("SYS_process_vm_readv",
	       syscall(SYS_process_vm_readv, getpid(), &(struct iovec){ back, length }, 1L, &(struct iovec){ from + 2 * length, length },
		       1L, 0L),
	       length);
	if (memcmp(back, from + 2 * length, length))
		printf("SYS_process_vm_readv at %zu: other bytes\n", position);
	errno = 0;
	expect("SYS_process_vm_readv with a flag",
	       syscall(SYS_process_vm_readv, getpid(), &(struct iovec){ back, 1 }, 1L, &(struct iovec){ from, 1 }, 1L, 77L), -1);
	expect("its errno", errno, EINVAL);
}

static void by_pages(int copy, unsigned char *from)
{
	int ends[2];
	if (pipe(ends))
		fail("pipe");
	struct iovec part = { from, 60000 };
	expect("vmsplice", vmsplice(ends[1], &part, 1, 0), 60000);
	for (size_t got = 0; got < 60000;)
		got += read(ends[0], back + got, 60000 - got);
	if (memcmp(back, from, 60000))
		printf("vmsplice at %zu: other bytes\n", position);
	close(ends[0]), close(ends[1]);
	part = (struct iovec){ back, length };
	expect("process_vm_readv", process_vm_readv(getpid(), &part, 1, &(struct iovec){ from + length, length }, 1, 0), length);
	if (memcmp(back, from + length, length))
		printf("process_vm_readv at %zu: other bytes\n", position);
	(void)copy;
}

static void by_messages(unsigned char *from, unsigned char *to)
{
	int pair[2];
	if (socketpair(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK, 0, pair))
		fail("socketpair");
	struct iovec parts[3] = { { from, 5000 }, { from + 200000, 5000 }, { from + 400000, 5000 } };
	struct mmsghdr out[3] = { 0 }, in[3] = { 0 };
	for (int i = 0; i < 3; i++)
		out[i].msg_hdr = (struct msghdr){ .msg_iov = &parts[i], .msg_iovlen = 1 };
	expect("sendmmsg", sendmmsg(pair[0], out, 3, 0), 3);
	struct iovec places[3] = { { to, 5000 }, { to + 200000, 5000 }, { to + 400000, 5000 } };
	for (int i = 0; i < 3; i++)
		in[i].msg_hdr = (struct msghdr){ .msg_iov = &places[i], .msg_iovlen = 1 };
	expect("recvmmsg", recvmmsg(pair[1], in, 3, 0, NULL), 3);
	for (int i = 0; i < 3; i++)
		if (in[i].msg_len != 5000 || memcmp(to + i * 200000, from + i * 200000, 5000))
			printf("message %d at %zu: another\n", i, position);
	expect("nothing left", recv(pair[1], back, 1, 0), -1);
	close(pair[0]), close(pair[1]);
}

static void by_text(int copy, unsigned char *from)
{
	/* The file has no zero byte for 250 bytes or so: a text of 2 MiB is made in a private mapping. */
	FILE *stream = fdopen(dup(copy), "r+");
	size_t size = 2 * MIB + 1234;
	from[size] = 0;
	expect("fprintf", fprintf(stream, "%d%s%g%s", 1, (char *)from, 0.5, "end"), 1 + size + 3 + 3);
	fflush(stream);
	expect("pread", pread(copy, back, 4, size), 4);
	rewind(stream);
	expect("fputs", fputs((char *)from, stream) >= 0, 1);
	fflush(stream);
	expect_file("fputs", copy, from, length);
	rewind(stream);
	expect("dprintf", dprintf(copy, "%s", (char *)from + 7), size - 7);
	expect_file("dprintf", copy, from + 7, length);
	fclose(stream);
}

int main(int count, char **arguments)
{
	(void)count;
	back = malloc(length);
	unsigned char *base = (unsigned char *)map_file(arguments, PROT_READ, MAP_SHARED);
	unsigned char *own = mmap(NULL, file_length, PROT_READ | PROT_WRITE, MAP_PRIVATE, file_descriptor, 0);
	int copy = memfd_create("copy", 0);
	for (position = 0; position + 6 * length < file_length; position += 5 * MIB + 12288) {
		by_number(copy, base + position);
		by_pages(copy, base + position + 3 * length);
		by_messages(base + position + 5 * length, own + position);
		if (position < file_length / 2 && position + 5 * MIB + 12288 >= file_length / 2)
			rendezvous();
	}
	position = 1;
	for (size_t at = 0; at < file_length; at += PAGE)
		if (at % (7 * MIB) > 3 * MIB)
			continue;
		else
			memset(own + at, 'x', PAGE);
	/* Closed anew: another process's view of the same text. */
	fflush(stdout);
	if (fork() == 0) {
		for (size_t at = 0; at + 3 * MIB < file_length; at += 7 * MIB)
			by_text(copy, own + at);
		fflush(stdout);
		_exit(0);
	}
	int status;
	wait(&status);
	printf("child %d\n", status);

	char *path = (char *)own + 3 * MIB + PAGE - 4;
	munmap(own, file_length);
	own = mmap(NULL, file_length, PROT_READ | PROT_WRITE, MAP_PRIVATE, file_descriptor, 0);
	path = (char *)own + 30 * MIB + PAGE - 5;
	syscall(SYS_pread64, open("/dev/zero", O_RDONLY), path, 20L, 0L);
	pwrite(copy, "/dev/null", 10, 0);
	expect("pread of a path", pread(copy, path, 10, 0), 10);
	int null = open(path, O_RDONLY);
	printf("opened by a path in the mapping: %d\n", null >= 0);
	expect("getrandom", getrandom(own + 50 * MIB + 100, 8192, 0), 8192);

	struct aiocb request = { .aio_fildes = copy, .aio_buf = base + 40 * MIB + 100, .aio_nbytes = length };
	expect("aio_write", aio_write(&request), 0);
	while (aio_error(&request) == EINPROGRESS)
		sched_yield();
	expect("aio_return", aio_return(&request), length);
	expect_file("aio_write", copy, base + 40 * MIB + 100, length);

	errno = 0;
	expect("writev of nothing", writev(copy, (void *)8, 1), -1);
	printf("%s\n", strerror(errno));
	expect("sendmsg of nothing", sendmsg(copy, (void *)8, 0), -1);
	expect("open of nothing", open((void *)8, O_RDONLY), -1);
	printf("%s\n", strerror(errno));
	expect("an unknown call", syscall(9999L, 1L, 2L), -1);
	printf("%s\n", strerror(errno));
	printf("%d%s%f%d%d%d%d%d%s%f%f%f%f%f%f%f%f%f\n", 1, "2", 3.0, 4, 5, 6, 7, 8, "9", 1.5, 2.5, 3.5, 4.5, 5.5, 6.5, 7.5, 8.5, 9.5);
	return 0;
}
