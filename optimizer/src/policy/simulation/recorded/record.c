/* Records in which order a program comes to the parts of the first large file that it maps: which page it touches first in
 * each 64 KiB, which is as much as a page fault maps. For the traces in this folder (README.md); needs nothing of precache.
 *
 *     cc -O2 -shared -fPIC -o record.so record.c
 *     TRACE=out.trace LD_PRELOAD=$PWD/record.so program ...
 *
 * The mapping begins closed, and each part is opened by the fault that it raises. What is open is not seen again: later
 * passes over the same mapping leave no trace. Programs with a SIGSEGV handler of their own are not for it. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PAGE = 4096, STEP = 64 << 10, LARGE = 32 << 20, MOST = 1 << 22 };

static char *base;
static size_t length;
static uint32_t *touched; /* pages of the file, in the order in which they were touched */
static volatile size_t count;

static void touch(int signal, siginfo_t *info, void *context) {
    size_t offset = (char *)info->si_addr - base;
    (void)context;
    if (!base || offset >= length || count == MOST) {
        struct sigaction native = {.sa_handler = SIG_DFL};
        sigaction(signal, &native, NULL);
        return;
    }
    touched[count++] = offset / PAGE;
    size_t start = offset / STEP * STEP, left = length - start;
    mprotect(base + start, left < STEP ? left : STEP, PROT_READ);
}

static void *close_it(void *map, size_t asked, int protection, int file) {
    struct stat status;
    if (map == MAP_FAILED || base || protection != PROT_READ || fstat(file, &status) || !S_ISREG(status.st_mode) ||
        status.st_size < LARGE)
        return map;
    touched = mmap(NULL, MOST * sizeof *touched, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    struct sigaction action = {.sa_sigaction = touch, .sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER};
    sigaction(SIGSEGV, &action, NULL);
    size_t pages = ((asked < (size_t)status.st_size ? asked : (size_t)status.st_size) + PAGE - 1) / PAGE;
    length = pages * PAGE;
    base = map;
    mprotect(map, length, PROT_NONE);
    return map;
}

void *mmap64(void *address, size_t asked, int protection, int flags, int file, off_t offset) {
    void *(*next)(void *, size_t, int, int, int, off_t) = dlsym(RTLD_NEXT, "mmap64");
    return close_it(next(address, asked, protection, flags, file, offset), asked, protection, file);
}

void *mmap(void *address, size_t asked, int protection, int flags, int file, off_t offset) {
    void *(*next)(void *, size_t, int, int, int, off_t) = dlsym(RTLD_NEXT, "mmap");
    return close_it(next(address, asked, protection, flags, file, offset), asked, protection, file);
}

/* A line for each run: the page touched first, and how many parts after it were touched one after the other, each at its
 * beginning. */
__attribute__((destructor)) static void tell(void) {
    const char *name = getenv("TRACE");
    FILE *file = base && name ? fopen(name, "w") : NULL;
    if (!file)
        return;
    fprintf(file, "pages %zu\n", length / PAGE);
    for (size_t at = 0, run; at < count; at += run) {
        for (run = 1; at + run < count && touched[at + run] == (touched[at] / 16 + run) * 16; run++)
            ;
        fprintf(file, run > 1 ? "%u %zu\n" : "%u\n", touched[at], run - 1);
    }
    fclose(file);
}
