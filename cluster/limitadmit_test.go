package cluster

import (
	"testing"
	"time"
)

// bounded is a world with limits: alice is in team-a and, where nobody may have two jobs, in team-b; QOS strict
// denies what a job of more than 4 CPUs, 20000 MB or half an hour asks for, few has two jobs at most.
func bounded(t *testing.T) *world {
	w := ranked(t, func(cfg *Config) {
		cfg.Enforce.Limits, cfg.Enforce.Associations, cfg.Enforce.QOS = true, true, true
		cfg.Partitions[0].MaxTime = 2 * time.Hour
	})
	strict := Limits{}.With(Limit{Name: "MaxTRES", TRES: "cpu", Max: 4}).With(Limit{
		Name: "MaxTRES", TRES: "mem", Max: 20000,
	}).With(Limit{Name: "MaxWall", Max: 1800})
	few := Limits{}.With(Limit{Name: "MaxSubmitJobsPerUser", Max: 2})
	one := Limits{}.With(Limit{Name: "MaxSubmitJobs", Max: 1})
	all := []string{"normal", "high", "strict", "few"}
	w.ok(root, &ChangeAccounts{Changes: []Change{
		{QOS: &QOS{Name: "strict", UsageFactor: 1, Flags: []string{"DenyOnLimit"}, Limits: strict}},
		{QOS: &QOS{Name: "few", UsageFactor: 1, Limits: few}},
		{Assoc: &Association{Account: "team-a", User: "alice", Shares: 1, QOS: all}},
		{Assoc: &Association{Account: "team-b", User: "alice", Shares: 1, QOS: all, Limits: one}},
	}})
	return w
}

// TestUpdateLimits: a job that its user moves to another QOS or account must keep the limits there, as in a real
// Slurm 22.05; an operator may move it all the same, and whatever else changes the job waits for its limits.
func TestUpdateLimits(t *testing.T) {
	const minute = time.Minute
	qos := func(q string) Patch { return Patch{QOS: &q} }
	in := func(a string) Patch { return Patch{Account: &a} }
	wide := func(n int) func(*JobSpec) { return func(s *JobSpec) { s.Tasks, s.MinCPUs = n, 0 } }
	long, short, five := 40*minute, 20*minute, 5
	both := func(p Patch, limit *time.Duration) Patch { p.Limit = limit; return p }
	for name, c := range map[string]struct {
		job   func(*JobSpec)
		by    Identity
		patch Patch
		want  ErrKind
	}{
		"a QOS that denies so many CPUs":  {wide(5), alice, qos("strict"), ErrPolicy},
		"the same by an operator":         {wide(5), root, qos("strict"), ""},
		"few enough":                      {wide(4), alice, qos("strict"), ""},
		"fewer at the same time":          {wide(5), alice, Patch{QOS: qos("strict").QOS, Tasks: new(2)}, ""},
		"more at the same time":           {wide(2), alice, Patch{QOS: qos("strict").QOS, Tasks: &five}, ErrPolicy},
		"a longer limit at the same time": {wide(1), alice, both(qos("strict"), &long), ErrPolicy},
		"a shorter limit at the same time": {
			func(s *JobSpec) { s.Limit = long }, alice, both(qos("strict"), &short), "",
		},
		"a limit to be put right afterwards": {func(s *JobSpec) { s.Limit = long }, alice, qos("strict"), ""},
		"more CPUs in a QOS that denies": {func(s *JobSpec) {
			s.QOS = "strict"
			s.Tasks = 2
			s.Limit = short
		}, alice, Patch{Tasks: &five}, ""},
		"a longer limit in one that denies": {func(s *JobSpec) {
			s.QOS = "strict"
			s.Limit = short
		}, alice, Patch{Limit: &long}, ""},
		"a QOS with its fill of jobs":      {nil, alice, qos("few"), ErrPolicy},
		"an account with its fill of jobs": {nil, alice, in("team-b"), ErrPolicy},
		"the same account again":           {nil, alice, in("team-a"), ""},
		"no account":                       {nil, alice, in(""), ErrAccount},
		"no QOS":                           {nil, alice, qos(""), ""},
		"no QOS of that name":              {nil, alice, qos("nope"), ErrQOS},
	} {
		t.Run(name, func(t *testing.T) {
			w := bounded(t)
			for range 2 {
				w.submit(func(s *JobSpec) { s.QOS = "few" })
			}
			w.submit(func(s *JobSpec) { s.Account = "team-b" })
			id := w.submit(c.job)
			cmd := &UpdateJob{Ref: Ref{Job: id}, Patch: c.patch}
			if c.want != "" {
				w.refused(c.by, cmd, c.want)
				return
			}
			w.ok(c.by, cmd)
			if j := w.job(id); j.Spec.QOS == "" || j.Spec.Account == "" {
				t.Errorf("the job has QOS %q and account %q", j.Spec.QOS, j.Spec.Account)
			}
		})
	}
}

// TestUpdateNumbers: counts below one are refused, nodes have a task each, users do not raise a time limit above
// the partition's, and priority zero is a hold.
func TestUpdateNumbers(t *testing.T) {
	w := bounded(t)
	id := w.submit(func(s *JobSpec) { s.Limit, s.Tasks = time.Hour, 1 })
	update := func(p Patch) *UpdateJob { return &UpdateJob{Ref: Ref{Job: id}, Patch: p} }
	w.refused(alice, update(Patch{MinNodes: new(0)}), ErrNodeCount)
	w.refused(alice, update(Patch{Tasks: new(0)}), ErrTaskCount)
	w.ok(alice, update(Patch{MinNodes: new(3)}))
	w.ok(alice, update(Patch{MinNodes: new(2)}))
	if s := w.job(id).Spec; s.Tasks != 3 || s.MinNodes != 2 {
		t.Errorf("the job has %d tasks on %d nodes, want 3 on 2", s.Tasks, s.MinNodes)
	}
	most, more := 2*time.Hour, 3*time.Hour
	w.refused(alice, update(Patch{Limit: &more}), ErrAccess)
	w.refused(alice, update(Patch{LimitDelta: most}), ErrAccess)
	w.ok(alice, update(Patch{Limit: &most}))
	w.ok(root, update(Patch{Limit: &more}))
	w.ok(alice, update(Patch{Limit: &more}))
	none := uint32(0)
	w.ok(alice, update(Patch{Priority: &none}))
	w.wantWait(id, WaitHeldUser)
	w.ok(root, update(Patch{Priority: &none}))
	w.ok(alice, update(Patch{Priority: &none}))
	w.wantWait(id, WaitHeldAdmin)
	w.refused(root, update(Patch{Priority: new(uint32(5))}), ErrNotHeld)
}
