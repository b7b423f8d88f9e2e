/* Expected: functions that are looked up in the C library's own handle, as foreign function interfaces do, take closed memory
 * as those that are linked do; so do those found by way of another library that needs it. What dlsym does not find it says as
 * ever, and where it finds something it leaves no error.
 * @compile -ldl
 * @counter lifted_for_calls 1 */
#include "hostile.h"
#include <dlfcn.h>

typedef ssize_t (*Write)(int, const void *, size_t);
typedef int (*Unmap)(void *, size_t);

static void *found(void *library, const char *name)
{
	void *function = dlsym(library, name);
	if (!function) {
		/* The next dlsym, the detector's for puts, gives the text's memory back. */
		char text[4096];
		snprintf(text, sizeof text, "%s", dlerror());
		puts(text);
	}
	return function;
}

int main(int count, char **arguments)
{
	(void)count;
	unsigned char *base = (unsigned char *)map_file(arguments, PROT_READ, MAP_SHARED);
	int copy = memfd_create("copy", 0);
	void *c_library = dlopen("libc.so.6", RTLD_LAZY), *other = dlopen("libm.so.6", RTLD_LAZY);
	Write writes[] = { (Write)found(c_library, "write"), (Write)found(other, "write"), (Write)found(RTLD_DEFAULT, "write"),
			   (Write)found(RTLD_NEXT, "write") };
	enum { WAYS = sizeof writes / sizeof *writes };
	unsigned way = 0;
	for (size_t at = 0; at + 2 * MIB < file_length; at += 3 * MIB) {
		ssize_t written = writes[way++ % WAYS](copy, base + at, 2 * MIB);
		if (written != (ssize_t)(2 * MIB))
			printf("way %u at %zu: %zd (%s)\n", (way - 1) % WAYS, at, written, strerror(errno));
		if (at < file_length / 2 && at + 3 * MIB >= file_length / 2)
			rendezvous();
	}
	printf("the same as linked: %d\n", writes[2] == (Write)write && writes[0] == (Write)write);
	/* Functions that nobody stands in front of, names that are not there, and libraries that are none. */
	printf("%d %d\n", found(c_library, "qsort") == (void *)qsort, found(other, "cos") != NULL);
	/* Found there alone, or in both: no error is left behind. */
	printf("no error: %d\n", dlerror() == NULL);
	found(c_library, "printf");
	printf("no error: %d\n", dlerror() == NULL);
	printf("printf: %d, execl: %d\n", found(c_library, "printf") == (void *)printf, found(c_library, "execl") == (void *)execl);
	found(c_library, "no_library_has_this");
	found(RTLD_DEFAULT, "nor_this");
	/* Unmapped by such a function, and the place used again. */
	Unmap unmap = (Unmap)found(c_library, "munmap");
	printf("as linked: %d\n", unmap == munmap);
	size_t half = file_length / 2 & ~(PAGE - 1);
	printf("unmapped: %d\n", unmap(base + half, file_length - half));
	unsigned char *again = mmap(base + half, MIB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
	memset(again, 5, MIB);
	unsigned sum = 0;
	for (size_t at = 0; at < half; at += 300 * 1024)
		sum = sum * 31 + base[at];
	for (size_t at = 0; at < MIB; at++)
		sum += again[at];
	printf("%x\n", sum);
	return 0;
}
