/* Programs that a case makes, and executes in children. */
#include <spawn.h>
#include <sys/stat.h>

extern char **environ;

static void compile(const char *flags, const char *program)
{
	char command[512];
	snprintf(command, sizeof command, "cc %s -o %s child.c 2> /dev/null", flags, program);
	if (system(command))
		printf("%s cannot be made here\n", program);
}

static void end_of(const char *what, pid_t child)
{
	int status;
	waitpid(child, &status, 0);
	printf("%s: %d\n", what, status);
	fflush(stdout);
}

#define IN_CHILD(what, call)                  \
	do {                                  \
		pid_t child = vfork();        \
		if (child == 0) {             \
			call;                 \
			_exit(77);            \
		}                             \
		end_of(what, child);          \
	} while (0)

/* One that reads 64 MiB of the file that it is given, and tells what SHOWN is in its environment. */
static void write_reader(void)
{
	FILE *source = fopen("child.c", "w");
	fputs("#include <fcntl.h>\n#include <stdio.h>\n#include <stdlib.h>\n#include <string.h>\n#include <sys/mman.h>\n"
	      "int main(int n, char **a) {\n"
	      "  int file = open(a[1], O_RDONLY); unsigned sum = 0;\n"
	      "  unsigned char *b = mmap(0, 64 << 20, PROT_READ, MAP_SHARED, file, 0);\n"
	      "  for (int i = 0; i < 64 << 20; i += 4096) sum = sum * 31 + b[i];\n"
	      "  printf(\"%x %s\\n\", sum, getenv(\"SHOWN\") ? getenv(\"SHOWN\") : \"-\"); return 0; }\n", source);
	fclose(source);
}
