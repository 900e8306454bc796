package eventlog

import (
	"slices"
	"testing"

	"dev.muster/cluster"
)

func purges(index uint64, ids ...cluster.JobID) (out []Record) {
	for _, id := range ids {
		out = append(out, Record{Index: index, Event: cluster.Event{Purged: id}})
	}
	return out
}

func indexes(list []Record) (out []uint64) {
	for _, t := range list {
		out = append(out, t.Index)
	}
	return out
}

// TestEventLog: what is remembered is told once and whole from any index on; what is forgotten is said to be.
func TestEventLog(t *testing.T) {
	f := New(4)
	_, more, ok := f.After(0)
	if !ok {
		t.Fatal("an empty feed has forgotten something")
	}
	f.Append(purges(3, 1, 2))
	select {
	case <-more:
	default:
		t.Error("nobody is told of more")
	}
	f.Append(nil)
	f.Append(purges(5, 3))
	for since, want := range map[uint64][]uint64{0: {3, 3, 5}, 2: {3, 3, 5}, 3: {5}, 4: {5}, 5: nil, 9: nil} {
		if got, _, ok := f.After(since); !ok || !slices.Equal(indexes(got), want) {
			t.Errorf("since %d: %v, %v, want %v", since, indexes(got), ok, want)
		}
	}
	f.Append(purges(6, 4, 5, 6, 7, 8, 9)) // nine in all: the last four stay
	if _, _, ok := f.After(5); ok {
		t.Error("what of index 6 is forgotten is not said to be")
	}
	if got, _, ok := f.After(6); !ok || len(got) != 0 {
		t.Errorf("since 6: %v, %v", indexes(got), ok)
	}
	f.Restart(20)
	if _, _, ok := f.After(19); ok {
		t.Error("after a restart at index 20 all since 19 is known")
	}
	many := purges(30, slices.Repeat([]cluster.JobID{1}, maxBatch)...)
	f = New(4 * maxBatch)
	f.Append(purges(29, 1))
	f.Append(many)
	if got, _, _ := f.After(0); len(got) != maxBatch+1 {
		t.Errorf("an index was torn: %d events", len(got))
	}
}

// TestEventLogOfArray: of the tasks of an array that wait, the submission and the last record are kept, and each start.
func TestEventLogOfArray(t *testing.T) {
	const tasks = 100
	f := New(8 * tasks)
	spec := &cluster.JobSpec{
		Layout: &cluster.Layout{}, Array: &cluster.ArraySpec{Tasks: cluster.RangeIDSet(0, tasks-1)},
	}
	rest := func(from int, held cluster.Hold) Record {
		return Record{
			Index: uint64(from + 1),
			Event: cluster.Event{
				Job: &cluster.Job{ID: 1, ArrayID: 1, Spec: spec, Held: held, Tasks: cluster.RangeIDSet(from, tasks-1)},
			},
		}
	}
	f.Append([]Record{rest(0, cluster.NotHeld)})
	for k := 1; k < tasks-1; k++ {
		one := Record{
			Index: uint64(k + 1),
			Event: cluster.Event{
				Job: &cluster.Job{ID: cluster.JobID(k + 1), ArrayID: 1, Spec: spec, Task: k, Phase: cluster.Starting},
			},
		}
		f.Append([]Record{rest(k, cluster.NotHeld), one})
	}
	f.Append([]Record{rest(tasks-1, cluster.HeldUser)})
	events, _, _ := f.After(0)
	var rests, starts []int
	for i := range events {
		switch e := &events[i]; {
		case e.Past && e.Job != nil:
			t.Errorf("event %d is past and kept", e.Index)
		case !e.Past && e.Job.Phase == cluster.Pending:
			rests = append(rests, e.Job.Tasks.Min())
		case !e.Past:
			starts = append(starts, e.Job.Task)
		}
	}
	if !slices.Equal(rests, []int{0, tasks - 2, tasks - 1}) || len(starts) != tasks-2 {
		t.Errorf("of the rest are told %v, and %d starts", rests, len(starts))
	}
	if list := f.Latest(1000, func(*Record) bool { return true }); len(list) != tasks+1 {
		t.Errorf("%d are the latest", len(list))
	}
}
