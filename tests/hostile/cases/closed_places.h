/* Places in armed mappings that nobody has touched, for what a call reads or fills. */
#include "hostile.h"
#include <mqueue.h>

static unsigned char *from, *to;
static size_t turn;

static inline unsigned char *map_anew(int protection, int flags)
{
	unsigned char *base = mmap(NULL, file_length, protection, flags, file_descriptor, 0);
	if (base == MAP_FAILED)
		fail("mmap");
	read_pages(base, 62 * MIB, 63 * MIB);
	return base;
}

/* A place that nobody has touched, in no order. After some such jumps a mapping is taken for one that is read in no order, and
 * opened: then others. */
static inline size_t fresh(void)
{
	if (turn % 10 == 0) {
		from = map_anew(PROT_READ, MAP_SHARED);
		to = map_anew(PROT_READ | PROT_WRITE, MAP_PRIVATE);
	}
	return turn++ * 37 % 61 * MIB + 3 * PAGE;
}

/* Lets go of the mappings that the last places lie in: the next ones lie in others. */
static inline void forget(void)
{
	if (munmap(from, file_length) || munmap(to, file_length))
		fail("munmap");
	turn += 10 - turn % 10;
}

static inline size_t put_at(const void *content, size_t length)
{
	size_t at = fresh();
	if (pwrite(file_descriptor, content, length, at) != (ssize_t)length)
		fail("pwrite");
	return at;
}

/* The same, with this there. */
static inline unsigned char *put(const void *content, size_t length)
{
	size_t at = put_at(content, length);
	return from + at;
}

/* The same, to be filled. */
static inline unsigned char *room(void)
{
	size_t at = fresh();
	return to + at;
}

/* The same, with this there. */
static inline unsigned char *room_with(const void *content, size_t length)
{
	size_t at = put_at(content, length);
	return to + at;
}

static inline void expect(const char *what, ssize_t got, ssize_t wanted)
{
	if (got != wanted)
		printf("%s: %zd instead of %zd (%s)\n", what, got, wanted, strerror(errno));
	errno_stays(what);
}

/* A queue of messages that only this process knows; -1: it is refused, as containers may. */
static inline mqd_t new_queue(long messages, long length)
{
	char name[64];
	struct mq_attr attributes = { .mq_maxmsg = messages, .mq_msgsize = length };
	snprintf(name, sizeof name, "/precache-%d", getpid());
	mqd_t queue = mq_open(name, O_RDWR | O_CREAT | O_EXCL, 0600, &attributes);
	if (queue >= 0 && mq_unlink(name))
		fail("mq_unlink");
	return queue;
}

/* Ends a program that has not been given a queue: where it may not have one, nobody can tell how it would do. */
static inline void without_queue(const char *call)
{
	if (errno != EPERM && errno != EACCES && errno != ENOSYS)
		fail(call);
	printf("right to make a message queue (%s)\n", call);
	exit(77);
}
