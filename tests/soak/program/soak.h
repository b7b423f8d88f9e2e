/* What the parts of the soak share.
 *
 * The program does random operations on files that it has mapped, and knows what each must find: `arena.c` keeps a model
 * of every page. What an operation finds is noted in a log of one word for each; for one seed it is the same in every run,
 * natively or not. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#define PAGE ((size_t)4096)
#define WORDS (PAGE / 4)
#define ARENA_PAGES ((size_t)8192)

/* --- random numbers: splitmix64 */

typedef struct {
	uint64_t state;
} Random;

static inline uint64_t mixed(uint64_t word)
{
	word = (word ^ word >> 30) * 0xbf58476d1ce4e5b9u;
	word = (word ^ word >> 27) * 0x94d049bb133111ebu;
	return word ^ word >> 31;
}

static inline uint64_t next(Random *random)
{
	return mixed(random->state += 0x9e3779b97f4a7c15u);
}

static inline size_t below(Random *random, size_t bound)
{
	return next(random) % bound;
}

static inline bool one_in(Random *random, size_t so_many)
{
	return below(random, so_many) == 0;
}

/* --- what an operation finds */

typedef struct {
	uint64_t hash;
} Findings;

static inline void note(Findings *findings, uint64_t word)
{
	findings->hash = mixed(findings->hash * 31 + word + 1);
}

/* The result of a call, and errno if it failed. */
static inline void note_call(Findings *findings, long result)
{
	note(findings, result < 0 ? (uint64_t)-errno : (uint64_t)result);
}

/* --- soak.c */

/* The operation under way. */
extern volatile uint64_t operation;
extern const char *volatile operation_name;

/* Something is not as it must be: says in which operation, and ends the program. */
_Noreturn void wrong(const char *what, uint64_t found, uint64_t expected);
/* A call that cannot fail failed. */
_Noreturn void fail(const char *what);
/* An operation that a forked child can do, chosen at random. */
void do_something(Random *random, Findings *findings);

/* --- files.c: data files in which every word tells its place */

enum { FILES = 3 };
typedef struct {
	int descriptor;
	size_t length;
	size_t pages;
} File;
extern File files[FILES];
/* A file to write to, and both ends of a socket and of a pipe. */
extern int scratch_file, sockets[2], pipes[2];
/* All of the first file, mapped from the beginning to the end. */
extern volatile uint32_t *steady;

void open_files(const char *folder);
uint32_t file_word(int file, size_t index);
/* Reads some words of the steady mapping; safe in signal handlers and in any thread. */
void read_steadily(Random *random, size_t pages);

/* --- arena.c: the model */

/* What a page is backed by, and what it holds. */
typedef struct {
	/* -1: no file, all zeros. */
	int8_t backing, content;
	int8_t protection;
	bool is_private;
	/* Of the backing and content. */
	uint32_t backing_page, content_page;
	/* What the first word was set to; 0: not set. */
	uint32_t stamp;
} Page;
extern Page model[ARENA_PAGES];
extern unsigned char *arena;

typedef struct {
	size_t start, count;
} Range;

void make_arena(void);
/* Back to nothing but reserved addresses. */
void clear_arena(void);
Range any_range(Random *random, size_t longest);
/* A range in a mapping of a file, all with the same protection and backing in order; empty if there is none. */
Range uniform_range(Random *random, size_t longest);
static inline void *at(Range range)
{
	return arena + range.start * PAGE;
}
/* Forgets what is there; no access, backed by nothing. */
void set_reserved(Range range);
void set_backing(Range range, int file, size_t page, bool is_private, int protection);
/* Reserves the addresses again, where something was unmapped. */
void reserve(Range range);
bool is_readable(size_t page);
/* The page lies beyond the end of its file: SIGBUS. */
bool is_beyond_end(size_t page);
uint32_t expected_word(size_t page, size_t word);
/* Reads the pages that can be read, some words each, and checks them. */
void read_range(Random *random, Findings *findings, Range range);
/* How many pages from the start the kernel can read. */
size_t readable_pages(Range range);
/* Checks bytes that the kernel took out of the arena. */
void check_copy(const unsigned char *copy, size_t offset, size_t length);

/* --- the operations, by subject */

typedef void Operation(Random *, Findings *);

/* memory.c */
Operation op_read, op_map, op_map_private, op_map_memory, op_unmap, op_protect, op_advise, op_move, op_resize, op_lock,
	op_elsewhere;
/* calls.c */
Operation op_write_file, op_write_stream, op_copy, op_receive, op_descriptors;
/* signals.c */
Operation op_fault, op_action, op_mask, op_signal;
void start_signals(void);
/* An end that the kernel brings about, in a child. */
void die(Random *random);
/* processes.c */
Operation op_fork, op_spawn;
extern int depth;
/* threads.c */
Operation op_parallel;
void start_threads(void);
void end_threads(void);
