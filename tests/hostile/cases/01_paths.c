/* Expected: calls find what a path in the mapping names, by function and by number, also where the path ends in another page
 * than it begins.
 * @own-data
 * @counter lifted_for_calls 60 */
#include "hostile.h"
#include <dirent.h>
#include <dlfcn.h>
#include <linux/magic.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/vfs.h>
#include <utime.h>

static unsigned char *base;

/* A place that nobody has touched, in no order, with this path across the end of a page. After some such jumps a mapping is
 * taken for one that is read in no order, and opened: then another one. */
static const char *put(const char *path)
{
	static size_t turn;
	if (turn % 12 == 0) {
		base = mmap(NULL, file_length, PROT_READ, MAP_SHARED, file_descriptor, 0);
		if (base == MAP_FAILED)
			fail("mmap");
		read_pages(base, 62 * MIB, 63 * MIB);
	}
	size_t at = turn++ * 37 % 61 * MIB + 3 * PAGE - strlen(path) / 2;
	if (pwrite(file_descriptor, path, strlen(path) + 1, at) != (ssize_t)strlen(path) + 1)
		fail("pwrite");
	return (const char *)base + at;
}

static void expect(const char *what, int is_right)
{
	if (!is_right)
		printf("%s: %s\n", what, strerror(errno));
	errno_stays(what);
}

int main(int count, char **arguments)
{
	(void)count;
	struct stat status;
	struct stat64 status64;
	struct statx extended;
	errno = PLANTED;
	open_to_write(arguments);
	FILE *stream = fopen(put("/dev/null"), "r");
	expect("fopen", stream != NULL);
	stream = stream ? freopen(put("/dev/zero"), "r", stream) : NULL;
	expect("freopen", stream && getc(stream) == 0);
	FILE *stream64 = fopen64(put("/dev/null"), "r");
	expect("fopen64", stream64 != NULL);
	int folder = openat(AT_FDCWD, put("/dev"), O_RDONLY);
	expect("openat", folder >= 0);
	expect("stat", !stat(put("/dev/null"), &status) && S_ISCHR(status.st_mode));
	expect("stat64", !stat64(put("/dev/null"), &status64) && S_ISCHR(status64.st_mode));
	expect("lstat", !lstat(put("/proc/self"), &status) && S_ISLNK(status.st_mode));
	expect("lstat64", !lstat64(put("/proc/self"), &status64) && S_ISLNK(status64.st_mode));
	rendezvous();
	expect("fstatat", !fstatat(folder, put("null"), &status, 0) && S_ISCHR(status.st_mode));
	expect("fstatat64", !fstatat64(folder, put("null"), &status64, 0) && S_ISCHR(status64.st_mode));
	expect("statx", !statx(folder, put("null"), 0, STATX_TYPE, &extended) && S_ISCHR(extended.stx_mode));
	expect("missing", stat(put("/dev/precache-is-no-device"), &status) && errno == ENOENT);
	expect("missing stream", !fopen(put("/dev/precache-is-no-device"), "r") && errno == ENOENT);
	expect("openat", openat(folder, put("null"), O_RDONLY) >= 0);
	expect("open by number", syscall(SYS_open, put("/dev/null"), O_RDONLY) >= 0);
	expect("openat by number", syscall(SYS_openat, folder, put("null"), O_RDONLY) >= 0);
	expect("stat by number", !syscall(SYS_stat, put("/dev/null"), &status) && S_ISCHR(status.st_mode));
	expect("statx by number", !syscall(SYS_statx, folder, put("null"), 0, STATX_TYPE, &extended));
	expect("fstatat by number", !syscall(SYS_newfstatat, folder, put("null"), &status, 0));
	struct statfs system;
	struct statvfs virtual;
	char text[PATH_MAX], made[PATH_MAX];
	DIR *listed = opendir(put("/dev"));
	expect("opendir", listed != NULL);
	expect("statfs", !statfs(put("/proc"), &system) && system.f_type == PROC_SUPER_MAGIC);
	expect("statvfs", !statvfs(put("/proc"), &virtual));
	expect("access", !access(put("/dev/null"), R_OK));
	expect("faccessat", !faccessat(folder, put("null"), R_OK, 0));
	expect("readlink", readlink(put("/proc/self"), text, sizeof text) > 0);
	expect("readlinkat", readlinkat(folder, put("/proc/self"), text, sizeof text) > 0);
	expect("realpath", realpath(put("/dev/../dev/null"), text) && !strcmp(text, "/dev/null"));
	snprintf(made, sizeof made, "%s.made", arguments[1]);
	int created = creat(put(made), 0600);
	expect("creat", created >= 0);
	expect("chmod", !chmod(put(made), 0400) && !fstat(created, &status) && (status.st_mode & 0777) == 0400);
	expect("truncate", !chmod(made, 0600) && !truncate(put(made), 77) && !fstat(created, &status) && status.st_size == 77);
	char other[PATH_MAX];
	snprintf(other, sizeof other, "%s.other", arguments[1]);
	expect("chown", !chown(put(made), getuid(), getgid()) && !lchown(put(made), getuid(), getgid()));
	expect("fchmodat", !fchmodat(folder, put(made), 0600, 0) && !fchownat(folder, put(made), getuid(), getgid(), 0));
	expect("utimes", !utimes(put(made), NULL) && !utimensat(folder, put(made), NULL, 0) && !utime(put(made), NULL));
	expect("euidaccess", !euidaccess(put(made), R_OK) && !eaccess(put(made), R_OK));
	expect("rename", !rename(put(made), put(other)) && !access(other, F_OK));
	expect("renameat", !renameat(folder, put(other), folder, put(made)) && !access(made, F_OK));
	expect("link", !link(put(made), put(other)) && !remove(put(other)) && access(other, F_OK));
	expect("linkat", !linkat(folder, put(made), folder, put(other), 0) && !unlink(other));
	expect("renameat2", !renameat2(folder, put(made), folder, put(other), RENAME_NOREPLACE) && !rename(other, made));
	expect("symlinkat", !symlinkat(put(made), folder, put(other)) && !lstat(other, &status) && S_ISLNK(status.st_mode) && !unlink(other));
	expect("mkfifo", !mkfifo(put(other), 0600) && !stat(other, &status) && S_ISFIFO(status.st_mode) && !unlink(other));
	expect("symlink", !symlink(put(made), put(other)) && !lstat(other, &status) && S_ISLNK(status.st_mode) && !unlink(other));
	expect("unlink", !unlink(put(made)) && access(made, F_OK));
	expect("mkdir", !mkdir(put(made), 0700) && !stat(made, &status) && S_ISDIR(status.st_mode));
	expect("rmdir", !rmdir(put(made)) && access(made, F_OK));
	expect("mkdirat", !mkdirat(folder, put(made), 0700) && !stat(made, &status) && S_ISDIR(status.st_mode));
	expect("unlinkat", !unlinkat(folder, put(made), AT_REMOVEDIR) && access(made, F_OK));
	expect("chdir", !chdir(put("/proc")) && !access("self", F_OK));
	expect("access by number", !syscall(SYS_access, put("/dev/null"), R_OK));
	expect("faccessat by number", !syscall(SYS_faccessat, folder, put("null"), R_OK));
	expect("readlink by number", syscall(SYS_readlink, put("/proc/self"), text, sizeof text) > 0);
	/* Of programs that were linked long ago: headers name it no more. */
	int (*old)(int, const char *, struct stat *) = (int (*)(int, const char *, struct stat *))dlsym(RTLD_DEFAULT, "__xstat");
	int (*old_at)(int, int, const char *, struct stat *, int) =
		(int (*)(int, int, const char *, struct stat *, int))dlsym(RTLD_DEFAULT, "__fxstatat");
	expect("__xstat", !old || (!old(1, put("/dev/null"), &status) && S_ISCHR(status.st_mode)));
	expect("__fxstatat", !old_at || (!old_at(1, folder, put("null"), &status, 0) && S_ISCHR(status.st_mode)));
	puts("done");
	return 0;
}
