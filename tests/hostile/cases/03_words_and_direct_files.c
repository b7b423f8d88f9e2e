/* Expected: a file that is open for direct access is written from closed pages and read into them, and calls by number wait at a word
 * in one, or wake who waits there, as natively.
 * @compile -Wno-nonnull
 * @own-data
 * @counter lifted_for_calls 1 */
#include "hostile.h"
#include <linux/futex.h>
#include <sys/syscall.h>

enum { LENGTH = 1 << 19 };

static void expect(const char *what, size_t at, ssize_t got, ssize_t wanted)
{
	if (got != wanted)
		printf("%s at %zu: %zd instead of %zd (%s)\n", what, at, got, wanted, strerror(errno));
}

int main(int count, char **arguments)
{
	(void)count;
	unsigned char *from = (unsigned char *)map_file(arguments, PROT_READ, MAP_SHARED);
	unsigned char *to = mmap(NULL, file_length, PROT_READ | PROT_WRITE, MAP_PRIVATE, file_descriptor, 0);
	unsigned char *back = aligned_alloc(PAGE, LENGTH);
	/* Some file systems have no direct access: the kernel copies then. */
	int direct = open("direct", O_RDWR | O_CREAT | O_TRUNC | O_DIRECT, 0600);
	if (direct < 0)
		direct = open("direct", O_RDWR | O_CREAT | O_TRUNC, 0600);
	for (size_t at = MIB; at + 3 * MIB < file_length; at += 5 * MIB + 3 * PAGE) {
		expect("pwrite", at, pwrite(direct, from + at, LENGTH, 0), LENGTH);
		expect("pread", at, pread(direct, back, LENGTH, 0), LENGTH);
		expect("content", at, memcmp(back, from + at, LENGTH) != 0, 0);
		expect("pread", at, pread(direct, to + at + MIB, LENGTH, 0), LENGTH);
		expect("content", at, memcmp(back, to + at + MIB, LENGTH) != 0, 0);
		/* Nobody wakes, nobody waits: the word is another. */
		errno = 0;
		expect("FUTEX_WAIT", at, syscall(SYS_futex, from + at + 2 * MIB, FUTEX_WAIT, 0x7fffabcd, NULL, NULL, 0), -1);
		expect("its errno", at, errno, EAGAIN);
		expect("FUTEX_WAKE", at, syscall(SYS_futex, from + at + 2 * MIB + 17 * PAGE, FUTEX_WAKE, 1, NULL, NULL, 0), 0);
		if (at < file_length / 2 && at + 5 * MIB + 3 * PAGE >= file_length / 2)
			rendezvous();
	}
	unlink("direct");
	return 0;
}
