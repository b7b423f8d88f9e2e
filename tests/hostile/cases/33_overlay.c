/* Expected: a file on an overlay is read as natively, before and after it is copied up: who mapped it before sees the old
 * content, who maps it then the new one.
 * @root
 * @counter active_readers 1 */
#include "hostile.h"
#include <sched.h>
#include <sys/mount.h>
#include <sys/sendfile.h>

static volatile unsigned char *map_whole(int flags)
{
	int file = open("merged/data", O_RDONLY);
	volatile unsigned char *base = mmap(NULL, file_length, PROT_READ, flags, file, 0);
	if (file < 0 || base == MAP_FAILED)
		fail("merged/data");
	close(file);
	return base;
}

int main(int count, char **arguments)
{
	(void)count;
	open_file(arguments);
	const char *folders[] = { "layers", "layers/lower", "layers/upper", "layers/work", "merged" };
	/* Its layers lie in memory: not every file system can be one. */
	int alone = !unshare(CLONE_NEWNS) && !mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL);
	if (mkdir(folders[0], 0755))
		fail(folders[0]);
	if (!alone || mount("none", "layers", "tmpfs", 0, "size=256m")) {
		puts("the right to mount");
		return 77;
	}
	for (int i = 1; i < 5; i++)
		if (mkdir(folders[i], 0755))
			fail(folders[i]);
	int copy = open("layers/lower/data", O_WRONLY | O_CREAT, 0644);
	for (size_t at = 0; at < file_length;) {
		ssize_t moved = sendfile(copy, file_descriptor, NULL, file_length - at);
		if (moved <= 0)
			fail("sendfile");
		at += moved;
	}
	close(copy);
	if (mount("overlay", "merged", "overlay", 0, "lowerdir=layers/lower,upperdir=layers/upper,workdir=layers/work")) {
		puts("overlayfs");
		return 77;
	}
	volatile unsigned char *before = map_whole(MAP_SHARED);
	printf("%x\n", read_pages(before, 0, 20 * MIB));
	rendezvous();
	int file = open("merged/data", O_RDWR);
	uint32_t word = 77;
	if (file < 0 || pwrite(file, &word, 4, 40 * MIB) != 4)
		fail("copied up");
	volatile unsigned char *after = map_whole(MAP_SHARED), *private = map_whole(MAP_PRIVATE);
	printf("%x\n", read_pages(before, 0, file_length));
	printf("%x\n", read_pages(after, 0, 40 * MIB));
	printf("%u %u\n", *(volatile uint32_t *)(after + 40 * MIB), *(volatile uint32_t *)(private + 40 * MIB));
	printf("%x\n", read_pages(private, 41 * MIB, file_length));
	return 0;
}
