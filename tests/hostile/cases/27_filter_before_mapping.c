/* Expected: a program that forbids itself what arming needs before it maps anything reads as natively, and the report says
 * why nothing was armed.
 * @no-trap nothing may be armed
 * @report the program forbids itself system calls */
#include "hostile.h"
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

int main(int count, char **arguments)
{
	(void)count;
	struct sock_filter filter[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_mprotect, 3, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_socket, 2, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_memfd_create, 1, 0),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
	};
	struct sock_fprog program = { sizeof filter / sizeof *filter, filter };
	rendezvous();
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program))
		fail("seccomp");
	volatile unsigned char *base = map_file(arguments, PROT_READ, MAP_SHARED);
	printf("%x\n", read_pages(base, 0, file_length));
	munmap((void *)base, file_length);
	return 0;
}
