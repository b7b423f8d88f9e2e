# Expected: a program that comes with an older C library of its own, and its loader, starts under a shell as it does alone,
# without our library; one that comes with a copy of this one keeps it.
# @not-detected the detector needs a C library as late as ours
# @counter active_readers 2
set -e
export LC_ALL=C
cat > reader.c <<'C'
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
int main(int count, char **arguments)
{
	(void)count;
	int file = open(arguments[1], O_RDONLY);
	struct stat status;
	fstat(file, &status);
	volatile unsigned char *base = mmap(NULL, status.st_size, PROT_READ, MAP_SHARED, file, 0);
	uint32_t sum = 0;
	for (off_t at = 0; at < status.st_size; at += 4096)
		sum = sum * 31 + *(volatile uint32_t *)(base + at);
	printf("%x\n", sum);
	return 0;
}
C
# Without the start files, which need the C library's latest start function.
cat > old.c <<'C'
#include <stdlib.h>
#include <unistd.h>
__attribute__((force_align_arg_pointer)) void _start(void)
{
	write(1, "older\n", 6);
	_exit(0);
}
C
loader=$(readelf -l "$(command -v readelf)" | sed -n 's/.*interpreter: \(.*\)\]/\1/p')
library=$(ldd "$(command -v readelf)" | sed -n 's/.*libc.so.6 => \([^ ]*\) .*/\1/p')
mkdir -p old same
for folder in old same; do
	cp "$loader" $folder/ld.so
	cp "$library" $folder/libc.so.6
done
# What came in 2.34 is not there under that name.
sed -i 's/GLIBC_2\.34/GLIBC_2.3x/g' old/ld.so old/libc.so.6
cc -O1 -o reader reader.c
cc -O1 -o same/reader reader.c -Wl,--dynamic-linker="$PWD/same/ld.so",-rpath,"$PWD/same"
cc -O1 -nostartfiles -o old/program old.c -Wl,--dynamic-linker="$PWD/old/ld.so",-rpath,"$PWD/old"
./reader "$1"
printf x > "$HOSTILE_RENDEZVOUS/reached"; head -c1 "$HOSTILE_RENDEZVOUS/go" > /dev/null
same/reader "$1"
old/program
env old/program
