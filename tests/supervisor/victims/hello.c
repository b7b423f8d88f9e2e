/* hello: writes one line. What matters is how it is built. */
#ifdef ALONE
/* Without a C library, for machines that have none for this word size. */
void _start(void)
{
	for (;;)
		;
}
#else
#include <stdio.h>

int main(void)
{
	puts("hello");
	return 0;
}
#endif
