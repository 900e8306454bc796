package adopt

import (
	"cmp"
	"errors"
	"fmt"
	"io"

	"dev.muster/adopt/dump"
	"dev.muster/cluster"
	"dev.muster/wire"
)

// Run is one run of a job with its steps, as records and as their texts.
type Run struct {
	Job   *cluster.Job
	Texts []wire.RawMessage // of the job, then of its steps
	Taken int64             // rows of jobs up to this one
}

// Refused is a row that cannot be taken over, and why.
type Refused struct {
	Table string `json:"table"`
	Row   int64  `json:"row"` // of the table, from 1 on
	Index uint64 `json:"job_db_inx,omitempty"`
	Job   uint32 `json:"job,omitempty"`
	Step  string `json:"step,omitempty"`
	Name  string `json:"name,omitempty"` // of a record of accounting
	Why   string `json:"why"`
}

// stream is the rows of a table in the order of job_db_inx, with the next one read ahead.
type stream struct {
	table *dump.Table
	rows  *dump.Rows
	at    columns
	row   *row // nil behind the last one
	index uint64
	n     int64
}

func (s *Source) stream(t *dump.Table) (*stream, error) {
	rows, err := s.all.Rows(t)
	if err != nil {
		return nil, err
	}
	return &stream{table: t, rows: rows, at: columnsOf(t)}, nil
}

// errOrder says that rows are not in the order of their keys.
var errOrder = errors.New("its rows are not in the order of their keys: make the dump again with --order-by-primary")

// next reads the next row.
func (s *stream) next() error {
	r, err := s.rows.Next()
	if errors.Is(err, io.EOF) {
		s.row = nil
		return nil
	}
	if err != nil {
		return err
	}
	s.n++
	s.row = newRow(s.at, r)
	before := s.index
	if r.Bad == nil {
		s.index = s.row.number("job_db_inx", 64)
	}
	if s.index < before {
		return fmt.Errorf("table %s: row %d: %w", s.table.Name, s.n, errOrder)
	}
	return nil
}

// refused describes the row that was read last.
func (s *stream) refused(err error) Refused {
	clean := newRow(s.at, &dump.Row{Values: s.row.values})
	return Refused{Table: s.table.Name, Row: s.n, Index: s.index, Job: clean.count("id_job"),
		Step: fmt.Sprintf("%.20s", clean.text("id_step")), Why: err.Error()}
}

// Runs yields the jobs of a source with their steps, behind so many rows of jobs. Rows that changed before a time are
// passed over with their steps. refuse gets the rows that cannot be taken over; an error of it, or of the other
// functions, ends the sequence.
func (s *Source) Runs(passed, since int64, yield func(*Run) error, refuse func(Refused) error) (err error) {
	jobs, err := s.stream(s.jobs)
	if err != nil {
		return err
	}
	defer jobs.rows.Close()
	steps, err := s.stream(s.steps)
	if err != nil {
		return err
	}
	defer steps.rows.Close()
	for err = cmp.Or(jobs.next(), steps.next()); err == nil && jobs.row != nil; err = cmp.Or(err, jobs.next()) {
		m := merger{Source: s, jobs: jobs, steps: steps, refuse: refuse}
		m.skip = jobs.n <= passed
		m.old = !m.skip && jobs.row.err == nil && jobs.row.seconds("mod_time") < since
		var run *Run
		if run, err = m.run(); err == nil && run != nil {
			err = yield(run)
		}
	}
	for ; err == nil && steps.row != nil; err = cmp.Or(err, steps.next()) {
		err = refuse(steps.refused(errNoJob))
	}
	return err
}

var errNoJob = errors.New("the job table has no row of its job")

// merger makes one run of a row of the job table and of the rows of its steps.
type merger struct {
	*Source
	jobs, steps *stream
	skip, old   bool // it was sent before; it did not change
	refuse      func(Refused) error
}

// run returns nil for a job that is refused or passed over.
func (m *merger) run() (*Run, error) {
	var run *Run
	if !m.skip && !m.old {
		j := m.job(m.jobs.row)
		text, err := encode(m.jobs.row, j)
		if err == nil {
			err = cluster.CheckImported(m.Cluster, j, nil, len(text))
		}
		if err != nil {
			err = m.refuse(m.jobs.refused(err))
		} else {
			run = &Run{Job: j, Texts: []wire.RawMessage{text}, Taken: m.jobs.n}
		}
		if err != nil {
			return nil, err
		}
	}
	for m.steps.row != nil && (m.steps.index <= m.jobs.index) {
		if err := m.addStep(run); err != nil {
			return nil, err
		}
		if err := m.steps.next(); err != nil {
			return nil, err
		}
	}
	return run, nil
}

// addStep adds the step that was read last to a run, or refuses it.
func (m *merger) addStep(run *Run) error {
	switch {
	case m.steps.index < m.jobs.index && m.skip:
		return nil
	case m.steps.index < m.jobs.index:
		return m.refuse(m.steps.refused(errNoJob))
	case run == nil && (m.skip || m.old):
		return nil
	case run == nil:
		return m.refuse(m.steps.refused(errors.New("its job is refused")))
	}
	st := m.step(m.steps.row, run.Job)
	text, err := encode(m.steps.row, st)
	if err == nil {
		err = cluster.CheckImported(m.Cluster, nil, st, len(text))
	}
	if err != nil {
		return m.refuse(m.steps.refused(err))
	}
	run.Texts = append(run.Texts, text)
	return nil
}

// encode makes the text of a record, unless its row is to be refused.
func encode(r *row, v any) ([]byte, error) {
	if r.err != nil {
		return nil, r.err
	}
	return wire.Marshal(v)
}
