/* Expected: a forked child that may not close pages reads on, and the report says why nothing is closed there.
 * @report the kernel refused to protect pages */
#include "hostile.h"
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

/* Past every library, which would let go of everything before it. */
static long raw(long number, long a, long b, long c, long d, long e)
{
#if defined(__x86_64__)
	long result;
	register long fourth __asm__("r10") = d, fifth __asm__("r8") = e;
	__asm__ volatile("syscall" : "=a"(result) : "a"(number), "D"(a), "S"(b), "d"(c), "r"(fourth), "r"(fifth) : "rcx", "r11", "memory");
	return result;
#else
	return syscall(number, a, b, c, d, e);
#endif
}

int main(int count, char **arguments)
{
	(void)count;
	struct sock_filter filter[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_mprotect, 0, 3),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[2])),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, PROT_NONE, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EACCES),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = { sizeof filter / sizeof *filter, filter };
	volatile unsigned char *base = map_file(arguments, PROT_READ, MAP_SHARED);
	read_pages(base, 0, MIB);
	rendezvous();
	pid_t child = fork();
	if (child == 0) {
		if (raw(SYS_prctl, PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || raw(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, (long)&program, 0, 0))
			fail("seccomp");
		printf("child: %x\n", read_pages(base, 0, file_length));
		fflush(stdout);
		_exit(0);
	}
	int status;
	waitpid(child, &status, 0);
	printf("ended: %d\n", status);
	printf("parent: %x\n", read_pages(base, 0, file_length));
	return 0;
}
