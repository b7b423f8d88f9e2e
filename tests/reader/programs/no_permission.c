/* Expected: where a security policy forbids to protect pages, the program reads on as if nothing had been tried. */
#include "common.h"
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

/* prctl(2) as no interposer sees it: a policy that comes from elsewhere. */
static long past_libc(long operation, long mode, const void *argument)
{
#if defined(__x86_64__)
	long result;
	__asm__ volatile("syscall" : "=a"(result) : "a"(SYS_prctl), "D"(operation), "S"(mode), "d"(argument) : "rcx", "r11", "memory");
	return result;
#else
	return prctl(operation, mode, argument);
#endif
}

int main(int count, char **arguments)
{
	(void)count;
	struct sock_filter filter[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_mprotect, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = { sizeof filter / sizeof *filter, filter };
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || past_libc(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program))
		fail("seccomp");
	volatile unsigned char *base = map_file(arguments, PROT_READ, MAP_SHARED);
	printf("%x\n", read_pages(base, 0, file_length));
	munmap((void *)base, file_length);
	return 0;
}
