package supervisor

import (
	"log/slog"

	"dev.muster/agent/step"
	"dev.muster/agent/userfile"
	"dev.muster/api/stream"
	"golang.org/x/sys/unix"
)

// maxSay bounds a line of the node's own.
const maxSay = 4 << 10

// say writes text where the standard error of the step's first task leads: into its stream, or,
// by a launcher with the user's rights, at the end of its file.
func (s *supervisor) say(id step.ID, text string, ends bool) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.steps[id]
	if r == nil {
		return step.ErrUnknown
	}
	s.tell(r, text, ends, nil)
	return nil
}

// tell is say for a step; done is closed when it is said, or need not be. mu is held.
func (s *supervisor) tell(r *run, text string, ends bool, done chan struct{}) {
	if len(r.tasks) == 0 || text == "" || len(text) > maxSay {
		text = ""
	}
	to := step.IO{}
	if text != "" {
		to = r.spec.Tasks[0].ErrorsTo()
	}
	switch to.Kind {
	case step.Stream:
		r.out.say([]byte(text), ends)
	case step.File:
		s.queue(chore{r: r, text: text, done: done})
		return
	}
	if done != nil {
		close(done)
	}
}

// say appends a line to the file of the first task's standard error.
func (l *launcher) say(r *run, text string) {
	if l.isOwn(r) != nil {
		return
	}
	to := r.spec.Tasks[0].ErrorsTo()
	files := l.files(r)
	defer files.end()
	opened := files.one(userfile.Request{Op: userfile.Append, Path: to.Path})
	if opened.Err != nil {
		slog.Debug("a line could not be written", "path", to.Path, "err", opened.Err)
		return
	}
	defer unix.Close(opened.FD)
	files.say(opened.FD, text)
}

// say adds a line of the node's own to the stream: output of no single task.
func (o *output) say(text []byte, ends bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	task := int32(stream.OfNode)
	if ends {
		task = stream.AllTasks
	}
	if !o.done && o.bytes < 2*MaxUnacked { // else nobody reads it
		o.put(stream.Stderr, task, text)
	}
}
