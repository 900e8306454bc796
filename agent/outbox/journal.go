package outbox

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"dev.muster/cluster"
	"dev.muster/wire"
)

// maxJournal is the size at which a journal begins again. The one before is kept, so that some ten thousand jobs are
// remembered.
const maxJournal = 8 << 20

// Attempt names one attempt of a job on one node.
type Attempt struct {
	Job     cluster.JobID
	Attempt int
	Node    cluster.NodeName
}

// journal remembers how attempts ended here after the servers have been told: if their state is brought back from
// an older file they ask for it again.
type journal struct {
	mu   sync.Mutex
	path string
	file *os.File
	size int64
	at   map[Attempt]place
	next cluster.JobID // one more than the highest number of a job in it
}

// place is where the last line of an attempt is.
type place struct {
	old    bool // in the journal before
	offset int64
}

// journalLine is what was told of one attempt on one node, by one report.
type journalLine struct {
	Node    cluster.NodeName `json:"node"`
	Updates []cluster.Update `json:"updates"`
	// Before is where what was told before is, in the same file; -1: nothing.
	Before int64 `json:"before"`
}

// openJournal opens the journal of a folder.
func openJournal(dir string) (*journal, error) {
	j := &journal{path: filepath.Join(dir, "ended"), at: map[Attempt]place{}}
	for _, old := range []bool{true, false} {
		if _, err := j.load(old); err != nil {
			return nil, err
		}
	}
	f, err := os.OpenFile(j.path, os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open the journal of what ended here: %w", err)
	}
	info, err := f.Stat()
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	j.file, j.size = f, info.Size()
	return j, nil
}

func (j *journal) name(old bool) string {
	if old {
		return j.path + ".1"
	}
	return j.path
}

// load reads where what is. A line that a crash cut off is left out.
func (j *journal) load(old bool) (int64, error) {
	f, err := os.Open(j.name(old))
	if errors.Is(err, os.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	defer f.Close()
	at, dec := int64(0), wire.Decoder{}
	for in := bufio.NewReader(f); ; {
		text, err := in.ReadBytes('\n')
		if err != nil {
			return at, nil
		}
		var l journalLine
		if dec.Decode(text, &l) == nil && len(l.Updates) > 0 {
			j.note(&l, place{old, at})
		}
		at += int64(len(text))
	}
}

func (j *journal) note(l *journalLine, p place) {
	u := l.Updates[0]
	j.at[Attempt{u.Job, u.Attempt, l.Node}] = p
	j.next = max(j.next, u.Job+1)
}

// Put remembers what is told of attempts that end, each by itself.
func (j *journal) Put(n cluster.NodeName, updates []cluster.Update) error {
	by := map[Attempt][]cluster.Update{}
	var keys []Attempt
	for _, u := range updates {
		key := Attempt{u.Job, u.Attempt, n}
		if by[key] == nil {
			keys = append(keys, key)
		}
		by[key] = append(by[key], u)
	}
	keys = slices.DeleteFunc(keys, func(k Attempt) bool {
		return !slices.ContainsFunc(by[k], func(u cluster.Update) bool { return u.Kind.Final() })
	})
	if len(keys) == 0 {
		return nil
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.size > maxJournal {
		if err := j.renew(); err != nil {
			return err
		}
	}
	for _, key := range keys {
		if err := j.write(&journalLine{Node: n, Updates: by[key], Before: j.before(key)}); err != nil {
			return err
		}
	}
	return nil
}

// before is where something was told of an attempt already; what is in the older file is told by it alone.
func (j *journal) before(key Attempt) int64 {
	if p, ok := j.at[key]; ok && !p.old {
		return p.offset
	}
	return -1
}

func (j *journal) write(l *journalLine) error {
	text, err := wire.Marshal(l)
	if err != nil {
		return err
	}
	n, err := j.file.Write(append(text, '\n'))
	if err == nil {
		j.note(l, place{false, j.size})
	}
	j.size += int64(n)
	return err
}

// renew begins another file.
func (j *journal) renew() error {
	if err := os.Rename(j.path, j.name(true)); err != nil {
		return err
	}
	f, err := os.OpenFile(j.path, os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	err = j.file.Close()
	j.file, j.size = f, 0
	for key, p := range j.at {
		if p.old {
			delete(j.at, key)
		} else {
			j.at[key] = place{true, p.offset}
		}
	}
	return err
}

// Has reports whether an attempt has ended here.
func (j *journal) Has(key Attempt) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	_, ok := j.at[key]
	return ok
}

// Highest is one more than the highest number of a job that ended here.
func (j *journal) Highest() cluster.JobID {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.next
}

// Ended is all that was told of an attempt that has ended here, in its order.
func (j *journal) Ended(key Attempt) (out []cluster.Update, err error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	p, ok := j.at[key]
	if !ok {
		return nil, nil
	}
	f, err := os.Open(j.name(p.old))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	for at := p.offset; at >= 0; {
		if _, err := f.Seek(at, 0); err != nil {
			return nil, err
		}
		text, err := bufio.NewReader(f).ReadBytes('\n')
		if err != nil {
			return nil, fmt.Errorf("read %s at %d: %w", f.Name(), at, err)
		}
		var l journalLine
		if err := wire.Unmarshal(text, &l); err != nil {
			return nil, fmt.Errorf("read %s at %d: %w", f.Name(), at, err)
		}
		out = append(slices.Clip(l.Updates), out...)
		if l.Before >= at {
			break // a damaged line leads nowhere
		}
		at = l.Before
	}
	return out, nil
}

// Close closes the file.
func (j *journal) Close() error {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.file.Close()
}
