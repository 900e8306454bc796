package cluster

import (
	"maps"
	"math"
	"slices"
	"time"
)

// PriorityConfig says how the order of the queue is computed; without Multifactor it is the order of
// submission.
type PriorityConfig struct {
	Multifactor bool            `json:"multifactor,omitempty"`
	Weights     PriorityWeights `json:"weights,omitzero"`
	MaxAge      time.Duration   `json:"max_age,omitempty"`
	HalfLife    time.Duration   `json:"half_life,omitempty"` // 0: usage does not fade
	CalcPeriod  time.Duration   `json:"calc_period,omitempty"`
	UsageReset  Period          `json:"usage_reset,omitempty"`
	// RefundFaults gives back what attempts of jobs were charged that the platform has ended.
	RefundFaults bool `json:"refund_faults,omitempty"`
	Dampening    int  `json:"dampening,omitempty"`
	FavorSmall   bool `json:"favor_small,omitempty"`

	// PriorityFlags.
	AccrueAlways        bool `json:"accrue_always,omitempty"`
	CalculateRunning    bool `json:"calculate_running,omitempty"`
	IncrOnly            bool `json:"incr_only,omitempty"`
	MaxTRES             bool `json:"max_tres,omitempty"`
	MaxTRESGRES         bool `json:"max_tres_gres,omitempty"`
	NoFairTree          bool `json:"no_fair_tree,omitempty"`
	SmallRelativeToTime bool `json:"small_relative_to_time,omitempty"`
	RawAssoc            bool `json:"raw_assoc,omitempty"` // NO_NORMAL_ASSOC …
	RawPart             bool `json:"raw_part,omitempty"`
	RawQOS              bool `json:"raw_qos,omitempty"`
	RawTRES             bool `json:"raw_tres,omitempty"`
}

// PriorityWeights are what the factors count.
type PriorityWeights struct {
	Age       uint32   `json:"age,omitempty"`
	Assoc     uint32   `json:"assoc,omitempty"`
	FairShare uint32   `json:"fair_share,omitempty"`
	Size      uint32   `json:"size,omitempty"`
	Partition uint32   `json:"partition,omitempty"`
	QOS       uint32   `json:"qos,omitempty"`
	TRES      []Amount `json:"tres,omitempty"`
}

// Factors are what a priority is made of: from 0 to 1 each, unless they are asked for as they come.
type Factors struct {
	Age       float64  `json:"age,omitempty"`
	Assoc     float64  `json:"assoc,omitempty"`
	FairShare float64  `json:"fair_share,omitempty"`
	Size      float64  `json:"size,omitempty"`
	Partition float64  `json:"partition,omitempty"`
	QOS       float64  `json:"qos,omitempty"`
	TRES      []Amount `json:"tres,omitempty"` // in the order of the weights
	Site      int      `json:"site,omitempty"`
	Nice      int      `json:"nice,omitempty"`
}

// Weigh multiplies each factor with its weight.
func (f Factors) Weigh(w *PriorityWeights) Factors {
	f.Age = float64(f.Age * float64(w.Age))
	f.Assoc = float64(f.Assoc * float64(w.Assoc))
	f.FairShare = float64(f.FairShare * float64(w.FairShare))
	f.Size = float64(f.Size * float64(w.Size))
	f.Partition = float64(f.Partition * float64(w.Partition))
	f.QOS = float64(f.QOS * float64(w.QOS))
	list := f.TRES
	f.TRES = nil
	for _, a := range list {
		f.TRES = append(f.TRES, Amount{a.TRES, float64(a.N * amountOf(w.TRES, a.TRES))})
	}
	return f
}

// Priority is the sum of weighed factors, cut to a whole number. 0 would mean held.
func (f Factors) Priority() uint32 { return uint32(min(max(f.Total(), 1), math.MaxUint32)) }

// Total is the sum of weighed factors.
func (f Factors) Total() float64 {
	sum := float64(f.Site) + f.Age + f.Assoc + f.FairShare + f.Size + f.Partition + f.QOS
	for _, a := range f.TRES {
		sum += a.N
	}
	return sum - float64(f.Nice)
}

// Scale is what factors are measured against: sums and highest values over all nodes, partitions,
// associations and QOS. It is derived, and made again only after one of those has changed.
type Scale struct {
	nodes, cpus, gpus   float64
	parts               map[string][]Amount
	nodeMem             map[string]float64 // of a node of the partition, in MB, on average
	assoc, qos, jobPart int
}

// counts reports whether the node is one that priorities are measured against.
func (n *Node) counts() bool {
	return n.Up && !n.Down && !n.Drain && n.Expected != ExpectedFuture
}

// measure makes a scale. Only nodes that can be used count.
func (t *tables) measure() *Scale {
	s := &Scale{parts: map[string][]Amount{}, nodeMem: map[string]float64{}}
	for n := range t.Nodes() {
		if n.counts() {
			s.nodes++
			s.cpus += float64(n.Inventory.CPUs)
			s.gpus += float64(len(n.Inventory.GPUs))
		}
	}
	for i := range t.config.Partitions {
		p := &t.config.Partitions[i]
		s.jobPart = max(s.jobPart, p.PriorityJobFactor)
		if len(t.config.Priority.Weights.TRES) == 0 {
			continue
		}
		has := map[string]float64{}
		for n := range t.PartitionNodes(p) {
			if !n.counts() {
				continue
			}
			has["cpu"] = has["cpu"] + float64(n.Inventory.CPUs)
			has["mem"] = has["mem"] + float64(n.Inventory.MemMB)
			has["node"] = has["node"] + 1
			for _, g := range n.Inventory.GPUs {
				if !g.Missing {
					has["gres/gpu"] = has["gres/gpu"] + 1
					has["gres/gpu:"+g.Type] = has["gres/gpu:"+g.Type] + 1
				}
			}
		}
		var all []Amount
		for _, name := range slices.Sorted(maps.Keys(has)) {
			all = append(all, Amount{name, has[name]})
		}
		has["billing"] = math.Floor(Billing(&t.config.Priority, p, all))
		s.nodeMem[p.Name] = ratio(has["mem"], has["node"])
		for _, w := range t.config.Priority.Weights.TRES {
			s.parts[p.Name] = append(s.parts[p.Name], Amount{w.TRES, has[w.TRES]})
		}
	}
	for a := range t.Assocs() {
		s.assoc = max(s.assoc, a.Priority)
	}
	for q := range t.QOSes() {
		s.qos = max(s.qos, q.Priority)
	}
	return s
}

// freshScale forgets the scale: what it is derived from has changed.
func (t *tx) freshScale() {
	t.scale = nil
	t.onUndo(func() { t.scale = nil })
}

// Scale is the active one.
func (t *tables) Scale() *Scale {
	if t.scale != nil {
		return t.scale
	}
	return t.measure()
}

// Ranker computes factors.
type Ranker struct {
	*tables
	scale *Scale
}

// Ranker makes one; it is of use for many jobs.
func (t *tables) Ranker() Ranker { return Ranker{t, t.Scale()} }

// Share is which part of the cluster a job asks for at least, of CPUs, GPUs or, with --exclusive, nodes, whichever is
// most: more than 0, and 1 for a job that is larger than the cluster.
func (s *Scale) Share(j *Job) float64 {
	n := j.Spec.Asks()
	share := max(ratio(float64(n.CPUs), s.cpus), ratio(float64(n.GPUs), s.gpus))
	if j.Spec.Sharing == ShareExclusive {
		share = max(share, ratio(float64(n.Nodes), s.nodes))
	}
	return min(max(share, 1e-9), 1)
}

// Factors computes what a job's priority is made of in a partition at a time.
func (t Ranker) Factors(j *Job, part string, at time.Time) (f Factors) {
	c := &t.config.Priority
	s := t.scale
	n := j.Spec.Asks()
	f.Site = j.Spec.Site
	f.Nice = j.Spec.Nice
	if from := j.ages(c); !from.IsZero() && c.MaxAge > 0 {
		f.Age = min(max(float64(at.Sub(from)/time.Second)/c.MaxAge.Seconds(), 0), 1)
	}
	norm := func(raw bool, v, top int) float64 {
		if raw {
			return float64(v)
		}
		return ratio(float64(v), float64(top))
	}
	if a, ok := t.assocs.Get(j.Assoc); ok {
		f.Assoc = norm(c.RawAssoc, t.assocPriority(a), s.assoc)
		f.FairShare = a.FairShare
		if a.Shares == ShareParent && c.NoFairTree {
			f.FairShare = t.parentShare(a)
		}
	}
	if q, ok := t.qos.Get(j.Spec.QOS); ok {
		f.QOS = norm(c.RawQOS, q.Priority, s.qos)
	}
	p, _ := t.Partition(part)
	if p != nil {
		f.Partition = norm(c.RawPart, p.PriorityJobFactor, s.jobPart)
		if least, _ := t.NodeBounds(p, j.Spec); j.Spec.MinNodes == 0 {
			n.Nodes = max(n.Nodes, least)
		}
	}
	f.Size = c.size(s, n, j.Limit)
	if len(c.Weights.TRES) > 0 {
		asks := t.amounts(j, p, part, n)
		for _, w := range c.Weights.TRES {
			x := amountOf(asks, w.TRES)
			if !c.RawTRES {
				x = ratio(x, amountOf(s.parts[part], w.TRES))
			}
			f.TRES = append(f.TRES, Amount{w.TRES, x})
		}
	}
	return f
}

// amounts is what a job was given, or asks for in a partition; --mem=0 is for the memory of whole nodes.
func (t Ranker) amounts(j *Job, p *Partition, part string, n Asked) []Amount {
	list := j.Amounts(t.config, p)
	for i := range list {
		switch a := &list[i]; {
		case j.Alloc != nil:
		case a.TRES == "node":
			a.N = float64(n.Nodes)
		case a.TRES == "mem" && j.Spec.Mem == Mem{Per: MemPerNode}:
			a.N = float64(t.scale.nodeMem[part] * float64(n.Nodes))
		case a.TRES == "mem":
			a.N = float64(j.Spec.memory(t.config, p, n))
		}
	}
	return t.withBilling(part, list)
}

func (t *tables) parentShare(a *Association) float64 {
	for b := range t.Line(a.Parent) {
		if b.Shares != ShareParent {
			return b.FairShare
		}
	}
	return 0
}

// assocPriority is an association's priority, or the next one's above that has any.
func (t *tables) assocPriority(a *Association) int {
	for b := range t.Line(a.ID) {
		if b.Priority > 0 {
			return b.Priority
		}
	}
	return 0
}

// size is the factor of the job's size.
func (c *PriorityConfig) size(s *Scale, n Asked, limit time.Duration) float64 {
	nodes := float64(n.Nodes)
	cpus := float64(n.CPUs)
	switch {
	case s.nodes == 0 || s.cpus == 0:
		return 0
	case c.SmallRelativeToTime:
		minutes := max(math.Ceil(limit.Minutes()), 1)
		if limit >= Unlimited {
			minutes = math.MaxUint32 // as Slurm's INFINITE
		}
		x := min(max(float64(nodes*s.cpus)/s.nodes, cpus)/minutes/s.cpus, 1)
		if c.FavorSmall {
			return 1 - x
		}
		return x
	case c.FavorSmall:
		return max(((s.nodes-nodes)/s.nodes+(s.cpus-cpus)/s.cpus)/2, 0)
	}
	return min((nodes/s.nodes+cpus/s.cpus)/2, 1)
}

// ages is since when a pending job grows older; zero if it does not.
func (j *Job) ages(c *PriorityConfig) time.Time {
	switch {
	case c.AccrueAlways:
		return j.Submitted
	case j.Held != NotHeld:
		return time.Time{}
	}
	return j.Accrue
}

// accrue keeps since when a job has been eligible. It changes j, which is not in a table yet.
func (t *tx) accrue(j *Job) {
	switch {
	case !t.config.Priority.Multifactor:
	case j.Held != NotHeld || j.Eligible.IsZero():
		j.Accrue = time.Time{}
	case j.Accrue.IsZero() && t.accrueBounds(j) != nil: // see accrueMore
	case j.Accrue.IsZero() || j.Accrue.After(t.at):
		j.Accrue = later(j.Eligible, j.Submitted)
	}
}

// rank computes a record's priority; held jobs have none. It changes j, which is not in a table yet.
func (t *tx) rank(j *Job) {
	c := &t.config.Priority
	if j.Held != NotHeld || j.Spec.Priority != nil || !c.Multifactor {
		j.Priority = priorityOf(j, countedBits(t.tables))
		return
	}
	if t.scale == nil {
		t.scale = t.measure()
	}
	best := uint32(0)
	r := t.Ranker()
	for _, part := range j.Spec.Partitions {
		best = max(best, r.Factors(j, part, t.at).Weigh(&c.Weights).Priority())
	}
	j.Priority = max(best, 1)
}

// rankAll computes the priorities of all pending jobs again, and with CALCULATE_RUNNING of those that run.
func (t *tx) rankAll() {
	var moved []*Job
	again := func(j *Job) {
		n := *j
		t.rank(&n)
		if t.config.Priority.IncrOnly { // as time passes; what is changed of a job may lower it
			n.Priority = max(n.Priority, j.Priority)
		}
		if n.Priority != j.Priority {
			moved = append(moved, &n)
		}
	}
	for j := range t.Queue() {
		if j.Held == NotHeld {
			again(j)
		}
	}
	if t.config.Priority.CalculateRunning {
		for j := range t.Live() {
			again(j)
		}
	}
	for _, j := range moved {
		old, _ := t.jobs.Get(j.ID)
		t.replaceRank(old, j)
		t.onUndo(func() { t.replaceRank(j, old) })
	}
}

// replaceRank is replaceJob for a record of which nothing but the priority changes: of what is derived from
// it, only its place in the queue moves. At 100,000 pending jobs that matters.
func (t *tables) replaceRank(old, j *Job) {
	t.changes.add(StateChange{Job: j.ID})
	t.jobs.Set(j.ID, j)
	if j.holds() {
		t.live.Set(j.ID, j)
		return
	}
	if k, ok := t.queueAt.Get(old.ID); ok {
		t.queue.Delete(k)
		k.prio = j.Priority
		t.queue.Set(k)
		t.queueAt.Set(j.ID, k)
	}
}

// reprioritize follows a new configuration.
func (t *tx) reprioritize(old *Config) {
	was := &old.Priority
	p := &t.config.Priority
	if p.UsageReset == ResetNow {
		t.fade(1, true)
	}
	if !p.Multifactor && !was.Multifactor {
		return
	}
	for _, j := range slices.Collect(t.Queue()) {
		n := *j
		t.accrue(&n)
		t.putJob(&n)
	}
	t.settleShares()
	t.rankAll()
}

// tier is the highest PriorityTier of a job's partitions.
func (t *tables) tier(s *JobSpec) (tier int) {
	for _, name := range s.Partitions {
		if p, ok := t.Partition(name); ok {
			tier = max(tier, p.PriorityTier)
		}
	}
	return tier
}

// keyOf is a pending record's place in the queue.
func (t *tables) keyOf(j *Job) queueKey {
	return queueKey{
		tier:      waitTier(t, j),
		prio:      j.Priority,
		submitted: j.Submitted,
		id:        j.ID,
	}
}

// waitTier is the tier in which a job waits.
func waitTier(t *tables, j *Job) int {
	if Expedited(j) {
		return ExpeditedTier
	}
	return t.tier(j.Spec)
}

// ExpeditedTier is above those of all partitions.
const ExpeditedTier = math.MaxInt

// queueLess orders pending records: partitions' tier, priority, time of submission, number.
func queueLess(a, b queueKey) bool {
	switch {
	case a.tier != b.tier:
		return a.tier > b.tier
	case a.prio != b.prio:
		return a.prio > b.prio
	case !a.submitted.Equal(b.submitted):
		return a.submitted.Before(b.submitted)
	}
	return a.id < b.id
}

// requeueAll derives every pending record's place again, after the tiers of partitions have changed.
func (t *tx) requeueAll(old []Partition) {
	tiers := func(list []Partition) (out []Amount) {
		for _, p := range list {
			out = append(out, Amount{p.Name, float64(p.PriorityTier)})
		}
		return out
	}
	if !slices.Equal(tiers(old), tiers(t.config.Partitions)) {
		t.touch(slices.Collect(t.Queue())...)
	}
}
