package cluster

import (
	"slices"
	"strings"
	"time"
)

// The usage of associations and QOS: what jobs are billed, decayed. All servers must agree to the last
// bit, so every product stands in float64(...): no CPU may fuse it with a sum, and powers are products.

// power is f to the n-th.
func power(f float64, n int64) float64 {
	p := 1.0
	for ; n > 0; n >>= 1 {
		if n&1 == 1 {
			p = float64(p * f)
		}
		f = float64(f * f)
	}
	return p
}

// halving is Slurm's constant, which is not quite ln 2.
const halving = 0.693

// decayFactor is what usage is multiplied with each second.
func (p *PriorityConfig) decayFactor() float64 {
	if p.HalfLife < time.Second {
		return 1
	}
	return 1 - float64(halving/p.HalfLife.Seconds())
}

// times is s multiplied with f.
func (s Spent) times(f float64) Spent {
	out := Spent{Raw: float64(s.Raw * f), Wall: float64(s.Wall * f)}
	for _, a := range s.TRES {
		out.TRES = append(out.TRES, Amount{a.TRES, float64(a.N * f)})
	}
	return out
}

// plus adds; nothing is less than zero.
func (s Spent) plus(o Spent) Spent {
	s.Raw, s.Wall, s.TRES = max(s.Raw+o.Raw, 0), max(s.Wall+o.Wall, 0), slices.Clone(s.TRES)
	for _, a := range o.TRES {
		i, ok := slices.BinarySearchFunc(s.TRES, a.TRES,
			func(x Amount, name string) int { return strings.Compare(x.TRES, name) })
		if !ok {
			s.TRES = slices.Insert(s.TRES, i, Amount{TRES: a.TRES})
		}
		s.TRES[i].N = max(s.TRES[i].N+a.N, 0)
	}
	return s
}

// negative is for sums only.
func (s Spent) negative() Spent { return s.times(-1) }

// spend charges an association and all above it.
func (t *tx) spend(id AssocID, s Spent) {
	for a := range t.Line(id) {
		n := *a
		n.Spent = a.Spent.plus(s)
		putValue(t, t.assocs, n.ID, &n)
	}
}

// runUntil is how long the job has run and is charged for.
func (j *Job) runUntil(now time.Time) time.Duration {
	if j.Phase == Ending && j.EndingAt.Before(now) {
		now = j.EndingAt
	}
	return j.RunTime(now)
}

// charge books what the job has used since it was last charged; j is a copy that the caller puts. It
// reports whether there was anything.
func (t *tx) charge(j *Job) bool {
	p := &t.config.Priority
	if j.Assoc == 0 || !p.Multifactor || j.Alloc == nil {
		return false
	}
	secs := int64((j.runUntil(t.at) - j.Charged) / time.Second)
	if secs <= 0 {
		return false
	}
	j.Charged += time.Duration(secs) * time.Second
	q, hasQOS := t.qos.Get(j.Spec.QOS)
	whole := float64(secs)
	factor := 1.0
	if hasQOS {
		factor = q.UsageFactor
	}
	run := Owed{Assoc: float64(float64(whole*power(p.decayFactor(), secs)) * factor)}
	if run.QOS = run.Assoc; hasQOS && q.budget() {
		run.QOS = float64(whole * factor)
	}
	t.book(j, q, t.spentBy(j, run.Assoc), t.spentBy(j, run.QOS))
	if p.RefundFaults {
		if j.Owed != nil {
			run = Owed{run.Assoc + j.Owed.Assoc, run.QOS + j.Owed.QOS}
		}
		j.Owed = &run
	}
	return true
}

// Owed is for how many seconds of a job's run it is charged, less what has faded: at its association and those
// above, and at its QOS.
type Owed struct {
	Assoc float64 `json:"assoc"`
	QOS   float64 `json:"qos"`
}

// book charges a job's association and those above, and its QOS, if there is one.
func (t *tx) book(j *Job, q *QOS, atAssoc, atQOS Spent) {
	t.spend(j.Assoc, atAssoc)
	if q != nil {
		n := *q
		n.Spent = q.Spent.plus(atQOS)
		putValue(t, t.qos, n.Name, &n)
	}
}

// fadeOwed has what is charged for a running job fade as the usage does that it is part of; j is a copy.
func (t *tx) fadeOwed(j *Job, f float64, reset bool, since time.Time) {
	if j.Owed == nil {
		return
	}
	if reset {
		f = 0
	}
	o := Owed{Assoc: float64(j.Owed.Assoc * f), QOS: float64(j.Owed.QOS * f)}
	switch q, _ := t.qos.Get(j.Spec.QOS); {
	case q == nil:
	case q.budget():
		if o.QOS = j.Owed.QOS; !since.IsZero() && q.UsageReset.between(since, t.at) {
			o.QOS = 0
		}
	case q.Flag("NoDecay") && !reset:
		o.QOS = j.Owed.QOS
	}
	j.Owed = &o
}

// faulted reports whether the platform ended the attempt of a job that has ended: a node failed, or something that the
// verdict blames.
func (j *Job) faulted() bool {
	return j.Outcome.Lost() || j.Blame != nil && !j.Blame.Maybe && j.Outcome != Completed
}

// refund gives back what an attempt was charged that the platform has ended, if the site wants that; j is a copy.
func (t *tx) refund(j *Job) {
	o := j.Owed
	j.Owed = nil
	if o == nil || !t.config.Priority.RefundFaults || !j.faulted() {
		return
	}
	q, _ := t.qos.Get(j.Spec.QOS)
	t.book(j, q, t.spentBy(j, o.Assoc).negative(), t.spentBy(j, o.QOS).negative())
	j.Refunded = true
}

// spentBy is what a job that has an allocation uses up in so many seconds.
func (t *tables) spentBy(j *Job, secs float64) Spent {
	amounts := t.AmountsOf(j)
	s := Spent{Raw: float64(secs * t.BillingOf(j.Alloc.Partition, amounts)), Wall: secs}
	for _, a := range amounts {
		s = s.plus(Spent{TRES: []Amount{{a.TRES, float64(secs * a.N)}}})
	}
	return s
}

// AmountsOf lists what a job was given, or while it waits what it asks for.
func (t *tables) AmountsOf(j *Job) []Amount {
	p, _ := t.Partition(j.Spec.firstPartition())
	return j.Amounts(t.config, p)
}

func (s *JobSpec) firstPartition() string {
	if len(s.Partitions) == 0 {
		return ""
	}
	return s.Partitions[0]
}

// Amounts lists what a job was given; while it waits, what it asks for in a partition (which may be nil).
func (j *Job) Amounts(c *Config, p *Partition) []Amount {
	var cpus, mem, gpus, nodes int64
	var types []GRES
	if j.Alloc != nil {
		nodes = int64(len(j.Alloc.Shares) + len(j.Alloc.Spares))
		for _, sh := range j.Alloc.Parts() {
			cpus += int64(sh.CPUs.Len())
			mem += int64(sh.MemMB)
			gpus += int64(sh.GPUs.Len())
		}
		for _, name := range sortedNames(j.Alloc.Types) {
			types = append(types, GRES{Type: name, Count: j.Alloc.Types[name]})
		}
	} else {
		n := j.Spec.Asks()
		nodes = int64(n.Nodes)
		cpus = int64(n.CPUs)
		gpus = n.GPUs
		mem = j.Spec.memory(c, p, n)
		for _, g := range slices.Concat(j.Spec.PerNode, j.Spec.PerJob, j.Spec.PerTask) {
			if g.Name == "gpu" && g.Type != "" && types == nil {
				types = append(types, GRES{Type: g.Type, Count: gpus})
			}
		}
	}
	out := []Amount{{"cpu", float64(cpus)}, {"mem", float64(mem)}, {"node", float64(nodes)}}
	if gpus > 0 {
		out = append(out, Amount{"gres/gpu", float64(gpus)})
	}
	if part := Part(j.Spec.PerNode); part != nil {
		out = append(out, Amount{"gres/" + part.Name, float64(part.Count * nodes)})
	}
	for _, g := range types {
		if g.Type != "" {
			out = append(out, Amount{"gres/gpu:" + g.Type, float64(g.Count)})
		}
	}
	return out
}

func sortedNames(m map[string]int64) (names []string) {
	for k := range m {
		names = append(names, k)
	}
	slices.Sort(names)
	return names
}

// Asked is the size of a request: what was asked for, or follows from it.
type Asked struct {
	Nodes, Tasks, CPUs int
	GPUs               int64
}

// Asks works it out.
func (s *JobSpec) Asks() (n Asked) {
	n.Nodes = max(s.MinNodes, len(s.Wanted()), 1)
	if s.MinNodes == 0 && s.TasksPerNode > 0 && s.Tasks > 0 {
		n.Nodes = (s.Tasks + s.TasksPerNode - 1) / s.TasksPerNode
	}
	n.Tasks = n.Nodes
	switch {
	case s.Tasks > 0:
		n.Tasks = s.Tasks
	case s.TasksPerNode > 0:
		n.Tasks = s.TasksPerNode * n.Nodes
	}
	if on := gpuCount(s.PerNode); s.MinNodes == 0 && on > 0 {
		n.Nodes = max(n.Nodes, int((gpuCount(s.PerJob)+on-1)/on))
	}
	n.GPUs = max(gpuCount(s.PerJob), gpuCount(s.PerNode)*int64(n.Nodes), gpuCount(s.PerTask)*int64(n.Tasks),
		gpuCount(s.PerSocket)*int64(max(s.SocketsPerNode, 1)*n.Nodes))
	n.CPUs = max(n.Tasks*s.TaskCPUs(), s.MinCPUs*n.Nodes)
	if s.CPUsPerGPU > 0 && len(s.PerTask) == 0 {
		n.CPUs = max(n.CPUs, s.CPUsPerGPU*int(n.GPUs))
	}
	return n
}

// TaskCPUs is how many CPUs a task asks for; --cpus-per-gpu counts with GPUs per task, too.
func (s *JobSpec) TaskCPUs() int {
	if s.CPUsPerTask == 0 && s.CPUsPerGPU > 0 && len(s.PerTask) > 0 {
		return s.CPUsPerGPU * int(gpuCount(s.PerTask))
	}
	return max(s.CPUsPerTask, 1)
}

func gpuCount(list []GRES) (n int64) {
	for _, g := range list {
		if g.Name == "gpu" {
			n += g.Count
		}
	}
	return n
}

// memory is the request for memory in all, in MB: as asked, else the partition's or the cluster's default.
func (s *JobSpec) memory(c *Config, p *Partition, n Asked) int64 {
	m := s.Mem
	if m.Per == MemDefault {
		m = c.DefMem
		if p != nil && p.DefMem.MB > 0 {
			m = p.DefMem
		}
	}
	switch m.Per {
	case MemPerNode:
		return int64(m.MB) * int64(n.Nodes)
	case MemPerGPU:
		return int64(m.MB) * n.GPUs
	}
	return int64(m.MB) * int64(n.CPUs)
}

// BillingOf is what amounts are billed in a partition, each second.
func (t *tables) BillingOf(partition string, list []Amount) float64 {
	p, _ := t.Partition(partition)
	return Billing(&t.config.Priority, p, list)
}

// Billing weighs amounts with the partition's weights: by default the sum, with MAX_TRES the largest of
// what nodes have and the sum of the rest. Without weights the CPUs are billed.
func Billing(c *PriorityConfig, p *Partition, list []Amount) float64 {
	if p == nil || len(p.BillingWeights) == 0 {
		return amountOf(list, "cpu")
	}
	sum := 0.0
	top := 0.0
	for _, w := range p.BillingWeights {
		x := float64(w.N * amountOf(list, w.TRES))
		if c.billsLargest(w.TRES) {
			top = max(top, x)
		} else {
			sum += x
		}
	}
	return top + sum
}

// billsLargest reports whether a resource is one of those of which the largest is billed, not the sum.
func (c *PriorityConfig) billsLargest(tres string) bool {
	if slices.Contains([]string{"cpu", "mem", "node"}, tres) {
		return c.MaxTRES || c.MaxTRESGRES
	}
	return c.MaxTRES && strings.HasPrefix(tres, "gres/")
}

// Decay is the clock of priorities: usage fades, running jobs are charged, fair shares and the priorities of
// pending jobs are computed again.
type Decay struct{}

func (*Decay) kind() string { return "decay" }

func (c *Decay) apply(t *tx) (any, error) {
	p := &t.config.Priority
	if !p.Multifactor {
		return nil, nil
	}
	old := t.Decayed
	keepOld(t, &t.Decayed)
	secs := int64(0)
	if old.IsZero() {
		t.Decayed = t.at
	} else if secs = int64(t.at.Sub(old) / time.Second); secs > 0 {
		t.Decayed = old.Add(time.Duration(secs) * time.Second)
	}
	f := power(p.decayFactor(), secs)
	reset := !old.IsZero() && p.UsageReset.between(old, t.at)
	t.fade(f, reset)
	t.renewBudgets(old)
	var charged []*Job
	for j := range t.Live() {
		n := *j
		t.fadeOwed(&n, f, reset, old)
		if t.charge(&n) || n.Owed != j.Owed {
			charged = append(charged, &n)
		}
	}
	for _, j := range charged {
		t.putJob(j)
	}
	t.settleShares()
	t.endSpent()
	t.accrueMore()
	t.rankAll()
	return nil, nil
}

// fade multiplies all usage, or sets it to zero.
func (t *tx) fade(f float64, reset bool) {
	if f == 1 && !reset {
		return
	}
	if reset {
		f = 0
	}
	for _, a := range slices.Collect(t.Assocs()) {
		n := *a
		n.Spent = a.Spent.times(f)
		putValue(t, t.assocs, n.ID, &n)
	}
	for _, q := range slices.Collect(t.QOSes()) {
		if q.budget() || q.Flag("NoDecay") && !reset {
			continue
		}
		n := *q
		n.Spent = q.Spent.times(f)
		putValue(t, t.qos, n.Name, &n)
	}
}

// renewBudgets sets the usage of those QOS to zero whose own period began after a time, if that is known.
func (t *tx) renewBudgets(since time.Time) {
	if since.IsZero() {
		return
	}
	for _, q := range slices.Collect(t.QOSes()) {
		if q.UsageReset.between(since, t.at) {
			n := *q
			n.Spent = Spent{}
			putValue(t, t.qos, n.Name, &n)
		}
	}
}

// between reports whether a period begins after a and not after b. Days are those of UTC: all servers
// must agree on them.
func (p Period) between(a, b time.Time) bool {
	begin := func(t time.Time) time.Time {
		y, m, d := t.UTC().Date()
		switch p {
		case ResetDaily:
		case ResetWeekly:
			d -= int(t.UTC().Weekday())
		case ResetMonthly:
			d = 1
		case ResetQuarterly:
			d = 1
			m = (m-1)/3*3 + 1
		case ResetYearly:
			d = 1
			m = 1
		default:
			return time.Time{}
		}
		return time.Date(y, m, d, 0, 0, 0, 0, time.UTC)
	}
	return !begin(a).Equal(begin(b))
}

// decayDue is when Decay is due again, zero if never.
func (t *tables) decayDue() time.Time {
	p := &t.config.Priority
	switch {
	case !p.Multifactor || t.queue.Len() == 0 && !t.Accounting():
		return time.Time{}
	case t.Decayed.IsZero():
		return t.Now
	}
	return t.Decayed.Add(max(p.CalcPeriod, time.Second))
}
