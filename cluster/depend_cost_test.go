package cluster

import (
	"testing"
	"time"
)

// TestDependCost: what a user's jobs wait for does not make a command slow, which all others would wait for.
func TestDependCost(t *testing.T) {
	const most = 5 * time.Second // some milliseconds; it was minutes
	spec := func(terms ...Depend) *JobSpec {
		return &JobSpec{Layout: &Layout{}, Name: "job", UID: alice.UID, GID: alice.GID, User: "alice",
			Depends: Depends{Terms: terms}}
	}
	array := func(w *world, n int) JobID {
		s := spec()
		s.Array = &ArraySpec{Tasks: RangeIDSet(0, n-1)}
		return w.quick(s)
	}
	t.Run("tasks and jobs that wait for their array", func(t *testing.T) {
		for _, kind := range []DependType{AfterAny, AfterNotOK, AfterOK, AfterBurst, AfterCorr, After} {
			const n = 800
			w := newWorld(t, 1)
			id := array(w, n)
			for i := range n {
				d := Depend{Type: kind, Job: id, Task: TaskAny}
				if kind == After {
					d.Plus = time.Duration(i+1) * time.Minute
				}
				w.quick(spec(d))
			}
			w.fast(most, &HoldJobs{Ref: Ref{Job: id, Tasks: RangeIDSet(0, n-2)}, Hold: HeldUser})
			w.fast(most, &Cancel{Ref: Ref{Job: id}})
		}
	})
	t.Run("jobs that wait for many", func(t *testing.T) {
		const parents, kids = 600, 500
		w := newWorld(t, 1)
		s := spec()
		for range parents {
			s.Depends.Terms = append(s.Depends.Terms, Depend{Type: AfterAny, Job: w.quick(spec()), Task: TaskAny})
		}
		for i := range kids {
			c := *s
			c.Depends.Any = i%2 == 0
			w.quick(&c)
		}
		w.fast(most, &Cancel{Ref: Ref{Job: s.Depends.Terms[7].Job}})
	})
	t.Run("namesakes one after the other", func(t *testing.T) {
		const n = 5000
		w := newWorld(t, 1)
		ids := make([]JobID, n)
		for i := range ids {
			ids[i] = w.quick(spec(Depend{Type: SingletonOf, Task: TaskAny}))
		}
		began := time.Now()
		for _, id := range ids[n-200:] {
			w.fast(most, &Cancel{Ref: Ref{Job: id}})
		}
		if took := time.Since(began); took > most {
			t.Errorf("the ends of 200 jobs of %d took %v", n, took) // it was 9 s
		}
	})
}

// TestDependTerms: all jobs of a user wait for so many jobs at most that the end of one, which looks at every term of
// those that wait for it, takes a moment.
func TestDependTerms(t *testing.T) {
	const parents, most = 600, 150_000
	w := newWorld(t, 1)
	s := JobSpec{Layout: &Layout{}, Name: "job", UID: alice.UID, GID: alice.GID, User: "alice"}
	var terms []Depend
	for range parents {
		one := s
		terms = append(terms, Depend{Type: AfterAny, Job: w.quick(&one), Task: TaskAny})
	}
	s.Depends.Terms = terms
	kids := 0
	for ; kids*parents < 2*most; kids++ {
		one := s
		if CheckNew(w.s.Snapshot(), &one) != nil {
			break
		}
		w.quick(&one)
	}
	if kids*parents > most || kids < 100 {
		t.Errorf("%d jobs with %d terms each were accepted", kids, parents)
	}
}

// quick submits a job without the checks of the state that newWorld makes after each entry.
func (w *world) quick(s *JobSpec) JobID {
	w.t.Helper()
	return w.fast(time.Minute, &Submit{Spec: s}).Result.(JobID)
}

// fast applies a command of alice's, which must not take longer.
func (w *world) fast(most time.Duration, cmd Command) Applied {
	w.t.Helper()
	began := time.Now()
	out := w.s.Apply(Entry{Index: w.s.Index + 1, At: w.now, By: alice, Cmd: cmd})
	if out.Err != nil {
		w.t.Fatalf("%s: %v", cmd.kind(), out.Err)
	}
	if took := time.Since(began); took > most {
		w.t.Errorf("%s took %v", cmd.kind(), took)
	}
	return out
}
