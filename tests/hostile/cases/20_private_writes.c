/* Expected: what a program writes to its private mapping stays, wherever checkpoints were and come to be.
 * @no-guards private mappings have none */
#include "hostile.h"

int main(int count, char **arguments)
{
	(void)count;
	unsigned char *base = (unsigned char *)map_file(arguments, PROT_READ | PROT_WRITE, MAP_PRIVATE);
	for (size_t at = 0; at < file_length; at += 64 * 1024)
		base[at + 9] = (unsigned char)(at >> 16) ^ 0x5a;
	rendezvous();
	for (int epoch = 0; epoch < 3; epoch++)
		for (size_t at = 0; at < file_length; at += PAGE) {
			int written = at % (64 * 1024) == 0;
			unsigned char expected = written ? (unsigned char)(at >> 16) ^ 0x5a : (word_at(at + 8) >> 8) & 0xff;
			if (base[at + 9] != expected)
				printf("epoch %d: %x at %zu\n", epoch, base[at + 9], at);
		}
	int random = open("/dev/urandom", O_RDONLY);
	if (read(random, base + 24 * MIB - 5000, 3 * MIB) != (ssize_t)(3 * MIB))
		printf("reading into the mapping: %s\n", strerror(errno));
	puts("kept");
	return 0;
}
