/* Expected: a library as large as a data file, with constant data, relocations that become read-only, unwind tables and code,
 * is loaded, read, unwound through and unloaded as natively, and mapped by the program itself without a checkpoint.
 * @report the file is a program or library
 * @compile -fexceptions -rdynamic */
#include "hostile.h"
#include <dlfcn.h>
#include <unwind.h>

static const char source[] =
	"#include <stddef.h>\n"
	"__asm__(\".section .rodata\\n .balign 4096\\n .globl large\\n large: .fill 10485760, 4, 0x01020304\\n"
	" .globl end_of_large\\n end_of_large: .byte 0\\n .text\\n\");\n"
	"extern const unsigned char large[], end_of_large[];\n"
	"const unsigned char *const relocated[4096] = { [0 ... 4095] = large };\n"
	"unsigned sum(void) {\n"
	"  unsigned sum = 0;\n"
	"  for (const unsigned char *at = large; at < end_of_large; at += 4096) sum = sum * 31 + *at;\n"
	"  return sum; }\n"
	"int call_back(int (*function)(void)) { return function() + 1; }\n"
	"const void *const *table(void) { return (const void *const *)relocated; }\n"
	"size_t length(void) { return end_of_large - large; }\n";

static void *library;

static _Unwind_Reason_Code step(struct _Unwind_Context *context, void *frames)
{
	Dl_info info;
	if (dladdr((void *)_Unwind_GetIP(context), &info) && info.dli_fname && strstr(info.dli_fname, "large.so"))
		++*(int *)frames;
	return _URC_NO_REASON;
}

static int unwind(void)
{
	int frames = 0;
	_Unwind_Backtrace(step, &frames);
	return frames;
}

static sigjmp_buf out;

static void handler(int signal)
{
	(void)signal;
	siglongjmp(out, 1);
}

int main(int count, char **arguments)
{
	(void)count;
	volatile unsigned char *base = map_file(arguments, PROT_READ, MAP_SHARED);
	read_pages(base, 0, 3 * MIB);
	FILE *text = fopen("large.c", "w");
	fputs(source, text);
	fclose(text);
	if (system("cc -O1 -shared -fPIC -Wl,-z,relro,-z,now -o large.so large.c"))
		fail("cc");
	rendezvous();
	for (int round = 0; round < 3; round++) {
		library = dlopen("./large.so", RTLD_NOW);
		if (!library) {
			puts(dlerror());
			return 1;
		}
		unsigned (*sum)(void) = (unsigned (*)(void))dlsym(library, "sum");
		int (*call_back)(int (*)(void)) = (int (*)(int (*)(void)))dlsym(library, "call_back");
		const void *const *(*table)(void) = (const void *const *(*)(void))dlsym(library, "table");
		size_t (*length)(void) = (size_t (*)(void))dlsym(library, "length");
		printf("%zu bytes, sum %x, frames %d\n", length(), sum(), call_back(unwind));
		/* Read-only since it was relocated: who writes there is told, and it can be made writable. */
		const void **place = (const void **)table();
		signal(SIGSEGV, handler);
		if (!sigsetjmp(out, 1))
			place[100] = NULL;
		else
			puts("cannot be written");
		signal(SIGSEGV, SIG_DFL);
		void *page = (void *)((uintptr_t)&place[1000] & ~(PAGE - 1));
		printf("mprotect %d", mprotect(page, PAGE, PROT_READ | PROT_WRITE));
		place[1000] = NULL;
		printf(" %d\n", mprotect(page, PAGE, PROT_READ));
		read_pages(base, round * 16 * MIB, (round + 1) * 16 * MIB);
		dlclose(library);
	}
	/* As a file: what a debugger or a loader of its own does. */
	int file = open("large.so", O_RDONLY);
	struct stat status;
	fstat(file, &status);
	for (int flags = MAP_PRIVATE; flags; flags = flags == MAP_PRIVATE ? MAP_SHARED : 0) {
		unsigned char *image = mmap(NULL, status.st_size, PROT_READ, flags, file, 0);
		unsigned found = 0;
		for (off_t at = 0; at < status.st_size; at += PAGE)
			found = found * 31 + image[at];
		printf("%x %d\n", found, memcmp(image, "\177ELF", 4));
		munmap(image, status.st_size);
	}
	printf("%x\n", read_pages(base, 0, file_length));
	return 0;
}
