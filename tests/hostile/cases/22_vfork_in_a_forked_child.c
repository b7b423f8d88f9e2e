/* Expected: a forked child whose own vfork child is the first to read the mapping is served under its own number, for longer
 * than that one lives, be it of fork or of _Fork; all read what is there.
 * @counter active_readers 3
 * @counter trips 80
 * @at-most unserved 0 */
#include "hostile.h"

int main(int count, char **arguments)
{
	(void)count;
#if !__GLIBC_PREREQ(2, 34)
#define _Fork fork
	puts("_Fork (glibc 2.34)");
	return 77;
#endif
	volatile unsigned char *base = map_file(arguments, PROT_READ, MAP_SHARED);
	must_be_served(1);
	read_pages(base, 0, MIB);
	rendezvous();
	int status, file = file_descriptor;
	for (int without_handlers = 0; without_handlers < 2; without_handlers++) {
		fflush(stdout);
		pid_t child = without_handlers ? _Fork() : fork();
		if (child == 0) {
			pid_t guest = vfork();
			if (guest == 0) {
				/* Its own trip, and a call that the library prepares for it. */
				int wrong = *(volatile uint32_t *)(base + 8 * MIB) != word_at(8 * MIB);
				wrong |= pwrite(file, (void *)(base + 20 * MIB), PAGE, 0) != -1 || errno != EBADF;
				_exit(wrong);
			}
			waitpid(guest, &status, 0);
			printf("vfork child: %d\n", status);
			must_be_served(20);
			for (size_t at = 0; at < file_length; at += MIB)
				read_pages(base, at, at + MIB);
			puts("all read");
			fflush(stdout);
			_exit(0);
		}
		waitpid(child, &status, 0);
		printf("forked child: %d\n", status);
	}
	return 0;
}
