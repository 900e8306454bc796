package cluster

import (
	"cmp"
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"
)

// Admit fills defaults and refuses what can never be accepted. The handler calls it for a quick
// answer, Apply for the binding one.
func Admit(s *Snapshot, by Identity, spec JobSpec) (JobSpec, error) {
	tooLong := len(spec.Name) > MaxNameBytes || len(spec.Comment) > maxCommentBytes
	if err := firstError(
		refuseIf(spec.UID != by.UID && !by.Operator(),
			Denied, ErrAccess, "user %d may not submit jobs for user %d", by.UID, spec.UID),
		refuseIf(s.JobCount() >= s.config.MaxJobCount,
			Unavailable, ErrQueueFull, "the cluster holds %d jobs, its MaxJobCount", s.JobCount()),
		refuseIf(tooLong || len(spec.Depends.Terms) > maxDepends,
			Invalid, ErrTooBig, "job name, comment or dependency list is too long"),
	); err != nil {
		return spec, err
	}
	spec.Layout, spec.Depends = spec.Layout.Clone(), spec.Depends.asked()
	if err := admitNumbers(&spec); err != nil {
		return spec, err
	}
	if err := admitPartitions(s, by, &spec); err != nil {
		return spec, err
	}
	if spec.Nice < 0 && !by.Operator() {
		return spec, Errorf(Denied, ErrNice, "only operators may set a negative nice value")
	}
	if !by.Operator() {
		spec.Priority = nil // silently ignored, as Slurm does
	}
	if err := admitShape(s, &spec); err != nil {
		return spec, err
	}
	if err := admitOwner(s, &spec); err != nil {
		return spec, err
	}
	if spec.Requeue == nil {
		r := s.config.JobRequeue
		spec.Requeue = &r
	}
	return spec, nil
}

// admitShape refuses tasks, nodes, resources and times that cannot be.
func admitShape(s *Snapshot, spec *JobSpec) error {
	if err := admitArray(s, spec); err != nil {
		return err
	}
	if err := admitNodes(s, spec); err != nil {
		return err
	}
	if err := admitResources(s, spec); err != nil {
		return err
	}
	if !spec.Deadline.IsZero() && spec.Deadline.Before(s.Now) {
		return Errorf(Invalid, ErrBeginTime, "deadline %s has passed", spec.Deadline.Format(time.DateTime))
	}
	return nil
}

// admitOwner fills in to whom a job is charged, and refuses what that one, the partitions and the nodes do not let run.
func admitOwner(s *Snapshot, spec *JobSpec) error {
	if err := admitAccount(s, spec); err != nil {
		return err
	}
	if err := admitReservations(s, spec); err != nil {
		return err
	}
	if err := admitWCKey(s, spec); err != nil {
		return err
	}
	if err := admitLimits(s, spec); err != nil {
		return err
	}
	return admitFeatures(s, spec)
}

func admitArray(s *Snapshot, spec *JobSpec) error {
	a := spec.Array
	most := s.config.MaxArraySize
	if a == nil {
		return nil
	}
	if a.Tasks.Empty() || a.Tasks.Max() >= most {
		return Errorf(Invalid, ErrArray, "array index %d is not below MaxArraySize %d", a.Tasks.Max(), most)
	}
	return nil
}

// admitNodes fills in what comes with GPUs, and refuses numbers of nodes that cannot be, and nodes that are not there.
func admitNodes(s *Snapshot, spec *JobSpec) error {
	spec.perGPU(s.config)
	if spec.MaxNodes != 0 && spec.MaxNodes < spec.MinNodes {
		return Errorf(Invalid, ErrNodeCount, "at most %d nodes is less than at least %d",
			spec.MaxNodes, spec.MinNodes)
	}
	if k := spec.Segment; k > 0 && k < spec.MinNodes && spec.MinNodes%k != 0 && len(s.config.Blocks) > 0 {
		return Errorf(Invalid, ErrNodeConfig,
			"%d nodes cannot be divided into segments of %d: ask for a multiple", spec.MinNodes, k)
	}
	spec.Exclude = distinct(spec.Exclude)
	if spec.distribution() != "arbitrary" {
		spec.NodeList = distinct(spec.NodeList)
	}
	for name := range eachOf(spec.NodeList, spec.Exclude) {
		if _, ok := s.nodes.Get(name); !ok {
			return Errorf(Invalid, ErrNodeName, "node %s does not exist", name)
		}
	}
	return nil
}

// distinct is a list with each name once, as it came first. As all names exist, it is no longer than what has names.
func distinct[N ~string](list []N) []N {
	seen := make(map[N]bool, len(list))
	for _, name := range list {
		seen[name] = true
	}
	if len(seen) == len(list) {
		return list
	}
	out := make([]N, 0, len(seen))
	for _, name := range list {
		if seen[name] {
			out = append(out, name)
			seen[name] = false
		}
	}
	return out
}

// admitAccount fills in account and QOS, and refuses those that the user may not have.
func admitAccount(s *Snapshot, spec *JobSpec) error {
	if u, ok := s.users.Get(spec.User); ok && spec.Account == "" {
		spec.Account = u.DefaultAccount
	}
	a, ok := s.assocFor(spec)
	if !ok && s.config.Enforce.Associations {
		return Errorf(Invalid, ErrAccount, "user %s has no association with account %q", spec.User, spec.Account)
	}
	if spec.QOS == "" {
		spec.QOS = NormalQOS
		if ok {
			spec.QOS = s.DefaultQOS(a.ID)
		}
	} else if _, known := s.qos.Get(spec.QOS); !known && s.Accounting() {
		return Errorf(Invalid, ErrQOS, "there is no QOS %q", spec.QOS)
	}
	if s.config.Enforce.QOS {
		if err := admitQOS(s, spec, a); err != nil {
			return err
		}
	}
	if spec.Account == "" {
		spec.Account = spec.User
	}
	return nil
}

// admitQOS refuses a QOS that the user may not have; a is nil where the user has no association.
func admitQOS(s *Snapshot, spec *JobSpec, a *Association) error {
	if a != nil && !slices.Contains(s.AllowedQOS(a.ID), spec.QOS) {
		return Errorf(Invalid, ErrQOS, "user %s may not use QOS %q with account %s", spec.User, spec.QOS, spec.Account)
	}
	if q, _ := s.qos.Get(spec.QOS); q.Flag("RequiresReservation") && spec.Reservation == "" {
		return Errorf(Invalid, ErrQOS, "QOS %s is for jobs in a reservation only", spec.QOS)
	}
	return nil
}

// assocFor is the association that a job of this kind is charged to.
func (t *tables) assocFor(spec *JobSpec) (*Association, bool) {
	if spec.User == "" {
		return nil, false
	}
	return t.AssocOf(spec.Account, spec.User, spec.firstPartition())
}

// isCount reports whether so many may be asked for.
func isCount[N int | int64](n N) bool {
	return n >= 0 && n <= maxCount
}

// admitNumbers refuses counts that make no sense.
func admitNumbers(spec *JobSpec) error {
	l := spec.Layout
	counts := [...]int{
		l.MinNodes, l.MaxNodes,
		l.Tasks, l.TasksPerNode, l.TasksPerSocket, l.TasksPerCore, l.TasksPerGPU,
		l.CPUsPerTask, l.CPUsPerGPU, l.MinCPUs,
		l.SocketsPerNode, l.CoresPerSocket, l.ThreadsPerCore,
	}
	for _, n := range counts {
		if !isCount(n) {
			return Errorf(Invalid, ErrNodeCount, "%d is not a number of nodes, tasks or CPUs", n)
		}
	}
	for _, n := range []*int{l.CoreSpec, l.ThreadSpec} {
		if n != nil && !isCount(*n) {
			return Errorf(Invalid, ErrNodeConfig, "%d is not a number of cores or threads to leave for the system", *n)
		}
	}
	for g := range eachOf(l.PerNode, l.PerJob, l.PerSocket, l.PerTask) {
		if g.Count < 0 || !g.IsCounted() && !isCount(g.Count) {
			return Errorf(Invalid, ErrGRES, "%d is not a number of devices", g.Count)
		}
	}
	if l.Mem.MB < 0 || l.Mem.MB > 1<<40 || spec.TmpMB < 0 {
		return Errorf(Invalid, ErrNodeConfig, "%d MB is not an amount of memory", l.Mem.MB)
	}
	return admitTimes(spec)
}

// eachOf yields what is in some lists.
func eachOf[T any](lists ...[]T) iter.Seq[T] {
	return func(yield func(T) bool) {
		for _, list := range lists {
			for _, x := range list {
				if !yield(x) {
					return
				}
			}
		}
	}
}

// admitTimes refuses time limits that make no sense.
func admitTimes(spec *JobSpec) error {
	return firstError(
		refuseIf(spec.Limit < 0 || spec.LimitMin < 0,
			Invalid, ErrTimeLimit, "a time limit of %s is not positive", spec.Limit),
		refuseIf(spec.Limit > 0 && spec.LimitMin > spec.Limit,
			Invalid, ErrTimeMin,
			"a least time limit of %s is above the time limit, %s: give --time-min less than --time",
			spec.LimitMin, spec.Limit),
	)
}

// admitParts refuses parts of GPUs other than of one kind, by node, and without whole GPUs.
func admitParts(s *Snapshot, spec *JobSpec) error {
	part := Part(spec.PerNode)
	if elsewhere := Part(slices.Concat(spec.PerJob, spec.PerTask, spec.PerSocket)); elsewhere != nil {
		return Errorf(Invalid, ErrGRES, "%s is asked for by node: --gres=%s:%d", elsewhere.Name,
			elsewhere.Name, elsewhere.Count)
	}
	if part == nil {
		return nil
	}
	for _, g := range slices.Concat(spec.PerNode, spec.PerJob, spec.PerTask, spec.PerSocket) {
		if g.Count > 0 && g != *part && (g.Name == "gpu" || slices.Contains(PartNames, g.Name)) {
			return Errorf(Invalid, ErrGRES, "%s and %s cannot be asked for together", part.Name, g.Name)
		}
	}
	most := int64(0)
	for n := range s.Nodes() {
		most = max(most, n.Inventory.PartsOf(part.Name))
	}
	if part.Count > most {
		return Errorf(Invalid, ErrGRES, "%s:%d is more than any GPU has, %d (Name=%s in gres.conf)",
			part.Name, part.Count, most, part.Name)
	}
	return nil
}

// admitResources refuses licenses, reservations and generic resources that are not there.
func admitResources(s *Snapshot, spec *JobSpec) error {
	if err := s.config.admitLicenses(spec.Licenses); err != nil {
		return err
	}
	if err := admitCounted(s, spec); err != nil {
		return err
	}
	return admitParts(s, spec)
}

// admitReservations refuses reservations that are not there, or not for the job.
func admitReservations(s *Snapshot, spec *JobSpec) error {
	for _, name := range spec.ResvNames() {
		r, ok := s.Reservation(name)
		if !ok {
			return Errorf(Invalid, ErrReservation, "there is no reservation %s", name)
		}
		if !r.Allows(spec) {
			return Errorf(Denied, ErrResvAccess, "%s may not use reservation %s", whoAsks(r, spec), name)
		}
	}
	return nil
}

// whoAsks names what of a job a reservation asks about.
func whoAsks(r *Reservation, spec *JobSpec) string {
	text := fmt.Sprintf("user %s and account %q", spec.User, spec.Account)
	if len(r.QOS) > 0 {
		text += fmt.Sprintf(" with QOS %q", spec.QOS)
	}
	if len(r.Partitions) > 0 {
		text += " in partition " + strings.Join(spec.Partitions, ",")
	}
	return text
}

// admitFeatures refuses features that no node has.
func admitFeatures(s *Snapshot, spec *JobSpec) error {
	for _, ask := range []struct {
		text string
		kind ErrKind
	}{{spec.Constraint, ErrFeature}, {spec.Prefer, ErrPrefer}} {
		if len(ask.text) > maxConstraint {
			return Errorf(Invalid, ask.kind, "a constraint of %d bytes is too long: %d are the most",
				len(ask.text), maxConstraint)
		}
		_, names, err := ParseConstraint(ask.text)
		if err != nil {
			return err
		}
		slices.Sort(names)
		for _, name := range slices.Compact(names) {
			if s.nodes.Len() > 0 && !s.anyHas(name) {
				return Errorf(Invalid, ask.kind, "no node has the feature %s", name)
			}
		}
	}
	return nil
}

// anyHas reports whether a node has a feature.
func (s *Snapshot) anyHas(feature string) bool {
	for n := range s.Nodes() {
		if slices.Contains(n.Inventory.Features, feature) {
			return true
		}
	}
	return false
}

func admitPartitions(s *Snapshot, by Identity, spec *JobSpec) error {
	if len(spec.Partitions) == 0 {
		p := s.DefaultPartition()
		if p == nil {
			return Errorf(Invalid, ErrNoPartition, "no partition was given and none is the default")
		}
		spec.Partitions = []string{p.Name}
	}
	spec.Partitions = s.config.openPartitions(distinct(spec.Partitions))
	for _, name := range spec.Partitions {
		p, ok := s.Partition(name)
		if !ok {
			return Errorf(Invalid, ErrPartition, "partition %s does not exist", name)
		}
		if p.RootOnly && !by.Operator() {
			return Errorf(Denied, ErrAccess, "partition %s is for root only", name)
		}
		if !p.TakesFrom(spec.SubmitHost) && !by.System {
			return Errorf(Denied, ErrAccess, "jobs for partition %s cannot be submitted on %s: submit on one of %s",
				name, cmp.Or(spec.SubmitHost, "an unknown machine"), strings.Join(p.AllocNodes, ","))
		}
	}
	// The system changes jobs that are there already: see UpdateJob.
	if err := s.closed(spec.Partitions); err != nil && !by.System {
		return err
	}
	if spec.Sharing == ShareMCS {
		return Errorf(Invalid, ErrUnsupported,
			"--exclusive=mcs: there are no MCS labels: ask for --exclusive or --exclusive=user")
	}
	toOneUser := func(name string) bool {
		p, _ := s.Partition(name)
		return p.ExclusiveUser
	}
	if spec.Sharing == ShareDefault && slices.ContainsFunc(spec.Partitions, toOneUser) {
		spec.Sharing = ShareUser
	}
	return nil
}

// closed is an error if none of the partitions takes jobs; of several one is enough, as in Slurm.
func (t *tables) closed(names []string) error {
	var why []string
	for _, name := range names {
		p, _ := t.Partition(name)
		if !p.refusesJobs() {
			return nil
		}
		why = append(why, fmt.Sprintf("partition %s is %s", name, p.State))
	}
	return Errorf(Unavailable, ErrPartitionDown, "%s", strings.Join(why, ", "))
}

// admitPartLimits refuses what the partitions can never run: with EnforcePartLimits=ALL if one of them can
// not, for what the first of these lacks, with ANY if none of them can, for what the last one lacks, as Slurm does.
// Otherwise such jobs wait.
func admitPartLimits(s *Snapshot, spec *JobSpec) (err error) {
	must := strings.ToUpper(s.config.EnforcePartLimits)
	if must == "" || must == "NO" {
		return nil
	}
	for _, name := range spec.Partitions {
		p, _ := s.Partition(name)
		if err = s.lacks(p, spec); err == nil {
			err = s.fits(p, spec)
		}
		if (err == nil) == (must == "ANY") {
			return err
		}
	}
	return err
}

// lacks tells what of the nodes that a job wants a partition does not have.
func (s *Snapshot) lacks(p *Partition, spec *JobSpec) error {
	asks := spec.Asks()
	if size := p.Size(s); asks.Nodes > size && s.NodeCount() > 0 {
		return Errorf(Invalid, ErrNodeCount, "partition %s has %d nodes, not %d", p.Name, size, asks.Nodes)
	}
	cpus := 0
	known := true
	named := 0
	for n := range s.PartitionNodes(p) {
		cpus = cpus + n.Inventory.CPUs
		known = known && n.Inventory.CPUs > 0
		if slices.Contains(spec.NodeList, n.Name) {
			named++
		}
		if cpus >= asks.CPUs && named == len(spec.NodeList) {
			return nil
		}
	}
	return firstError(
		refuseIf(cpus < asks.CPUs && known && cpus > 0 && !spec.Overcommit,
			Invalid, ErrStepCPUs, "partition %s has %d CPUs, not %d", p.Name, cpus, asks.CPUs),
		refuseIf(named < len(spec.NodeList),
			Invalid, ErrNodesOutside,
			"partition %s has %d of the %d nodes that are named: see sinfo -p %s", p.Name, named,
			len(spec.NodeList), p.Name),
	)
}

// fits tells what of a partition's limits a job goes over that its QOS does not lift.
func (t *tables) fits(p *Partition, spec *JobSpec) error {
	nodes := spec.Asks().Nodes
	least, most := t.NodeBounds(p, spec)
	tooMany := most > 0 && nodes > most
	tooFew := nodes < least && (spec.MinNodes > 0 || spec.MaxNodes > 0)
	why := p.Barred(spec)
	return firstError(
		refuseIf(spec.Limit > cmp.Or(p.MaxTime, Unlimited) && !t.lifted(spec),
			Invalid, ErrTimeLimit, "the time limit %s is above that of partition %s, %s",
			spec.Limit, p.Name, p.MaxTime),
		refuseIf(tooMany || tooFew,
			Invalid, ErrNodeCount, "partition %s takes jobs of %d to %d nodes, not of %d", p.Name,
			p.MinNodes, p.MaxNodes, nodes),
		refuseIf(p.MaxMem.MB > 0 && moreOfNode(spec.Mem, p.MaxMem),
			Invalid, ErrStepMem, "partition %s gives a job %d MB a node, not %d", p.Name,
			p.MaxMem.MB, spec.Mem.MB),
		refuseIf(strings.HasPrefix(string(why), "Job's account"),
			Invalid, ErrAccount, "%s", why),
		refuseIf(why != NoReason,
			Invalid, ErrQOS, "%s", why),
	)
}

// moreOfNode reports whether more memory of a node is asked for than another amount of a node is.
func moreOfNode(asked, most Mem) bool {
	ofNode := asked.Per == MemPerNode && most.Per == MemPerNode
	return ofNode && asked.MB > most.MB
}

// perGPU fills in what the site gives jobs with GPUs for each that do not say what they need: CPUs where neither
// those of a task nor of a GPU are asked for, and no whole nodes; memory where none is.
func (s *JobSpec) perGPU(c *Config) {
	if !s.HasGPUs() {
		return
	}
	own := c.PerGPU
	for i := range c.Partitions {
		if p := &c.Partitions[i]; len(s.Partitions) > 0 && p.Name == s.Partitions[0] {
			own = PerGPU{cmp.Or(p.PerGPU.CPUs, own.CPUs), cmp.Or(p.PerGPU.MemMB, own.MemMB)}
		}
	}
	said := s.CPUsPerGPU != 0 || s.CPUsPerTask != 0
	if own.CPUs > 0 && !said && s.Sharing != ShareExclusive {
		s.CPUsPerGPU = own.CPUs
		s.ByDefault = s.ByDefault | CPUsPerGPUByDefault
	}
	if own.MemMB > 0 && s.Mem.Per == MemDefault {
		s.Mem = Mem{Per: MemPerGPU, MB: own.MemMB}
		s.ByDefault = s.ByDefault | MemPerGPUByDefault
	}
}

// HasGPUs reports whether GPUs are asked for.
func (l *Layout) HasGPUs() bool {
	for _, list := range [][]GRES{l.PerNode, l.PerJob, l.PerSocket, l.PerTask} {
		if slices.ContainsFunc(list, func(g GRES) bool {
			return g.Name == "gpu" && g.Count > 0
		}) {
			return true
		}
	}
	return false
}
