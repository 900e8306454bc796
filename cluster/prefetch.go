package cluster

import "time"

// Prefetch is an image that a job's nodes get before the job's time begins to count, and where the submitter's files
// about registries are.
type Prefetch struct {
	Image  string `json:"image" text:"4096"`
	Enroot string `json:"enroot,omitempty" text:"4096"` // ENROOT_CONFIG_PATH
	Docker string `json:"docker,omitempty" text:"4096"` // DOCKER_CONFIG
}

// fetches reports whether nothing but an image is waited for.
func (p *Prelude) fetches() bool {
	return p != nil && p.Fetch && p.Over.IsZero() && p.reached()
}

// reached reports whether nothing keeps the job's nodes from hearing of it.
func (p *Prelude) reached() bool {
	return !p.Prolog && !p.Burst && len(p.Nodes) == 0
}

// Fetching reports whether the job's nodes get its image.
func Fetching(j *Job) bool {
	return j.Phase == Starting && j.Prelude.fetches()
}

// Configuring reports whether the job's time does not count yet.
func Configuring(j *Job) bool {
	return j.Preparing() || Fetching(j)
}

// goOn has a job run whose nodes are all ready. Its time counts from then on if they have got its image.
func goOn(j *Job, at time.Time) {
	j.Phase = Running
	if p := j.Prelude; p != nil && p.Fetch {
		c := *p
		c.Over = later(at, j.Started)
		j.Prelude = &c
	}
}

// beginPrelude has the leader do what the job, which is a copy, waits for.
func beginPrelude(t *tx, n *Job) {
	if t.config.PrologServer != "" {
		t.send(Hook{Kind: HookProlog, Job: n})
	}
	if n.Burst != nil {
		callBurst(t, n, CallPreRun)
	}
}

// preludeOf is what a job waits for that has got its nodes, nil for nothing.
func preludeOf(t *tx, j *Job) *Prelude {
	p := Prelude{
		Prolog: t.config.PrologServer != "",
		Burst:  j.Burst != nil,
		Nodes:  t.wake(j),
		Fetch:  j.Spec.Prefetch != nil,
	}
	if p.Prolog || p.Burst || p.Nodes != nil || p.Fetch {
		return &p
	}
	return nil
}
