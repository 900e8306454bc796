// Package userfile opens the files that a user names, in a process that has no rights but that user's.
//
// The supervisor runs as root. A path that a user chooses must not be resolved by one of its threads: even a thread
// that has taken on the user's file system IDs keeps root's effective ID and capabilities, and /proc/self shows it
// what the supervisor has open. So a process of the user resolves each path, opens the file and sends the descriptor
// (SCM_RIGHTS, unix(7)). Pool starts such processes and keeps them for the user's next step; Serve is the process.
package userfile

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// Identity is the user whose rights count.
type Identity struct {
	UID    uint32   `json:"uid"`
	GID    uint32   `json:"gid"`
	Groups []uint32 `json:"groups"`
}

// Op names what a Request asks for.
type Op string

const (
	// become makes a process the user's; the descriptor of a mount namespace may come with it.
	become Op = "become"
	// Enter makes Path the directory that relative paths start from, with Umask from then on, and returns a descriptor
	// of it (O_PATH). If that fails, they start from /tmp, whose descriptor comes with the error.
	Enter Op = "enter"
	// Write opens a file to write to. It creates missing folders on the way, and never waits for a reader.
	Write Op = "write"
	// Append opens a file to append to, if there is one.
	Append Op = "append"
	// Read opens a file to read from. It waits WriterTime for a writer of a named pipe.
	Read Op = "read"
	// Find returns how execve(2) is to be told of the program Path, which it looks for in the folders of Search.
	Find Op = "find"
	// Interpreter returns what the first line of a script names, or "".
	Interpreter Op = "interpreter"
	// Say writes Text to Descriptor, unless it would have to wait for a reader.
	Say Op = "say"
)

// Request is one thing that a process is asked for.
type Request struct {
	Op   Op     `json:"op"`
	Path string `json:"path,omitempty"`
	// Search is a PATH, for Find.
	Search string `json:"search,omitempty"`
	// Umask is for Enter.
	Umask uint32 `json:"umask,omitempty"`
	// Keep has Write not truncate the file.
	Keep bool `json:"keep,omitempty"`
	// Text is for Say.
	Text string `json:"text,omitempty"`
	// Descriptor is for Say, which must be the only request of its message.
	Descriptor int `json:"-"`
	// As is for become.
	As *Identity `json:"as,omitempty"`
}

// Result is what came of a Request.
type Result struct {
	FD   int // the caller's to close; -1: none
	Text string
	Err  error // the kernel's number (unix.Errno) where it has one
}

// Files opens files with a user's rights.
type Files interface {
	// Do carries out requests in their order, each whatever became of the others. There are as many results, unless
	// nothing could be asked (ErrEnded).
	Do(requests ...Request) ([]Result, error)
}

// Local opens files with the rights of the calling thread, whose directory and umask must be its own (CLONE_FS). It is
// for users who have those rights anyway: root, and the only user of a supervisor that is not root's.
type Local struct{}

// Do is described by Files.
func (Local) Do(requests ...Request) ([]Result, error) {
	results := make([]Result, len(requests))
	for i := range requests {
		results[i] = perform(&requests[i], requests[i].Descriptor)
	}
	return results, nil
}

// perform carries out one request with the rights of the calling thread.
func perform(q *Request, descriptor int) (r Result) {
	r.FD = -1
	switch q.Op {
	case Enter:
		r.FD, r.Err = enter(q.Path, q.Umask)
	case Write:
		r.FD, r.Err = openOutput(q.Path, q.Keep)
	case Append:
		r.FD, r.Err = openToWrite(q.Path, unix.O_WRONLY|unix.O_APPEND)
	case Read:
		r.FD, r.Err = openInput(q.Path)
	case Find:
		r.Text, r.Err = findProgram(q.Path, q.Search)
	case Interpreter:
		r.Text = interpreter(q.Path)
	case Say:
		r.Err = say(descriptor, q.Text)
	default:
		r.Err = fmt.Errorf("unknown request: %q", q.Op)
	}
	return r
}

// answer is a Result on its way.
type answer struct {
	HasFD bool   `json:"fd,omitempty"`
	Text  string `json:"text,omitempty"`
	Errno int    `json:"errno,omitempty"`
	// Fault words an error that has no number.
	Fault string `json:"fault,omitempty"`
}

func answerOf(r *Result) answer {
	a := answer{HasFD: r.FD >= 0, Text: r.Text}
	var no unix.Errno
	switch {
	case errors.As(r.Err, &no):
		a.Errno = int(no)
	case r.Err != nil:
		a.Fault = r.Err.Error()
	}
	return a
}

func (a *answer) error() error {
	switch {
	case a.Errno != 0:
		return unix.Errno(a.Errno)
	case a.Fault != "":
		return errors.New(a.Fault)
	}
	return nil
}

// Bounds of a message in bytes: PATH may be long. The kernel's default buffer of a socket has room for it.
const (
	maxMessage = 160 << 10
	maxAnswer  = 32 << 10
	// maxRights is how many descriptors come with one (SCM_MAX_FD is 253).
	maxRights = 64
)

// MaxRequests bounds the requests of one message.
const MaxRequests = maxRights

// pathError is an error of a path; nil stays nil.
func pathError(op, path string, err error) error {
	if err == nil {
		return nil
	}
	return &os.PathError{Op: op, Path: path, Err: err}
}
