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

// write adds what the task wrote, up to its last newline.
func (w *labelledFile) write(data []byte) {
	w.begun = append(w.begun, data...)
	for {
		i := bytes.IndexByte(w.begun, '\n')
		if i < 0 && len(w.begun) < longestLine {
			return
		}
		if i < 0 {
			w.begun = append(w.begun, '\n')
			i = len(w.begun) - 1
		}
		w.put(w.begun[:i+1])
		w.begun = append([]byte(nil), w.begun[i+1:]...)
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
