/* Records how long requests of 128 KiB take a storage, with 1, 2, 4 ... 128 of them in flight: for the `.latencies` in this folder
 * (README.md). Past the page cache (O_DIRECT).
 *
 *     cc -O2 -pthread -o latencies latencies.c
 *     ./latencies FILE > out.latencies
 *
 * Prints a line for each number in flight: that, then microseconds, in the order in which the requests were answered. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { CHUNK = 128 << 10, DEEPEST = 128, REQUESTS = 256, WARMUP = 2 };

static int file;
static long chunks;
static atomic_long sent, answered;
static long deep;
static int latencies[REQUESTS];

static long now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * 1000000000L + time.tv_nsec;
}

static void *ask(void *unused) {
    void *buffer;
    if (posix_memalign(&buffer, 4096, CHUNK))
        abort();
    for (;;) {
        long before = now();
        if (pread(file, buffer, CHUNK, atomic_fetch_add(&sent, 1) % chunks * CHUNK) != CHUNK)
            abort();
        long latency = now() - before, place = atomic_fetch_add(&answered, 1) - WARMUP * deep;
        if (place >= REQUESTS)
            break;
        if (place >= 0)
            latencies[place] = latency / 1000;
    }
    free(buffer);
    return unused;
}

int main(int count, char **words) {
    struct stat status;
    if (count != 2 || (file = open(words[1], O_RDONLY | O_DIRECT)) < 0 || fstat(file, &status))
        return fprintf(stderr, "usage: latencies FILE\n"), 1;
    chunks = status.st_size / CHUNK;
    for (deep = 1; deep <= DEEPEST; deep *= 2) {
        pthread_t threads[DEEPEST];
        answered = 0;
        for (long i = 0; i < deep; i++)
            pthread_create(&threads[i], NULL, ask, NULL);
        for (long i = 0; i < deep; i++)
            pthread_join(threads[i], NULL);
        printf("%ld", deep);
        for (int i = 0; i < REQUESTS; i++)
            printf(" %d", latencies[i]);
        printf("\n");
    }
    return 0;
}
