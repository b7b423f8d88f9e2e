/* Expected: of several mappings and lists of buffers, every byte is transferred, also where only the last mapping, or the
 * last buffer of a list, is closed, and the others lie in memory between mappings.
 * @counter lifted_for_calls 1 */
#include "hostile.h"

enum { MAPPINGS = 7, LENGTH = 3000 };

static void expect(const char *what, ssize_t got, size_t wanted)
{
	if (got != (ssize_t)wanted)
		printf("%s: %zd instead of %zu (%s)\n", what, got, wanted, strerror(errno));
}

static void expect_received(const char *what, int from, const struct iovec *parts, int count)
{
	static char back[MAPPINGS * LENGTH];
	expect(what, recv(from, back, sizeof back, 0), count * LENGTH);
	for (int i = 0; i < count; i++)
		if (memcmp(back + i * LENGTH, parts[i].iov_base, LENGTH))
			printf("%s: other bytes in part %d\n", what, i);
}

int main(int count, char **arguments)
{
	(void)count;
	char *mappings[MAPPINGS];
	open_file(arguments);
	/* Above all of them, where the last one to be mapped will lie. */
	char *above = mmap(NULL, file_length, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	for (int i = 0; i < MAPPINGS; i++)
		if ((mappings[i] = mmap(NULL, file_length, PROT_READ, MAP_SHARED, file_descriptor, 0)) == MAP_FAILED ||
		    mappings[i] > above)
			fail("mmap");
	char *own = mmap(above, file_length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_FIXED, file_descriptor, 0);
	if (own == MAP_FAILED)
		fail("mmap");
	/* In the middle of one of them. */
	char *between = mmap(mappings[2] + 10 * PAGE, PAGE, PROT_READ | PROT_WRITE,
			     MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
	if (between == MAP_FAILED)
		fail("mmap");
	memset(between, 'b', PAGE);
	int pair[2];
	if (socketpair(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK, 0, pair))
		fail("socketpair");
	/* From the last one on, so that the first that has been opened is no help. */
	for (int i = MAPPINGS - 1; i >= 0; i--) {
		if (i == 2) {
			rendezvous();
			continue;
		}
		struct iovec parts[3] = { { between, LENGTH }, { between, LENGTH }, { mappings[i], LENGTH } };
		expect("writev", writev(pair[0], parts, 3), 3 * LENGTH);
		expect_received("writev", pair[1], parts, 3);
		parts[2].iov_base = mappings[i] + file_length / 3;
		struct msghdr message = { .msg_iov = parts, .msg_iovlen = 3 };
		expect("sendmsg", sendmsg(pair[0], &message, 0), 3 * LENGTH);
		expect_received("sendmsg", pair[1], parts, 3);
		parts[0].iov_base = mappings[i] + file_length / 3 * 2;
		expect("send", send(pair[0], parts[0].iov_base, LENGTH, 0), LENGTH);
		expect_received("send", pair[1], parts, 1);
	}
	/* Of such a length the kernel takes what it can. */
	char *last = own + file_length / 2;
	expect("send", send(pair[0], between, LENGTH, 0), LENGTH);
	expect("recv of any length", recv(pair[1], last, SIZE_MAX, 0), LENGTH);
	if (memcmp(last, between, LENGTH))
		puts("recv of any length: other bytes");
	puts("done");
}
