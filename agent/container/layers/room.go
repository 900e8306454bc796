package layers

import (
	"os"

	"golang.org/x/sys/unix"
)

// Space of a file system that images may take, since others need some: the daemon's own files are usually on it.
const (
	// KeepFree is how many bytes are left free.
	KeepFree = 1 << 30
	// keepFiles is how many files can still be made, where the file system counts them.
	keepFiles = 64 << 10
	// lookEvery is how many bytes are taken between two looks at what is free.
	lookEvery = 64 << 20
)

// Room is what is left of the file system that a file is on.
type Room struct {
	On    *os.File
	taken int64 // since the last look
}

// Take notes that bytes are to be written, and fails once too little is free.
func (r *Room) Take(n int64) error {
	if r.taken += n; r.taken < lookEvery {
		return nil
	}
	r.taken = 0
	return r.look(KeepFree)
}

// TakeFiles fails if too few files can be made. Take looks too seldom for many small sets of files.
func (r *Room) TakeFiles() error { return r.look(0) }

func (r *Room) look(bytes int64) error {
	var st unix.Statfs_t
	_ = unix.Fstatfs(int(r.On.Fd()), &st) // of a file that is open it does not fail
	if !Fits(&st, bytes) {
		return unix.ENOSPC
	}
	return nil
}

// Fits reports whether so many bytes of a file system are free, and enough files.
func Fits(st *unix.Statfs_t, bytes int64) bool {
	files := st.Ffree - 1 // without a count this is the most: some file systems have 0 of 0
	return int64(st.Bavail)*st.Bsize >= bytes && files >= keepFiles
}
