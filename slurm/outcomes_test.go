package slurm

import (
	"testing"
	"time"

	"dev.muster/cluster"
	"dev.muster/slurm/env"
	"dev.muster/slurm/show"
)

// TestOutcomesShown takes every phase and outcome through what prints them: each has a state with Slurm's two
// words, and no table lacks a row.
func TestOutcomesShown(t *testing.T) {
	short := map[string]cluster.Outcome{}
	for _, o := range cluster.Outcomes() {
		t.Run(o.String(), func(t *testing.T) {
			for p := cluster.Pending; p <= cluster.Ended; p++ {
				j := &cluster.Job{ID: 7, Phase: p, EndingWhy: o, Spec: &cluster.JobSpec{Layout: &cluster.Layout{}}}
				if p == cluster.Ended {
					j.Outcome = o
				}
				s := show.StateOf(j)
				if s.Short == "" || s.Long == "" {
					t.Errorf("phase %d: no state", p)
				}
				_ = show.VerdictOf(j, nil)
				_ = env.EndNote(j, -1, "n1", time.Unix(0, 0))
				if p != cluster.Ended {
					continue
				}
				if s.Long != o.State() {
					t.Errorf("squeue calls it %s, accounting %s", s.Long, o.State())
				}
				if other, taken := short[s.Short]; taken {
					t.Errorf("%s is also outcome %d", s.Short, other)
				}
				short[s.Short] = o
				if v := show.VerdictOf(j, nil); o.Failure() && v.Kind == "" {
					t.Error("muster why has no word for what went wrong")
				}
			}
		})
	}
}
