package supervisor

import (
	"bytes"
	"os"
)

// longestLine bounds what is kept of a line that does not end, in bytes; beyond it a line is cut in two.
const longestLine = 1 << 20

// labelledFile is an output file into which the supervisor writes a task's whole lines, each with a label before
// it: what srun -l promises, where the file lies at the node.
type labelledFile struct {
	f     *os.File // O_APPEND; tasks of the same file have it open each for itself
	label string
	begun []byte // of a line that has not ended yet
}

// write writes the complete lines of the task's output, and copies the rest once, however many lines there are.
func (w *labelledFile) write(data []byte) {
	w.begun = append(w.begun, data...)
	rest := w.begun
	for {
		i := bytes.IndexByte(rest, '\n')
		if i < 0 && len(rest) < longestLine {
			if len(rest) < len(w.begun) {
				w.begun = append([]byte(nil), rest...)
			}
			return
		}
		if i < 0 {
			rest = append(rest, '\n')
			i = len(rest) - 1
		}
		w.put(rest[:i+1])
		rest = rest[i+1:]
	}
}

// put writes one line; what the file system refuses is lost, as it is for a task that looks at no error.
func (w *labelledFile) put(line []byte) {
	_, _ = w.f.Write(append([]byte(w.label), line...))
}

// end writes the line that was begun, and closes the file.
func (w *labelledFile) end() {
	if len(w.begun) > 0 {
		w.put(append(w.begun, '\n'))
	}
	w.f.Close()
}
