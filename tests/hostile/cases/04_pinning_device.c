/* Expected: once a device is open whose driver pins memory, everything is open, and nothing is armed any more; a forked
 * child, which cannot use the device, reads ahead again, but for another reason that the parent had by then.
 * @root
 * @report a device that pins memory is open
 * @report the program makes system calls past libc
 * @counter active_readers 2 */
#include "hostile.h"
#include <dlfcn.h>
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
	if (mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) || mount("none", "/dev", "tmpfs", 0, NULL) ||
	    mkdir("/dev/infiniband", 0755))
		fail("cannot make a folder for devices");
	int device = open("/dev/infiniband/uverbs0", O_RDWR | O_CREAT, 0600);
	if (device < 0)
		fail("uverbs0");
	unsigned char *later = mmap(NULL, file_length, PROT_READ, MAP_SHARED, file_descriptor, 0);
	printf("%d closed areas\n", closed_areas());
	read_pages(base, 0, file_length);
	read_pages(later, 0, file_length);
	fflush(stdout);
	pid_t child = fork();
	if (child == 0) {
		unsigned char *own = mmap(NULL, file_length, PROT_READ, MAP_SHARED, file_descriptor, 0);
		read_pages(own, 0, file_length);
		_exit(0);
	}
	int status;
	waitpid(child, &status, 0);
	printf("child %d\n", status);
	fflush(stdout);
	/* A C library of its own, whose calls nobody sees. */
	void *other = dlmopen(LM_ID_NEWLM, "libc.so.6", RTLD_NOW);
	ssize_t (*write_past_us)(int, const void *, size_t) = other ? dlsym(other, "write") : NULL;
	if (!write_past_us)
		fail("dlmopen");
	child = fork();
	if (child == 0) {
		unsigned char *own = mmap(NULL, file_length, PROT_READ, MAP_SHARED, file_descriptor, 0);
		printf("written %zd\n", write_past_us(memfd_create("copy", 0), own, 8 * MIB));
		fflush(stdout);
		_exit(0);
	}
	waitpid(child, &status, 0);
	printf("child %d\n", status);
	return 0;
}
