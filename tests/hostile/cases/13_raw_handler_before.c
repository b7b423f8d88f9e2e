/* Expected: a program that installed its SIGSEGV handler by a raw system call, as the runtime of Go does, is left
 * alone.
 * @no-trap nothing is armed
 * @not-killed nothing is armed
 * @report another SIGSEGV handler was installed past us */
#include "signals.h"
#include "raw_action.h"

int main(int count, char **arguments)
{
	(void)count;
	install_raw(reporting_handler);
	base = map_file(arguments, PROT_READ, MAP_SHARED);
	read_on(file_length);
	fault();
	return 0;
}
