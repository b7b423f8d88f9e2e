/* Expected: what is sent arrives whole in memory over which a file is mapped (MAP_FIXED) while a thread waits for it there:
 * memory that nobody knows, for which the report says why that mapping was not armed, and a file that was armed until then,
 * by a mapping that is, too; so is one over reserved addresses.
 * @no-guards private mappings have none
 * @counter lifted_for_calls 1
 * @report the program put it in the place of memory that one of its calls may have been using */
#include "hostile.h"
#include "held_thread.h"
#include <sched.h>

enum { LENGTH = 3 * 4096, AT = 2048 };

/* A thread that receives into this memory. */
struct receiver {
	pthread_t thread;
	volatile pid_t number;
	int from;
	unsigned char *into;
	ssize_t received;
};

static void *receive(void *argument)
{
	struct receiver *receiver = argument;
	receiver->number = syscall(SYS_gettid);
	receiver->received = read(receiver->from, receiver->into + AT, LENGTH);
	return NULL;
}

/* Until the thread is in its call. */
static void await_call(pid_t thread)
{
	char name[64], text[16] = "";
	int number = -1;
	snprintf(name, sizeof name, "/proc/self/task/%d/syscall", thread);
	while (number != SYS_read) {
		int file = open(name, O_RDONLY);
		if (file < 0) {
			puts("/proc/PID/syscall");
			exit(77);
		}
		number = syscall(SYS_read, file, text, sizeof text - 1) > 0 && text[0] != 'r' ? atoi(text) : -1;
		close(file);
		sched_yield();
	}
}

static void begin(struct receiver *receiver, int from, unsigned char *into)
{
	*receiver = (struct receiver){ .from = from, .into = into };
	pthread_create(&receiver->thread, NULL, receive, receiver);
	while (!receiver->number)
		sched_yield();
	await_call(receiver->number);
}

static void expect_arrival(struct receiver *receiver, int to)
{
	static unsigned char sent[LENGTH];
	memset(sent, 's', LENGTH);
	printf("sent: %zd\n", write(to, sent, LENGTH));
	pthread_join(receiver->thread, NULL);
	printf("received: %zd\n", receiver->received);
	printf("as sent: %d\n", !memcmp(receiver->into + AT, sent, LENGTH));
	printf("%x\n", read_pages(receiver->into, AT + LENGTH + AT, file_length));
}

static unsigned char *place(int protection)
{
	unsigned char *address = mmap(NULL, file_length, protection, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (address == MAP_FAILED)
		fail("mmap");
	return address;
}

static void *map_over(void *address)
{
	if (mmap(address, file_length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_FIXED, file_descriptor, 0) != address)
		fail("mmap over");
	return NULL;
}

struct mapper {
	volatile pid_t number;
	int go[2];
	void *address;
};

static void *map_when_told(void *argument)
{
	struct mapper *mapper = argument;
	char byte;
	mapper->number = syscall(SYS_gettid);
	if (read(mapper->go[0], &byte, 1) != 1)
		fail("go");
	return map_over(mapper->address);
}

int main(int count, char **arguments)
{
	(void)count;
	struct receiver receiver;
	struct mapper mapper = { 0 };
	pthread_t thread;
	int pair[2], pipes[2];
	open_file(arguments);
	if (socketpair(AF_UNIX, SOCK_DGRAM, 0, pair) || pipe(pipes) || pipe(mapper.go))
		fail("pipe");
	unsigned char *used = place(PROT_READ | PROT_WRITE), *reserved = place(PROT_NONE);
	begin(&receiver, pair[1], used);
	map_over(used);
	expect_arrival(&receiver, pair[0]);
	map_over(reserved);
	printf("%x\n", read_pages(reserved, 0, file_length));
	rendezvous();
	/* Let go of by the mapper, which has not mapped the file over it yet. */
	mapper.address = reserved;
	pthread_create(&thread, NULL, map_when_told, &mapper);
	while (!mapper.number)
		sched_yield();
	struct hold held = new_hold();
	hold(&held, mapper.number, 0, SYS_mmap);
	if (write(mapper.go[1], "g", 1) != 1)
		fail("go");
	await_held(&held);
	begin(&receiver, pipes[0], reserved);
	let_go(&held);
	pthread_join(thread, NULL);
	end_hold(&held);
	expect_arrival(&receiver, pipes[1]);
	return 0;
}
