# Expected: threads that a library which the program is linked to starts before any other library begins, and that block all
# signals at the same moment or begin with them blocked, read closed pages, as does a handler that it has set by number to block
# SIGSEGV; they find blocked what they blocked. The program has a getenv of its own, which changes masks.
# @counter active_readers 1
set -e
cat > linked.c <<'C'
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>
volatile unsigned char *base;
size_t length;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t mapped = PTHREAD_COND_INITIALIZER;
enum { THREADS = 6 };
static pthread_t thread, threads[THREADS];
static pthread_barrier_t together;
static void read_it(const char *who, size_t from, size_t to)
{
	sigset_t now;
	pthread_sigmask(SIG_BLOCK, NULL, &now);
	uint32_t sum = 0;
	for (size_t at = from; at < to; at += 4096)
		sum = sum * 31 + *(volatile uint32_t *)(base + at);
	printf("%s: %x, blocked: %d %d %d\n", who, sum, sigismember(&now, SIGSEGV), sigismember(&now, SIGUSR2),
		sigismember(&now, SIGSTKFLT));
	fflush(stdout);
}
static void await_mapping(void)
{
	pthread_mutex_lock(&lock);
	while (!base)
		pthread_cond_wait(&mapped, &lock);
	pthread_mutex_unlock(&lock);
}
static void *run(void *nothing)
{
	await_mapping();
	read_it("thread", 0, length / 2);
	return nothing;
}
static void *block(void *result)
{
	sigset_t all;
	sigfillset(&all);
	pthread_barrier_wait(&together);
	pthread_sigmask(SIG_SETMASK, &all, NULL);
	await_mapping();
	size_t part = length / THREADS, from = ((pthread_t *)result - threads) * part;
	uintptr_t sum = 0;
	for (size_t at = from; at < from + part; at += 4096)
		sum = sum * 31 + base[at];
	return (void *)sum;
}
static void on_signal(int signal)
{
	(void)signal;
	read_it("handler", length / 2, length);
}
__attribute__((constructor)) static void early(void)
{
	sigset_t all, old;
	pthread_barrier_init(&together, NULL, THREADS);
	for (int i = 0; i < THREADS; i++)
		pthread_create(threads + i, NULL, block, threads + i);
	if (!getenv("PATH"))
		puts("no PATH");
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	pthread_create(&thread, NULL, run, NULL);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	/* As the kernel has it, with the restorer that sigaction has found. */
	struct sigaction usual = { .sa_handler = on_signal };
	sigaction(SIGUSR1, &usual, NULL);
	struct { void (*handler)(int); unsigned long flags; void *restorer; unsigned long mask; } action;
	syscall(SYS_rt_sigaction, SIGUSR1, NULL, &action, 8L);
	action.mask = 1UL << (SIGSEGV - 1) | 1UL << (SIGUSR2 - 1);
	syscall(SYS_rt_sigaction, SIGUSR1, &action, NULL, 8L);
}
void have_mapped(void *place, size_t size)
{
	pthread_mutex_lock(&lock);
	base = place;
	length = size;
	pthread_cond_broadcast(&mapped);
	pthread_mutex_unlock(&lock);
	pthread_join(thread, NULL);
	for (int i = 0; i < THREADS; i++) {
		void *sum;
		pthread_join(threads[i], &sum);
		printf("%lx\n", (unsigned long)sum);
	}
}
C
cat > reader.c <<'C'
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <string.h>
#include <unistd.h>
extern char **environ;
void have_mapped(void *place, size_t size);
char *getenv(const char *name)
{
	sigset_t none;
	sigemptyset(&none);
	sigprocmask(SIG_BLOCK, &none, NULL);
	size_t length = strlen(name);
	for (char **entry = environ; entry && *entry; entry++)
		if (!strncmp(*entry, name, length) && (*entry)[length] == '=')
			return *entry + length + 1;
	return NULL;
}
int main(int count, char **arguments)
{
	(void)count;
	int file = open(arguments[1], O_RDONLY);
	struct stat status;
	fstat(file, &status);
	have_mapped(mmap(NULL, status.st_size, PROT_READ, MAP_SHARED, file, 0), status.st_size);
	raise(SIGUSR1);
	struct sigaction now;
	sigaction(SIGUSR1, NULL, &now);
	printf("set: %d %d\n", sigismember(&now.sa_mask, SIGSEGV), sigismember(&now.sa_mask, SIGSTKFLT));
	return 0;
}
C
cc -shared -fPIC -O1 -o liblinked.so linked.c -lpthread
cc -O1 -o reader reader.c -Wl,--no-as-needed -L. -llinked -Wl,-rpath,"$PWD"
./reader "$1"
printf x > "$HOSTILE_RENDEZVOUS/reached"; head -c1 "$HOSTILE_RENDEZVOUS/go" > /dev/null
./reader "$1"
