package outbox

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"dev.muster/agent/backoff"
	"dev.muster/cluster"
)

// Reports are what is told to the servers of attempts on nodes here, until they have it in the log, and how attempts
// ended here for later.
type Reports struct {
	slog    *slog.Logger
	box     *box
	journal *journal
	begun   map[Attempt]bool // attempts that an earlier life of this client confirmed; never changes

	mu   sync.Mutex         // also held while a report is written; nothing of who calls is locked under it
	over map[Attempt]uint64 // attempts that are finished here → index from which the servers know
}

// OpenReports opens the files of a folder, which it makes, and notes what reports on their way say.
func OpenReports(dir string, log *slog.Logger) (*Reports, error) {
	out, err := openBox(dir)
	if err != nil {
		return nil, err
	}
	ended, err := openJournal(dir)
	if err != nil {
		return nil, errors.Join(err, out.Close())
	}
	r := &Reports{
		slog: log, box: out, journal: ended,
		begun: ConfirmedBy(out.All()), over: map[Attempt]uint64{},
	}
	for _, old := range out.All() {
		r.settle(old)
	}
	return r, nil
}

// Close closes the files.
func (r *Reports) Close() error { return errors.Join(r.box.Close(), r.journal.Close()) }

// Begun are the attempts that an earlier life of this client confirmed. It never changes.
func (r *Reports) Begun() map[Attempt]bool { return r.begun }

// Seq is the last number of a report that the servers may have seen of a node.
func (r *Reports) Seq(n cluster.NodeName) uint64 { return r.box.Seq(n) }

// Pending are the oldest reports that the servers have not acknowledged.
func (r *Reports) Pending() []cluster.Report { return r.box.Pending() }

// HasEnded reports whether it is remembered how an attempt ended here.
func (r *Reports) HasEnded(key Attempt) bool { return r.journal.Has(key) }

// Ended is what was told of the end of an attempt, the oldest first; nothing if it is not remembered.
func (r *Reports) Ended(key Attempt) ([]cluster.Update, error) { return r.journal.Ended(key) }

// NextJob is one more than the highest number of a job whose end is remembered.
func (r *Reports) NextJob() cluster.JobID { return r.journal.Highest() }

// ConfirmedBy lists the attempts that reports on their way say are begun.
func ConfirmedBy(reports []cluster.Report) map[Attempt]bool {
	begun := map[Attempt]bool{}
	for _, r := range reports {
		for _, u := range r.Updates {
			if u.Kind == cluster.NodeReady {
				begun[Attempt{Job: u.Job, Attempt: u.Attempt, Node: r.Node}] = true
			}
		}
	}
	return begun
}

// settle notes what a report says is over, so that it is not begun again. Called with mu held.
func (r *Reports) settle(told cluster.Report) {
	for _, u := range told.Updates {
		if u.Kind.Final() {
			r.over[Attempt{Job: u.Job, Attempt: u.Attempt, Node: told.Node}] = 0
		}
	}
}

// Put hands updates of a node to the outbox, which keeps them until the servers have them. An attempt that ends so is
// over before it can be known that the servers have heard of it.
func (r *Reports) Put(n cluster.NodeName, updates ...cluster.Update) {
	r.mu.Lock()
	defer r.mu.Unlock()
	told, err := r.box.Put(n, updates)
	if err != nil {
		r.slog.Error("a report could not be kept", "node", n, "err", err)
	}
	if err := r.journal.Put(n, updates); err != nil {
		r.slog.Error("what ended here could not be kept", "node", n, "err", err)
	}
	r.settle(told)
}

// IsOver reports whether an attempt is finished here, and the servers may not know it.
func (r *Reports) IsOver(key Attempt) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	_, over := r.over[key]
	return over
}

// Forget drops attempts of nodes that the servers know to be over and name no more: fresh is as of which index of the
// log they said something of each node, named what they said.
func (r *Reports) Forget(fresh map[cluster.NodeName]uint64, named map[Attempt]bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for key, index := range r.over {
		if at, ok := fresh[key.Node]; ok && index != 0 && index < at && !named[key] {
			delete(r.over, key)
		}
	}
}

// ForgetAll drops all attempts of nodes: if one is named, its end is told again.
func (r *Reports) ForgetAll(names []cluster.NodeName) {
	r.mu.Lock()
	defer r.mu.Unlock()
	maps.DeleteFunc(r.over, func(key Attempt, _ uint64) bool { return slices.Contains(names, key.Node) })
}

// arrived notes from which index on the servers know what reports say is over.
func (r *Reports) arrived(list []cluster.Report, index uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, rep := range list {
		for _, u := range rep.Updates {
			key := Attempt{Job: u.Job, Attempt: u.Attempt, Node: rep.Node}
			if _, ok := r.over[key]; ok && u.Kind.Final() {
				r.over[key] = max(index, 1)
			}
		}
	}
}

// Send has reports told until ctx ends, the oldest first, again and again until they have arrived. tell answers from
// which index of the log on the servers know them.
func (r *Reports) Send(ctx context.Context, tell func(context.Context, []cluster.Report) (index uint64, err error)) {
	var wait time.Duration
	for {
		list := r.box.Pending()
		if len(list) == 0 {
			select {
			case <-r.box.More:
				continue
			case <-ctx.Done():
				return
			}
		}
		index, err := tell(ctx, list)
		if err != nil {
			r.slog.Debug("reporting failed", "err", err)
			if !backoff.Pause(ctx, &wait) {
				return
			}
			continue
		}
		wait = 0
		if err := r.box.Ack(list); err != nil {
			r.slog.Error("the outbox could not be written", "err", err)
		}
		r.arrived(list, index)
	}
}
