/* Expected: messages are sent and received whole, whichever place that one of them names lies in an armed mapping, and wherever the
 * others lie; by number, too.
 * @own-data
 * @counter lifted_for_calls 270 */
#include "closed_places.h"
#include <sys/syscall.h>
#include <sys/un.h>

enum { MANY = 4, PARTS = 2, LENGTH = 100 };

/* What a message names. */
enum kind { HEADER, LIST, FIRST, LAST, NAME, CONTROL, KINDS };

/* Where what is not in a mapping lies: all on the stack; the buffers on the heap; all but the messages and their lists on the heap. */
enum layout { STACK, BUFFERS_APART, LISTS_APART, LAYOUTS };

union control {
	struct cmsghdr header;
	char room[CMSG_SPACE(sizeof(int))];
};

/* One message's own places. */
struct places {
	char parts[PARTS][LENGTH];
	struct sockaddr_un name;
	union control control;
};

static struct sockaddr_un receiver = { AF_UNIX, "receiver" }, sender = { AF_UNIX, "sender" };
static int in, out;

static void fill(struct places *places, int index)
{
	memset(places, 0, sizeof *places);
	for (int part = 0; part < PARTS; part++)
		memset(places->parts[part], 'a' + index * PARTS + part, LENGTH);
	places->name = receiver;
	places->control.header = (struct cmsghdr) { CMSG_LEN(sizeof(int)), SOL_SOCKET, SCM_RIGHTS };
	memcpy(CMSG_DATA(&places->control.header), &(int) { 1 }, sizeof(int));
}

static void check(const char *what, const struct msghdr *message, int index)
{
	const struct sockaddr_un *name = message->msg_name;
	struct cmsghdr *control = CMSG_FIRSTHDR(message);
	int file = -1;
	for (int part = 0; part < PARTS; part++)
		for (int i = 0; i < LENGTH; i++)
			if (((char *)message->msg_iov[part].iov_base)[i] != 'a' + index * PARTS + part) {
				printf("%s: other bytes in part %d of message %d\n", what, part, index);
				break;
			}
	if (name->sun_family != AF_UNIX || strcmp(name->sun_path, sender.sun_path))
		printf("%s: message %d is from another\n", what, index);
	if (!control || control->cmsg_type != SCM_RIGHTS)
		printf("%s: message %d has no control data\n", what, index);
	else
		memcpy(&file, CMSG_DATA(control), sizeof file);
	if (close(file))
		printf("%s: message %d has no file\n", what, index);
}

/* Makes the call that this stands for, with as many messages as it takes. */
static void make(const char *what, int is_sent, int by_number, struct mmsghdr *messages, int count)
{
	int file = is_sent ? out : in;
	ssize_t wanted = count > 1 ? count : PARTS * LENGTH, got;
	if (count > 1 && by_number)
		got = is_sent ? syscall(SYS_sendmmsg, file, messages, count, 0) : syscall(SYS_recvmmsg, file, messages, count, 0, NULL);
	else if (count > 1)
		got = is_sent ? sendmmsg(file, messages, count, 0) : recvmmsg(file, messages, count, 0, NULL);
	else if (by_number)
		got = syscall(is_sent ? SYS_sendmsg : SYS_recvmsg, file, messages, 0);
	else
		got = is_sent ? sendmsg(file, &messages->msg_hdr, 0) : recvmsg(file, &messages->msg_hdr, 0);
	expect(what, got, wanted);
	for (int i = 0; count > 1 && i < count; i++)
		if (messages[i].msg_len != PARTS * LENGTH)
			printf("%s: %u bytes in message %d\n", what, messages[i].msg_len, i);
}

/* All messages that a call is given, and their places. */
struct given {
	struct mmsghdr messages[MANY];
	struct iovec lists[MANY][PARTS];
};

static void lay_out(struct given *given, struct places *buffers, struct places *rest)
{
	memset(given, 0, sizeof *given);
	for (int i = 0; i < MANY; i++) {
		for (int part = 0; part < PARTS; part++)
			given->lists[i][part] = (struct iovec) { buffers[i].parts[part], LENGTH };
		given->messages[i].msg_hdr = (struct msghdr) {
			.msg_name = &rest[i].name, .msg_namelen = sizeof rest[i].name,
			.msg_iov = given->lists[i], .msg_iovlen = PARTS,
			.msg_control = &rest[i].control, .msg_controllen = sizeof rest[i].control,
		};
	}
}

/* Puts one place of one message into a mapping, and tells where the messages are then. */
static struct mmsghdr *move(struct given *given, enum kind kind, int index, int is_sent)
{
	struct msghdr *message = &given->messages[index].msg_hdr;
	struct iovec *list = given->lists[index];
	int part = kind == LAST;
	switch (kind) {
	case HEADER:
		return (void *)room_with(given->messages, sizeof given->messages);
	case LIST:
		message->msg_iov = (void *)put(list, sizeof given->lists[index]);
		break;
	case NAME:
		message->msg_name = is_sent ? put(message->msg_name, sizeof(struct sockaddr_un)) : room();
		break;
	case CONTROL:
		message->msg_control = is_sent ? put(message->msg_control, sizeof(union control)) : room();
		break;
	default:
		list[part].iov_base = is_sent ? put(list[part].iov_base, LENGTH) : room();
	}
	return given->messages;
}

static void in_layout(enum layout layout, enum kind kind, int index, int count, int by_number)
{
	struct places on_stack[MANY], *on_heap = calloc(MANY, sizeof *on_heap);
	struct places *buffers = layout == STACK ? on_stack : on_heap, *rest = layout == LISTS_APART ? on_heap : on_stack;
	struct given given;
	char what[100];
	for (int is_sent = 1; is_sent >= 0; is_sent--) {
		snprintf(what, sizeof what, "%s %d, kind %d of %d, layout %d, by number: %d", is_sent ? "send" : "receive", count,
			 kind, index, layout, by_number);
		for (int i = 0; i < MANY; i++) {
			if (is_sent)
				fill(&on_stack[i], i), fill(&on_heap[i], i);
			else
				memset(&on_stack[i], 0, sizeof on_stack[i]), memset(&on_heap[i], 0, sizeof on_heap[i]);
		}
		lay_out(&given, buffers, rest);
		struct mmsghdr *messages = move(&given, kind, index, is_sent);
		make(what, is_sent, by_number, messages, count);
		for (int i = 0; !is_sent && i < count; i++)
			check(what, &messages[i].msg_hdr, i);
	}
	free(on_heap);
}

int main(int count, char **arguments)
{
	(void)count;
	open_to_write(arguments);
	in = socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK, 0), out = socket(AF_UNIX, SOCK_DGRAM, 0);
	if (bind(in, (void *)&receiver, sizeof receiver) || bind(out, (void *)&sender, sizeof sender))
		fail("bind");
	errno = PLANTED;
	for (enum layout layout = 0; layout < LAYOUTS; layout++) {
		for (enum kind kind = 0; kind < KINDS; kind++)
			for (int index = 0; index <= MANY; index++) {
				for (int by_number = 0; by_number < 2; by_number++)
					in_layout(layout, kind, index % MANY, index < MANY ? MANY : 1, by_number);
				forget();
			}
		if (layout == BUFFERS_APART)
			rendezvous();
	}
	return 0;
}
