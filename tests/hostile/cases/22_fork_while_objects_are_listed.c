/* Expected: a child that is forked while another thread is in the dynamic loader, whose lock nobody gives back there, maps the
 * file and reads it. */
#include "hostile.h"
#include <link.h>

static int ends[2];

static int stay(struct dl_phdr_info *object, size_t size, void *nothing)
{
	(void)object, (void)size, (void)nothing;
	if (write(ends[1], "", 1) != 1)
		fail("write");
	for (;;)
		pause();
}

static void *list_objects(void *nothing)
{
	dl_iterate_phdr(stay, NULL);
	return nothing;
}

int main(int count, char **arguments)
{
	(void)count;
	char byte;
	volatile unsigned char *base = map_file(arguments, PROT_READ, MAP_SHARED);
	printf("parent: %x\n", read_pages(base, 0, file_length / 2));
	pthread_t thread;
	if (pipe(ends) || pthread_create(&thread, NULL, list_objects, NULL) || read(ends[0], &byte, 1) != 1)
		fail("another thread");
	rendezvous();
	fflush(stdout);
	if (fork() == 0) {
		printf("child: %x\n", read_pages(map_file(arguments, PROT_READ, MAP_SHARED), 0, file_length));
		fflush(stdout);
		_exit(0);
	}
	wait(NULL);
	printf("parent: %x\n", read_pages(base, file_length / 2, file_length));
	fflush(stdout);
	_exit(0);
}
