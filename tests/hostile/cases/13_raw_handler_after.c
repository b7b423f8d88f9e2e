/* Expected: a handler that is installed by a raw system call while a mapping is armed is noticed with the next mapping;
 * everything is opened then, and nothing armed any more.
 * @report another SIGSEGV handler was installed past us */
#include "signals.h"
#include "raw_action.h"

int main(int count, char **arguments)
{
	(void)count;
	base = map_file(arguments, PROT_READ, MAP_SHARED);
	read_on(8 * MIB);
	rendezvous();
	read_on(MIB);
	install_raw(reporting_handler);
	volatile unsigned char *another = map_file(arguments, PROT_READ, MAP_SHARED);
	read_pages(another, 0, file_length);
	read_on(file_length - position);
	puts("read");
	fflush(stdout);
	fault();
	return 0;
}
