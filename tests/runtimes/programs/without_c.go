// A static program, which takes no library.
package main

import (
	"fmt"
	"hash/crc32"
	"os"
	"runtime"
	"syscall"
)

func main() {
	f, _ := os.Open(os.Args[1])
	s, _ := f.Stat()
	data, err := syscall.Mmap(int(f.Fd()), 0, int(s.Size()), syscall.PROT_READ, syscall.MAP_SHARED)
	if err != nil {
		panic(err)
	}
	fmt.Println(crc32.ChecksumIEEE(data))
	runtime.GC()
	os.Stdout.Write(data[40<<20 : 41<<20])
	func() {
		defer func() { fmt.Println(recover()) }()
		var n *int
		fmt.Println(*n)
	}()
}
