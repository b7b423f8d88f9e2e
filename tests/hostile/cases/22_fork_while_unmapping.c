/* Expected: a child forked while another thread is unmapping as many mappings as there can be maps as many itself; so does one
 * that a handler of the unmapping thread forks in the middle of that call, and keeps them when the call returns there.
 * @counter active_readers 3 */
#include "hostile.h"
#include "held_thread.h"

enum { MAPPINGS = 64 };

static unsigned char *base;
static struct hold unmapping;
static volatile pid_t thread_number, forked = -1;
static pthread_barrier_t barrier;

static void map_all(void)
{
	for (int i = 0; i < MAPPINGS; i++)
		if (mmap(base + i * MIB, MIB, PROT_READ, MAP_SHARED | MAP_FIXED, file_descriptor, i * MIB) != base + i * MIB)
			fail("mmap");
}

static void on_signal(int signal)
{
	(void)signal;
	if ((forked = fork()) == 0)
		map_all();
}

static void tell_and_end(const char *who)
{
	printf("%s: %x\n", who, read_pages(base, 0, file_length));
	fflush(stdout);
	_exit(0);
}

static void *unmap(void *unused)
{
	int status;
	thread_number = gettid();
	pthread_barrier_wait(&barrier);
	pthread_barrier_wait(&barrier);
	if (munmap(base, MAPPINGS * MIB))
		fail("munmap");
	if (forked == 0)
		tell_and_end("child of the handler");
	waitpid(forked, &status, 0);
	printf("child of the handler ended: %d\n", status);
	return unused;
}

int main(int count, char **arguments)
{
	(void)count;
	base = (unsigned char *)map_file(arguments, PROT_READ, MAP_SHARED);
	map_all();
	read_pages(base, 0, 8 * MIB);
	rendezvous();
	pthread_t thread;
	signal(SIGUSR1, on_signal);
	pthread_barrier_init(&barrier, NULL, 2);
	pthread_create(&thread, NULL, unmap, NULL);
	pthread_barrier_wait(&barrier);
	unmapping = new_hold();
	hold(&unmapping, thread_number, 0, SYS_munmap);
	pthread_barrier_wait(&barrier);
	await_held(&unmapping);
	pid_t child = fork();
	if (child == 0) {
		map_all();
		tell_and_end("child");
	}
	int status;
	waitpid(child, &status, 0);
	pthread_kill(thread, SIGUSR1);
	let_go(&unmapping);
	pthread_join(thread, NULL);
	end_hold(&unmapping);
	map_all();
	printf("child ended: %d; parent: %x\n", status, read_pages(base, 0, file_length));
	return 0;
}
