package acct

import (
	"fmt"
	"testing"
	"time"

	"dev.muster/cluster"
)

// TestResize: a job that gave nodes back has a record for each size, with the steps that began in it, and usage of
// both.
func TestResize(t *testing.T) {
	d := openDB(t, t.TempDir())
	defer d.stop()
	share := func(n cluster.NodeName) cluster.Share {
		return cluster.Share{Node: n, CPUs: cluster.RangeIDSet(0, 3)}
	}
	at := epoch.Add(100 * time.Second)
	was := job(7, cluster.Ended, cluster.Resized)
	was.Attempt, was.Started, was.Ended, was.Alloc = 1, epoch, at, &cluster.Alloc{
		Partition: "main", Shares: []cluster.Share{share("n0"), share("n1")},
	}
	is := *was
	is.Phase = cluster.Ended
	is.Outcome = cluster.Completed
	is.Ended = at.Add(50 * time.Second)
	is.Shrunk = &cluster.Shrunk{
		At: at, Leaving: []cluster.Share{share("n1")},
	}
	is.Alloc = &cluster.Alloc{Partition: "main", Shares: []cluster.Share{share("n0")}}
	step := func(n int, started time.Time) *cluster.Step {
		return &cluster.Step{ID: cluster.StepID{Job: 7, Step: n}, Attempt: 1, Started: started, Ended: is.Ended}
	}
	for index := range 2 { // the second time it changes nothing
		d.Apply(uint64(index+1), []cluster.Event{
			{Sized: was}, {Job: &is}, {Step: step(0, epoch)}, {Step: step(1, at.Add(time.Second))},
		})
	}
	got := ""
	for _, r := range all(t, d.DB, Query{Steps: true}) {
		got += fmt.Sprintf("%d nodes from %s to %s:", len(r.Job.Alloc.Shares), r.Job.Started.Sub(epoch),
			r.Job.Ended.Sub(epoch))
		for _, s := range r.Steps {
			got += fmt.Sprint(" ", s.ID.Step)
		}
		got += "\n"
	}
	if want := "2 nodes from 0s to 1m40s: 0\n1 nodes from 1m40s to 2m30s: 1\n"; got != want {
		t.Errorf("history has\n%swant\n%s", got, want)
	}
	cpu := 0.0
	for _, row := range usageOf(t, d.DB, epoch, epoch.Add(time.Hour)) {
		for _, a := range row.Used {
			if a.TRES == "cpu" {
				cpu += a.N
			}
		}
	}
	if cpu != 8*100+4*50 {
		t.Errorf("%v CPU seconds", cpu)
	}
}
