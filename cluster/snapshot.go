package cluster

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"time"

	"dev.muster/wire"
)

// snapshotVersion is the version of Encode's format.
const snapshotVersion = 1

// maxRecord bounds one line: an array of millions of tasks or a large script fits many times.
const maxRecord = 1 << 30

type snapshotHead struct {
	Version int       `json:"version"`
	Level   int       `json:"level,omitempty"`
	Index   uint64    `json:"index"`
	Now     time.Time `json:"now"`
	NextID  JobID     `json:"next_id"`

	NextAssoc AssocID   `json:"next_assoc,omitempty"`
	Decayed   time.Time `json:"decayed,omitzero"`

	LastHook uint64   `json:"last_errand,omitempty"`
	Retained Retained `json:"retained,omitzero"`

	Restored *Restored `json:"restored,omitempty"`

	Config  *Config        `json:"config"`
	Configs []ConfigChange `json:"configs,omitempty"` // its history
}

// Encode writes the snapshot as JSON lines in one order: two servers with the same state write
// the same bytes. Derived tables are not written.
func (s *Snapshot) Encode(w io.Writer) error {
	buf := bufio.NewWriterSize(w, 1<<16)
	var line []byte
	var err error
	put := func(v any) bool {
		if err == nil {
			line, err = wire.Append(line[:0], v)
		}
		if err == nil {
			_, err = buf.Write(append(line, '\n'))
		}
		return err == nil
	}
	put(&snapshotHead{
		Version:   snapshotVersion,
		Level:     s.level,
		Index:     s.Index,
		Now:       s.Now,
		NextID:    s.NextID,
		NextAssoc: s.NextAssoc,
		Decayed:   s.Decayed,
		LastHook:  s.LastHook,
		Retained:  s.Retained,
		Restored:  s.restored,
		Config:    s.config,
		Configs:   s.configs,
	})
	for i := range tableRows {
		if table := tableRows[i].stored; table != nil {
			table.write(&s.tables, put)
		}
	}
	return errors.Join(err, buf.Flush())
}

// Decode reads what Encode wrote and derives the rest. Derived tables trust the records: where they do not fit
// together, as in a file that was written over in part, that is an error too.
func Decode(r io.Reader) (_ *State, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("decode snapshot: its records do not fit together: %v", p)
		}
	}()
	lines := bufio.NewScanner(r)
	lines.Buffer(make([]byte, 1<<16), maxRecord)
	lines.Scan()
	var head snapshotHead
	if err := errors.Join(lines.Err(), wire.UnmarshalStrict(lines.Bytes(), &head)); err != nil {
		return nil, fmt.Errorf("decode snapshot: %w", newer(err))
	}
	if err := checkLevel(head.Level); err != nil {
		return nil, fmt.Errorf("decode snapshot: %w", err)
	}
	if head.Level < First {
		return nil, fmt.Errorf("decode snapshot: a version from before 0.1 wrote it, which this one cannot read")
	}
	if head.Version != snapshotVersion || head.Config == nil {
		return nil, fmt.Errorf("snapshot has version %d, this binary knows %d", head.Version, snapshotVersion)
	}
	s := NewState()
	s.level = head.Level
	s.Index = head.Index
	s.Now = head.Now
	s.NextID = head.NextID
	s.config = head.Config
	s.NextAssoc = head.NextAssoc
	s.Decayed = head.Decayed
	s.LastHook = head.LastHook
	s.Retained = head.Retained
	s.configs = head.Configs
	s.restored = head.Restored
	var dec wire.Decoder // many jobs have the same specification
	for lines.Scan() {
		var rec snapshotRecord
		if err := dec.DecodeStrict(lines.Bytes(), &rec); err != nil {
			return nil, fmt.Errorf("decode snapshot: %w", newer(err))
		}
		takeRecord(&s.tables, &rec)
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("decode snapshot: %w", err)
	}
	for j := range s.Jobs() {
		s.index(j)
		s.regain(j)
	}
	s.tally()
	for j := range s.Jobs() { // a heterogeneous job's clocks depend on all its records
		if j.Phase == Ended && j.Het != nil {
			s.unindex(j)
			s.index(j)
		}
	}
	return s, nil
}

// takeRecord puts a decoded record into its table; jobs are indexed when all are there.
func takeRecord(t *tables, rec *snapshotRecord) {
	for i := range tableRows {
		if s := tableRows[i].stored; s != nil && s.holds(rec) {
			s.take(t, rec)
			return
		}
	}
}

// regain adds a decoded job's shares to the loads.
func (t *tables) regain(j *Job) {
	if !j.holds() || j.Alloc == nil {
		return
	}
	for _, sh := range j.HeldShares() {
		l := *t.Load(sh.Node)
		l.hold(j, &sh)
		l.Jobs = append(l.Jobs, j.ID)
		t.loads.Set(sh.Node, &l)
	}
}
