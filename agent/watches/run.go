package watches

import (
	"context"
	"time"

	"dev.muster/cluster"
)

// every is the time between looks.
const every = 2 * time.Second

// watch is a row of the table.
type watch struct {
	name string
	// find returns what is to be dealt with.
	find func(w *Watcher, snap *cluster.Snapshot, now time.Time) []finding
}

var table = [...]watch{
	{"idle GPUs", findIdle},
	{"hangs", findHung},
	{"slow GPUs", findSlow},
}

// Run looks and acts until the term ends.
func (w *Watcher) Run(term context.Context) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	defer w.all.Wait()
	var tried [len(table)]map[cluster.JobID]int // the attempt that was dealt with
	for {
		select {
		case <-term.Done():
			return
		case <-tick.C:
		}
		snap, now := w.Server.Committed(), time.Now()
		for i := range table {
			tried[i] = w.look(term, &table[i], snap, now, tried[i])
		}
	}
}

// look deals with what one watch finds, and returns the attempts that were dealt with.
func (w *Watcher) look(term context.Context, row *watch, snap *cluster.Snapshot, now time.Time,
	tried map[cluster.JobID]int) map[cluster.JobID]int {
	list := row.find(w, snap, now)
	done := make(map[cluster.JobID]int, len(list))
	for _, f := range list {
		attempt := f.job.Attempt + 1
		deal := func() {
			if err := f.deal(term); err != nil { // the term may be over
				w.Log.Warn("a rule could not be held", "watch", row.name, "job", f.job.ID, "err", err)
			}
		}
		if tried[f.job.ID] == attempt || w.begin(f.job.Spec.UID, deal) {
			done[f.job.ID] = attempt
		}
	}
	return done
}
