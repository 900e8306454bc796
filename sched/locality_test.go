package sched

import (
	"fmt"
	"slices"
	"testing"

	"dev.muster/cluster"
	"dev.muster/sched/place"
)

const someImage = "lab#tools:1"

// held says that nodes have one image.
func held(nodes ...cluster.NodeName) place.ImageLocality {
	return func(image string) []cluster.NodeName {
		if image != someImage {
			return nil
		}
		return nodes
	}
}

// inImage has a job run in an image.
func inImage(image string, ask func(*cluster.JobSpec)) func(*cluster.JobSpec) {
	return func(s *cluster.JobSpec) {
		ask(s)
		s.Inside = &cluster.Container{Image: image}
	}
}

// scheduleBy has a scheduler start what it can.
func (b *testbed) scheduleBy(s *Scheduler) {
	b.T.Helper()
	for range 20 {
		ds := s.Schedule(b.S.Snapshot(), b.Now)
		if len(ds) == 0 {
			return
		}
		for _, e := range b.Apply(&cluster.Decide{Decisions: ds}).([]*cluster.Error) {
			if e != nil {
				b.T.Fatal(e)
			}
		}
	}
	b.T.Fatal("it does not come to rest")
}

// TestImageDecidesAmongEquals: of nodes on which a job fits equally well it takes those that have its image, and for
// nothing else that has a say.
func TestImageDecidesAmongEquals(t *testing.T) {
	cases := []struct {
		what  string
		cfg   func(*cluster.Config)
		busy  string // what runs before
		line  string
		local []cluster.NodeName
		want  string
	}{
		{"nobody has it", nil, "", "-N1", nil, "[n1]"},
		{"one has it", nil, "", "-N1", names(6, 6), "[n6]"},
		{"the lowest of several", nil, "", "-N1", []cluster.NodeName{"n7", "n3", "n9"}, "[n3]"},
		{"several nodes", nil, "", "-N2", names(5, 6), "[n5 n6]"},
		{"some of them", nil, "", "-N3", names(8, 8), "[n1 n2 n8]"},
		{"with GPUs", nil, "", "-N1 --gpus-per-node=2", names(4, 4), "[n4]"},
		{"by tasks", nil, "", "-n32", names(3, 4), "[n3 n4]"},
		{"it is full", nil, "-N1 --exclusive -wn6", "-N1", names(6, 6), "[n7]"},
		{"it is fuller", nil, "-N1 -c1 -wn6", "-N1 -c2", names(6, 6), "[n1]"},
		{"asked for by name", nil, "", "-N1 -wn2", names(6, 6), "[n2]"},
		{"one by name", nil, "", "-N2 -wn2", names(6, 6), "[n2 n6]"},
		{"not to be used", nil, "", "-N1 -xn6", names(6, 6), "[n7]"},
		{"other features", nil, "", "-N1 -Crack1", names(6, 6), "[n1]"},
		{"neighbours", nil, "", "-N2 --contiguous", names(6, 6), "[n1 n2]"},
		{"another run of nodes", nil, "-N1 --exclusive -wn5", "-N3", names(1, 1), "[n6 n7 n8]"},
		{"one of another run", nil, "-N1 --exclusive -wn5", "-N1", names(1, 1), "[n1]"},
		{"a leaf as free", twoLeaves, "", "-N1", names(6, 6), "[n6]"},
		{"a leaf with more free", twoLeaves, "-N1 --exclusive -wn1", "-N1", names(6, 6), "[n2]"},
		{"in the leaf of the job", twoLeaves, "", "-N2", []cluster.NodeName{"n4", "n6"}, "[n1 n4]"},
	}
	for _, c := range cases {
		b := eight(c.cfg, t)
		s := &Scheduler{Images: held(c.local...)}
		if c.busy != "" {
			b.Submit(ask(t, c.busy))
			b.scheduleBy(s)
		}
		id, other := b.Submit(inImage(someImage, ask(t, c.line))), cluster.JobID(0)
		b.scheduleBy(s)
		j, _ := b.S.Job(id)
		got := j.AllocNodes()
		slices.Sort(got)
		if fmt.Sprint(got) != c.want {
			t.Errorf("%s: %s runs on %v, want %s", c.what, c.line, got, c.want)
		}
		b.EndJob(id)
		other = b.Submit(inImage("lab#other", ask(t, c.line)))
		plain := eight(c.cfg, t)
		if c.busy != "" {
			plain.Submit(ask(t, c.busy))
			plain.ScheduleAll()
		}
		usual := plain.Submit(ask(t, c.line))
		b.scheduleBy(s)
		plain.ScheduleAll()
		j, _ = b.S.Job(other)
		u, _ := plain.S.Job(usual)
		if fmt.Sprint(j.AllocNodes()) != fmt.Sprint(u.AllocNodes()) {
			t.Errorf("%s: %s in another image runs on %v, want %v", c.what, c.line, j.AllocNodes(), u.AllocNodes())
		}
	}
}

// TestImageAndWeight: a node of a higher weight is not taken for its image.
func TestImageAndWeight(t *testing.T) {
	b, weight := eight(nil, t), 100
	b.Apply(&cluster.NodeSet{Nodes: names(1, 6), Weight: &weight})
	id := b.Submit(inImage(someImage, ask(t, "-N1")))
	b.scheduleBy(&Scheduler{Images: held(names(1, 6)...)})
	if j, _ := b.S.Job(id); fmt.Sprint(j.AllocNodes()) != "[n7]" {
		t.Errorf("it runs on %v", j.AllocNodes())
	}
}
