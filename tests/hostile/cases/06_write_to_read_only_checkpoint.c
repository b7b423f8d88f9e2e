/* Expected: a write to a page that is read-only and closed is the program's own fault: its handler is told the same
 * code and address as ever, and without a handler the program dies of it. */
#include "hostile.h"

static sigjmp_buf out;
static siginfo_t seen;

static void handler(int signal, siginfo_t *info, void *context)
{
	(void)signal, (void)context;
	seen = *info;
	siglongjmp(out, 1);
}

static void write_at(volatile unsigned char *address)
{
	memset(&seen, 0, sizeof seen);
	if (!sigsetjmp(out, 1)) {
		*address = 1;
		puts("the write went through");
	} else if (seen.si_code != SEGV_ACCERR || seen.si_addr != (void *)address)
		printf("code %d, address off by %td\n", seen.si_code, (char *)seen.si_addr - (char *)address);
}

int main(int count, char **arguments)
{
	(void)count;
	struct sigaction action = { .sa_sigaction = handler, .sa_flags = SA_SIGINFO }, standard = { .sa_handler = SIG_DFL };
	sigaction(SIGSEGV, &action, NULL);
	volatile unsigned char *base = map_file(arguments, PROT_READ, MAP_SHARED);
	for (size_t at = 0; at + 4 * MIB <= file_length; at += 4 * MIB) {
		/* Not read yet; read; just behind what was read; and the page of the next checkpoints. */
		write_at(base + at + 17);
		read_pages(base, at, at + MIB);
		write_at(base + at + 17);
		for (size_t ahead = MIB; ahead < 4 * MIB; ahead += 60 * 1024)
			write_at(base + at + ahead);
		if (at == file_length / 2)
			rendezvous();
	}
	puts("all writes failed");
	fflush(stdout);
	sigaction(SIGSEGV, &standard, NULL);
	base[file_length - 1] = 1;
	return 0;
}
