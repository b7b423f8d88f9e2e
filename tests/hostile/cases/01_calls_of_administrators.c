/* Expected: calls by which a machine is administered, and others that few programs make, answer with memory of the mapping as they do
 * with other: mounts, swap, quotas, names of the machine, modules, handles, capabilities, clocks, queues and terminals.
 * @own-data
 * @counter lifted_for_calls 50 */
#include "closed_places.h"
#include <dirent.h>
#include <linux/capability.h>
#include <mqueue.h>
#include <nl_types.h>
#include <pthread.h>
#include <sched.h>
#include <sys/fanotify.h>
#include <sys/ipc.h>
#include <sys/klog.h>
#include <sys/mount.h>
#include <sys/quota.h>
#include <sys/stat.h>
#include <sys/swap.h>
#include <sys/sysmacros.h>
#include <sys/time.h>
#include <sys/timex.h>
#include <sys/xattr.h>

/* The same call, first with other memory, then with memory of the mapping: what it answers, and what errno is then. */
#define SAME(what, other, there)                                                                                                           \
	do {                                                                                                                               \
		errno = PLANTED;                                                                                                           \
		ssize_t wanted = (ssize_t)(other);                                                                                         \
		int why = errno;                                                                                                           \
		errno = PLANTED;                                                                                                           \
		ssize_t got = (ssize_t)(there);                                                                                            \
		if (got != wanted || errno != why)                                                                                         \
			printf("%s: %zd (%s) instead of %zd (%s)\n", what, got, strerror(errno), wanted, strerror(why));                   \
	} while (0)

#define NOWHERE "/nonexistent/there"

/* A text in the mapping. */
static char *text(const char *content)
{
	return (char *)put(content, strlen(content) + 1);
}

int pivot_root(const char *, const char *);

static void mounts(void)
{
	char plain[200], *there;
	SAME("mount", mount("none", NOWHERE, "nothing", 0, NULL), mount(text("none"), text(NOWHERE), text("nothing"), 0, NULL));
	SAME("umount", umount(NOWHERE), umount(text(NOWHERE)));
	SAME("umount2", umount2(NOWHERE, MNT_DETACH), umount2(text(NOWHERE), MNT_DETACH));
	SAME("pivot_root", pivot_root(NOWHERE, NOWHERE), pivot_root(text(NOWHERE), text(NOWHERE)));
	SAME("swapon", swapon(NOWHERE, 0), swapon(text(NOWHERE), 0));
	SAME("swapoff", swapoff(NOWHERE), swapoff(text(NOWHERE)));
	SAME("acct", acct(NOWHERE), acct(text(NOWHERE)));
	SAME("quotactl", quotactl(QCMD(Q_GETQUOTA, USRQUOTA), NOWHERE, 0, plain),
	     quotactl(QCMD(Q_GETQUOTA, USRQUOTA), text(NOWHERE), 0, (char *)room()));
	gethostname(plain, sizeof plain);
	SAME("sethostname", sethostname(plain, strlen(plain)), sethostname(text(plain), strlen(plain)));
	getdomainname(plain, sizeof plain);
	SAME("setdomainname", setdomainname(plain, strlen(plain)), setdomainname(text(plain), strlen(plain)));
	SAME("klogctl", klogctl(3, plain, 1) >= 0, klogctl(3, there = (char *)room(), 1) >= 0);
}

int init_module(void *, unsigned long, const char *);
int delete_module(const char *, unsigned);

static void modules_and_handles(void)
{
	char nothing[8] = { 0 };
	SAME("init_module", init_module(nothing, sizeof nothing, ""), init_module(put(nothing, sizeof nothing), sizeof nothing, text("")));
	SAME("delete_module", delete_module("no_such_module", O_NONBLOCK), delete_module(text("no_such_module"), O_NONBLOCK));
	int group = fanotify_init(FAN_CLASS_NOTIF, O_RDONLY);
	SAME("fanotify_mark", fanotify_mark(group, FAN_MARK_ADD, FAN_OPEN, AT_FDCWD, NOWHERE),
	     fanotify_mark(group, FAN_MARK_ADD, FAN_OPEN, AT_FDCWD, text(NOWHERE)));
	close(group);
	struct {
		struct file_handle of;
		unsigned char bytes[MAX_HANDLE_SZ];
	} handle = { .of.handle_bytes = MAX_HANDLE_SZ }, empty = handle, *told;
	int place, *told_place;
	SAME("name_to_handle_at", name_to_handle_at(AT_FDCWD, "/", &handle.of, &place, 0),
	     name_to_handle_at(AT_FDCWD, text("/"), &(told = (void *)room_with(&empty, sizeof empty))->of, told_place = (void *)room(), 0));
	SAME("handle", memcmp(&handle, &handle, sizeof handle), memcmp(&handle, told, sizeof handle));
	SAME("open_by_handle_at", open_by_handle_at(-1, &handle.of, O_RDONLY),
	     open_by_handle_at(-1, (void *)room_with(&handle, sizeof handle), O_RDONLY));
	int folder = open("/", O_RDONLY);
	int one = open_by_handle_at(folder, &handle.of, O_RDONLY), other;
	SAME("open_by_handle_at", one >= 0 ? 0 : -errno,
	     (other = open_by_handle_at(folder, (void *)room_with(&handle, sizeof handle), O_RDONLY)) >= 0 ? 0 : -errno);
	close(folder), close(one), close(other);
}

int capget(cap_user_header_t, cap_user_data_t);
int capset(cap_user_header_t, const cap_user_data_t);

static void rights(void)
{
	struct __user_cap_header_struct whose = { _LINUX_CAPABILITY_VERSION_3, 0 };
	struct __user_cap_data_struct own[2], *told;
	SAME("capget", capget(&whose, own), capget((void *)room_with(&whose, sizeof whose), told = (void *)room()));
	SAME("capabilities", 0, memcmp(own, told, sizeof own));
	SAME("capset", capset(&whose, own), capset((void *)room_with(&whose, sizeof whose), (void *)put(own, sizeof own)));
}

static void clocks(void)
{
	struct timex clock = { 0 };
	struct timespec time = { 0, -1 }, *there;
	unsigned *processor, *node;
	SAME("adjtimex", adjtimex(&clock), adjtimex((void *)room_with(&(struct timex){ 0 }, sizeof clock)));
	SAME("ntp_adjtime", ntp_adjtime(&clock), ntp_adjtime((void *)room_with(&(struct timex){ 0 }, sizeof clock)));
	SAME("clock_adjtime", clock_adjtime(CLOCK_REALTIME, &clock),
	     clock_adjtime(CLOCK_REALTIME, (void *)room_with(&(struct timex){ 0 }, sizeof clock)));
	SAME("clock_settime", clock_settime(CLOCK_REALTIME, &time), clock_settime(CLOCK_REALTIME, (void *)put(&time, sizeof time)));
	SAME("clock_gettime", 0, clock_gettime(CLOCK_PROCESS_CPUTIME_ID, there = (void *)room()));
	SAME("time", 1, there->tv_sec > 0 || there->tv_nsec > 0);
	SAME("getcpu", 0, getcpu(processor = (void *)room(), node = (void *)room()));
	/* Of the mapping itself, which it leaves as it is. */
	SAME("mincore", 0, mincore(from, file_length, room()));
}

int __mq_open_2(const char *, int);
int __ttyname_r_chk(int, char *, size_t, size_t);

static void queues_and_threads(void)
{
	struct mq_attr wanted = { .mq_maxmsg = 3, .mq_msgsize = 100 }, told, *old;
	struct sigevent silence = { .sigev_notify = SIGEV_NONE };
	char name[64], *named;
	snprintf(name, sizeof name, "/precache-%d", getpid());
	mqd_t queue = mq_open(text(name), O_RDWR | O_CREAT | O_EXCL, 0600, (void *)put(&wanted, sizeof wanted));
	SAME("mq_open", 0, mq_getattr(queue, &told));
	SAME("size", 100, told.mq_msgsize);
	mqd_t again = __mq_open_2(text(name), O_RDONLY);
	SAME("__mq_open_2", 1, again >= 0);
	SAME("mq_setattr", mq_setattr(queue, &told, NULL), mq_setattr(queue, (void *)put(&told, sizeof told), old = (void *)room()));
	SAME("attributes", 100, old->mq_msgsize);
	SAME("mq_notify", 0, mq_notify(queue, (void *)put(&silence, sizeof silence)));
	SAME("mq_unlink", 0, mq_unlink(text(name)));
	mq_close(queue), mq_close(again);
	SAME("pthread_setname_np", 0, pthread_setname_np(pthread_self(), text("in the map")));
	pthread_getname_np(pthread_self(), name, sizeof name);
	SAME("name", 0, strcmp(name, "in the map"));
	int master = posix_openpt(O_RDWR | O_NOCTTY);
	grantpt(master), unlockpt(master);
	int terminal = open(ptsname(master), O_RDWR | O_NOCTTY);
	ttyname_r(terminal, name, sizeof name);
	SAME("ttyname_r", 0, ttyname_r(terminal, named = (char *)room(), sizeof name));
	SAME("terminal", 0, strcmp(name, named));
	SAME("__ttyname_r_chk", 0, __ttyname_r_chk(terminal, named = (char *)room(), sizeof name, PAGE));
	SAME("terminal", 0, strcmp(name, named));
	close(master), close(terminal);
}

int __xmknod(int, const char *, mode_t, dev_t *);
int __xmknodat(int, int, const char *, mode_t, dev_t *);

static int all(const struct dirent *entry)
{
	(void)entry;
	return 1;
}

static void names(void)
{
	struct timeval times[2] = { { 1, 0 }, { 2, 0 } };
	struct dirent **entries;
	struct stat status;
	dev_t none = 0;
	SAME("mknodat", 0, mknodat(AT_FDCWD, text("one"), S_IFIFO | 0600, 0));
	SAME("__xmknod", 0, __xmknod(0, text("two"), S_IFIFO | 0600, &none));
	SAME("__xmknodat", 0, __xmknodat(0, AT_FDCWD, text("three"), S_IFIFO | 0600, &none));
	SAME("fremovexattr", fremovexattr(file_descriptor, "user.none"), fremovexattr(file_descriptor, text("user.none")));
	SAME("lchmod", lchmod("one", 0640), lchmod(text("one"), 0640));
	SAME("lutimes", 0, lutimes(text("one"), (void *)put(times, sizeof times)));
	stat("one", &status);
	SAME("time", 2, status.st_mtime);
	SAME("futimesat", 0, futimesat(AT_FDCWD, text("two"), (void *)put(times, sizeof times)));
	stat("two", &status);
	SAME("time", 2, status.st_mtime);
	SAME("pathconf", pathconf(".", _PC_NAME_MAX), pathconf(text("."), _PC_NAME_MAX));
	SAME("ftok", ftok(".", 1), ftok(text("."), 1));
	SAME("scandir", scandir(".", &entries, all, alphasort), scandir(text("."), &entries, all, alphasort));
	SAME("scandirat", scandirat(AT_FDCWD, ".", &entries, all, alphasort), scandirat(AT_FDCWD, text("."), &entries, all, alphasort));
	SAME("scandir64", scandir64(".", (void *)&entries, NULL, NULL), scandir64(text("."), (void *)&entries, NULL, NULL));
	SAME("scandirat64", scandirat64(AT_FDCWD, ".", (void *)&entries, NULL, NULL),
	     scandirat64(AT_FDCWD, text("."), (void *)&entries, NULL, NULL));
	SAME("catopen", (intptr_t)catopen(NOWHERE, 0), (intptr_t)catopen(text(NOWHERE), 0));
	char plain[4 * PAGE];
	off_t place = 0;
	off64_t place64 = 0;
	int folder = open(".", O_RDONLY), again = open(".", O_RDONLY);
	SAME("getdirentries", getdirentries(folder, plain, sizeof plain, &place), getdirentries(again, (char *)room(), sizeof plain, &place));
	lseek(folder, 0, SEEK_SET), lseek(again, 0, SEEK_SET);
	SAME("getdirentries64", getdirentries64(folder, plain, sizeof plain, &place64),
	     getdirentries64(again, (char *)room(), sizeof plain, &place64));
	close(folder), close(again);
}

int main(int count, char **arguments)
{
	(void)count;
	open_to_write(arguments);
	mounts();
	modules_and_handles();
	rendezvous();
	rights();
	clocks();
	queues_and_threads();
	names();
	return 0;
}
