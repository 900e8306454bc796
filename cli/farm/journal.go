package farm

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"
)

// journalHead is the first line of a journal.
const journalHead = "task\tattempt\tcode\tsignal\tbegan\tseconds\tnode\tcommand\n"

// Journal has a line for each attempt of a task that is over. It is written at once, so that it outlives the process.
type Journal struct {
	file *os.File
	done map[int]uint64 // tasks that succeeded, with the marks of their commands
}

// OpenJournal opens a journal, or begins one. With resume, the tasks that it has as done are not run again; without,
// a journal that exists is an error.
func OpenJournal(path string, resume bool) (*Journal, error) {
	flags := os.O_RDWR | os.O_CREATE | os.O_APPEND
	if !resume {
		flags |= os.O_EXCL
	}
	f, err := os.OpenFile(path, flags, 0o666)
	if errors.Is(err, os.ErrExist) {
		return nil, fmt.Errorf("%w: continue with --resume, or remove it", err)
	}
	if err != nil {
		return nil, err
	}
	j := &Journal{file: f, done: map[int]uint64{}}
	if err := j.read(); err != nil {
		f.Close()
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return j, nil
}

// read takes in what is done. A last line that was not written to its end is closed, and counts for nothing.
func (j *Journal) read() error {
	in := bufio.NewReader(j.file)
	for n := 1; ; n++ {
		line, err := in.ReadString('\n')
		if errors.Is(err, io.EOF) {
			return j.finish(n, line)
		}
		if err != nil {
			return err
		}
		if n == 1 && line != journalHead {
			return errors.New("this is no journal of muster farm")
		}
		fields := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		if len(fields) != strings.Count(journalHead, "\t")+1 || fields[2] != "0" || fields[3] != "0" {
			continue
		}
		number, err := strconv.Atoi(fields[0])
		mark, err2 := strconv.ParseUint(fields[7], 16, 64)
		if err == nil && err2 == nil {
			j.done[number] = mark
		}
	}
}

// finish makes what follows begin on a line of its own.
func (j *Journal) finish(lines int, rest string) error {
	text := ""
	switch {
	case lines == 1 && rest == "":
		text = journalHead
	case lines == 1:
		return errors.New("this is no journal of muster farm")
	case rest != "":
		text = "\n"
	}
	_, err := j.file.WriteString(text)
	return err
}

// has reports whether a task is done; an error if the journal knows another command by its number.
func (j *Journal) has(t *task) (bool, error) {
	if j == nil {
		return false, nil
	}
	mark, done := j.done[t.number]
	if done && mark != t.mark() {
		return false, fmt.Errorf("task %d is another command than the journal %s has: "+
			"give the list that the journal was begun with, or another journal", t.number, j.file.Name())
	}
	return done, nil
}

// add writes down an attempt that is over.
func (j *Journal) add(t *task, d *doneMessage, node string) error {
	if j == nil {
		return nil
	}
	began := time.UnixMilli(d.Began).UTC().Format(time.RFC3339)
	_, err := fmt.Fprintf(j.file, "%d\t%d\t%d\t%d\t%s\t%.3f\t%s\t%x\n",
		t.number, t.attempt, d.Code, d.Signal, began, float64(d.Millis)/1000, node, t.mark())
	return err
}

// Close closes the journal.
func (j *Journal) Close() error {
	if j == nil {
		return nil
	}
	return j.file.Close()
}
