/* Random operations on mapped files, as a seed has it: soak FOLDER SEED OPERATIONS LOG; without
 * arguments it lists the operations.
 *
 * The data files are made in FOLDER, unless they are there. LOG gets a word for each operation: which one it was, in the
 * highest byte, and a hash of what it found. The last line on stdout says what the program has more of at the end than
 * after a tenth of all operations. */
#include "soak.h"
#include "../../hostile/cases/possessions.h"

volatile uint64_t operation;
const char *volatile operation_name = "start";

static uint64_t seed;

static const struct {
	const char *name;
	Operation *operation;
	int weight;
	bool in_children;
} operations[] = {
	{"read", op_read, 240, true},
	{"fault", op_fault, 160, true},
	{"map", op_map, 40, true},
	{"map-private", op_map_private, 30, true},
	{"map-memory", op_map_memory, 10, true},
	{"unmap", op_unmap, 16, true},
	{"protect", op_protect, 30, true},
	{"advise", op_advise, 40, true},
	{"move", op_move, 16, true},
	{"resize", op_resize, 10, true},
	{"lock", op_lock, 10, true},
	{"elsewhere", op_elsewhere, 12, true},
	{"write-file", op_write_file, 80, true},
	{"write-stream", op_write_stream, 40, true},
	{"copy", op_copy, 40, true},
	{"receive", op_receive, 50, true},
	{"descriptors", op_descriptors, 20, true},
	{"action", op_action, 20, true},
	{"mask", op_mask, 40, true},
	{"signal", op_signal, 40, true},
	{"fork", op_fork, 10, true},
	{"spawn", op_spawn, 1, true},
	{"parallel", op_parallel, 6, false},
};
enum { KINDS = sizeof operations / sizeof *operations };

void wrong(const char *what, uint64_t found, uint64_t expected)
{
	fprintf(stderr, "seed %ju, operation %ju (%s%s): %s is %#jx, not %#jx\n", (uintmax_t)seed, (uintmax_t)operation,
		operation_name, depth ? ", in a child" : "", what, (uintmax_t)found, (uintmax_t)expected);
	_exit(97);
}

void fail(const char *what)
{
	fprintf(stderr, "seed %ju, operation %ju (%s%s): %s: %s\n", (uintmax_t)seed, (uintmax_t)operation, operation_name,
		depth ? ", in a child" : "", what, strerror(errno));
	_exit(96);
}

static size_t choose(Random *random)
{
	int total = 0;
	for (size_t kind = 0; kind < KINDS; kind++)
		total += operations[kind].weight;
	int rest = below(random, total);
	size_t kind = 0;
	while ((rest -= operations[kind].weight) >= 0)
		kind++;
	return kind;
}

void do_something(Random *random, Findings *findings)
{
	size_t kind = choose(random);
	/* Children of children have none. */
	if (!operations[kind].in_children || (depth >= 2 && operations[kind].operation == op_fork))
		return;
	note(findings, kind);
	operations[kind].operation(random, findings);
}

/* --- what the program has */

/* Counted with none of the mappings that the operations made. */
static Possessions own_possessions(void)
{
	sigset_t all, before;
	sigfillset(&all);
	/* The alarm reads the steady mapping. */
	pthread_sigmask(SIG_SETMASK, &all, &before);
	clear_arena();
	if (munmap((void *)steady, files[0].length))
		fail("munmap");
	Possessions has = possessions();
	void *place = mmap((void *)steady, files[0].length, PROT_READ, MAP_SHARED | MAP_FIXED_NOREPLACE,
		files[0].descriptor, 0);
	if (place != steady)
		fail("mmap");
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return has;
}

static void print_growth(const Possessions *early, const Possessions *late)
{
	long grown = late->private_memory - early->private_memory;
	/* Pages of tables and stacks are touched late, too. */
	printf("mappings %+ld, descriptors %+ld, threads %+ld, address space %+ld KiB, private memory %s, %s\n",
		late->mappings - early->mappings, late->descriptors - early->descriptors, late->threads - early->threads,
		late->address_space - early->address_space, grown > 512 ? "more" : "as before",
		is_childless() ? "no child is left" : "a child is left");
}

/* Half-way: tells the harness, and waits until it has done to the optimizer what it wants to do. */
static void rendezvous(void)
{
	const char *folder = getenv("HOSTILE_RENDEZVOUS");
	char name[4096], byte = 0;
	if (!folder)
		return;
	snprintf(name, sizeof name, "%s/reached", folder);
	int reached = open(name, O_WRONLY);
	snprintf(name, sizeof name, "%s/go", folder);
	int go = open(name, O_RDONLY);
	if (reached < 0 || go < 0 || write(reached, &byte, 1) != 1 || read(go, &byte, 1) != 1 || close(reached) || close(go))
		fail(name);
}

int main(int count, char **arguments)
{
	for (size_t kind = 0; count == 1 && kind < KINDS; kind++)
		puts(operations[kind].name);
	if (count == 1)
		return 0;
	if (count != 5) {
		fprintf(stderr, "usage: %s FOLDER SEED OPERATIONS LOG\n", arguments[0]);
		return 2;
	}
	seed = strtoull(arguments[2], NULL, 10);
	uint64_t operations_wanted = strtoull(arguments[3], NULL, 10), all = 0;
	FILE *log = fopen(arguments[4], "we");
	struct rlimit no_core = {0, 0};
	/* Nothing is lost if it dies. */
	if (!log || setvbuf(log, NULL, _IONBF, 0) || setrlimit(RLIMIT_CORE, &no_core))
		fail(arguments[4]);
	open_files(arguments[1]);
	make_arena();
	start_signals();
	start_threads();
	Random random = {seed};
	Possessions early = {0};
	for (operation = 0; operation < operations_wanted; operation++) {
		Findings findings = {0};
		/* Each has random numbers of its own: what one finds does not change the next. */
		Random own = {next(&random)};
		size_t kind = choose(&own);
		operation_name = operations[kind].name;
		operations[kind].operation(&own, &findings);
		uint64_t word = (uint64_t)kind << 56 | findings.hash >> 8;
		all = mixed(all ^ word);
		if (fwrite(&word, sizeof word, 1, log) != 1)
			fail("fwrite");
		if (operation == operations_wanted / 10)
			early = own_possessions();
		if (operation == operations_wanted / 2)
			rendezvous();
	}
	operation_name = "end";
	Possessions late = own_possessions();
	end_threads();
	if (fclose(log))
		fail(arguments[4]);
	printf("%ju operations: %016jx\n", (uintmax_t)operations_wanted, (uintmax_t)all);
	print_growth(&early, &late);
	return 0;
}
