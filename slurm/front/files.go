package front

import (
	"errors"
	"io"
	"os"
	"strings"
	"syscall"
)

// errElsewhere is why a file is not read.
var errElsewhere = errors.New("files are not read for a request from elsewhere: give what is in it")

// ReadFile reads a file that the user has named, of at most limit bytes.
func (s *Sys) ReadFile(file string, limit int64) ([]byte, error) {
	if s.NoFiles {
		return nil, errElsewhere
	}
	return ReadFileLimited(file, limit)
}

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
