/* Expected: calls by which a program asks for its limits, its use of the machine, its processors and its clocks, or sets them,
 * do with structures in the mapping what they do with others.
 * @own-data
 * @counter lifted_for_calls 21 */
#include "closed_places.h"
#include <pthread.h>
#include <sched.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/sysinfo.h>
#include <sys/timerfd.h>
#include <sys/times.h>
#include <time.h>

static void limits(void)
{
	struct rlimit limit, *there;
	struct rlimit64 limit64, *there64;
	if (getrlimit(RLIMIT_SIGPENDING, &limit))
		fail("getrlimit");
	expect("getrlimit", getrlimit(RLIMIT_SIGPENDING, there = (void *)room()), 0), expect("limit", memcmp(there, &limit, sizeof limit), 0);
	limit.rlim_cur = 30;
	expect("setrlimit", setrlimit(RLIMIT_SIGPENDING, (void *)put(&limit, sizeof limit)), 0);
	expect("getrlimit64", getrlimit64(RLIMIT_SIGPENDING, there64 = (void *)room()), 0), expect("limit", there64->rlim_cur, 30);
	limit64 = *there64, limit64.rlim_cur = 20;
	expect("setrlimit64", setrlimit64(RLIMIT_SIGPENDING, (void *)put(&limit64, sizeof limit64)), 0);
	limit.rlim_cur = 10;
	there = (void *)room();
	expect("prlimit", prlimit(0, RLIMIT_SIGPENDING, (void *)put(&limit, sizeof limit), there), 0), expect("old", there->rlim_cur, 20);
	limit64.rlim_cur = 5;
	there64 = (void *)room();
	expect("prlimit64", prlimit64(0, RLIMIT_SIGPENDING, (void *)put(&limit64, sizeof limit64), there64), 0), expect("old", there64->rlim_cur, 10);
	expect("getrlimit", getrlimit(RLIMIT_SIGPENDING, &limit), 0), expect("limit", limit.rlim_cur, 5);
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
}

int main(int count, char **arguments)
{
	(void)count;
	open_file(arguments);
	close(file_descriptor);
	if ((file_descriptor = open(arguments[1], O_RDWR)) < 0)
		fail("open");
	limits();
	usage();
	rendezvous();
	processors();
	clocks();
	return 0;
}
