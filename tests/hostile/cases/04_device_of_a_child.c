/* Expected: a forked child that opens a device whose driver pins memory has nothing armed from then on, nor what it maps
 * afterwards; its parent is read ahead for as before.
 * @root
 * @report a device that pins memory is open
 * @counter active_readers 1 */
#include "hostile.h"
#include <sched.h>
#include <sys/mount.h>

int main(int count, char **arguments)
{
	(void)count;
	unsigned char *base = (unsigned char *)map_file(arguments, PROT_READ, MAP_SHARED);
	read_pages(base, 0, 20 * MIB);
	rendezvous();
	/* A device folder of our own, with a file by the device's name. */
	if (unshare(CLONE_NEWNS) && errno == EPERM) {
		puts("CAP_SYS_ADMIN");
		return 77;
	}
	if (mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) || mount("none", "/dev", "tmpfs", 0, NULL))
		fail("cannot make a folder for devices");
	for (int has_read = 0; has_read < 2; has_read++) {
		pid_t child = fork();
		if (child == 0) {
			if (has_read)
				read_pages(base, 20 * MIB, 30 * MIB);
			if (open("/dev/kvm", O_RDWR | O_CREAT, 0600) < 0)
				fail("kvm");
			unsigned char *own = mmap(NULL, file_length, PROT_READ, MAP_SHARED, file_descriptor, 0);
			printf("%d closed areas\n", closed_areas());
			read_pages(own, 0, file_length);
			read_pages(base, 0, file_length);
			fflush(stdout);
			_exit(0);
		}
		int status;
		waitpid(child, &status, 0);
		printf("child %d\n", status);
		fflush(stdout);
	}
	read_pages(base, 0, file_length);
	return 0;
}
