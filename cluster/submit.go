package cluster

import (
	"cmp"
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
	Viable federation.Set `json:"viable,omitempty"`
	// Moved is set if the job comes from another workload manager.
	Moved *Moved `json:"moved,omitempty"`
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
	if err := firstError(
		refuseIf(c.Spec.Cron != nil,
			Invalid, "", "jobs that run again and again are submitted by scrontab"),
		refuseIf(len(c.Key) > maxKeyBytes,
			Invalid, "", "the submission's key has %d bytes, more than %d", len(c.Key), maxKeyBytes),
	); err != nil {
		return nil, err
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
	j := &Job{Key: c.Key, Rarely: Rarely{Fed: fed}}
	if m := c.Moved; m == nil {
		j.ID = t.allotID()
	} else if err := m.check(t); err != nil {
		return nil, err
	} else {
		j.ID, j.Submitted = m.id(t), m.Submitted
	}
	if spec.Array != nil {
		j.ArrayID = j.ID
		j.Tasks = spec.Array.Tasks
	}
	if err := t.enter(j, &spec, c.Dead, c.Moved); err != nil {
		return nil, err
	}
	t.partNever(j.ID)
	return j.ID, nil
}

// enter puts a record of an admitted job into the queue, or with a reason among those that have ended. moved is nil but
// for a job that comes from another workload manager.
func (t *tx) enter(j *Job, spec *JobSpec, dead Reason, moved *Moved) error {
	if err := admitTexts(t, spec); err != nil {
		return err
	}
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
		if moved != nil {
			moved.settle(t, j)
		}
	}
	t.rank(j)
	t.putJob(j)
	t.tell(j)
	return nil
}

// allotID takes the next free number of the one counter for jobs, tasks and arrays.
func (t *tx) allotID() JobID {
	keepOld(t, &t.NextID)
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
	if h == HeldUser && j.Held == HeldAdmin && !t.by.Operator() {
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
func partitionTime(t *tables, s *JobSpec) (most time.Duration) {
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
