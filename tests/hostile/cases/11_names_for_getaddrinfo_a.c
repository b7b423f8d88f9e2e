/* Expected: names that lie in mapped data, and a request that lies in a private mapping, are read by a thread of libc, which blocks
 * all signals.
 * @own-data
 * @report the program gave the mapping to asynchronous calls (aio, getaddrinfo_a), or to its handlers as a stack */
#include "hostile.h"
#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>

int main(int count, char **arguments)
{
	(void)count;
	static const char name[] = "127.0.0.1", service[] = "80";
	volatile unsigned char *base = map_file(arguments, PROT_READ, MAP_SHARED);
	int file = open(arguments[1], O_WRONLY);
	if (pwrite(file, name, sizeof name, 40 * MIB) != sizeof name ||
	    pwrite(file, service, sizeof service, 50 * MIB) != sizeof service)
		fail("pwrite");
	read_pages(base, 0, 2 * MIB);
	rendezvous();
	read_pages(base, 2 * MIB, 4 * MIB);
	struct addrinfo wanted = { .ai_flags = AI_NUMERICHOST | AI_NUMERICSERV, .ai_family = AF_INET };
	struct gaicb request = {
		.ar_name = (const char *)base + 40 * MIB, .ar_service = (const char *)base + 50 * MIB, .ar_request = &wanted
	};
	/* The second time the request itself lies there, where nothing has been read. */
	unsigned char *own = mmap(NULL, file_length, PROT_READ | PROT_WRITE, MAP_PRIVATE, file_descriptor, 0);
	struct gaicb *mapped = (struct gaicb *)(own + 30 * MIB);
	if (pwrite(file, &request, sizeof request, 30 * MIB) != sizeof request)
		fail("pwrite");
	read_pages(own, 0, 2 * MIB);
	struct gaicb *both[] = { &request, mapped };
	for (int turn = 0; turn < 2; turn++) {
		struct gaicb *requests[] = { NULL, both[turn] };
		printf("%d\n", getaddrinfo_a(GAI_WAIT, requests, 2, NULL));
		if (gai_error(both[turn]) == 0) {
			struct sockaddr_in *found = (struct sockaddr_in *)both[turn]->ar_result->ai_addr;
			printf("%s port %d\n", inet_ntoa(found->sin_addr), ntohs(found->sin_port));
		}
	}
	printf("%x\n", read_pages(base, 4 * MIB, 30 * MIB));
	return 0;
}
