package acct

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"testing"
	"time"

	"dev.muster/cluster"
)

// TestPages: the pages of an answer are together what one answer is, wherever they end.
func TestPages(t *testing.T) {
	d := openDB(t, t.TempDir())
	defer d.stop()
	rnd := rand.New(rand.NewPCG(1, 2))
	index := uint64(0)
	apply := func(events ...cluster.Event) {
		index++
		d.Apply(index, events)
	}
	for range 60 {
		id := cluster.JobID(1 + rnd.IntN(30)) // some have several attempts
		j := job(id, cluster.Ended, cluster.Completed)
		j.Attempt = int(index) + 1
		j.Spec.UID = uint32(1000 + id%2)
		j.Submitted = epoch.Add(time.Duration(index) * time.Minute)
		j.Started = j.Submitted.Add(time.Minute)
		j.Ended = j.Started.Add(time.Hour)
		if rnd.IntN(6) == 0 {
			j.Outcome = cluster.Resized
		}
		events := []cluster.Event{{Job: j}}
		for n := range rnd.IntN(9) {
			events = append(events, cluster.Event{Step: &cluster.Step{
				ID:      cluster.StepID{Job: id, Step: n},
				Attempt: j.Attempt,
				Started: j.Started.Add(time.Duration(n) * time.Minute),
			}})
		}
		apply(events...)
	}
	apply(importedEvents(t, oldJob(4, 0, 0, func(*cluster.Job) {}), oldJob(4, 5, 9, func(*cluster.Job) {}),
		oldJob(5, 1, 0, func(*cluster.Job) {}))...)
	for name, q := range map[string]Query{
		"all":     {},
		"every":   {Duplicates: true},
		"one's":   {Users: []uint32{1001}},
		"a time":  {From: epoch.Add(70 * time.Minute), To: epoch.Add(100 * time.Minute)},
		"by name": {Refs: []cluster.Ref{{Job: 3}, {Job: 4}, {Job: 9}}},
	} {
		for _, steps := range []bool{false, true} {
			for _, size := range []pageSize{{1, 1}, {2, 3}, {3, 100}, {7, 8}, {100, 4}, {1000, 1000}} {
				t.Run(fmt.Sprintf("%s/steps=%t/%v", name, steps, size), func(t *testing.T) {
					q.Steps = steps
					want, got := all(t, d.DB, q), pages(t, d.DB, q, size)
					if !reflect.DeepEqual(summary(got), summary(want)) {
						t.Errorf("by pages:\n%v\nat once:\n%v", summary(got), summary(want))
					}
					if len(want) == 0 {
						t.Error("nothing is asked for")
					}
				})
			}
		}
	}
}

// pages reads an answer by its pages, each of which may hold no more than size.
func pages(t *testing.T, d *DB, q Query, size pageSize) (list []Record) {
	t.Helper()
	for at := (&Cursor{}); at != nil; {
		some, next, err := (&page{d: d, q: &q, at: *at, size: size}).all(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		n := 0
		for _, r := range some {
			n += len(r.Steps)
			if !r.Rest {
				list = append(list, r)
				continue
			}
			last := &list[len(list)-1]
			last.Steps = append(last.Steps, r.Steps...)
		}
		if len(some) > size.jobs || n > size.steps {
			t.Fatalf("a page has %d jobs and %d steps", len(some), n)
		}
		at = next
	}
	return list
}

// summary is a line for each record.
func summary(list []Record) (out []string) {
	for _, r := range list {
		text := fmt.Sprintf("%d/%d", r.Job.ID, r.Job.Attempt)
		for _, s := range r.Steps {
			text += fmt.Sprintf(" %d", s.ID.Step)
		}
		out = append(out, text)
	}
	return out
}
