/* Expected: with a library loaded that makes rings, by whatever name a package gives it and also after the data were mapped,
 * system calls past libc read closed pages as if they were open.
 * @report the program makes system calls past libc */
#include "hostile.h"
#include <dlfcn.h>
#include <math.h>
#include <sys/sendfile.h>
#include <sys/syscall.h>

/* As a library with system calls of its own makes them. */
static long raw_write(int file, const void *buffer, size_t length)
{
#if defined(__x86_64__)
	long result;
	__asm__ volatile("syscall" : "=a"(result) : "a"(SYS_write), "D"(file), "S"(buffer), "d"(length) : "rcx", "r11", "memory");
	return result;
#else
	return write(file, buffer, length);
#endif
}

/* A library by this name: a copy of one that is there. */
static void *load(const char *name)
{
	Dl_info info;
	struct stat status;
	if (!dladdr((void *)cos, &info))
		fail("dladdr");
	int from = open(info.dli_fname, O_RDONLY), to = open(name, O_WRONLY | O_CREAT, 0700);
	if (from < 0 || to < 0 || fstat(from, &status) || sendfile(to, from, NULL, status.st_size) != status.st_size)
		fail(name);
	close(from), close(to);
	void *library = dlopen(name, RTLD_NOW);
	printf("%s: %s\n", name, library ? "loaded" : dlerror());
	return library;
}

static void in_child(char **arguments, const char *name)
{
	fflush(stdout);
	pid_t child = fork();
	if (child == 0) {
		load(name);
		unsigned char *base = (unsigned char *)map_file(arguments, PROT_READ, MAP_SHARED);
		int copy = memfd_create("copy", 0);
		printf("%ld\n", raw_write(copy, base, 8 * MIB));
		fflush(stdout);
		_exit(0);
	}
	int status;
	waitpid(child, &status, 0);
	printf("%d\n", status);
}

int main(int count, char **arguments)
{
	(void)count;
	in_child(arguments, "./liburing-ffi.so.2");
	in_child(arguments, "./liburing-5f2b1a7c.so.2");
	unsigned char *base = (unsigned char *)map_file(arguments, PROT_READ, MAP_SHARED);
	read_pages(base, 0, 20 * MIB);
	rendezvous();
	read_pages(base, 20 * MIB, 30 * MIB);
	void *library = load("./liburing.so.2");
	printf("%d\n", library && dlsym(library, "cos"));
	printf("%ld\n", raw_write(memfd_create("copy", 0), base, file_length));
	return 0;
}
