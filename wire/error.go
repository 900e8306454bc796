package wire

import (
	"errors"
	"strconv"
)

// ErrUnknown is behind the error of a strict decoding that met a member its type knows nothing of.
var ErrUnknown = errors.New("unknown field")

// Error says what is wrong with a text or a value, and where.
type Error struct {
	Path   string // of the value, as "jobs[3].spec.time"; empty for the whole
	Offset int    // of the byte in the text; negative where there is none
	Text   string
	Err    error // of a type's own method
}

// Error is one line: path, what is wrong, and the byte.
func (e *Error) Error() string {
	s := e.Text
	if e.Err != nil {
		s += e.Err.Error()
	}
	if e.Path != "" {
		s = e.Path + ": " + s
	}
	if e.Offset >= 0 {
		s += " at byte " + strconv.Itoa(e.Offset)
	}
	return s
}

// Unwrap returns the error of a type's own method.
func (e *Error) Unwrap() error { return e.Err }

// maxPath bounds the path of an error in types that contain themselves.
const maxPath = 1 << 10

// within adds to the error in front of which member it happened.
func within(err error, step string) error {
	var e *Error
	if !errors.As(err, &e) {
		return &Error{Path: step, Offset: -1, Err: err}
	}
	switch {
	case len(e.Path) > maxPath:
	case e.Path == "" || e.Path[0] == '[':
		e.Path = step + e.Path
	default:
		e.Path = step + "." + e.Path
	}
	return e
}

// atIndex is the step of a list's element.
func atIndex(err error, i int) error { return within(err, "["+strconv.Itoa(i)+"]") }
