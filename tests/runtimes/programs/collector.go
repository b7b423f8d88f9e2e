// A library whose runtime comes, with its signal handlers, into a program that has files mapped already.
package main

import "C"
import "runtime"

//export Collect
func Collect() C.int {
	s := 0
	for i := 0; i < 100; i++ {
		b := make([]byte, 100000)
		s += len(b)
	}
	runtime.GC()
	var n *int
	defer func() { recover() }()
	return C.int(*n + s)
}

func main() {}
