package cluster

import (
	"slices"
	"testing"
	"time"
)

// TestRepeatedNames: a job has each partition and node once, however often its user names it; where the order of nodes
// is that of tasks, it stays.
func TestRepeatedNames(t *testing.T) {
	w := newWorld(t, 2)
	many := slices.Repeat([]NodeName{"n1", "n0"}, 500)
	for dist, want := range map[string]int{"": 2, "cyclic": 2, "arbitrary": len(many)} {
		id := w.submit(func(s *JobSpec) {
			s.Partitions = slices.Repeat([]string{"main"}, 500)
			s.NodeList, s.Exclude, s.Distribution = many, nil, dist
		})
		spec := w.job(id).Spec
		if len(spec.Partitions) != 1 || len(spec.NodeList) != want || spec.NodeList[0] != "n1" {
			t.Errorf("%q: %d partitions, %d nodes", dist, len(spec.Partitions), len(spec.NodeList))
		}
	}
	id := w.submit(func(s *JobSpec) { s.Exclude = slices.Repeat([]NodeName{"n1"}, 500) })
	if got := w.job(id).Spec.Exclude; len(got) != 1 {
		t.Errorf("%d nodes are excluded", len(got))
	}
}

// TestPrepare: a change names each partition and node once, too, and no command moves any number of jobs to the top.
func TestPrepare(t *testing.T) {
	w := newWorld(t, 2)
	many := slices.Repeat([]NodeName{"n1", "n0"}, 500)
	for dist, want := range map[string]int{"": 2, "arbitrary": len(many)} {
		id := w.submit(func(s *JobSpec) { s.Distribution = dist })
		nodes, excluded := slices.Clone(many), slices.Repeat([]NodeName{"n1"}, 500)
		c := &UpdateJob{Ref: Ref{Job: id}, Patch: Patch{
			Partitions: slices.Repeat([]string{"main"}, 500), NodeList: &nodes, Exclude: &excluded,
		}}
		if err := Prepare(w.s.Snapshot(), c); err != nil {
			t.Fatal(err)
		}
		p := &c.Patch
		if len(p.Partitions) != 1 || len(*p.NodeList) != want || (*p.NodeList)[0] != "n1" || len(*p.Exclude) != 1 {
			t.Errorf("%q: %d partitions, %d nodes, %d excluded", dist, len(p.Partitions), len(*p.NodeList),
				len(*p.Exclude))
		}
	}
	for n, want := range map[int]bool{maxTopped: true, maxTopped + 1: false} {
		err := Prepare(w.s.Snapshot(), &TopJobs{Refs: slices.Repeat([]Ref{{Job: 1}}, n)})
		if (err == nil) != want {
			t.Errorf("%d jobs: %v", n, err)
		}
	}
}

// TestTopOfMany: that a user moves many jobs to the top, each of them often, takes the servers no time.
func TestTopOfMany(t *testing.T) {
	const jobs = 3000
	w := newWorld(t, 1)
	var refs []Ref
	for range jobs {
		refs = append(refs, Ref{Job: w.quick(&JobSpec{Layout: &Layout{}, Name: "job", UID: alice.UID, GID: alice.GID,
			User: "alice"})})
	}
	began := time.Now()
	out := w.s.Apply(Entry{Index: w.s.Index + 1, At: w.now, By: root, Cmd: &TopJobs{Refs: slices.Repeat(refs, 10)}})
	if took := time.Since(began); took > 3*time.Second || out.Err != nil {
		t.Errorf("it took %v (%v)", took, out.Err)
	}
}
