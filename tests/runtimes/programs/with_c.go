// Maps the file by a raw system call and by C's mmap, and reads both, while the garbage collector runs.
package main

/*
#include <stdint.h>
#include <sys/mman.h>
#include <fcntl.h>
#include <sys/stat.h>
static char *base_;
static long len;


static char *c_base(void)
{
	return base_;
}


static int c_map(const char *path)
{
	struct stat status;
	int file = open(path, O_RDONLY);
	fstat(file, &status);
	len = status.st_size;
	base_ = mmap(0, len, PROT_READ, MAP_SHARED, file, 0);
	return base_ == MAP_FAILED;
}

static uint32_t c_sum(long from, long to)
{
	uint32_t sum = 0;
	for (long at = from; at < to; at += 4)
		sum = sum * 31 + *(uint32_t *)(base_ + at);
	return sum;
}

*/
import "C"
import (
	"fmt"
	"hash/crc32"
	"os"
	"runtime"
	"syscall"
	"unsafe"
)

func main() {
	f, _ := os.Open(os.Args[1])
	s, _ := f.Stat()
	data, err := syscall.Mmap(int(f.Fd()), 0, int(s.Size()), syscall.PROT_READ, syscall.MAP_SHARED)
	if err != nil {
		panic(err)
	}
	done := make(chan uint32)
	for g := 0; g < 4; g++ {
		go func(g int) {
			n := len(data) / 4
			done <- crc32.ChecksumIEEE(data[g*n : (g+1)*n])
		}(g)
	}
	var sum uint32
	for g := 0; g < 4; g++ {
		sum ^= <-done
		runtime.GC()
	}
	fmt.Println(sum)
	p := C.CString(os.Args[1])
	if C.c_map(p) != 0 {
		panic("map")
	}
	fmt.Println(C.c_sum(0, 32<<20))
	slice := unsafe.Slice((*byte)(unsafe.Pointer(C.c_base())), 64<<20)
	fmt.Println(crc32.ChecksumIEEE(slice))
	os.Stdout.Write(slice[40<<20 : 41<<20])
	func() {
		defer func() { fmt.Println(recover()) }()
		var n *int
		fmt.Println(*n)
	}()
	runtime.GC()
}
