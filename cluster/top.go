package cluster

import (
	"slices"
	"strings"
)

// TopJobs moves a user's pending jobs before the user's other ones of the same partition, account and QOS,
// in the order given. It changes nice values alone: what these gain, those that they pass lose, so that
// nobody else's jobs are touched.
type TopJobs struct {
	Refs []Ref `json:"refs"`
}

func (*TopJobs) kind() string { return "top" }

func (c *TopJobs) apply(t *tx) (any, error) {
	if !t.by.Operator() && !t.config.UserTop {
		return nil, Errorf(Denied, ErrAccess,
			"only operators may move jobs to the top: SchedulerParameters has no enable_user_top")
	}
	var movers []*Job
	for _, r := range c.Refs {
		jobs, err := t.living(r)
		if err != nil {
			return nil, err
		}
		for _, j := range jobs {
			if err := firstError(
				refuseIf(j.Phase != Pending,
					Conflict, ErrNotPending, "job %d is not pending", j.ID),
				refuseIf(j.Held != NotHeld,
					Conflict, ErrNotHeld, "job %d is held; release it first", j.ID),
			); err != nil {
				return nil, err
			}
			if j.moves() && !slices.ContainsFunc(movers, func(m *Job) bool { return m.ID == j.ID }) {
				movers = append(movers, j)
			}
		}
	}
	for len(movers) > 0 {
		var group, rest []*Job
		for _, j := range movers {
			if j.competes(movers[0]) {
				group = append(group, j)
			} else {
				rest = append(rest, j)
			}
		}
		t.top(group)
		movers = rest
	}
	return nil, nil
}

// moves reports whether nice values change the record's place.
func (j *Job) moves() bool {
	return j.Held == NotHeld && j.Spec.Priority == nil
}

// competes reports whether two jobs are of one user, partition, account and QOS.
func (j *Job) competes(o *Job) bool {
	return j.Spec.UID == o.Spec.UID && j.Spec.Account == o.Spec.Account && j.Spec.QOS == o.Spec.QOS &&
		strings.Join(j.Spec.Partitions, ",") == strings.Join(o.Spec.Partitions, ",")
}

// top gives jobs the highest priority of their kind, each one less than the one before.
func (t *tx) top(movers []*Job) {
	best := movers[0].Priority
	least := movers[0].Priority
	gain := 0
	for _, j := range movers {
		best = max(best, j.Priority)
		least = min(least, j.Priority)
	}
	var passed []*Job
	for o := range t.Queue() {
		if o.moves() && o.Priority >= least && o.competes(movers[0]) && !slices.ContainsFunc(movers, func(m *Job) bool { return m.ID == o.ID }) {
			best = max(best, o.Priority)
			passed = append(passed, o)
		}
	}
	for i, j := range movers {
		d := int(best) - i - int(j.Priority)
		gain += d
		t.nice(j, -d)
	}
	last := int(best) - len(movers) + 1
	for _, o := range passed {
		t.nice(o, max(gain/len(passed), int(o.Priority)-last+1, 1))
	}
}

func (t *tx) nice(j *Job, d int) {
	n := *j
	spec := *j.Spec
	spec.Nice += d
	n.Spec = &spec
	t.rank(&n)
	t.putJob(&n)
	t.tell(&n)
}
