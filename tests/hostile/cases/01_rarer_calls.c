/* Expected: rarer calls that read memory of the mapping, or fill it, do what they do elsewhere: the address and the control
 * data of a message, queues, extended attributes, structures, paths, and names of calls that headers declare for fortified
 * programs or for nobody; by number, too.
 * @own-data
 * @counter lifted_for_calls 117 */
#include "closed_places.h"
#include <dirent.h>
#include <grp.h>
#include <linux/magic.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/inotify.h>
#include <sys/ioctl.h>
#include <sys/ipc.h>
#include <sys/msg.h>
#include <sys/prctl.h>
#include <sys/sem.h>
#include <sys/select.h>
#include <sys/sendfile.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/timerfd.h>
#include <sys/un.h>
#include <sys/utsname.h>
#include <sys/vfs.h>
#include <sys/xattr.h>

enum { LENGTH = 5000 };

extern ssize_t __read(int, void *, size_t), __write(int, const void *, size_t), __send(int, const void *, size_t, int);
extern ssize_t __pread64(int, void *, size_t, off_t), __pwrite64(int, const void *, size_t, off_t);
extern int __open(const char *, int, ...), __open64(const char *, int, ...), __open_2(const char *, int);
extern int __open64_2(const char *, int), __openat_2(int, const char *, int), __openat64_2(int, const char *, int);
extern char *__realpath_chk(const char *, char *, size_t), *__getcwd_chk(char *, size_t, size_t);
extern int __poll_chk(struct pollfd *, nfds_t, int, size_t);

static unsigned char bytes[LENGTH];

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
	struct msghdr message = { .msg_iov = &part, .msg_iovlen = 1 }, elsewhere = message;
	for (int many = 0; many < 2; many++) {
		message.msg_name = put(&receiver, sizeof receiver), message.msg_namelen = sizeof receiver;
		message.msg_control = put(&control, sizeof control), message.msg_controllen = sizeof control;
		elsewhere.msg_name = &receiver, elsewhere.msg_namelen = sizeof receiver;
		struct mmsghdr list[] = { { .msg_hdr = elsewhere }, { .msg_hdr = message } };
		if (many)
			expect("sendmmsg", sendmmsg(out, list, 2, 0), 2);
		else
			expect("sendmsg", sendmsg(out, &message, 0), LENGTH);
		unsigned char *name = room();
		message.msg_name = name;
		message.msg_control = room();
		list[1].msg_hdr = message;
		if (many)
			expect("recvmmsg", recvmmsg(in, list, 2, 0, NULL), 2), message = list[1].msg_hdr;
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

static void make_queues(void)
{
	if ((queue = new_queue(2, LENGTH)) < 0)
		without_queue("mq_open");
	if ((old = msgget(IPC_PRIVATE, 0600)) < 0)
		without_queue("msgget");
}

static void queues(void)
{
	struct timespec late = { .tv_sec = 1L << 32 };
	unsigned char *there;
	expect("mq_send", mq_send(queue, (void *)put(bytes, LENGTH), LENGTH, 0), 0);
	expect("mq_timedsend", mq_timedsend(queue, (void *)put(bytes, LENGTH), LENGTH, 0, &late), 0);
	expect("mq_receive", mq_receive(queue, (void *)(there = room()), LENGTH, NULL), LENGTH);
	same("mq_receive", there, LENGTH);
	expect("mq_timedreceive", mq_timedreceive(queue, (void *)(there = room()), LENGTH, NULL, &late), LENGTH);
	same("mq_timedreceive", there, LENGTH);
	mq_close(queue);
	struct {
		long type;
		unsigned char text[LENGTH];
	} message = { .type = 7 };
	memcpy(message.text, bytes, LENGTH);
	expect("msgsnd", msgsnd(old, put(&message, sizeof message), LENGTH, 0), 0);
	expect("msgrcv", msgrcv(old, there = room(), LENGTH, 7, 0), LENGTH);
	same("msgrcv", there + sizeof(long), LENGTH);
	expect("msgsnd by number", syscall(SYS_msgsnd, old, put(&message, sizeof message), (long)LENGTH, 0), 0);
	expect("msgrcv by number", syscall(SYS_msgrcv, old, there = room(), (long)LENGTH, 7L, 0), LENGTH);
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
	expect("getxattr", getxattr("file", "user.b", there = room(), SHORT), SHORT);
	same("getxattr", there, SHORT);
	expect("lgetxattr", lgetxattr("file", "user.c", there = room(), SHORT), SHORT);
	same("lgetxattr", there, SHORT);
	expect("fgetxattr", fgetxattr(file, "user.a", there = room(), SHORT), SHORT);
	same("fgetxattr", there, SHORT);
	long setters[] = { SYS_setxattr, SYS_lsetxattr, SYS_fsetxattr };
	for (int i = 0; i < 3; i++) {
		long which = setters[i] == SYS_fsetxattr ? file : (long)"file";
		expect("set by number", syscall(setters[i], which, "user.d", put(bytes, SHORT), (long)SHORT, 0L), 0);
		expect("get by number", syscall(setters[i] + SYS_getxattr - SYS_setxattr, which, "user.d", there = room(),
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
	expect("fstat", fstat(0, status = (void *)room()), 0), expect("character", S_ISCHR(status->st_mode), 1);
	expect("fstat64", fstat64(0, status64 = (void *)room()), 0), expect("character", S_ISCHR(status64->st_mode), 1);
	expect("stat", stat("/dev", status = (void *)room()), 0), expect("folder", S_ISDIR(status->st_mode), 1);
	expect("statfs", statfs("/proc", system = (void *)room()), 0), expect("proc", system->f_type, PROC_SUPER_MAGIC);
	expect("readlink", readlink("/proc/self/fd/0", text = (void *)room(), PAGE), 9), expect("null", !memcmp(text, "/dev/null", 9), 1);
	text = (void *)room();
	expect("realpath", realpath("/dev/../dev", text) == text && !strcmp(text, "/dev"), 1);
	text = (void *)room();
	expect("realpath", __realpath_chk("/dev/../dev", text, PATH_MAX) == text && !strcmp(text, "/dev"), 1);
	text = (void *)room();
	expect("getcwd", __getcwd_chk(text, PATH_MAX, PATH_MAX) == text && *text == '/', 1);
	expect("getentropy", getentropy(room(), 200), 0);
	text = (void *)room();
	expect("getcwd", getcwd(text, PATH_MAX) == text && *text == '/', 1);
	int *number = (int *)room();
	expect("ioctl", ioctl(pair[0], FIONREAD, number), 0), expect("waiting", *number, 4);
	expect("getdents64", getdents64(folder, text = (void *)room(), 8 * PAGE) > 0, 1);
	expect("listxattr", listxattr("file", text = (void *)room(), 2 * PAGE) > 0 && !strncmp(text, "user.", 5), 1);
	expect("flistxattr", flistxattr(file, text = (void *)room(), 2 * PAGE) > 0 && !strncmp(text, "user.", 5), 1);
	expect("name", getxattr("file", (void *)put("user.a", 7), bytes, 0) > 0, 1);
	struct pollfd wanted = { pair[0], POLLIN, 0 }, *polled = (void *)room_with(&wanted, sizeof wanted);
	expect("poll", poll(polled, 1, 0), 1), expect("ready", polled->revents, POLLIN);
	struct timespec moment = { 0, 1 };
	polled = (void *)room_with(&wanted, sizeof wanted);
	expect("poll", __poll_chk(polled, 1, 0, sizeof wanted), 1), expect("ready", polled->revents, POLLIN);
	polled = (void *)room_with(&wanted, sizeof wanted);
	expect("ppoll", ppoll(polled, 1, (void *)put(&moment, sizeof moment), NULL), 1), expect("ready", polled->revents, POLLIN);
	fd_set waiting;
	FD_ZERO(&waiting);
	FD_SET(pair[0], &waiting);
	fd_set *ready = (void *)room_with(&waiting, sizeof waiting);
	expect("pselect", pselect(pair[0] + 1, ready, NULL, NULL, (void *)put(&moment, sizeof moment), NULL), 1);
	expect("ready", FD_ISSET(pair[0], ready), 1);
	struct {
		const void *mask;
		size_t length;
	} under = { NULL, 8 };
	expect("pselect by number", syscall(SYS_pselect6, pair[0] + 1, ready, NULL, NULL, NULL, put(&under, sizeof under)), 1);
	int polls = epoll_create1(0);
	struct epoll_event event = { .events = EPOLLIN, .data.fd = 7 }, *events = (void *)room();
	expect("epoll_ctl", epoll_ctl(polls, EPOLL_CTL_ADD, pair[0], &event), 0);
	expect("epoll_pwait", epoll_pwait(polls, events, 1, 0, NULL), 1), expect("which", events->data.fd, 7);
	close(pair[0]), close(pair[1]), close(folder), close(file), close(polls);
}

static void rarest_structures(void)
{
	struct flock lock = { .l_type = F_WRLCK, .l_whence = SEEK_SET, .l_len = 10 }, *found;
	int file = open("file", O_RDWR), status, *ended;
	for (int command = F_SETLK; command <= F_SETLKW; command++)
		expect("fcntl", fcntl(file, command, put(&lock, sizeof lock)), 0);
	expect("fcntl", fcntl(file, F_GETLK, found = (void *)room_with(&lock, sizeof lock)), 0), expect("lock", found->l_type, F_UNLCK);
	expect("flags", fcntl(file, F_GETFL), fcntl(file, F_GETFL, 0)), expect("duplicate", close(fcntl(file, F_DUPFD, 0)), 0);
	for (int way = 0; way < 2; way++) {
		pid_t child = fork();
		if (child == 0)
			_exit(4);
		ended = (void *)room();
		expect("wait", way ? wait3(ended, 0, (void *)room()) : wait(ended), child), expect("status", WEXITSTATUS(*ended), 4);
	}
	sigset_t usual;
	siginfo_t *taken;
	sigemptyset(&usual);
	sigaddset(&usual, SIGUSR1);
	sigprocmask(SIG_BLOCK, &usual, NULL);
	struct timespec patience = { 10, 0 };
	for (int way = 0; way < 2; way++) {
		void *signals = put(&usual, sizeof usual);
		taken = (void *)room();
		kill(getpid(), SIGUSR1);
		expect("signal", way ? sigtimedwait(signals, taken, (void *)put(&patience, sizeof patience)) : sigwaitinfo(signals, taken), SIGUSR1);
		expect("taken", taken->si_pid, getpid());
	}
	struct itimerval hour = { { 0, 0 }, { 3600, 0 } }, *before;
	expect("setitimer", setitimer(ITIMER_REAL, (void *)put(&hour, sizeof hour), NULL), 0);
	expect("getitimer", getitimer(ITIMER_REAL, before = (void *)room()), 0), expect("value", before->it_value.tv_sec > 0, 1);
	memset(&hour, 0, sizeof hour);
	expect("setitimer", setitimer(ITIMER_REAL, &hour, before = (void *)room()), 0), expect("old", before->it_value.tv_sec > 0, 1);
	gid_t groups[64], *there;
	int count = getgroups(64, groups);
	expect("getgroups", getgroups(64, there = (void *)room()), count), expect("groups", memcmp(there, groups, count * sizeof *groups), 0);
	printf("setgroups: %d\n", setgroups(count, (void *)put(groups, sizeof groups)));
	struct sembuf add = { 0, 1, 0 }, take = { 0, -1, 0 };
	struct timespec second = { 1, 0 };
	int set = semget(IPC_PRIVATE, 1, 0600);
	expect("semop", semop(set, (void *)put(&add, sizeof add), 1), 0);
	expect("semtimedop", semtimedop(set, (void *)put(&take, sizeof take), 1, (void *)put(&second, sizeof second)), 0);
	semctl(set, 0, IPC_RMID);
	char name[] = "user.e";
	status = setxattr("file", name, bytes, 10, 0);
	printf("attribute: %d\n", status);
	expect("removexattr", removexattr((void *)put("file", 5), (void *)put(name, sizeof name)), status);
	status = setxattr("file", name, bytes, 10, 0);
	expect("lremovexattr", lremovexattr((void *)put("file", 5), (void *)put(name, sizeof name)), status);
	expect("mkfifoat", mkfifoat(AT_FDCWD, (void *)put("another", 8), 0600), 0), expect("unlink", unlink("another"), 0);
	close(file);
}

static void rarer_structures(void)
{
	struct timespec moment = { 0, 1 }, times[2] = { { 1, 0 }, { 2, 0 } };
	struct timeval instant = { 0, 1 };
	struct stat status;
	int *ends, *pair, *ended, polls = epoll_create1(0), file = open("file", O_RDWR);
	for (int flags = -1; flags <= O_CLOEXEC; flags += O_CLOEXEC + 1) {
		ends = (void *)room();
		expect("pipe", flags < 0 ? pipe(ends) : pipe2(ends, flags), 0), expect("ends", write(ends[1], "four", 4), 4);
	}
	fd_set waiting;
	FD_ZERO(&waiting);
	FD_SET(ends[0], &waiting);
	fd_set *ready = (void *)room_with(&waiting, sizeof waiting);
	expect("select", select(ends[0] + 1, ready, NULL, NULL, (void *)room_with(&instant, sizeof instant)), 1);
	expect("ready", FD_ISSET(ends[0], ready), 1);
	struct epoll_event event = { .events = EPOLLIN, .data.fd = 7 }, *events;
	expect("epoll_ctl", epoll_ctl(polls, EPOLL_CTL_ADD, ends[0], (void *)put(&event, sizeof event)), 0);
	expect("epoll_wait", epoll_wait(polls, events = (void *)room(), 1, 0), 1), expect("which", events->data.fd, 7);
	pair = (void *)room();
	expect("socketpair", socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0), expect("pair", write(pair[0], "four", 4), 4);
	for (int way = 0; way < 3; way++) {
		pid_t child = fork();
		if (child == 0)
			_exit(3);
		ended = (void *)room();
		if (way == 2) {
			siginfo_t *what = (void *)ended;
			expect("waitid", waitid(P_PID, child, what, WEXITED), 0), expect("status", what->si_status, 3);
			break;
		}
		expect("waitpid", way ? wait4(child, ended, 0, (void *)room()) : waitpid(child, ended, 0), child);
		expect("status", WEXITSTATUS(*ended), 3);
	}
	expect("nanosleep", nanosleep((void *)put(&moment, sizeof moment), (void *)room()), 0);
	expect("clock_nanosleep", clock_nanosleep(CLOCK_MONOTONIC, 0, (void *)put(&moment, sizeof moment), NULL), 0);
	struct itimerspec once = { { 0, 0 }, { 3600, 0 } }, *before;
	int timer = timerfd_create(CLOCK_MONOTONIC, 0);
	expect("timerfd_settime", timerfd_settime(timer, 0, (void *)put(&once, sizeof once), NULL), 0);
	expect("timerfd_settime", timerfd_settime(timer, 0, &once, before = (void *)room()), 0), expect("old", before->it_value.tv_sec > 0, 1);
	char *text;
	expect("prctl", prctl(PR_SET_NAME, put("named", 6)), 0), expect("name", prctl(PR_GET_NAME, text = (void *)room()), 0);
	expect("named", !strcmp(text, "named"), 1);
	sigset_t *blocked = (void *)room();
	expect("sigprocmask", sigprocmask(SIG_SETMASK, NULL, blocked), 0), expect("SIGINT", sigismember(blocked, SIGINT), 0);
	expect("pthread_sigmask", pthread_sigmask(SIG_SETMASK, NULL, blocked = (void *)room()), 0);
	struct utsname *names;
	expect("uname", uname(names = (void *)room()), 0), expect("Linux", !strcmp(names->sysname, "Linux"), 1);
	struct statfs *system;
	expect("fstatfs", fstatfs(timer, system = (void *)room()), 0), expect("block size", system->f_bsize > 0, 1);
	struct statvfs *virtual;
	expect("fstatvfs", fstatvfs(timer, virtual = (void *)room()), 0), expect("block size", virtual->f_bsize > 0, 1);
	expect("futimens", futimens(file, (void *)put(times, sizeof times)), 0);
	expect("time", fstat(file, &status) || status.st_mtime != 2, 0);
	int memory = memfd_create((void *)put("name", 5), 0);
	off_t nothing = 0, *offset = (void *)room_with(&nothing, sizeof nothing);
	expect("memfd_create", write(memory, bytes, LENGTH), LENGTH);
	expect("sendfile", sendfile(pair[0], memory, offset, LENGTH), LENGTH), expect("offset", *offset, LENGTH);
	int watcher = inotify_init1(0);
	expect("inotify_add_watch", inotify_add_watch(watcher, (void *)put("file", 5), IN_OPEN), 1);
	expect("mknod", mknod((void *)put("fifo", 5), S_IFIFO | 0600, 0), 0), expect("fifo", stat("fifo", &status) || !S_ISFIFO(status.st_mode), 0);
}

static void sockets(void)
{
	struct sockaddr_un first = { AF_UNIX, "first" }, second = { AF_UNIX, "second" }, *whose;
	int one = 1, in = socket(AF_UNIX, SOCK_DGRAM, 0), out = socket(AF_UNIX, SOCK_DGRAM, 0), size = sizeof *whose;
	expect("bind", bind(in, (void *)put(&first, sizeof first), sizeof first), 0);
	expect("bind", bind(out, (void *)put(&second, sizeof second), sizeof second), 0);
	expect("setsockopt", setsockopt(in, SOL_SOCKET, SO_PASSCRED, put(&one, sizeof one), sizeof one), 0);
	socklen_t *length = (void *)room_with(&(int){ sizeof one }, sizeof one);
	int *is_set = (void *)room();
	expect("getsockopt", getsockopt(in, SOL_SOCKET, SO_PASSCRED, is_set, length), 0), expect("set", *is_set == 1 && *length == 4, 1);
	expect("sendto", sendto(out, bytes, LENGTH, 0, (void *)put(&first, sizeof first), sizeof first), LENGTH);
	whose = (void *)room(), length = (void *)room_with(&size, sizeof size);
	unsigned char *there = room();
	expect("recvfrom", recvfrom(in, there, LENGTH, 0, (void *)whose, length), LENGTH);
	same("recvfrom", there, LENGTH), expect("from", !strcmp(whose->sun_path, "second"), 1);
	expect("sendto", sendto(out, bytes, LENGTH, 0, (void *)&first, sizeof first), LENGTH);
	length = (void *)room_with(&size, sizeof size);
	expect("recvfrom by number", syscall(SYS_recvfrom, in, bytes, (long)LENGTH, 0L, whose, length), LENGTH);
	expect("length", *length > sizeof whose->sun_family, 1);
	expect("connect", connect(out, (void *)put(&first, sizeof first), sizeof first), 0);
	expect("send", send(out, bytes, 1, 0), 1);
	close(in), close(out);
	struct sockaddr_un *name;
	out = socket(AF_UNIX, SOCK_STREAM, 0), in = socket(AF_UNIX, SOCK_STREAM, 0);
	strcpy(first.sun_path, "third");
	if (bind(in, (void *)&first, sizeof first) || listen(in, 2) || connect(out, (void *)&first, sizeof first))
		fail("listen");
	length = (void *)room_with(&size, sizeof size);
	expect("getpeername", getpeername(out, (void *)(name = (void *)room()), length), 0);
	expect("name", strcmp(name->sun_path, "third"), 0), expect("length", *length > 2, 1);
	length = (void *)room_with(&size, sizeof size);
	expect("getsockname", getsockname(in, (void *)(name = (void *)room()), length), 0), expect("name", strcmp(name->sun_path, "third"), 0);
	length = (void *)room_with(&size, sizeof size);
	int got = accept(in, (void *)(name = (void *)room()), length);
	expect("accept", got >= 0, 1), expect("length", *length, 2), expect("family", name->sun_family, AF_UNIX);
	close(out), close(got), out = socket(AF_UNIX, SOCK_STREAM, 0);
	if (connect(out, (void *)&first, sizeof first))
		fail("connect");
	length = (void *)room_with(&size, sizeof size);
	expect("accept4", (got = accept4(in, (void *)room(), length, SOCK_CLOEXEC)) >= 0, 1), expect("length", *length, 2);
	close(in), close(out), close(got);
}

static void by_number(void)
{
	struct timespec moment = { 0, 1 };
	char *text;
	struct stat *status;
	expect("uname", syscall(SYS_uname, text = (void *)room()), 0), expect("Linux", !strcmp(text, "Linux"), 1);
	expect("getcwd", syscall(SYS_getcwd, text = (void *)room(), PATH_MAX) > 0 && *text == '/', 1);
	expect("fstat", syscall(SYS_fstat, 0, status = (void *)room()), 0), expect("character", S_ISCHR(status->st_mode), 1);
	expect("nanosleep", syscall(SYS_nanosleep, put(&moment, sizeof moment), NULL), 0);
	expect("readlink", syscall(SYS_readlink, put("/proc/self/fd/0", 16), text = (void *)room(), PAGE), 9);
	expect("getrandom", syscall(SYS_getrandom, room(), (long)LENGTH, 0L), LENGTH);
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
	expect("__read", __read(pair[1], there = room(), LENGTH), LENGTH);
	same("__read", there, LENGTH);
	expect("__pread64", __pread64(memory, there = room(), LENGTH, LENGTH), LENGTH);
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
	errno = PLANTED;
	open_to_write(arguments);
	for (size_t i = 0; i < LENGTH; i++)
		bytes[i] = i * 31 + (i >> 8);
	messages();
	queues();
	rendezvous();
	attributes();
	structures();
	rarer_structures();
	rarest_structures();
	sockets();
	by_number();
	other_names();
	return 0;
}
