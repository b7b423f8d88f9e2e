/* Expected: the rarest calls that are given memory do with memory of the mapping what they do with other: those by which a
 * program asks for its limits, its use of the machine, its processors and its clocks, or sets them, timers, offsets of files,
 * signals that it waits for, what is told of queues and segments, and random bytes.
 * @own-data
 * @counter lifted_for_calls 40 */
#include "closed_places.h"
#include <dlfcn.h>
#include <mqueue.h>
#include <pthread.h>
#include <sched.h>
#include <sys/eventfd.h>
#include <sys/ipc.h>
#include <sys/msg.h>
#include <sys/resource.h>
#include <sys/sem.h>
#include <sys/shm.h>
#include <sys/signalfd.h>
#include <sys/sysinfo.h>
#include <sys/timerfd.h>
#include <sys/times.h>
#include <time.h>

static void limits(void)
{
	struct rlimit limit, *there;
	struct rlimit64 limit64, *there64;
	if (getrlimit(RLIMIT_RTTIME, &limit))
		fail("getrlimit");
	expect("getrlimit", getrlimit(RLIMIT_RTTIME, there = (void *)room()), 0), expect("limit", memcmp(there, &limit, sizeof limit), 0);
	limit.rlim_cur = 30;
	expect("setrlimit", setrlimit(RLIMIT_RTTIME, (void *)put(&limit, sizeof limit)), 0);
	expect("getrlimit64", getrlimit64(RLIMIT_RTTIME, there64 = (void *)room()), 0), expect("limit", there64->rlim_cur, 30);
	limit64 = *there64, limit64.rlim_cur = 20;
	expect("setrlimit64", setrlimit64(RLIMIT_RTTIME, (void *)put(&limit64, sizeof limit64)), 0);
	limit.rlim_cur = 10;
	there = (void *)room();
	expect("prlimit", prlimit(0, RLIMIT_RTTIME, (void *)put(&limit, sizeof limit), there), 0), expect("old", there->rlim_cur, 20);
	limit64.rlim_cur = 5;
	there64 = (void *)room();
	expect("prlimit64", prlimit64(0, RLIMIT_RTTIME, (void *)put(&limit64, sizeof limit64), there64), 0), expect("old", there64->rlim_cur, 10);
	expect("getrlimit", getrlimit(RLIMIT_RTTIME, &limit), 0), expect("limit", limit.rlim_cur, 5);
}

static void usage(void)
{
	struct rusage usage, *use;
	struct sysinfo machine, *there;
	struct tms none, *spent;
	uid_t users[3], *user[3];
	gid_t groups[3], *group[3];
	memset(&none, -1, sizeof none);
	expect("getrusage", getrusage(RUSAGE_SELF, use = (void *)room()), 0), expect("getrusage", getrusage(RUSAGE_SELF, &usage), 0);
	expect("largest", use->ru_maxrss > 0 && use->ru_maxrss <= usage.ru_maxrss, 1);
	expect("sysinfo", sysinfo(there = (void *)room()), 0), expect("sysinfo", sysinfo(&machine), 0);
	expect("memory", there->totalram, machine.totalram);
	expect("times", times(spent = (void *)room_with(&none, sizeof none)) > 0, 1), expect("of children", spent->tms_cutime, 0);
	for (int i = 0; i < 3; i++)
		user[i] = (void *)room(), group[i] = (void *)room();
	expect("getresuid", getresuid(user[0], user[1], user[2]) + getresuid(users, users + 1, users + 2), 0);
	expect("getresgid", getresgid(group[0], group[1], group[2]) + getresgid(groups, groups + 1, groups + 2), 0);
	for (int i = 0; i < 3; i++)
		expect("user", *user[i], users[i]), expect("group", *group[i], groups[i]);
}

static void processors(void)
{
	cpu_set_t set, *there;
	struct sched_param priority = { 0 }, *found;
	expect("sched_getaffinity", sched_getaffinity(0, sizeof set, &set), 0);
	expect("sched_getaffinity", sched_getaffinity(0, sizeof set, there = (void *)room()), 0), expect("set", CPU_EQUAL(there, &set), 1);
	expect("sched_setaffinity", sched_setaffinity(0, sizeof set, (void *)put(&set, sizeof set)), 0);
	expect("pthread_getaffinity_np", pthread_getaffinity_np(pthread_self(), sizeof set, there = (void *)room()), 0);
	expect("set", CPU_EQUAL(there, &set), 1);
	expect("pthread_setaffinity_np", pthread_setaffinity_np(pthread_self(), sizeof set, (void *)put(&set, sizeof set)), 0);
	expect("sched_getparam", sched_getparam(0, found = (void *)room()), 0), expect("priority", found->sched_priority, 0);
	expect("sched_setparam", sched_setparam(0, (void *)put(&priority, sizeof priority)), 0);
	expect("sched_setscheduler", sched_setscheduler(0, SCHED_OTHER, (void *)put(&priority, sizeof priority)), 0);
	expect("pthread_setschedparam", pthread_setschedparam(pthread_self(), SCHED_OTHER, (void *)put(&priority, sizeof priority)), 0);
	struct timespec interval, *told;
	expect("sched_rr_get_interval", sched_rr_get_interval(0, &interval), 0);
	expect("sched_rr_get_interval", sched_rr_get_interval(0, told = (void *)room()), 0), expect("interval", told->tv_nsec, interval.tv_nsec);
	char *name;
	expect("pthread_setname_np", pthread_setname_np(pthread_self(), "named"), 0);
	expect("pthread_getname_np", pthread_getname_np(pthread_self(), name = (void *)room(), 16), 0), expect("name", strcmp(name, "named"), 0);
}

static void clocks(void)
{
	uint64_t *count;
	struct itimerspec hour = { { 0, 0 }, { 3600, 0 } }, *rest;
	struct timespec step, *there;
	int events = eventfd(7, 0), timer = timerfd_create(CLOCK_MONOTONIC, 0);
	expect("eventfd_read", eventfd_read(events, count = (void *)room()), 0), expect("count", *count, 7);
	expect("timerfd_settime", timerfd_settime(timer, 0, &hour, NULL), 0);
	expect("timerfd_gettime", timerfd_gettime(timer, rest = (void *)room()), 0), expect("rest", rest->it_value.tv_sec > 3000, 1);
	expect("clock_getres", clock_getres(CLOCK_PROCESS_CPUTIME_ID, there = (void *)room()), 0);
	expect("clock_getres", clock_getres(CLOCK_PROCESS_CPUTIME_ID, &step), 0), expect("step", memcmp(there, &step, sizeof step), 0);
	close(events), close(timer);
	timer_t another;
	struct sigevent silence = { .sigev_notify = SIGEV_NONE };
	expect("timer_create", timer_create(CLOCK_MONOTONIC, &silence, &another), 0);
	expect("timer_settime", timer_settime(another, 0, (void *)put(&hour, sizeof hour), NULL), 0);
	expect("timer_gettime", timer_gettime(another, rest = (void *)room()), 0), expect("rest", rest->it_value.tv_sec > 3000, 1);
	timer_delete(another);
}

static void files(void)
{
	loff_t at = 4, *from_there, *to_there;
	int ends[2], one = memfd_create("one", 0), two = memfd_create("two", 0);
	char text[4];
	expect("write", pwrite(one, "four", 4, 4), 4);
	from_there = (void *)room_with(&at, sizeof at), to_there = (void *)room_with(&at, sizeof at);
	expect("copy_file_range", copy_file_range(one, from_there, two, to_there, 4, 0), 4);
	expect("offsets", *from_there + *to_there, 16), expect("read", pread(two, text, 4, 4), 4), expect("text", memcmp(text, "four", 4), 0);
	expect("pipe", pipe(ends), 0);
	from_there = (void *)room_with(&at, sizeof at);
	expect("splice", splice(one, from_there, ends[1], NULL, 4, 0), 4), expect("offset", *from_there, 8);
	close(one), close(two), close(ends[0]), close(ends[1]);
}

static void signals(void)
{
	sigset_t usual, *pending;
	int *taken, file;
	sigemptyset(&usual);
	sigaddset(&usual, SIGUSR1);
	sigprocmask(SIG_BLOCK, &usual, NULL);
	expect("signalfd", (file = signalfd(-1, (void *)put(&usual, sizeof usual), SFD_NONBLOCK)) >= 0, 1);
	kill(getpid(), SIGUSR1);
	expect("sigpending", sigpending(pending = (void *)room()), 0), expect("pending", sigismember(pending, SIGUSR1), 1);
	struct signalfd_siginfo what;
	expect("read", read(file, &what, sizeof what), sizeof what), expect("signal", what.ssi_signo, SIGUSR1);
	kill(getpid(), SIGUSR1);
	void *set = put(&usual, sizeof usual);
	expect("sigwait", sigwait(set, taken = (void *)room()), 0), expect("signal", *taken, SIGUSR1);
	close(file);
}

static void queues(void)
{
	struct shmid_ds *segment;
	struct msqid_ds *queue;
	struct semid_ds *set;
	struct mq_attr attributes = { .mq_maxmsg = 3, .mq_msgsize = 100 }, *old;
	char name[64];
	int id = shmget(IPC_PRIVATE, 5000, 0600);
	expect("shmctl", shmctl(id, IPC_STAT, segment = (void *)room()), 0), expect("size", segment->shm_segsz, 5000);
	shmctl(id, IPC_RMID, NULL);
	id = msgget(IPC_PRIVATE, 0600);
	expect("msgctl", msgctl(id, IPC_STAT, queue = (void *)room()), 0), expect("messages", queue->msg_qnum, 0);
	msgctl(id, IPC_RMID, NULL);
	id = semget(IPC_PRIVATE, 3, 0600);
	expect("semctl", semctl(id, 0, IPC_STAT, set = (void *)room()), 0), expect("semaphores", set->sem_nsems, 3);
	semctl(id, 0, IPC_RMID);
	snprintf(name, sizeof name, "/precache-%d", getpid());
	mqd_t messages = mq_open(name, O_RDWR | O_CREAT | O_EXCL, 0600, &attributes);
	mq_unlink(name);
	expect("mq_getattr", mq_getattr(messages, old = (void *)room()), 0), expect("size", old->mq_msgsize, 100);
	close(messages);
}

static void random_bytes(void)
{
	void (*fill)(void *, size_t) = dlsym(RTLD_DEFAULT, "arc4random_buf");
	unsigned char zeros[5000] = { 0 }, *there = room_with(zeros, sizeof zeros);
	/* glibc has had it since 2.36. */
	if (fill)
		fill(there, sizeof zeros), expect("arc4random_buf", memcmp(there, zeros, sizeof zeros) != 0, 1);
}

int main(int count, char **arguments)
{
	(void)count;
	errno = PLANTED;
	open_to_write(arguments);
	limits();
	usage();
	rendezvous();
	processors();
	clocks();
	files();
	signals();
	queues();
	random_bytes();
	return 0;
}
