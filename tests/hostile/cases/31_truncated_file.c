/* Expected: pages that a truncated file no longer has raise SIGBUS with their address, in closed and open parts, and come
 * back when the file grows; holes read as zeros; the end of the file's last page reads as zeros, and the one after
 * raises SIGBUS.
 * @own-data */
#include "hostile.h"

static sigjmp_buf out;
static volatile unsigned char *base;

static void handler(int signal, siginfo_t *info, void *context)
{
	(void)context;
	printf("signal %d, code %d, at %zx\n", signal, info->si_code, (size_t)((unsigned char *)info->si_addr - base));
	siglongjmp(out, 1);
}

static void touch(size_t at)
{
	if (!sigsetjmp(out, 1))
		printf("%zx: %x\n", at, base[at]);
}

int main(int count, char **arguments)
{
	(void)count;
	struct sigaction action = { .sa_sigaction = handler, .sa_flags = SA_SIGINFO };
	sigaction(SIGBUS, &action, NULL);
	sigaction(SIGSEGV, &action, NULL);
	base = map_file(arguments, PROT_READ, MAP_SHARED);
	read_pages(base, 0, 10 * MIB);
	int file = open(arguments[1], O_RDWR);
	if (ftruncate(file, 20 * MIB + 100))
		fail("ftruncate");
	read_pages(base, 10 * MIB, 20 * MIB);
	touch(20 * MIB + 99);
	touch(20 * MIB + 100);
	touch(20 * MIB + PAGE);
	touch(21 * MIB);
	touch(40 * MIB + 17);
	touch(file_length - 1);
	rendezvous();
	if (ftruncate(file, 4 * MIB))
		fail("ftruncate");
	touch(5 * MIB);
	touch(4 * MIB);
	touch(4 * MIB - 1);
	if (ftruncate(file, file_length))
		fail("ftruncate");
	touch(5 * MIB);
	touch(file_length - 1);
	if (!fallocate(file, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, MIB, MIB))
		touch(MIB + 5), touch(2 * MIB);
	read_pages(base, 0, MIB);
	/* A mapping longer than the file, as LMDB makes them. */
	volatile unsigned char *longer = mmap(NULL, 2 * file_length, PROT_READ, MAP_SHARED, file_descriptor, 0);
	base = longer;
	read_pages(base, 0, MIB);
	touch(file_length - 1);
	touch(file_length);
	if (ftruncate(file, file_length + 8 * MIB))
		fail("ftruncate");
	touch(file_length + 5);
	touch(file_length + 8 * MIB);
	/* Renamed over: the mapping keeps the old file. */
	char other[] = "other-XXXXXX";
	mkstemp(other);
	printf("renamed %d\n", rename(other, arguments[1]));
	read_pages(base, 0, MIB);
	/* And without a handler it kills. */
	signal(SIGBUS, SIG_DFL);
	fflush(stdout);
	ftruncate(file, 0);
	return base[30 * MIB];
}
