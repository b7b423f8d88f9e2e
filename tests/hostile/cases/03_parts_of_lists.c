/* Expected: of a list every part is transferred, whichever of them lies in a mapped file and whatever lies between them; a copy
 * that names a thread of this process is one of this process; a message is sent though its header ends in another page.
 * @own-data
 * @counter lifted_for_calls 1 */
#include "hostile.h"
#include <stdbool.h>
#include <stddef.h>
#include <sys/syscall.h>

enum { LENGTH = 5000, PARTS = 3, MAPPINGS = 6 };

static unsigned char *base;
static size_t position;
static int ends[2];

static void expect(const char *what, ssize_t got, ssize_t wanted)
{
	if (got != wanted)
		printf("%s at %zu: %zd instead of %zd (%s)\n", what, position, got, wanted, strerror(errno));
}

static void expect_bytes(const char *what, const void *got, const void *wanted, size_t length)
{
	if (memcmp(got, wanted, length))
		printf("%s at %zu: other bytes\n", what, position);
}

/* What a file has there, without a look at the mapping. */
static unsigned char *there(size_t at, size_t length)
{
	static unsigned char copy[LENGTH];
	if (pread(file_descriptor, copy, length, at) != (ssize_t)length)
		fail("pread");
	return copy;
}

/* One part is mapped, the others lie in the heap and on the stack; or none is. */
static void wherever(char *heap)
{
	char stack[LENGTH], got[PARTS * LENGTH];
	memset(stack, 's', sizeof stack);
	for (int mapped = 0; mapped <= PARTS; mapped++, position += LENGTH) {
		struct iovec parts[PARTS + 1] = { { heap, LENGTH }, { stack, LENGTH }, { heap, LENGTH }, { NULL, 0 } };
		if (mapped < PARTS)
			parts[mapped].iov_base = base + position;
		expect("writev", writev(ends[1], parts, PARTS + 1), sizeof got);
		expect("read", read(ends[0], got, sizeof got), sizeof got);
		for (int part = 0; part < PARTS; part++)
			expect_bytes("writev", got + part * LENGTH,
				     part == mapped ? there(position, LENGTH) : parts[part].iov_base, LENGTH);
	}
}

/* From and to this process, in the name of one of its threads. */
static void by_thread(pid_t thread, unsigned char *own, char *heap)
{
	struct iovec to = { heap, LENGTH }, from = { base + position, LENGTH };
	expect("process_vm_readv", process_vm_readv(thread, &to, 1, &from, 1, 0), LENGTH);
	expect_bytes("process_vm_readv", heap, there(position, LENGTH), LENGTH);
	from.iov_base += 2 * LENGTH;
	expect("SYS_process_vm_readv", syscall(SYS_process_vm_readv, thread, &to, 1L, &from, 1L, 0L), LENGTH);
	expect_bytes("SYS_process_vm_readv", heap, there(position + 2 * LENGTH, LENGTH), LENGTH);
	to.iov_base = own + position;
	expect("process_vm_writev", process_vm_writev(thread, &from, 1, &to, 1, 0), LENGTH);
	expect_bytes("process_vm_writev", own + position, there(position + 2 * LENGTH, LENGTH), LENGTH);
	to.iov_base += 2 * LENGTH;
	expect("process_vm_readv into it", process_vm_readv(thread, &to, 1, &from, 1, 0), LENGTH);
	expect_bytes("process_vm_readv into it", to.iov_base, there(position + 2 * LENGTH, LENGTH), LENGTH);
	/* Of nobody it is refused, and a list that is not there. */
	expect("of nobody", process_vm_readv(1 << 30, &to, 1, &from, 1, 0), -1);
	expect("of nowhere", process_vm_readv(thread, &to, 1, (void *)8, 1, 0), -1);
	from.iov_len = -1;
	expect("of a length below zero", process_vm_readv(thread, &to, 1, &from, 1, 0), -1);
}

static void *in_a_thread(void *own)
{
	char *heap = malloc(LENGTH);
	memset(heap, 'h', LENGTH);
	for (position = 0; position + 2 * MIB < file_length; position += 5 * MIB + 3 * PAGE) {
		by_thread(gettid(), own, heap);
		by_thread(getpid(), (unsigned char *)own + 5 * LENGTH, heap);
		position += MIB;
		wherever(heap);
		if (position < file_length / 2 && position + 6 * MIB >= file_length / 2)
			rendezvous();
	}
	free(heap);
	return own;
}

/* All of one message, or of the last of two, but what the kernel reads or writes last lies in one page; that lies in the next,
 * which nobody has accessed. */
static void across_pages(unsigned char *own, int count)
{
	int pair[2];
	char byte = 'b';
	struct iovec part = { &byte, 1 };
	struct msghdr header = { .msg_iov = &part, .msg_iovlen = 1 };
	struct mmsghdr messages[2] = { { .msg_hdr = header }, { .msg_hdr = header } };
	size_t before = count ? (count - 1) * sizeof *messages + offsetof(struct mmsghdr, msg_len) : offsetof(struct msghdr, msg_flags);
	if (socketpair(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK, 0, pair))
		fail("socketpair");
	for (position = PAGE; position + PAGE < file_length; position += PAGE) {
		struct mmsghdr *place = (struct mmsghdr *)(own + position - before);
		memcpy(place, messages, before);
		if (count)
			expect("sendmmsg", sendmmsg(pair[0], place, count, 0), count);
		else
			expect("sendmsg", sendmsg(pair[0], &place->msg_hdr, 0), 1);
		if (count && place[count - 1].msg_len != 1)
			printf("sendmmsg at %zu: %u bytes\n", position, place[count - 1].msg_len);
		for (int i = 0; i < (count ? count : 1); i++)
			expect("recv", recv(pair[1], &byte, 1, 0), 1);
		expect("nothing left", recv(pair[1], &byte, 1, 0), -1);
	}
	close(pair[0]), close(pair[1]);
}

int main(int count, char **arguments)
{
	(void)count;
	base = (unsigned char *)map_file(arguments, PROT_READ, MAP_SHARED);
	unsigned char *own = mmap(NULL, file_length, PROT_READ | PROT_WRITE, MAP_PRIVATE, file_descriptor, 0);
	if (own == MAP_FAILED || pipe(ends))
		fail("mmap");
	pthread_t thread;
	pthread_create(&thread, NULL, in_a_thread, own);
	pthread_join(thread, NULL);
	/* More than are looked at together. */
	for (int i = 0; i < MAPPINGS; i++) {
		base = mmap(NULL, file_length, PROT_READ, MAP_SHARED, file_descriptor, 0);
		char *heap = malloc(LENGTH);
		memset(heap, 'h', LENGTH);
		for (position = i * MIB; position + MIB < file_length; position += 9 * MIB)
			wherever(heap);
		free(heap);
	}
	for (int messages = 0; messages <= 2; messages++) {
		munmap(own, file_length);
		own = mmap(NULL, file_length, PROT_READ | PROT_WRITE, MAP_PRIVATE, file_descriptor, 0);
		across_pages(own, messages);
	}
	puts("done");
	return 0;
}
