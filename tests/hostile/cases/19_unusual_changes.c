/* Expected: a mapping that forked children do not have, in which the program has guard regions, that it seals, or over which it
 * attaches shared memory, is what the program made of it, and so is what comes to lie there in a child.
 * @report the program changed the mapping itself */
#include "hostile.h"
#include <sys/shm.h>
#include <sys/syscall.h>
#include <sys/uio.h>

enum { GUARD_INSTALL = 102, GUARD_REMOVE = 103, MSEAL = 462, PROCESS_MADVISE = 440, PIDFD_OPEN = 434 };

static unsigned char *base;
static sigjmp_buf out;

static void handler(int signal)
{
	(void)signal;
	siglongjmp(out, 1);
}

static void map_anew(void)
{
	base = mmap(NULL, file_length, PROT_READ, MAP_SHARED, file_descriptor, 0);
	if (base == MAP_FAILED)
		fail("mmap");
	read_pages(base, 0, 3 * MIB);
}

static const char *touched(size_t at)
{
	if (sigsetjmp(out, 1))
		return "faults";
	(void)*(volatile unsigned char *)(base + at);
	return "can be read";
}

static int in_child(int (*part)(void))
{
	int status = -1;
	fflush(stdout);
	pid_t child = fork();
	if (child == 0)
		_exit(part());
	waitpid(child, &status, 0);
	return status;
}

/* The child's heap comes to lie where its parent has a mapping that it lacks. */
static int heap_in_its_place(void)
{
	volatile unsigned char *heap = mmap(base, file_length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (heap != base)
		return 3;
	for (size_t at = 0; at < file_length; at += 16 * PAGE)
		heap[at] = at / PAGE % 251;
	volatile unsigned char *other = mmap(NULL, file_length, PROT_READ, MAP_SHARED, file_descriptor, 0);
	read_pages(other, 0, 4 * MIB);
	for (size_t at = 0; at < file_length; at += 16 * PAGE) {
		if (heap[at] != at / PAGE % 251)
			return 4;
		heap[at] = 1;
	}
	return 5;
}

static int read_all(void)
{
	read_pages(base, 0, file_length);
	return 6;
}

int main(int count, char **arguments)
{
	(void)count;
	munmap((void *)map_file(arguments, PROT_READ, MAP_SHARED), file_length);
	signal(SIGSEGV, handler);

	map_anew();
	printf("not for children: %d\n", madvise(base, file_length, MADV_DONTFORK));
	printf("in a child %d\n", in_child(heap_in_its_place) >> 8);
	printf("for children: %d\n", madvise(base, file_length, MADV_DOFORK));
	printf("in a child %d\n", in_child(read_all) >> 8);
	read_pages(base, 0, file_length);
	munmap(base, file_length);

	map_anew();
	int guarded = madvise(base + 5 * MIB, PAGE, GUARD_INSTALL);
	printf("guarded %d: %s\n", guarded, touched(5 * MIB));
	guarded = syscall(SYS_madvise, base + 9 * MIB, PAGE, GUARD_INSTALL);
	printf("by number %d: %s\n", guarded, touched(9 * MIB));
	printf("not here: %s\n", touched(5 * MIB + PAGE));
	madvise(base, file_length, GUARD_REMOVE);
	printf("no more: %s, %s\n", touched(5 * MIB), touched(9 * MIB));
	read_pages(base, 0, file_length);
	rendezvous();
	munmap(base, file_length);

	map_anew();
	struct iovec part = { base + 7 * MIB, PAGE };
	int self = syscall(PIDFD_OPEN, getpid(), 0);
	long result = syscall(PROCESS_MADVISE, self, &part, 1L, GUARD_INSTALL, 0);
	printf("by another's call %ld: %s\n", result, touched(7 * MIB));
	munmap(base, file_length);

	map_anew();
	part.iov_base = base + 7 * MIB;
	result = process_madvise(self, &part, 1, GUARD_INSTALL, 0);
	printf("by name %ld: %s\n", result, touched(7 * MIB));
	close(self);
	signal(SIGSEGV, SIG_DFL);
	munmap(base, file_length);

	map_anew();
	int segment = shmget(IPC_PRIVATE, 8 * MIB, IPC_CREAT | 0600);
	unsigned char *place = shmat(segment, base + 4 * MIB, SHM_REMAP);
	shmctl(segment, IPC_RMID, NULL);
	printf("attached %d\n", place == base + 4 * MIB);
	read_pages(base, 3 * MIB, 4 * MIB);
	memset(base + 4 * MIB, 7, 8 * MIB);
	read_pages(base, 12 * MIB, file_length);
	memset(base + 4 * MIB, 8, 8 * MIB);
	shmdt(place);
	munmap(base, file_length);

	map_anew();
	printf("sealed %ld\n", syscall(MSEAL, base, file_length, 0L));
	read_pages(base, 0, file_length);
	return 0;
}
