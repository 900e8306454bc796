package pmi

import "os"

// Library is the PMIx library, by the name under which versions 3 to 5 install it.
const Library = "libpmix.so.2"

// libraryDirs are where the distributions have their libraries. A library elsewhere, which the dynamic
// linker finds all the same, only goes unmentioned in a list.
var libraryDirs = []string{
	"/usr/lib/x86_64-linux-gnu/", "/usr/lib/aarch64-linux-gnu/", "/usr/lib64/", "/usr/lib/",
	"/usr/local/lib/", "/usr/local/lib64/", "/opt/pmix/lib/",
}

// HasPMIx reports whether this machine has the PMIx library.
func HasPMIx() bool {
	for _, dir := range libraryDirs {
		if _, err := os.Stat(dir + Library); err == nil {
			return true
		}
	}
	return false
}
