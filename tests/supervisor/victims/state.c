/*
 * state: writes what a program inherits: signals, descriptors, group, session and terminal.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

int main(void)
{
	struct sigaction action;
	sigset_t blocked, pending;

	sigprocmask(SIG_SETMASK, NULL, &blocked);
	sigpending(&pending);
	for (int signal = 1; signal <= SIGRTMAX; signal++) {
		int known = sigaction(signal, NULL, &action) == 0;

		if (known && action.sa_handler == SIG_IGN)
			printf("ignored %d\n", signal);
		if (known && action.sa_handler != SIG_IGN && action.sa_handler != SIG_DFL)
			printf("handled %d\n", signal);
		if (sigismember(&blocked, signal) == 1)
			printf("blocked %d\n", signal);
		if (sigismember(&pending, signal) == 1)
			printf("pending %d\n", signal);
	}
	for (int fd = 0; fd < 1024; fd++) {
		int flags = fcntl(fd, F_GETFL);

		if (flags != -1)
			printf("descriptor %d %o\n", fd, flags);
	}
	printf("group %d session %d\n", getpgrp(), getsid(0));
	return 0;
}
