package step

import (
	"os"
	"syscall"

	"dev.muster/agent/step/stream"
	"golang.org/x/sys/unix"
)

// sayRequest asks to write a line where the errors of a step go.
type sayRequest struct {
	ID   ID     `json:"id"`
	Text string `json:"text"`
}

// Say writes text where the errors of the step's first task here go: to srun, or to the file.
func (r *Remote) Say(id ID, text string) error {
	_, err := r.callJSON(msgSay, sayRequest{id, text}, false)
	return err
}

func (s *supervisor) say(id ID, text string) error {
	s.mu.Lock()
	r := s.steps[id]
	if r == nil {
		s.mu.Unlock()
		return ErrUnknown
	}
	if r.state == Ended || len(r.spec.Tasks) == 0 {
		s.mu.Unlock()
		return unix.ESRCH
	}
	t, uid, out := r.spec.Tasks[0], r.spec.UID, r.out
	s.mu.Unlock()
	to := t.Stderr
	if to.Kind == Same {
		to = t.Stdout
	}
	switch to.Kind {
	case Stream:
		out.mu.Lock()
		defer out.mu.Unlock()
		out.put(stream.Stderr, int32(t.Rank), []byte(text))
		return nil
	case File:
		return appendOwn(to.Path, uid, text)
	}
	return nil
}

// appendOwn adds text to a regular file that belongs to the user; it follows no link and makes no file.
func appendOwn(path string, uid uint32, text string) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil {
		return err
	}
	if sys, ok := st.Sys().(*syscall.Stat_t); !ok || !st.Mode().IsRegular() || sys.Uid != uid {
		return unix.EPERM
	}
	_, err = f.WriteString(text)
	return err
}
