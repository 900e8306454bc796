package slurm

import (
	"errors"
	"io"
	"os"
	"strings"
	"syscall"
)

// readFileLimited reads a file of at most limit bytes.
func readFileLimited(file string, limit int64) ([]byte, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err == nil && int64(len(text)) > limit {
		err = syscall.EFBIG
	}
	return text, err
}

// plainErr is the system's text of an error, as strerror gives it.
func plainErr(err error) string {
	var errno syscall.Errno
	if !errors.As(err, &errno) {
		return err.Error()
	}
	text := errno.Error()
	return strings.ToUpper(text[:1]) + text[1:]
}

const maxHostFile = 16 << 20 // bytes of a file of host names
