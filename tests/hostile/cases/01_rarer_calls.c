/* Expected: rarer calls that read memory of the mapping, or fill it, do what they do elsewhere: the address and the control
 * data of a message, queues, extended attributes, structures, paths, and names of calls that headers declare for fortified
 * programs or for nobody; by number, too.
 * @own-data
 * @counter lifted_for_calls 35 */
#include "hostile.h"
#include <dirent.h>
#include <linux/magic.h>
#include <mqueue.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/ipc.h>
#include <sys/msg.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/vfs.h>
#include <sys/xattr.h>

enum { LENGTH = 5000 };

extern ssize_t __read(int, void *, size_t), __write(int, const void *, size_t), __send(int, const void *, size_t, int);
extern ssize_t __pread64(int, void *, size_t, off_t), __pwrite64(int, const void *, size_t, off_t);
extern int __open(const char *, int, ...), __open64(const char *, int, ...), __open_2(const char *, int);
extern int __open64_2(const char *, int), __openat_2(int, const char *, int), __openat64_2(int, const char *, int);

static unsigned char *from, *to, bytes[LENGTH];

/* A place that nobody has touched, in no order. */
static size_t fresh(void)
{
	static size_t turn;
	return turn++ * 37 % 61 * MIB + 3 * PAGE;
}

/* The same, with this there. */
static unsigned char *put(const void *content, size_t length)
{
	size_t at = fresh();
	if (pwrite(file_descriptor, content, length, at) != (ssize_t)length)
		fail("pwrite");
	return from + at;
}

static void expect(const char *what, ssize_t got, ssize_t wanted)
{
	if (got != wanted)
		printf("%s: %zd instead of %zd (%s)\n", what, got, wanted, strerror(errno));
}

static void same(const char *what, const void *there, size_t length)
{
	if (memcmp(there, bytes, length))
		printf("%s: other bytes\n", what);
}

static void messages(void)
{
	struct sockaddr_un receiver = { AF_UNIX, "receiver" }, sender = { AF_UNIX, "sender" };
	int in = socket(AF_UNIX, SOCK_DGRAM, 0), out = socket(AF_UNIX, SOCK_DGRAM, 0), copy;
	if (bind(in, (void *)&receiver, sizeof receiver) || bind(out, (void *)&sender, sizeof sender))
		fail("bind");
	union {
		struct cmsghdr header;
		char room[CMSG_SPACE(sizeof(int))];
	} control = { .header = { CMSG_LEN(sizeof(int)), SOL_SOCKET, SCM_RIGHTS } };
	copy = 1;
	memcpy(CMSG_DATA(&control.header), &copy, sizeof copy);
	struct iovec part = { bytes, LENGTH };
	struct msghdr message = { .msg_iov = &part, .msg_iovlen = 1 };
	for (int many = 0; many < 2; many++) {
		message.msg_name = put(&receiver, sizeof receiver), message.msg_namelen = sizeof receiver;
		message.msg_control = put(&control, sizeof control), message.msg_controllen = sizeof control;
		struct mmsghdr list = { .msg_hdr = message };
		if (many)
			expect("sendmmsg", sendmmsg(out, &list, 1, 0), 1);
		else
			expect("sendmsg", sendmsg(out, &message, 0), LENGTH);
		unsigned char *name = to + fresh();
		message.msg_name = name;
		message.msg_control = to + fresh();
		list.msg_hdr = message;
		if (many)
			expect("recvmmsg", recvmmsg(in, &list, 1, 0, NULL), 1), message = list.msg_hdr;
		else
			expect("recvmsg", recvmsg(in, &message, 0), LENGTH);
		printf("from %.6s, with control data: %d\n", ((struct sockaddr_un *)name)->sun_path, message.msg_controllen > 0);
		struct cmsghdr *got = CMSG_FIRSTHDR(&message);
		memcpy(&copy, CMSG_DATA(got), sizeof copy);
		close(copy);
	}
	close(in), close(out);
}

static mqd_t queue;
static int old;

/* Containers may refuse them. */
static void make_queues(void)
{
	char name[64];
	snprintf(name, sizeof name, "/precache-%d", getpid());
	struct mq_attr attributes = { .mq_maxmsg = 2, .mq_msgsize = LENGTH };
	queue = mq_open(name, O_RDWR | O_CREAT | O_EXCL, 0600, &attributes);
	if (queue >= 0 && mq_unlink(name))
		fail("mq_unlink");
	old = queue < 0 ? -1 : msgget(IPC_PRIVATE, 0600);
	if (old < 0 && (errno == EPERM || errno == EACCES || errno == ENOSYS)) {
		printf("right to make a message queue (%s)\n", queue < 0 ? "mq_open" : "msgget");
		exit(77);
	}
	if (old < 0)
		fail(queue < 0 ? "mq_open" : "msgget");
}

static void queues(void)
{
	struct timespec late = { .tv_sec = 1L << 32 };
	unsigned char *there;
	expect("mq_send", mq_send(queue, (void *)put(bytes, LENGTH), LENGTH, 0), 0);
	expect("mq_timedsend", mq_timedsend(queue, (void *)put(bytes, LENGTH), LENGTH, 0, &late), 0);
	expect("mq_receive", mq_receive(queue, (void *)(there = to + fresh()), LENGTH, NULL), LENGTH);
	same("mq_receive", there, LENGTH);
	expect("mq_timedreceive", mq_timedreceive(queue, (void *)(there = to + fresh()), LENGTH, NULL, &late), LENGTH);
	same("mq_timedreceive", there, LENGTH);
	mq_close(queue);
	struct {
		long type;
		unsigned char text[LENGTH];
	} message = { .type = 7 };
	memcpy(message.text, bytes, LENGTH);
	expect("msgsnd", msgsnd(old, put(&message, sizeof message), LENGTH, 0), 0);
	expect("msgrcv", msgrcv(old, there = to + fresh(), LENGTH, 7, 0), LENGTH);
	same("msgrcv", there + sizeof(long), LENGTH);
	expect("msgsnd by number", syscall(SYS_msgsnd, old, put(&message, sizeof message), (long)LENGTH, 0), 0);
	expect("msgrcv by number", syscall(SYS_msgrcv, old, there = to + fresh(), (long)LENGTH, 7L, 0), LENGTH);
	same("msgrcv by number", there + sizeof(long), LENGTH);
	msgctl(old, IPC_RMID, NULL);
}

static void attributes(void)
{
	enum { SHORT = 100 };
	unsigned char *there;
	int file = open("file", O_RDWR | O_CREAT, 0600);
	printf("setxattr: %d\n", setxattr("file", "user.a", put(bytes, SHORT), SHORT, 0));
	expect("lsetxattr", lsetxattr("file", "user.b", put(bytes, SHORT), SHORT, 0), 0);
	expect("fsetxattr", fsetxattr(file, "user.c", put(bytes, SHORT), SHORT, 0), 0);
	expect("getxattr", getxattr("file", "user.b", there = to + fresh(), SHORT), SHORT);
	same("getxattr", there, SHORT);
	expect("lgetxattr", lgetxattr("file", "user.c", there = to + fresh(), SHORT), SHORT);
	same("lgetxattr", there, SHORT);
	expect("fgetxattr", fgetxattr(file, "user.a", there = to + fresh(), SHORT), SHORT);
	same("fgetxattr", there, SHORT);
	long setters[] = { SYS_setxattr, SYS_lsetxattr, SYS_fsetxattr };
	for (int i = 0; i < 3; i++) {
		long which = setters[i] == SYS_fsetxattr ? file : (long)"file";
		expect("set by number", syscall(setters[i], which, "user.d", put(bytes, SHORT), (long)SHORT, 0L), 0);
		expect("get by number", syscall(setters[i] + SYS_getxattr - SYS_setxattr, which, "user.d", there = to + fresh(),
						(long)SHORT), SHORT);
		same("get by number", there, SHORT);
	}
	close(file);
}

static void structures(void)
{
	struct stat *status;
	struct stat64 *status64;
	struct statfs *system;
	char *text;
	int pair[2], folder = open("/dev", O_RDONLY | O_DIRECTORY), file = open("file", O_RDONLY);
	if (pipe(pair) || write(pair[1], "four", 4) != 4)
		fail("pipe");
	expect("fstat", fstat(0, status = (void *)(to + fresh())), 0), expect("character", S_ISCHR(status->st_mode), 1);
	expect("fstat64", fstat64(0, status64 = (void *)(to + fresh())), 0), expect("character", S_ISCHR(status64->st_mode), 1);
	expect("stat", stat("/dev", status = (void *)(to + fresh())), 0), expect("folder", S_ISDIR(status->st_mode), 1);
	expect("statfs", statfs("/proc", system = (void *)(to + fresh())), 0), expect("proc", system->f_type, PROC_SUPER_MAGIC);
	expect("readlink", readlink("/proc/self/fd/0", text = (void *)(to + fresh()), PAGE), 9), expect("null", !memcmp(text, "/dev/null", 9), 1);
	expect("realpath", realpath("/dev/../dev", text = (void *)(to + fresh())) == text && !strcmp(text, "/dev"), 1);
	expect("getcwd", getcwd(text = (void *)(to + fresh()), PATH_MAX) == text && *text == '/', 1);
	int *number = (int *)(to + fresh());
	expect("ioctl", ioctl(pair[0], FIONREAD, number), 0), expect("waiting", *number, 4);
	expect("getdents64", getdents64(folder, text = (void *)(to + fresh()), 8 * PAGE) > 0, 1);
	expect("listxattr", listxattr("file", text = (void *)(to + fresh()), 2 * PAGE) > 0 && !strncmp(text, "user.", 5), 1);
	expect("flistxattr", flistxattr(file, text = (void *)(to + fresh()), 2 * PAGE) > 0 && !strncmp(text, "user.", 5), 1);
	expect("name", getxattr("file", (void *)put("user.a", 7), bytes, 0) > 0, 1);
	struct pollfd wanted = { pair[0], POLLIN, 0 }, *polled = (void *)(to + (put(&wanted, sizeof wanted) - from));
	expect("poll", poll(polled, 1, 0), 1), expect("ready", polled->revents, POLLIN);
	close(pair[0]), close(pair[1]), close(folder), close(file);
}

static void sockets(void)
{
	struct sockaddr_un first = { AF_UNIX, "first" }, second = { AF_UNIX, "second" }, *whose;
	int one = 1, in = socket(AF_UNIX, SOCK_DGRAM, 0), out = socket(AF_UNIX, SOCK_DGRAM, 0), size = sizeof *whose;
	expect("bind", bind(in, (void *)put(&first, sizeof first), sizeof first), 0);
	expect("bind", bind(out, (void *)put(&second, sizeof second), sizeof second), 0);
	expect("setsockopt", setsockopt(in, SOL_SOCKET, SO_PASSCRED, put(&one, sizeof one), sizeof one), 0);
	socklen_t *length = (void *)(to + (put(&(int){ sizeof one }, sizeof one) - from));
	int *is_set = (void *)(to + fresh());
	expect("getsockopt", getsockopt(in, SOL_SOCKET, SO_PASSCRED, is_set, length), 0), expect("set", *is_set == 1 && *length == 4, 1);
	expect("sendto", sendto(out, bytes, LENGTH, 0, (void *)put(&first, sizeof first), sizeof first), LENGTH);
	whose = (void *)(to + fresh()), length = (void *)(to + (put(&size, sizeof size) - from));
	unsigned char *there = to + fresh();
	expect("recvfrom", recvfrom(in, there, LENGTH, 0, (void *)whose, length), LENGTH);
	same("recvfrom", there, LENGTH), expect("from", !strcmp(whose->sun_path, "second"), 1);
	expect("connect", connect(out, (void *)put(&first, sizeof first), sizeof first), 0);
	expect("send", send(out, bytes, 1, 0), 1);
	close(in), close(out);
}

static void by_number(void)
{
	struct timespec moment = { 0, 1 };
	char *text;
	struct stat *status;
	expect("uname", syscall(SYS_uname, text = (void *)(to + fresh())), 0), expect("Linux", !strcmp(text, "Linux"), 1);
	expect("getcwd", syscall(SYS_getcwd, text = (void *)(to + fresh()), PATH_MAX) > 0 && *text == '/', 1);
	expect("fstat", syscall(SYS_fstat, 0, status = (void *)(to + fresh())), 0), expect("character", S_ISCHR(status->st_mode), 1);
	expect("nanosleep", syscall(SYS_nanosleep, put(&moment, sizeof moment), NULL), 0);
	expect("readlink", syscall(SYS_readlink, put("/proc/self/fd/0", 16), text = (void *)(to + fresh()), PAGE), 9);
	expect("getrandom", syscall(SYS_getrandom, to + fresh(), (long)LENGTH, 0L), LENGTH);
}

static void other_names(void)
{
	int memory = memfd_create("names", 0), pair[2];
	unsigned char *there;
	if (socketpair(AF_UNIX, SOCK_DGRAM, 0, pair))
		fail("socketpair");
	expect("__write", __write(memory, put(bytes, LENGTH), LENGTH), LENGTH);
	expect("__pwrite64", __pwrite64(memory, put(bytes, LENGTH), LENGTH, LENGTH), LENGTH);
	expect("__send", __send(pair[0], put(bytes, LENGTH), LENGTH, 0), LENGTH);
	expect("__read", __read(pair[1], there = to + fresh(), LENGTH), LENGTH);
	same("__read", there, LENGTH);
	expect("__pread64", __pread64(memory, there = to + fresh(), LENGTH, LENGTH), LENGTH);
	same("__pread64", there, LENGTH);
	close(memory), close(pair[0]), close(pair[1]);
	const char *null = "/dev/null";
	int files[] = {
		__open((void *)put(null, 10), O_RDONLY), __open64((void *)put(null, 10), O_RDONLY),
		__open_2((void *)put(null, 10), O_RDONLY), __open64_2((void *)put(null, 10), O_RDONLY),
		__openat_2(AT_FDCWD, (void *)put(null, 10), O_RDONLY), __openat64_2(AT_FDCWD, (void *)put(null, 10), O_RDONLY),
	};
	for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
		printf("open %zu: %d\n", i, files[i] >= 0);
		close(files[i]);
	}
}

int main(int count, char **arguments)
{
	(void)count;
	make_queues();
	from = (unsigned char *)map_file(arguments, PROT_READ, MAP_SHARED);
	close(file_descriptor);
	if ((file_descriptor = open(arguments[1], O_RDWR)) < 0)
		fail("open");
	to = mmap(NULL, file_length, PROT_READ | PROT_WRITE, MAP_PRIVATE, file_descriptor, 0);
	if (to == MAP_FAILED)
		fail("mmap");
	for (size_t i = 0; i < LENGTH; i++)
		bytes[i] = i * 31 + (i >> 8);
	messages();
	queues();
	rendezvous();
	attributes();
	structures();
	sockets();
	by_number();
	other_names();
	return 0;
}
