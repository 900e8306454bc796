package cluster

import (
	"cmp"
	"slices"
	"time"

	"github.com/tidwall/btree"
)

// tx is one command at work on the state. Every change goes through what puts records (putJob, putNode, putLoad) or
// through putValue, putItem and keepOld below: these keep the derived tables in step and remember how to undo.
type tx struct {
	*tables
	at     time.Time
	by     Identity
	events []Event
	gone   []Change // records of the books that the change at hand has taken away
	undo   []func()

	emptied  []NodeName // nodes whose last job has left
	hits     []nodeHit  // what has happened to nodes, for triggers
	unheard  []JobID    // jobs that end before any of their nodes has heard of them
	external []JobID    // external jobs that start or end
	wakes    []woken    // in the order in which they came
	woken    map[woken]bool
}

func (t *tx) rollback() {
	for _, f := range slices.Backward(t.undo) {
		f()
	}
	t.undo = nil
	t.events = nil
}

// since is the time of the command, or that of what came before it: clocks of leaders and nodes differ, and are set.
func (t *tx) since(before time.Time) time.Time { return later(t.at, before) }

func (t *tx) onUndo(f func()) { t.undo = append(t.undo, f) }

// keepOld remembers a single value of the state, which is about to change.
func keepOld[T any](t *tx, at *T) {
	old := *at
	t.onUndo(func() { *at = old })
}

// putValue puts a value into a table, and remembers what was there.
func putValue[K cmp.Ordered, V any](t *tx, in *btree.Map[K, V], k K, v V) {
	old, had := in.Set(k, v)
	t.onUndo(func() { restore(in, k, old, had) })
}

// restore puts back what was in a table, if anything was.
func restore[K cmp.Ordered, V any](in *btree.Map[K, V], k K, old V, had bool) {
	if had {
		in.Set(k, old)
	} else {
		in.Delete(k)
	}
}

// dropValue takes a value out of a table, and remembers it.
func dropValue[K cmp.Ordered, V any](t *tx, in *btree.Map[K, V], k K) {
	if old, had := in.Delete(k); had {
		t.onUndo(func() { in.Set(k, old) })
	}
}

// putItem is putValue for a table of items that are their own keys.
func putItem[T any](t *tx, in *btree.BTreeG[T], x T) {
	old, had := in.Set(x)
	t.onUndo(func() {
		if had {
			in.Set(old)
		} else {
			in.Delete(x)
		}
	})
}

// dropItem is dropValue for a table of items that are their own keys.
func dropItem[T any](t *tx, in *btree.BTreeG[T], x T) {
	if old, had := in.Delete(x); had {
		t.onUndo(func() { in.Set(old) })
	}
}

// tell records that history should know the job as it is now.
func (t *tx) tell(j *Job) { t.events = append(t.events, Event{Job: j}) }
