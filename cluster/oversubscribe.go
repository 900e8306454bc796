package cluster

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// CPUUse is how often the CPUs of a node are given out. Where a partition oversubscribes, several jobs have the same
// ones; memory and devices never.
type CPUUse struct {
	CPUs   IDSet `json:"cpus,omitzero"`   // those that are given out
	Shared IDSet `json:"shared,omitzero"` // those of them whose jobs let others beside them
	// Again are those that are given out twice at least, three times at least, and so on.
	Again []IDSet `json:"again,omitempty"`
}

// Taken are the CPUs that are not left for a job where so many jobs may be on each; 0 or 1: it wants them alone.
func (u *CPUUse) Taken(jobs int) IDSet {
	if jobs <= 1 {
		return u.CPUs
	}
	alone := u.CPUs.Minus(u.Shared)
	if jobs-2 < len(u.Again) {
		return alone.Union(u.Again[jobs-2])
	}
	return alone
}

// Give adds a job's CPUs; over says that it lets others beside it.
func (u *CPUUse) Give(cpus IDSet, over bool) {
	more := u.CPUs.Intersect(cpus)
	u.CPUs = u.CPUs.Union(cpus)
	if over {
		u.Shared = u.Shared.Union(cpus)
	}
	u.Again = slices.Clone(u.Again)
	for k := 0; !more.Empty(); k++ {
		if k == len(u.Again) {
			u.Again = append(u.Again, IDSet{})
		}
		up := u.Again[k].Intersect(more)
		u.Again[k] = u.Again[k].Union(more)
		more = up
	}
}

// TakeBack is the reverse of Give.
func (u *CPUUse) TakeBack(cpus IDSet) {
	u.Again = slices.Clone(u.Again)
	for k := len(u.Again) - 1; k >= 0; k-- {
		last := u.Again[k].Intersect(cpus)
		if u.Again[k], cpus = u.Again[k].Minus(last), cpus.Minus(last); u.Again[k].Empty() {
			u.Again = u.Again[:k]
		}
	}
	if len(u.Again) == 0 {
		u.Again = nil
	}
	u.CPUs, u.Shared = u.CPUs.Minus(cpus), u.Shared.Minus(cpus)
}

// Values of OverSubscribe.
const (
	OverNo        = "NO"
	OverExclusive = "EXCLUSIVE" // whole nodes
	OverYes       = "YES"       // for jobs that ask for it
	OverForce     = "FORCE"     // for all jobs
)

// Jobs on one CPU where OverSubscribe gives no number, and at most.
const (
	defaultOver = 4
	maxOver     = 65533
)

// ParseOverSubscribe reads an OverSubscribe and returns it as it is shown, with its number of jobs.
func ParseOverSubscribe(text string) (string, error) {
	how, number, numbered := strings.Cut(strings.ToUpper(text), ":")
	switch how {
	case OverNo, OverExclusive:
		if !numbered {
			return how, nil
		}
	case OverYes, OverForce:
		if !numbered {
			return fmt.Sprintf("%s:%d", how, defaultOver), nil
		}
		if n, err := strconv.Atoi(number); err == nil && n > 0 && n <= maxOver {
			return fmt.Sprintf("%s:%d", how, n), nil
		}
	}
	return "", Errorf(Invalid, "",
		"OverSubscribe=%s is not known: want NO, EXCLUSIVE, YES or FORCE, the last two perhaps with :JOBS from 1 to %d",
		text, maxOver)
}

// over is how many jobs may be on one CPU of a partition, and whether they need not ask for it.
func (p *Partition) over() (jobs int, force bool) {
	how, number, _ := strings.Cut(p.OverSubscribe, ":")
	if how != OverYes && how != OverForce {
		return 0, false
	}
	jobs, err := strconv.Atoi(number)
	if err != nil {
		jobs = defaultOver
	}
	return jobs, how == OverForce
}

// Oversubscribes reports whether several jobs may be on one CPU of the partition.
func (p *Partition) Oversubscribes() bool { jobs, _ := p.over(); return jobs > 1 }

// JobsPerCPU is how many jobs may be on each CPU of one that runs in the partition; 0: it alone.
func (p *Partition) JobsPerCPU(s *JobSpec) int {
	if jobs, force := p.over(); jobs > 1 && (force || s.Sharing == ShareOver) {
		return jobs
	}
	return 0
}

// Sharing is what the partition makes of the way in which a job wants to share nodes.
func (p *Partition) Sharing(s *JobSpec) Sharing {
	switch jobs, force := p.over(); {
	case p.OverSubscribe == OverExclusive:
		return ShareExclusive
	case jobs > 1 && force:
		return ShareOver
	}
	return s.Sharing
}

// mayShare checks that a start shares CPUs as its partition says.
func (t *tx) mayShare(j *Job, a *Alloc) error {
	want := 0
	if p, ok := t.Partition(a.Partition); ok {
		want = p.JobsPerCPU(j.Spec)
	}
	if a.Over != 0 && a.Over != want {
		return Errorf(Conflict, ErrBusy,
			"job %d would have its CPUs with %d jobs, in partition %s now with %d", j.ID, a.Over,
			a.Partition, want)
	}
	return nil
}

// mostOver is the largest number of jobs that may be on one CPU of those that run.
func (t *tables) mostOver() (most int) {
	for j := range t.Live() {
		most = max(most, j.Alloc.Over)
	}
	return most
}

// giveAgain is Give, for a check: an error tells that CPUs have more jobs than they may.
func (u *CPUUse) giveAgain(cpus IDSet, over, most int) error {
	if both := u.Taken(min(over, 1) * most).Intersect(cpus); !both.Empty() {
		return fmt.Errorf("cpus %s given too often", both)
	}
	u.Give(cpus, over > 0)
	return nil
}

func (u *CPUUse) equal(o *CPUUse) bool {
	return u.CPUs.Equal(o.CPUs) && u.Shared.Equal(o.Shared) && slices.EqualFunc(u.Again, o.Again, IDSet.Equal)
}
