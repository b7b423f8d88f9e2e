/*
 * announce: writes a line for each signal that it gets, and ends at SIGRTMIN + 5.
 *
 * The last is the test's way to know that what was sent before has arrived: real-time signals are delivered after all
 * others. With an argument, that signal is left at its default.
 */
#define _GNU_SOURCE
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static void announce(int signal)
{
	char line[32];
	int length = snprintf(line, sizeof line, "got %d\n", signal);

	if (write(STDOUT_FILENO, line, length) != length)
		_exit(1);
	if (signal == SIGRTMIN + 5)
		_exit(0);
}

int main(int argc, char **argv)
{
	struct sigaction action = { .sa_handler = announce };
	sigset_t none;

	sigfillset(&action.sa_mask);
	for (int signal = 1; signal <= SIGRTMAX; signal++)
		if (signal != SIGCHLD && !(argc > 1 && atoi(argv[1]) == signal))
			sigaction(signal, &action, NULL);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);

	dprintf(STDOUT_FILENO, "ready %d %d\n", getpid(), getppid());
	for (;;)
		pause();
}
