/* Preloaded behind our library: ends the program, with a message, when memory is allocated or a lock is taken while our
 * SIGSEGV handler runs, by whomever on its behalf.
 *
 * What is checked: SIGSEGV is blocked in the calling thread, as the kernel says; its handler, as the kernel says, lies in
 * our library; and a frame of the thread returns into that handler. A handler of the program's does not pass: ours jumps
 * to it and leaves no frame. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <unwind.h>

#define NAME "precache_inject"

/* struct sigaction as rt_sigaction(2) has it. */
struct action {
	uintptr_t handler;
	unsigned long flags;
	uintptr_t restorer;
	unsigned long mask;
};

/* Where the library's code lies; empty until it is known. */
static uintptr_t library_start, library_end;

/* Past every library, ours too, and past errno. */
static long raw(long number, long a, long b, long c, long d)
{
#if defined(__x86_64__)
	long result;
	register long fourth __asm__("r10") = d;
	__asm__ volatile("syscall" : "=a"(result) : "a"(number), "D"(a), "S"(b), "d"(c), "r"(fourth) : "rcx", "r11", "memory");
	return result;
#else
	return syscall(number, a, b, c, d);
#endif
}

static int find_library(struct dl_phdr_info *info, size_t size, void *unused)
{
	(void)size, (void)unused;
	if (!strstr(info->dlpi_name, NAME))
		return 0;
	for (int i = 0; i < info->dlpi_phnum; i++)
		if (info->dlpi_phdr[i].p_type == PT_LOAD && info->dlpi_phdr[i].p_flags & PF_X) {
			library_start = info->dlpi_addr + info->dlpi_phdr[i].p_vaddr;
			library_end = library_start + info->dlpi_phdr[i].p_memsz;
		}
	return 1;
}

/* The handler calls one function, within its first bytes: a frame that returns there is inside it. */
static _Unwind_Reason_Code returns_into(struct _Unwind_Context *frame, void *handler)
{
	uintptr_t offset = _Unwind_GetIP(frame) - *(uintptr_t *)handler;
	if (offset > 32)
		return _URC_NO_REASON;
	*(uintptr_t *)handler = 0;
	return _URC_END_OF_STACK;
}

__attribute__((constructor)) static void begin(void)
{
	uintptr_t nowhere = 1;
	dl_iterate_phdr(find_library, NULL);
	/* Whatever the unwinder prepares at its first use, it prepares now. */
	_Unwind_Backtrace(returns_into, &nowhere);
}

__attribute__((noinline)) static void look(const char *what)
{
	struct action action = { 0 };
	if (raw(SYS_rt_sigaction, SIGSEGV, 0, (long)&action, 8) || action.handler - library_start >= library_end - library_start)
		return;
	uintptr_t handler = action.handler;
	_Unwind_Backtrace(returns_into, &handler);
	if (handler)
		return;
	char text[128];
	size_t length = 0;
	for (const char *parts[] = { "detector: ", what, " in our SIGSEGV handler\n", NULL }, **part = parts; *part; part++)
		for (const char *c = *part; *c; c++)
			text[length++] = *c;
	raw(SYS_write, 2, (long)text, length, 0);
	/* As abort(3), but taking no lock and calling no handler. */
	struct action none = { 0 };
	unsigned long open = ~(1ul << (SIGABRT - 1));
	raw(SYS_rt_sigaction, SIGABRT, (long)&none, 0, 8);
	raw(SYS_rt_sigprocmask, SIG_SETMASK, (long)&open, 0, 8);
	raw(SYS_tgkill, raw(SYS_getpid, 0, 0, 0, 0), raw(SYS_gettid, 0, 0, 0, 0), SIGABRT, 0);
}

static inline void check(const char *what)
{
	unsigned long mask = 0;
	raw(SYS_rt_sigprocmask, SIG_BLOCK, 0, (long)&mask, 8);
	if (mask >> (SIGSEGV - 1) & 1 && library_end)
		look(what);
}

/* Allocation. These are glibc's own, so that nothing has to be looked up with dlsym, which allocates. */
extern void *__libc_malloc(size_t), *__libc_calloc(size_t, size_t), *__libc_realloc(void *, size_t);
extern void *__libc_memalign(size_t, size_t), __libc_free(void *);

void *malloc(size_t size)
{
	check("malloc");
	return __libc_malloc(size);
}

void *calloc(size_t count, size_t size)
{
	check("calloc");
	return __libc_calloc(count, size);
}

void *realloc(void *old, size_t size)
{
	check("realloc");
	return __libc_realloc(old, size);
}

void free(void *old)
{
	check("free");
	__libc_free(old);
}

void *memalign(size_t alignment, size_t size)
{
	check("memalign");
	return __libc_memalign(alignment, size);
}

void *aligned_alloc(size_t alignment, size_t size)
{
	check("aligned_alloc");
	return __libc_memalign(alignment, size);
}

int posix_memalign(void **to, size_t alignment, size_t size)
{
	check("posix_memalign");
	if (alignment % sizeof(void *) || alignment & (alignment - 1) || !alignment)
		return EINVAL;
	void *made = __libc_memalign(alignment, size);
	if (made)
		*to = made;
	return made ? 0 : ENOMEM;
}

/* The rest, by the next library. What dlsym finds costs it no memory; what it does not find, the text of an error: an
 * allocator of the program's may take the very lock that is looked for. */
static void *next(const char *name, void **place)
{
	/* By its version: another library's dlsym would be the one that is seen to call. */
	static void *(*libc_dlsym)(void *, const char *);
	if (!libc_dlsym)
		libc_dlsym = dlvsym(RTLD_NEXT, "dlsym", "GLIBC_2.34");
	void *found = __atomic_load_n(place, __ATOMIC_RELAXED);
	if (!found) {
#if defined(__x86_64__)
		/* Condition variables have an older version under the same name. */
		if (!strncmp(name, "pthread_cond_", 13))
			found = dlvsym(RTLD_NEXT, name, "GLIBC_2.3.2");
		else
#endif
			found = libc_dlsym(RTLD_NEXT, name);
		__atomic_store_n(place, found, __ATOMIC_RELAXED);
	}
	return found;
}

#define PASSED_ON(result, name, parameters, arguments) \
	result name parameters \
	{ \
		static void *place; \
		check(#name); \
		return ((result (*) parameters)next(#name, &place)) arguments; \
	}

PASSED_ON(int, pthread_mutex_lock, (pthread_mutex_t *lock), (lock))
PASSED_ON(int, pthread_mutex_trylock, (pthread_mutex_t *lock), (lock))
PASSED_ON(int, pthread_mutex_timedlock, (pthread_mutex_t *lock, const struct timespec *until), (lock, until))
PASSED_ON(int, pthread_mutex_unlock, (pthread_mutex_t *lock), (lock))
PASSED_ON(int, pthread_spin_lock, (pthread_spinlock_t *lock), (lock))
PASSED_ON(int, pthread_rwlock_rdlock, (pthread_rwlock_t *lock), (lock))
PASSED_ON(int, pthread_rwlock_wrlock, (pthread_rwlock_t *lock), (lock))
PASSED_ON(int, pthread_rwlock_unlock, (pthread_rwlock_t *lock), (lock))
PASSED_ON(int, pthread_cond_wait, (pthread_cond_t *condition, pthread_mutex_t *lock), (condition, lock))
PASSED_ON(int, pthread_cond_timedwait, (pthread_cond_t *condition, pthread_mutex_t *lock, const struct timespec *until),
	  (condition, lock, until))
PASSED_ON(int, pthread_cond_signal, (pthread_cond_t *condition), (condition))
PASSED_ON(int, pthread_cond_broadcast, (pthread_cond_t *condition), (condition))
PASSED_ON(int, sem_wait, (sem_t *semaphore), (semaphore))
PASSED_ON(int, sem_timedwait, (sem_t *semaphore, const struct timespec *until), (semaphore, until))
PASSED_ON(int, sem_post, (sem_t *semaphore), (semaphore))

/* stdio takes its locks inside libc. */
PASSED_ON(size_t, fwrite, (const void *from, size_t size, size_t count, FILE *to), (from, size, count, to))
PASSED_ON(size_t, fread, (void *to, size_t size, size_t count, FILE *from), (to, size, count, from))
PASSED_ON(int, fputs, (const char *text, FILE *to), (text, to))
PASSED_ON(int, puts, (const char *text), (text))
PASSED_ON(int, fflush, (FILE *stream), (stream))
PASSED_ON(int, vfprintf, (FILE *to, const char *format, va_list values), (to, format, values))
PASSED_ON(int, vprintf, (const char *format, va_list values), (format, values))

/* And so does the dynamic loader. dlsym looks at who calls it, and is not stood in front of here. */
PASSED_ON(int, dl_iterate_phdr, (int (*each)(struct dl_phdr_info *, size_t, void *), void *data), (each, data))
