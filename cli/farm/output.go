package farm

import (
	"io"
	"os"
)

// keptOutput bounds what is kept in memory of a task's output, in bytes; the rest is kept in a file.
const keptOutput = 16 << 10

// outputs keeps what tasks write until they are over, so that the output of each stays whole.
type outputs struct {
	out, err io.Writer
	inOrder  bool
	tasks    map[int]*output
	waiting  []int // in the order of the list, where that is asked for
}

// output is what one task has written.
type output struct {
	out, err kept
	over     bool
}

// begin makes a task's output follow those that began before.
func (o *outputs) begin(number int) {
	if o.inOrder {
		o.waiting = append(o.waiting, number)
	}
}

// farAhead reports whether so many tasks wait with their output that no other may begin.
func (o *outputs) farAhead() bool { return len(o.waiting) >= orderWindow }

func (o *outputs) of(number int) *output {
	if o.tasks == nil {
		o.tasks = map[int]*output{}
	}
	t := o.tasks[number]
	if t == nil {
		t = &output{}
		o.tasks[number] = t
	}
	return t
}

// add keeps a part of a task's output.
func (o *outputs) add(number int, out, err []byte) error {
	t := o.of(number)
	if failed := t.out.add(out); failed != nil {
		return failed
	}
	return t.err.add(err)
}

// drop forgets what an attempt has written.
func (o *outputs) drop(number int) error {
	if t := o.tasks[number]; t != nil {
		t.out.close()
		t.err.close()
		delete(o.tasks, number)
	}
	return nil
}

// end writes the output of a task that is over, if it is its turn, and of those that waited for it.
func (o *outputs) end(number int) error {
	if !o.inOrder {
		return o.write(number)
	}
	o.of(number).over = true
	for len(o.waiting) > 0 {
		first := o.waiting[0]
		if t := o.tasks[first]; t == nil || !t.over {
			return nil
		}
		o.waiting = o.waiting[1:]
		if err := o.write(first); err != nil {
			return err
		}
	}
	return nil
}

func (o *outputs) write(number int) error {
	t := o.tasks[number]
	if t == nil {
		return nil
	}
	defer func() { _ = o.drop(number) }()
	if err := t.out.writeTo(o.out); err != nil {
		return err
	}
	return t.err.writeTo(o.err)
}

func (o *outputs) close() {
	for number := range o.tasks {
		_ = o.drop(number)
	}
}

// kept is text in memory, and what is too long for it in a file without a name.
type kept struct {
	text []byte
	file *os.File
}

func (k *kept) add(b []byte) (err error) {
	if k.file == nil && len(k.text)+len(b) <= keptOutput {
		k.text = append(k.text, b...)
		return nil
	}
	if k.file == nil {
		if k.file, err = os.CreateTemp("", "muster-farm-"); err != nil {
			return err
		}
		if err = os.Remove(k.file.Name()); err != nil {
			return err
		}
	}
	_, err = k.file.Write(b)
	return err
}

func (k *kept) writeTo(w io.Writer) error {
	if _, err := w.Write(k.text); err != nil {
		return err
	}
	if k.file == nil {
		return nil
	}
	if _, err := k.file.Seek(0, io.SeekStart); err != nil {
		return err
	}
	_, err := io.Copy(w, k.file)
	return err
}

func (k *kept) close() {
	if k.file != nil {
		k.file.Close()
	}
}
