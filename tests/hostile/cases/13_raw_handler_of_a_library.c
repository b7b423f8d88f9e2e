/* Expected: a handler that is installed by a raw system call while a mapping is armed, as the runtime in a library that is loaded late
 * may do, is noticed when something is looked up in that library; everything is opened then, and nothing armed any more.
 * @report another SIGSEGV handler was installed past us */
#include "signals.h"
#include "raw_action.h"
#include <dlfcn.h>

int main(int count, char **arguments)
{
	(void)count;
	base = map_file(arguments, PROT_READ, MAP_SHARED);
	read_on(8 * MIB);
	rendezvous();
	read_on(MIB);
	void *library = dlopen("libm.so.6", RTLD_NOW);
	install_raw(reporting_handler);
	if (!library || !dlsym(library, "cos"))
		fail("dlsym");
	read_on(file_length - position);
	puts("read");
	fflush(stdout);
	fault();
	return 0;
}
