package cluster

import "strings"

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
	var groups [][]*Job
	group, seen := map[topKind]int{}, map[JobID]bool{}
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
			if !j.moves() || seen[j.ID] {
				continue
			}
			seen[j.ID] = true
			kind := j.topKind()
			at, known := group[kind]
			if !known {
				at = len(groups)
				group[kind] = at
				groups = append(groups, nil)
			}
			groups[at] = append(groups[at], j)
		}
	}
	others := make([][]*Job, len(groups))
	for o := range t.Queue() {
		if at, ok := group[o.topKind()]; ok && o.moves() && !seen[o.ID] {
			others[at] = append(others[at], o)
		}
	}
	for i, movers := range groups {
		t.top(movers, others[i])
	}
	return nil, nil
}

// topKind is what jobs have in common of which one may go to the top.
type topKind struct {
	uid                      uint32
	account, qos, partitions string
}

func (j *Job) topKind() topKind {
	return topKind{j.Spec.UID, j.Spec.Account, j.Spec.QOS, strings.Join(j.Spec.Partitions, ",")}
}

// moves reports whether nice values change the record's place.
func (j *Job) moves() bool {
	return j.Held == NotHeld && j.Spec.Priority == nil
}

// top gives jobs the highest priority of their kind, of which the others are, each one less than the one before.
func (t *tx) top(movers, others []*Job) {
	best := movers[0].Priority
	least := movers[0].Priority
	gain := 0
	for _, j := range movers {
		best = max(best, j.Priority)
		least = min(least, j.Priority)
	}
	var passed []*Job
	for _, o := range others {
		if o.Priority >= least {
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
