package cluster

import (
	"cmp"
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"

	"dev.muster/cluster/federation"
)

// Limits of what one submission may carry. Slurm's own figures where it has them.
const (
	MaxScriptBytes  = 4 << 20  // Slurm's max_script_size
	MaxEnvBytes     = 16 << 20 // environment of one job
	MaxNameBytes    = 1024
	maxCommentBytes = MaxNameBytes * 64
	maxDepends      = 1024
)

// PutBlob stores a text that jobs of the same proposal refer to.
type PutBlob struct {
	Hash BlobHash `json:"hash"`
	Text BlobText `json:"text"`
}

func (*PutBlob) kind() string { return "put_blob" }

func (c *PutBlob) apply(t *tx) (any, error) {
	if len(c.Text) > MaxEnvBytes {
		return nil, Errorf(Invalid, ErrTooBig, "text of %d bytes is larger than %d", len(c.Text), MaxEnvBytes)
	}
	if _, ok := t.blobs.Get(c.Hash); !ok {
		if c.Hash != HashBlob(c.Text) {
			return nil, Errorf(Invalid, "", "the stored text is not what its name %s says", c.Hash)
		}
		t.putBlob(&Blob{Hash: c.Hash, Text: c.Text, Added: t.at})
	}
	return nil, nil
}

// Submit puts a new job (or array) into the queue. Result: JobID. Dead, if set, records a job
// that can never run, so that it is seen in history with the reason; it takes an id.
type Submit struct {
	Spec *JobSpec `json:"spec"`
	Dead Reason   `json:"dead,omitempty"`
	// Key is the submitter's own name of this submission: made again after an answer was lost, it
	// answers with the job that it made then.
	Key string `json:"key,omitempty"`
	// Viable are the clusters of the federation where it may run; none: it is this cluster's alone.
	Viable federation.Set `json:"viable,omitempty" since:"6"`
}

// maxKeyBytes bounds a submission's key.
const maxKeyBytes = 128

// submitKey tells the keys of different users apart.
type submitKey struct {
	uid uint32
	key string
	id  JobID
}

func submitKeyLess(x, y submitKey) bool {
	return cmp.Or(cmp.Compare(x.uid, y.uid), cmp.Compare(x.key, y.key), cmp.Compare(x.id, y.id)) < 0
}

// SubmittedAs finds the job that a user's submission with this key has made.
func (t *tables) SubmittedAs(uid uint32, key string) (id JobID, ok bool) {
	if key == "" {
		return 0, false
	}
	t.keys.Ascend(submitKey{uid: uid, key: key}, func(k submitKey) bool {
		if ok = k.uid == uid && k.key == key; ok {
			j, _ := t.jobs.Get(k.id)
			id = cmp.Or(j.ArrayID, j.ID)
		}
		return false
	})
	if k, spent := t.spent.Get(&SpentKey{UID: uid, Key: key}); !ok && spent {
		return k.Job, true
	}
	return id, ok
}

func (*Submit) kind() string { return "submit" }

func (c *Submit) apply(t *tx) (any, error) {
	if c.Spec == nil {
		return nil, Errorf(Invalid, "", "nothing was submitted")
	}
	if c.Spec.Cron != nil {
		return nil, Errorf(Invalid, "", "jobs that run again and again are submitted by scrontab")
	}
	if len(c.Key) > maxKeyBytes {
		return nil, Errorf(Invalid, "", "the submission's key has %d bytes, more than %d", len(c.Key), maxKeyBytes)
	}
	if id, again := t.SubmittedAs(c.Spec.UID, c.Key); again {
		return id, nil
	}
	spec, err := Admit(&Snapshot{*t.tables}, t.by, *c.Spec)
	if err != nil {
		return nil, err
	}
	fed, err := shares(t, c)
	if err != nil {
		return nil, err
	}
	j := &Job{ID: t.allotID(), Key: c.Key, Rarely: Rarely{Fed: fed}}
	if spec.Array != nil {
		j.ArrayID = j.ID
		j.Tasks = spec.Array.Tasks
	}
	if err := t.enter(j, &spec, c.Dead); err != nil {
		return nil, err
	}
	t.partNever(j.ID)
	return j.ID, nil
}

// enter puts a record of an admitted job into the queue, or with a reason among those that have ended.
func (t *tx) enter(j *Job, spec *JobSpec, dead Reason) error {
	for _, h := range []*BlobHash{&spec.Script, &spec.Env} {
		if err := t.refBlob(*h, 1); err != nil {
			return err
		}
		if b, ok := t.blobs.Get(*h); ok {
			*h = b.Hash // the same characters
		}
	}
	t.interned.share(spec)
	j.Spec = spec
	j.Task = TaskAny
	j.Limit = t.TimeLimit(spec)
	if j.Submitted.IsZero() {
		j.Submitted = t.at
	}
	if a, ok := t.assocFor(spec); ok {
		j.Assoc = a.ID
	}
	burst, err := burstAsked(t, j, spec)
	if err != nil {
		return err
	}
	j.Burst = burst
	if err := t.admitLimits(j); err != nil && dead == "" {
		return err
	}
	if dead != "" {
		j.Phase = Ended
		j.Outcome = Failed
		j.EndReason = dead
		j.Ended = t.at
		j.Eligible = t.at
		j.Exit.Code = 1
	} else {
		if spec.Hold {
			t.setHold(j, HeldUser)
		}
		j.Depends = spec.Depends
		t.evaluate(j)
	}
	t.rank(j)
	t.putJob(j)
	t.tell(j)
	return nil
}

// allotID takes the next free number of the one counter for jobs, tasks and arrays.
func (t *tx) allotID() JobID {
	old := t.NextID
	t.onUndo(func() { t.NextID = old })
	base := idBase(t.tables)
	for range t.JobCount() + 2 {
		id := numbered(base, t.NextID)
		if t.NextID++; t.NextID > t.config.MaxJobID {
			t.NextID = t.config.FirstJobID
		}
		if _, taken := t.jobs.Get(id); !taken {
			return id
		}
	}
	panic(Errorf(Unavailable, ErrQueueFull, "all job numbers up to %d are in use", t.config.MaxJobID))
}

// topPriority is where Slurm's priority/basic starts counting down.
const topPriority = 4294901760

// priorityOf is this version's order: as submitted, lowered by --nice. numbers are the bits of a job's number that
// count.
func priorityOf(j *Job, numbers JobID) uint32 {
	if j.Held != NotHeld {
		return 0
	}
	if j.Spec.Priority != nil {
		return *j.Spec.Priority
	}
	p := int64(topPriority) - int64(cmp.Or(j.ArrayID, j.ID)&numbers) - int64(j.Spec.Nice)
	return uint32(min(max(p, 1), topPriority))
}

func (t *tx) setHold(j *Job, h Hold) {
	if t.level >= LevelReconcile && h == HeldUser && j.Held == HeldAdmin && !t.by.Operator() {
		return // an administrator's hold is not made less by its owner
	}
	j.Held = h
	switch h {
	case HeldUser:
		j.Wait = WaitHeldUser
	case HeldAdmin:
		j.Wait = WaitHeldAdmin
	default:
		j.Wait = NoReason
		j.SpecialExit = false
	}
	j.WaitNote = ""
	if h == NotHeld && t.config.Priority.Multifactor && j.Spec.Priority != nil { // the formula counts again
		spec := *j.Spec
		spec.Priority, j.Spec = nil, &spec
	}
	t.accrue(j)
	t.rank(j)
}

// TimeLimit is the time limit that will be enforced: the asked one, else the default of the partition, else the longest
// that its limits and the partition allow.
func (t *tables) TimeLimit(s *JobSpec) time.Duration {
	if s.Limit != 0 {
		return s.Limit
	}
	for _, name := range s.Partitions {
		p, ok := t.Partition(name)
		if !ok {
			continue
		}
		most := cmp.Or(p.MaxTime, Unlimited)
		wall := t.longest(s, name)
		if wall < most || t.lifted(s) && wall < Unlimited {
			most = wall
		}
		if l := cmp.Or(p.DefaultTime, most); l != Unlimited {
			return l
		}
	}
	return Unlimited
}

// partitionTime is the longest time limit of the partitions of a job.
func (t *tables) partitionTime(s *JobSpec) (most time.Duration) {
	if t.lifted(s) {
		return Unlimited
	}
	for _, name := range s.Partitions {
		if p, ok := t.Partition(name); ok {
			most = max(most, cmp.Or(p.MaxTime, Unlimited))
		}
	}
	return most
}

// longest is for how long limits let a job of no time limit of its own run at most: MaxWall, and where its QOS
// denies what is above MaxTRESMins, as long as that is enough for what it asks for.
func (t *tables) longest(s *JobSpec, part string) time.Duration {
	if !t.config.Enforce.Limits {
		return Unlimited
	}
	j := &Job{Spec: s}
	if a, ok := t.assocFor(s); ok {
		j.Assoc = a.ID
	}
	g := t.Meter(t.Now).Gate(j, part)
	most := Unlimited
	ask := t.askingOf(j, part, nil)
	for _, b := range g.bounds {
		switch amount := amountOf(ask.tres, b.tres); {
		case b.what == ofWall:
			most = min(most, time.Duration(b.max)*time.Second)
		case b.what == ofJobMins && g.deny && amount > 0:
			most = min(most, time.Duration(b.max/amount)*time.Minute)
		}
	}
	return max(most, time.Minute)
}

// Admit fills defaults and refuses what can never be accepted. The handler calls it for a quick
// answer, Apply for the binding one.
func Admit(s *Snapshot, by Identity, spec JobSpec) (JobSpec, error) {
	if spec.UID != by.UID && !by.Operator() {
		return spec, Errorf(Denied, ErrAccess, "user %d may not submit jobs for user %d", by.UID, spec.UID)
	}
	if s.JobCount() >= s.config.MaxJobCount {
		return spec, Errorf(Unavailable, ErrQueueFull, "the cluster holds %d jobs, its MaxJobCount", s.JobCount())
	}
	if len(spec.Name) > MaxNameBytes || len(spec.Comment) > maxCommentBytes || len(spec.Depends.Terms) > maxDepends {
		return spec, Errorf(Invalid, ErrTooBig, "job name, comment or dependency list is too long")
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

// admitShape refuses tasks, nodes, resources and times that can not be.
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

// admitNodes fills in what comes with GPUs, and refuses numbers of nodes that can not be, and nodes that are not there.
func admitNodes(s *Snapshot, spec *JobSpec) error {
	spec.perGPU(s.config)
	if spec.MaxNodes != 0 && spec.MaxNodes < spec.MinNodes {
		return Errorf(Invalid, ErrNodeCount, "at most %d nodes is less than at least %d",
			spec.MaxNodes, spec.MinNodes)
	}
	if k := spec.Segment; k > 0 && k < spec.MinNodes && spec.MinNodes%k != 0 && len(s.config.Blocks) > 0 {
		return Errorf(Invalid, ErrNodeConfig,
			"%d nodes can not be divided into segments of %d: ask for a multiple", spec.MinNodes, k)
	}
	for name := range eachOf(spec.NodeList, spec.Exclude) {
		if _, ok := s.nodes.Get(name); !ok {
			return Errorf(Invalid, ErrNodeName, "node %s does not exist", name)
		}
	}
	return nil
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

// maxCount bounds every number of nodes, tasks, CPUs and devices that may be asked for.
const maxCount = 1 << 24

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
		if !isCount(g.Count) {
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
	if spec.Limit < 0 || spec.LimitMin < 0 {
		return Errorf(Invalid, ErrTimeLimit, "a time limit of %s is not positive", spec.Limit)
	}
	if spec.Limit > 0 && spec.LimitMin > spec.Limit {
		return Errorf(Invalid, ErrTimeMin,
			"a least time limit of %s is above the time limit, %s: give --time-min less than --time",
			spec.LimitMin, spec.Limit)
	}
	return nil
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
			return Errorf(Invalid, ErrGRES, "%s and %s can not be asked for together", part.Name, g.Name)
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

// admitResources refuses what no configuration of this version can name: licenses and reservations that
// are not there, and generic resources other than GPUs.
func admitResources(s *Snapshot, spec *JobSpec) error {
	if err := s.config.admitLicenses(spec.Licenses); err != nil {
		return err
	}
	for _, name := range spec.ResvNames() {
		r, ok := s.Reservation(name)
		if !ok {
			return Errorf(Invalid, ErrReservation, "there is no reservation %s", name)
		}
		if !r.Allows(spec) {
			return Errorf(Denied, ErrResvAccess, "user %s and account %q may not use reservation %s",
				spec.User, spec.Account, name)
		}
	}
	for g := range eachOf(spec.PerNode, spec.PerJob, spec.PerTask) {
		known := g.Name == "gpu" || g.Name == "none" || slices.Contains(PartNames, g.Name)
		if g.Count > 0 && !known {
			return Errorf(Invalid, ErrGRES, "no node has resources called %s", g.Name)
		}
	}
	return admitParts(s, spec)
}

// admitFeatures refuses features that no node has.
func admitFeatures(s *Snapshot, spec *JobSpec) error {
	for _, ask := range []struct {
		text string
		kind ErrKind
	}{{spec.Constraint, ErrFeature}, {spec.Prefer, ErrPrefer}} {
		_, names, err := ParseConstraint(ask.text)
		if err != nil {
			return err
		}
		for _, name := range names {
			found := s.nodes.Len() == 0
			for n := range s.Nodes() {
				found = found || slices.Contains(n.Inventory.Features, name)
			}
			if !found {
				return Errorf(Invalid, ask.kind, "no node has the feature %s", name)
			}
		}
	}
	return nil
}

func admitPartitions(s *Snapshot, by Identity, spec *JobSpec) error {
	if len(spec.Partitions) == 0 {
		p := s.DefaultPartition()
		if p == nil {
			return Errorf(Invalid, ErrNoPartition, "no partition was given and none is the default")
		}
		spec.Partitions = []string{p.Name}
	}
	for _, name := range spec.Partitions {
		p, ok := s.Partition(name)
		if !ok {
			return Errorf(Invalid, ErrPartition, "partition %s does not exist", name)
		}
		if p.RootOnly && !by.Operator() {
			return Errorf(Denied, ErrAccess, "partition %s is for root only", name)
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
		if p.State != PartitionDrain && p.State != PartitionInactive {
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
	switch {
	case cpus < asks.CPUs && known && cpus > 0 && !spec.Overcommit:
		return Errorf(Invalid, ErrStepCPUs, "partition %s has %d CPUs, not %d", p.Name, cpus, asks.CPUs)
	case named < len(spec.NodeList):
		return Errorf(Invalid, ErrNodesOutside,
			"partition %s has %d of the %d nodes that are named: see sinfo -p %s", p.Name, named,
			len(spec.NodeList), p.Name)
	}
	return nil
}

// fits tells what of a partition's limits a job goes over that its QOS does not lift.
func (t *tables) fits(p *Partition, spec *JobSpec) error {
	nodes := spec.Asks().Nodes
	least, most := t.NodeBounds(p, spec)
	tooMany := most > 0 && nodes > most
	tooFew := nodes < least && (spec.MinNodes > 0 || spec.MaxNodes > 0)
	switch why := p.Barred(spec); {
	case spec.Limit > cmp.Or(p.MaxTime, Unlimited) && !t.lifted(spec):
		return Errorf(Invalid, ErrTimeLimit, "the time limit %s is above that of partition %s, %s",
			spec.Limit, p.Name, p.MaxTime)
	case tooMany || tooFew:
		return Errorf(Invalid, ErrNodeCount, "partition %s takes jobs of %d to %d nodes, not of %d", p.Name,
			p.MinNodes, p.MaxNodes, nodes)
	case p.MaxMem.MB > 0 && moreOfNode(spec.Mem, p.MaxMem):
		return Errorf(Invalid, ErrStepMem, "partition %s gives a job %d MB a node, not %d", p.Name,
			p.MaxMem.MB, spec.Mem.MB)
	case strings.HasPrefix(string(why), "Job's account"):
		return Errorf(Invalid, ErrAccount, "%s", why)
	case why != NoReason:
		return Errorf(Invalid, ErrQOS, "%s", why)
	}
	return nil
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
