/* Expected: a datagram arrives whole in memory over which a file was mapped (MAP_FIXED) while another thread waited for it
 * there; the report says why that mapping was not armed. One over reserved addresses is.
 * @report the program put it in the place of memory that its other threads may have been using */
#include "hostile.h"
#include <sys/syscall.h>

enum { LENGTH = 3 * 4096 };

static int pair[2];
static unsigned char *used;
static volatile pid_t waiting;
static ssize_t received;

static void *receive(void *unused)
{
	(void)unused;
	waiting = syscall(SYS_gettid);
	received = recv(pair[1], used + PAGE / 2, LENGTH, 0);
	return NULL;
}

/* Until the thread is in its call. */
static void await_call(pid_t thread)
{
	char name[64], text[16] = "";
	int number = -1;
	snprintf(name, sizeof name, "/proc/self/task/%d/syscall", thread);
	while (number != SYS_recvfrom) {
		int file = open(name, O_RDONLY);
		if (file < 0) {
			puts("/proc/PID/syscall");
			exit(77);
		}
		number = read(file, text, sizeof text - 1) > 0 ? atoi(text) : -1;
		close(file);
		sched_yield();
	}
}

static unsigned char *place(int protection)
{
	unsigned char *address = mmap(NULL, file_length, protection, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (address == MAP_FAILED)
		fail("mmap");
	return address;
}

static void map_over(unsigned char *address)
{
	if (mmap(address, file_length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_FIXED, file_descriptor, 0) != address)
		fail("mmap over");
}

int main(int count, char **arguments)
{
	(void)count;
	static unsigned char sent[LENGTH];
	pthread_t thread;
	open_file(arguments);
	if (socketpair(AF_UNIX, SOCK_DGRAM, 0, pair))
		fail("socketpair");
	unsigned char *reserved = place(PROT_NONE);
	used = place(PROT_READ | PROT_WRITE);
	pthread_create(&thread, NULL, receive, NULL);
	while (!waiting)
		sched_yield();
	await_call(waiting);
	map_over(reserved);
	map_over(used);
	memset(sent, 's', LENGTH);
	printf("sent: %zd\n", send(pair[0], sent, LENGTH, 0));
	pthread_join(thread, NULL);
	printf("received: %zd\n", received);
	printf("as sent: %d\n", !memcmp(used + PAGE / 2, sent, LENGTH));
	printf("%x\n", read_pages(used, PAGE / 2 + LENGTH + PAGE / 2, file_length));
	printf("%x\n", read_pages(reserved, 0, file_length / 2));
	rendezvous();
	printf("%x\n", read_pages(reserved, file_length / 2, file_length));
	return 0;
}
