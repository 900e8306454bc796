package front

import (
	"errors"
	"io"
	"os"
	"strings"
	"syscall"
)

// ReadFileLimited reads a file of at most limit bytes.
func ReadFileLimited(file string, limit int64) ([]byte, error) {
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

// PlainError is the system's text of an error, as strerror gives it.
func PlainError(err error) string {
	var errno syscall.Errno
	if !errors.As(err, &errno) {
		return err.Error()
	}
	text := errno.Error()
	return strings.ToUpper(text[:1]) + text[1:]
}

// MaxHostFile bounds a file of host names.
const MaxHostFile = 16 << 20
