# Expected: a library that binds itself to the C library past all preloaded ones (RTLD_DEEPBIND), or has one of its own
# (dlmopen), gives mapped memory to the kernel and unmaps it as natively; the report says why nothing is armed from then on.
# @counter active_readers 2
# @report binds libraries past us
set -e
cat > past.c <<'C'
#define _GNU_SOURCE
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
long give(int file, const void *from, unsigned long length)
{
	return write(file, from, length);
}
/* Memory of the library's own where the mapping was. */
long replace(void *address, unsigned long length)
{
	munmap(address, length);
	return mmap(address, length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == address;
}
C
cat > main.c <<'C'
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
/* Here the optimizer may be killed. */
static void meet(const char *rendezvous)
{
	char path[4096], word = 'x';
	snprintf(path, sizeof path, "%s/reached", rendezvous);
	FILE *reached = fopen(path, "w");
	fputc(word, reached);
	fclose(reached);
	snprintf(path, sizeof path, "%s/go", rendezvous);
	int go = open(path, O_RDONLY);
	if (read(go, &word, 1) != 1)
		puts("nobody is there");
	close(go);
}
int main(int count, char **arguments)
{
	int file = open(arguments[1], O_RDONLY), copy = memfd_create("copy", 0);
	struct stat status;
	fstat(file, &status);
	unsigned char *base = mmap(NULL, status.st_size, PROT_READ, MAP_SHARED, file, 0);
	uint32_t sum = 0;
	for (off_t at = 0; at < status.st_size / 4; at += 4096)
		sum = sum * 31 + *(volatile uint32_t *)(base + at);
	printf("read %x\n", sum);
	fflush(stdout);
	if (count > 3)
		meet(getenv("HOSTILE_RENDEZVOUS"));
	void *library = count > 3 ? dlmopen(LM_ID_NEWLM, arguments[2], RTLD_NOW) : dlopen(arguments[2], RTLD_NOW | RTLD_DEEPBIND);
	if (!library) {
		puts(dlerror());
		return 1;
	}
	long (*give)(int, const void *, unsigned long) = dlsym(library, "give");
	long (*replace)(void *, unsigned long) = dlsym(library, "replace");
	errno = 0;
	long given = give(copy, base + status.st_size / 2, 3 << 20);
	printf("given %ld, %s\n", given, strerror(errno));
	unsigned char *later = mmap(NULL, status.st_size, PROT_READ, MAP_SHARED, file, 0);
	given = give(copy, later + status.st_size / 2, 3 << 20);
	printf("given %ld, %s\n", given, strerror(errno));
	if (replace(base, status.st_size)) {
		memset(base, 7, status.st_size);
		for (off_t at = 0; at < status.st_size; at++)
			sum += base[at];
	}
	printf("replaced %x\n", sum);
	return 0;
}
C
cc -shared -fPIC -O1 -o past.so past.c
cc -O1 -o main main.c -ldl
./main "$1" "$PWD/past.so"
./main "$1" "$PWD/past.so" apart
