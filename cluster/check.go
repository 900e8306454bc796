package cluster

import (
	"cmp"
	"slices"
	"strings"
	"time"
)

// Checks of a server before it proposes a command. They are no part of Apply: entries of older logs that they would
// refuse mean what they meant.

// Check refuses a command that would leave the cluster in a state that its user cannot have meant.
func Check(s *Snapshot, cmd Command) error {
	switch c := cmd.(type) {
	case *NodeUp:
		return c.check()
	case *PartitionSet:
		return c.check(s)
	case *UpdateJob:
		return c.check(s)
	case *CrontabPut:
		return c.check()
	case *TriggerSet:
		return c.room(s)
	case *JWTEnd:
		return c.check(s)
	case *HoldJobs:
		return refuseIf(c.Hold > HeldAdmin, Invalid, "", "%d is no hold: there are 0 to %d", c.Hold, HeldAdmin)
	case *Requeue:
		return c.check(s)
	case *ReservationPut:
		return c.check(s)
	}
	return nil
}

// check: where accounts bind users, a reservation is of accounts that there are, and of users who are in them.
// Names that it had before may stay.
func (c *ReservationPut) check(s *Snapshot) error {
	old, known := s.resvs.Get(c.Name)
	if !s.config.Enforce.Associations || known && slices.Equal(old.Accounts, c.Accounts) {
		return nil
	}
	missing := func(account string) bool {
		_, known := s.Account(account)
		return !known
	}
	foreign := func(account string) bool {
		return slices.ContainsFunc(c.Users, func(user string) bool {
			_, in := s.AssocOf(account, user, "")
			return !in
		})
	}
	return firstError(
		refuseIf(slices.ContainsFunc(c.Accounts, missing),
			Invalid, ErrAccount, "not all of these are accounts: %s", strings.Join(c.Accounts, ", ")),
		refuseIf(!c.UsersNot && !c.AccountsNot && slices.ContainsFunc(c.Accounts, foreign),
			Invalid, ErrAccount, "not all of these users are in account %s: %s",
			strings.Join(c.Accounts, ", "), strings.Join(c.Users, ", ")),
	)
}

// check: a partition that jobs are in stays, and what it names is there.
func (c *PartitionSet) check(s *Snapshot) error {
	p := &c.Partition
	if c.Delete {
		return partitionInUse(s, p.Name)
	}
	old, _ := s.Partition(p.Name)
	if _, known := s.QOS(p.QOS); p.QOS != "" && !known {
		return Errorf(Invalid, ErrQOS, "partition %s: there is no QOS %s", p.Name, p.QOS)
	}
	if _, known := s.Partition(p.Alternate); p.Alternate != "" && !known {
		return Errorf(Invalid, ErrPartition, "partition %s: its alternate %s does not exist", p.Name, p.Alternate)
	}
	for _, name := range p.Nodes {
		if old != nil && slices.Contains(old.Nodes, name) || knownNode(s, name) {
			continue
		}
		return Errorf(Invalid, ErrNodeName, "partition %s: there is no node or node set %s", p.Name, name)
	}
	return nil
}

// check: a job that waits is held by a hold, not requeued.
func (c *Requeue) check(s *Snapshot) error {
	jobs := s.Find(c.Ref)
	if len(jobs) != 1 || jobs[0].Phase != Pending {
		return nil // Apply refuses it, or has something to requeue
	}
	return Errorf(Conflict, ErrPending, "job %d is pending already", jobs[0].ID)
}

func knownNode(s *Snapshot, name NodeName) bool {
	_, known := s.Node(name)
	of := func(n Node) bool { return n.Name == name }
	set := func(g NodeGroup) bool { return g.Name == string(name) }
	return known || slices.ContainsFunc(s.config.Declared, of) || slices.ContainsFunc(s.config.NodeSets, set)
}

// partitionInUse refuses while a job is in a partition, or may come back to it. One that is only ending does not count.
func partitionInUse(s *Snapshot, name string) error {
	for j := range s.Jobs() {
		asked := slices.Contains(j.Spec.Partitions, name)
		there := j.Alloc != nil && j.Alloc.Partition == name
		over := j.Phase == Ended || j.Phase == Ending && !j.RequeueAfter
		if over || !asked && !there {
			continue
		}
		return Errorf(Conflict, ErrPartInUse,
			"partition %s is in use, by job %d: cancel its jobs or move them first", name, j.ID)
	}
	return nil
}

// check: no job waits for one that waits for it.
func (c *UpdateJob) check(s *Snapshot) error {
	if err := c.Patch.check(); err != nil {
		return err
	}
	if err := c.checkBulk(s); err != nil {
		return err
	}
	if err := c.checkMove(s); err != nil || c.Patch.Depends == nil {
		return err
	}
	if err := CheckParents(s, c.Patch.Depends.Terms); err != nil {
		return err
	}
	seen := map[JobID]bool{}
	ahead := idsOf(c.Patch.Depends.Terms)
	if slices.Contains(ahead, c.Ref.Job) {
		return nil // Apply refuses that
	}
	for len(ahead) > 0 {
		id := ahead[0]
		ahead = ahead[1:]
		if id == c.Ref.Job {
			return Errorf(Invalid, ErrCircular, "job %d would wait for itself", c.Ref.Job)
		}
		if seen[id] {
			continue
		}
		seen[id] = true
		for _, j := range s.Find(Ref{Job: id}) {
			ahead = append(ahead, idsOf(j.Depends.Terms)...)
		}
	}
	return nil
}

// checkMove: what a job may not be submitted as it may not become.
func (c *UpdateJob) checkMove(s *Snapshot) error {
	p := &c.Patch
	if p.Partitions == nil && p.Mem == nil && p.Reservation == nil {
		return nil
	}
	for _, j := range s.Find(c.Ref) {
		spec := *j.Spec
		spec.Layout = spec.Layout.Clone()
		if p.Partitions != nil {
			spec.Partitions = p.Partitions
		}
		if p.Reservation != nil {
			spec.Reservation = *p.Reservation
		}
		if p.Mem != nil {
			spec.Mem = *p.Mem
		}
		if err := CheckEntry(s, &spec); err != nil {
			return err
		}
		asked := *spec.Layout
		if err := LimitMemory(s, &spec); err != nil {
			return err
		}
		if p.Mem != nil && (spec.CPUsPerTask != asked.CPUsPerTask || spec.MinCPUs != asked.MinCPUs) {
			return Errorf(Invalid, ErrStepMem,
				"job %d has too few CPUs for that memory (MaxMemPerCPU): submit it again with more", j.ID)
		}
	}
	return nil
}

// check refuses lines that a text cannot have, or that two jobs have: they are commented out by number once their job
// is over.
func (c *CrontabPut) check() error {
	lines := strings.Count(c.Text, "\n") + 1
	jobs := slices.SortedFunc(slices.Values(c.Jobs), func(a, b CronJob) int { return cmp.Compare(a.First, b.First) })
	next := 1
	for _, j := range jobs {
		if j.First < next || j.Last < j.First || j.Last > lines {
			return Errorf(Invalid, "", "lines %d to %d of a crontab with %d do not exist or belong to another job: "+
				"count lines from 1", j.First, j.Last, lines)
		}
		next = j.Last + 1
	}
	return nil
}

func idsOf(terms []Depend) (out []JobID) {
	for _, d := range terms {
		if d.Job != 0 {
			out = append(out, d.Job)
		}
	}
	return out
}

// CheckEntry refuses a job that one of its partitions is closed to: a job of root's (DisableRootJobs), and one
// without a reservation (ReqResv).
func CheckEntry(s *Snapshot, spec *JobSpec) error {
	names := spec.Partitions
	if p := s.DefaultPartition(); len(names) == 0 && p != nil {
		names = []string{p.Name}
	}
	if spec.UID == 0 && s.config.NoRootJobs {
		return Errorf(Denied, ErrUser, "DisableRootJobs: root may not run jobs: submit them as a user")
	}
	for _, name := range names {
		p, known := s.Partition(name)
		switch {
		case !known:
		case spec.UID == 0 && p.DisableRootJobs:
			return Errorf(Denied, ErrUser,
				"partition %s has DisableRootJobs: root may not run jobs there: submit them as a user", name)
		case p.ReqResv && spec.Reservation == "":
			return Errorf(Denied, ErrAccess,
				"partition %s takes jobs of reservations alone: name one by --reservation", name)
		}
	}
	return nil
}

// CheckTimes refuses a job whose least time limit is longer than what is left until its deadline.
func CheckTimes(now time.Time, spec *JobSpec) error {
	left := spec.Deadline.Sub(now)
	if spec.Deadline.IsZero() || spec.LimitMin <= left {
		return nil
	}
	return Errorf(Invalid, ErrTimeMin, "a least time limit of %s is more than the %s that are left until the deadline: "+
		"give a shorter --time-min", spec.LimitMin, left.Round(time.Second))
}

// LimitMemory keeps a job within MaxMemPerCPU, of its partition or of the cluster, as Slurm does: what it asks for
// beyond comes with more CPUs. It refuses one that asks for more than MaxMemPerNode.
func LimitMemory(s *Snapshot, spec *JobSpec) error {
	p := s.DefaultPartition()
	if len(spec.Partitions) > 0 {
		p, _ = s.Partition(spec.Partitions[0])
	}
	most := s.config.MaxMem
	whose := "the cluster"
	if p != nil && p.MaxMem.MB > 0 {
		most = p.MaxMem
		whose = "partition " + p.Name
	}
	if most.MB == 0 || spec.Mem.MB == 0 {
		return nil
	}
	switch most.Per {
	case MemPerNode:
		return spec.within(most.MB, whose)
	case MemPerCPU:
		spec.takeCPUs(most.MB)
	}
	return nil
}

// within refuses a job that asks for more memory of a node than it gets.
func (s *JobSpec) within(most MemMB, whose string) error {
	task := max(s.CPUsPerTask, 1)
	m := s.Mem
	return firstError(
		refuseIf(m.Per == MemPerNode && m.MB > most,
			Invalid, ErrStepMem, "%s gives a job %d MB a node (MaxMemPerNode), not %d", whose, most, m.MB),
		// One task is on some node.
		refuseIf(m.Per == MemPerCPU && m.MB*MemMB(task) > most,
			Invalid, ErrStepMem, "%s gives a job %d MB a node (MaxMemPerNode), "+
				"which is too little for a task of %d CPUs with %d MB each", whose, most, task, m.MB),
	)
}

// takeCPUs has a job take so many CPUs that none comes with more memory than it may.
func (s *JobSpec) takeCPUs(most MemMB) {
	switch m := &s.Mem; {
	case m.Per == MemPerNode:
		s.MinCPUs = max(s.MinCPUs, int(upTo(m.MB, most)))
	case m.Per == MemPerCPU && m.MB > most:
		times := upTo(m.MB, most)
		s.CPUsPerTask = max(s.CPUsPerTask, 1) * int(times)
		m.MB = upTo(m.MB, times)
	}
}

// upTo is how many parts of a size make an amount.
func upTo(amount, size MemMB) MemMB { return (amount + size - 1) / size }
