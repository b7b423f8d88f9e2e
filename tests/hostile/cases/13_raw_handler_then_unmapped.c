/* Expected: a handler that is installed past libc while mappings are armed is noticed when one of them goes; everything is opened
 * then.
 * @report another SIGSEGV handler was installed past us */
#include "signals.h"
#include "raw_action.h"

int main(int count, char **arguments)
{
	(void)count;
	unsigned char *another = (unsigned char *)map_file(arguments, PROT_READ, MAP_SHARED);
	read_pages(another, 0, MIB);
	base = map_file(arguments, PROT_READ, MAP_SHARED);
	read_on(8 * MIB);
	rendezvous();
	read_on(MIB);
	read_pages(another, MIB, 2 * MIB);
	install_raw(reporting_handler);
	munmap(another, file_length);
	read_on(file_length - position);
	puts("read");
	fflush(stdout);
	fault();
	return 0;
}
