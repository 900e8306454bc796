package wire

import "unsafe"

// zeroMemory reports whether size bytes at an offset of the struct v are all zero.
//
// A job has some 145 fields, most of them empty and left out. Asking reflection for each took most
// of the time to write a job; this look at the memory, the only use of package unsafe, takes a
// small part of it. It only reads inside of v.
func zeroMemory(v unsafe.Pointer, offset, size uintptr) bool {
	for ; size >= 8; offset, size = offset+8, size-8 {
		if *(*[8]byte)(unsafe.Add(v, offset)) != [8]byte{} {
			return false
		}
	}
	for ; size > 0; offset, size = offset+1, size-1 {
		if *(*byte)(unsafe.Add(v, offset)) != 0 {
			return false
		}
	}
	return true
}
