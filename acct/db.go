// Package acct is history: a SQLite projection of the cluster's events, and its queries. The
// projection is a pure function of the events; the index up to which it has taken them is stored
// in the same transaction, so that taking an event twice changes nothing.
package acct

import (
	"context"
	"database/sql"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"dev.muster/cluster"
)

// Limits of the projection.
const (
	gatherTime = 500 * time.Millisecond // events are gathered this long, unless somebody waits, then written together
	maxQueued  = 1 << 16                // events waiting; beyond that the log waits for the disk
	maxRested  = 4096                   // events that are written with rests
	workTime   = 2 * time.Millisecond   // between rests
	readers    = 4
	checkTime  = 300 * time.Millisecond // a file is checked for damage so long when it is opened: that is some ten thousand jobs
	quietTime  = 10 * time.Second       // after it without a write the memory of SQLite's pages is given back
)

// DB is the history of one server.
type DB struct {
	log  *slog.Logger
	path string

	files   sync.RWMutex // held for reading by whoever reads the file, for writing while it is replaced
	r       *sql.DB
	writing sync.Mutex // held while the file changes; taken after files
	w       *sql.DB

	mu     sync.Mutex
	queue  []batch
	queued int               // weight of the events in queue
	gone   int               // batches that were in it before
	rests  map[jobKey][2]int // of arrays, the batches with the first and the last record of what still waits, counted with those gone
	index  uint64            // of the newest events queued
	done   uint64            // of the newest events on disk
	lacks  bool              // the past before this file began is not here yet (whole.go)
	moved  chan struct{}
	more   chan struct{}
	hurry  chan struct{} // somebody waits: do not gather

	sweeping bool // rows may be left that are forgotten (retain.go); mu holds it

	asking chan struct{} // has one for each question in SQL that is being answered
}

// batch is what one log index brought.
type batch struct {
	index  uint64
	events []cluster.Event
}

// Apply queues the events of one log index. Indexes at or below what is stored are ignored. It
// waits only when maxQueued events are not yet written.
func (d *DB) Apply(index uint64, events []cluster.Event) {
	for {
		d.mu.Lock()
		if index <= d.index {
			d.mu.Unlock()
			return
		}
		if d.queued < maxQueued {
			break
		}
		moved := d.moved
		d.mu.Unlock()
		poke(d.hurry)
		<-moved
	}
	d.queue = append(d.queue, batch{index, d.newest(events)})
	d.queued += weigh(events)
	d.index = index
	d.mu.Unlock()
	poke(d.more)
}

// newest returns the events of a batch that joins the queue, and takes out of it what was told between the first
// and these of the tasks of an array that wait: each start tells of them again, of an array of a million they are a
// bit each, and the last record of a job is what is stored. Called with mu held.
func (d *DB) newest(events []cluster.Event) []cluster.Event {
	own, here := false, d.gone+len(d.queue)
	for i := range events {
		j := events[i].Job
		if j == nil || j.Phase != cluster.Pending || j.Tasks.Empty() {
			continue
		}
		if !own {
			events, own = slices.Clone(events), true
		}
		key := keyOfJob(j)
		at, ok := d.rests[key]
		if !ok {
			at = [2]int{here, here}
		} else if last := at[1]; last > at[0] && last < here {
			for k, e := range d.queue[last-d.gone].events {
				if e.Job != nil && keyOfJob(e.Job) == key {
					d.queue[last-d.gone].events[k].Job = nil
				}
			}
		}
		at[1] = here
		d.rests[key] = at
	}
	return events
}

func poke(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// Flush returns once everything applied before is in the file; a loss of power may take the newest of it away.
func (d *DB) Flush(ctx context.Context) error {
	d.mu.Lock()
	want := d.index // what comes meanwhile may never end
	d.mu.Unlock()
	for {
		d.mu.Lock()
		done, moved := d.done >= want, d.moved
		d.mu.Unlock()
		if done {
			return nil
		}
		poke(d.hurry)
		select {
		case <-moved:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// Reached returns the index of the newest entry of the log whose events are in the file.
func (d *DB) Reached() uint64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.done
}

// Sync returns once everything applied before is on the disk for good: a commit whose synchronous is FULL waits for
// it and for all commits before it (https://www.sqlite.org/pragma.html#pragma_synchronous).
func (d *DB) Sync(ctx context.Context) error {
	if err := d.Flush(ctx); err != nil {
		return err
	}
	d.files.RLock()
	defer d.files.RUnlock()
	d.writing.Lock()
	defer d.writing.Unlock()
	for _, q := range []string{
		"PRAGMA synchronous = FULL",
		"INSERT INTO meta VALUES ('synced', 1) ON CONFLICT (key) DO UPDATE SET value = value + 1",
		"PRAGMA synchronous = NORMAL",
	} {
		if _, err := d.w.ExecContext(ctx, q); err != nil {
			return fmt.Errorf("sync history: %w", err)
		}
	}
	return nil
}

type jobKey struct {
	job       cluster.JobID
	submitted int64
}

type stepKey struct {
	id      cluster.StepID
	attempt int
	started int64
}

// recordOf is the record of a job that an event tells of, if any.
func recordOf(e *cluster.Event) *cluster.Job {
	switch {
	case e.Sized != nil:
		return e.Sized.Record()
	case e.Job != nil:
		return e.Job.Record()
	}
	return nil
}

func keyOfJob(j *cluster.Job) jobKey { return jobKey{j.ID, j.Submitted.UnixNano()} }

func keyOfStep(s *cluster.Step) stepKey { return stepKey{s.ID, s.Attempt, s.Started.UnixNano()} }

// write stores what is queued up to an index in one transaction; of several events of one job the last
// counts.
func (d *DB) write(limit uint64) error {
	d.writing.Lock()
	defer d.writing.Unlock()
	return d.writeNow(limit)
}

// writeNow is write, with d.writing held.
func (d *DB) writeNow(limit uint64) error {
	d.mu.Lock()
	n, count := 0, 0
	weight := 0
	for n < len(d.queue) && d.queue[n].index <= limit {
		count += len(d.queue[n].events)
		weight += weigh(d.queue[n].events)
		n++
	}
	if n == 0 {
		d.mu.Unlock()
		return nil
	}
	events, index := make([]cluster.Event, 0, count), d.queue[n-1].index
	for _, b := range d.queue[:n] {
		events = append(events, b.events...)
	}
	d.mu.Unlock()
	if err := d.store(events, index); err != nil {
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if slices.ContainsFunc(events, func(e cluster.Event) bool { return e.Forget != nil }) {
		d.sweeping = true
		poke(d.more)
	}
	d.queue = slices.Delete(d.queue, 0, n)
	if d.gone += n; len(d.queue) == 0 {
		d.queue = nil
	}
	maps.DeleteFunc(d.rests, func(_ jobKey, at [2]int) bool { return at[0] < d.gone })
	d.queued -= weight
	d.done = index
	d.announce()
	return nil
}

// announce wakes those who wait for the file to change. Called with mu held.
func (d *DB) announce() {
	close(d.moved)
	d.moved = make(chan struct{})
}

func (d *DB) store(events []cluster.Event, index uint64) error {
	tx, err := d.w.Begin()
	if err != nil {
		return err
	}
	defer tx.Rollback() // no-op once committed
	u := newUsage(tx)
	lastJob, lastStep := map[jobKey]*cluster.Job{}, map[stepKey]*cluster.Step{}
	for _, e := range events {
		if j := recordOf(&e); j != nil {
			lastJob[keyOfJob(j)] = j
		}
		if e.Step != nil {
			lastStep[keyOfStep(e.Step)] = e.Step
		}
	}
	pause := d.pauser(len(events))
	for _, e := range events { // records enter with the first event, so that their order does not depend on what was gathered
		if j := recordOf(&e); j != nil {
			if last, ok := lastJob[keyOfJob(j)]; ok {
				delete(lastJob, keyOfJob(j))
				err = u.putJob(last)
			}
		}
		if e.Step != nil && err == nil {
			if st, ok := lastStep[keyOfStep(e.Step)]; ok {
				delete(lastStep, keyOfStep(e.Step))
				err = u.putStep(st)
			}
		}
		if err == nil {
			err = u.putEvent(&e)
		}
		if err != nil {
			return err
		}
		pause()
	}
	if err := u.flush(); err != nil {
		return err
	}
	if _, err := tx.Exec("INSERT INTO meta VALUES ('applied', ?) ON CONFLICT (key) DO UPDATE SET value = excluded.value",
		index); err != nil {
		return err
	}
	return tx.Commit()
}

// pauser returns what is called after each of so many events are written: it rests as long as it works, so that history
// takes half a core at most from what answers callers, unless somebody waits for it or there is very much to write.
func (d *DB) pauser(events int) func() {
	if events > maxRested {
		return func() {}
	}
	began := time.Now()
	return func() {
		if took := time.Since(began); took >= workTime && len(d.hurry) == 0 {
			time.Sleep(took)
			began = time.Now()
		}
	}
}
