/* Expected: where the kernel refuses guard regions with EINVAL, as one before 6.15 does for files (here a filter answers for it),
 * checkpoints are protected all the same, and all is read and locked as natively.
 * @no-guards the kernel refuses them */
#include "hostile.h"
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

/* MADV_GUARD_INSTALL and MADV_GUARD_REMOVE. */
enum { INSTALL = 102, REMOVE = 103 };

static void refuse_guards(void)
{
	struct sock_filter filter[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_madvise, 0, 4),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[2])),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, INSTALL, 1, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, REMOVE, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EINVAL),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = { sizeof filter / sizeof *filter, filter };
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program))
		fail("seccomp");
}

int main(int count, char **arguments)
{
	(void)count;
	if (!getenv("REFUSED")) {
		/* The program that is executed has the filter from its beginning. */
		refuse_guards();
		setenv("REFUSED", "1", 1);
		execv("/proc/self/exe", arguments);
		fail("execv");
	}
	unsigned char *base = (unsigned char *)map_file(arguments, PROT_READ, MAP_SHARED);
	void *own = mmap(NULL, PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	errno = 0;
	int answer = madvise(own, PAGE, INSTALL);
	printf("a guard of the program's own: %d, %s\n", answer, strerror(errno));
	uint32_t sum = read_pages(base, 0, 30 * MIB);
	rendezvous();
	sum += read_pages(base, 40 * MIB, 50 * MIB);
	fflush(stdout);
	if (fork() == 0)
		_exit(read_pages(base, 0, file_length) == 0);
	int status;
	wait(&status);
	int locked = mlock(base + 52 * MIB, MIB);
	sum += read_pages(base, 0, file_length);
	printf("%x %d %d\n", sum, status, locked);
	return 0;
}
