/* Expected: a program that keeps itself from files, and then from sockets, reads on and maps on as natively, and so do its
 * children. */
#include "hostile.h"
#include <libgen.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#if __has_include(<linux/landlock.h>)
#include <linux/landlock.h>
#else
/* Headers older than Linux 5.13. */
enum { LANDLOCK_CREATE_RULESET_VERSION = 1, LANDLOCK_RULE_PATH_BENEATH = 1 };
enum { LANDLOCK_ACCESS_FS_WRITE_FILE = 1 << 1, LANDLOCK_ACCESS_FS_READ_FILE = 1 << 2 };
struct landlock_path_beneath_attr {
	uint64_t allowed_access;
	int32_t parent_fd;
} __attribute__((packed));
#endif
#ifndef SYS_landlock_create_ruleset
enum { SYS_landlock_create_ruleset = 444, SYS_landlock_add_rule, SYS_landlock_restrict_self };
#endif

/* As Linux 6.12 has it; an older one takes the beginning. */
struct ruleset {
	uint64_t files, ports, scoped;
};

enum { NO_ABSTRACT_SOCKETS = 1 };

static void restrict_to(const char *folder, struct ruleset wanted, size_t size)
{
	int ruleset = syscall(SYS_landlock_create_ruleset, &wanted, size, 0);
	if (ruleset < 0)
		fail("landlock_create_ruleset");
	struct landlock_path_beneath_attr beneath = { LANDLOCK_ACCESS_FS_READ_FILE, open(folder, O_PATH | O_CLOEXEC) };
	if (wanted.files && syscall(SYS_landlock_add_rule, ruleset, LANDLOCK_RULE_PATH_BENEATH, &beneath, 0))
		fail("landlock_add_rule");
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || syscall(SYS_landlock_restrict_self, ruleset, 0))
		fail("landlock_restrict_self");
	close(beneath.parent_fd), close(ruleset);
}

static void map_and_read(const char *what, char **arguments)
{
	volatile unsigned char *base = map_file(arguments, PROT_READ, MAP_SHARED);
	printf("%s: %x\n", what, read_pages(base, 0, file_length));
	printf("elsewhere: %d\n", open("/etc/passwd", O_RDONLY | O_CLOEXEC) >= 0);
	fflush(stdout);
}

int main(int count, char **arguments)
{
	(void)count;
	long version = syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION);
	if (version < 0) {
		puts("Landlock");
		return 77;
	}
	char *folder = dirname(strdup(arguments[1]));
	volatile unsigned char *base = map_file(arguments, PROT_READ, MAP_SHARED);
	read_pages(base, 0, 8 * MIB);
	rendezvous();
	restrict_to(folder, (struct ruleset){ .files = LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_WRITE_FILE }, 8);
	map_and_read("files", arguments);
	if (version >= 6)
		restrict_to(folder, (struct ruleset){ .scoped = NO_ABSTRACT_SOCKETS }, sizeof(struct ruleset));
	map_and_read("sockets", arguments);
	pid_t child = fork();
	if (child == 0) {
		map_and_read("child", arguments);
		read_pages(base, 0, file_length);
		_exit(0);
	}
	int status;
	waitpid(child, &status, 0);
	printf("ended: %d\n", status);
	read_pages(base, 0, file_length);
	return 0;
}
