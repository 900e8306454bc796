package cluster

import (
	"cmp"
	"slices"
	"time"
)

// Patch holds the fields of a job to change; nil ones stay.
type Patch struct {
	Name         *string        `json:"name,omitempty"`
	Comment      *string        `json:"comment,omitempty" text:"1024,lines"`
	AdminComment *string        `json:"admin_comment,omitempty" text:"1024,lines" by:"operator"`
	Account      *string        `json:"account,omitempty"`
	QOS          *string        `json:"qos,omitempty"`
	WCKey        *string        `json:"wckey,omitempty"`
	Partitions   []string       `json:"partitions,omitempty"`
	Limit        *time.Duration `json:"limit,omitempty"`
	LimitDelta   time.Duration  `json:"limit_delta,omitempty"`
	LimitMin     *time.Duration `json:"limit_min,omitempty"`
	End          *time.Time     `json:"end,omitempty"` // when the limit of a running job is to end it
	Begin        *time.Time     `json:"begin,omitempty"`
	Deadline     *time.Time     `json:"deadline,omitempty"`
	Nice         *int           `json:"nice,omitempty"`
	Priority     *uint32        `json:"priority,omitempty"`
	Site         *int           `json:"site,omitempty" by:"operator"`
	Depends      *Depends       `json:"depends,omitempty"`
	ArrayLimit   *int           `json:"array_limit,omitempty"`
	Requeue      *bool          `json:"requeue,omitempty"`
	MinNodes     *int           `json:"min_nodes,omitempty"`
	MaxNodes     *int           `json:"max_nodes,omitempty"`
	Tasks        *int           `json:"tasks,omitempty"`
	TasksPerNode *int           `json:"tasks_per_node,omitempty"`
	CPUsPerTask  *int           `json:"cpus_per_task,omitempty"`
	MinCPUs      *int           `json:"min_cpus,omitempty"`
	TmpMB        *int64         `json:"tmp_mb,omitempty"`
	Mem          *Mem           `json:"mem,omitempty"`
	PerNode      *[]GRES        `json:"per_node,omitempty"`
	PerJob       *[]GRES        `json:"per_job,omitempty"`
	Constraint   *string        `json:"constraint,omitempty"`
	NodeList     *[]NodeName    `json:"node_list,omitempty"`
	Exclude      *[]NodeName    `json:"exclude,omitempty"`
	Licenses     *string        `json:"licenses,omitempty"`
	Reservation  *string        `json:"reservation,omitempty"`
	Stdin        *string        `json:"stdin,omitempty" text:"4096"`
	Stdout       *string        `json:"stdout,omitempty" text:"4096"`
	Stderr       *string        `json:"stderr,omitempty" text:"4096"`
	WorkDir      *string        `json:"work_dir,omitempty" text:"4096"`
	MailUser     *string        `json:"mail_user,omitempty"`
	MailType     []string       `json:"mail_type,omitempty"` // NONE: no mail
	Switches     *int           `json:"switches,omitempty"`
	Sharing      *Sharing       `json:"sharing,omitempty" by:"operator"`
	Contiguous   *bool          `json:"contiguous,omitempty" by:"operator"`
	CoreSpec     *int           `json:"core_spec,omitempty" by:"operator"`   // below 0: what the node keeps
	ThreadSpec   *int           `json:"thread_spec,omitempty" by:"operator"` // so, too
	CPUsPerGPU   *int           `json:"cpus_per_gpu,omitempty"`
	Prefer       *string        `json:"prefer,omitempty"`
	DelayBoot    *time.Duration `json:"delay_boot,omitempty"`
	ResetAccrue  bool           `json:"reset_accrue,omitempty"` // its age counts anew
	// Features and Clusters say where in the federation a job that waits may run.
	Features *string `json:"cluster_features,omitempty" since:"6"`
	Clusters *string `json:"clusters,omitempty" since:"6"`
}

// UpdateJob changes pending jobs, and of running ones what may still change.
type UpdateJob struct {
	_ struct{} `retired:"resize"`

	Ref   Ref   `json:"ref"`
	Patch Patch `json:"patch"`
	// Runs: jobs that run give nodes back if they are to have fewer, and get other licenses; no job is to have more
	// nodes at least than at most. Logs of before have neither.
	Runs bool `json:"runs,omitempty"`
}

func (*UpdateJob) kind() string { return "update" }

func (c *UpdateJob) apply(t *tx) (any, error) {
	jobs, err := t.living(c.Ref)
	if err != nil {
		return nil, err
	}
	waiting := slices.ContainsFunc(jobs, func(j *Job) bool { return j.Phase == Pending })
	for _, j := range jobs {
		if err := c.change(t, j, waiting); err != nil {
			return nil, err
		}
	}
	return nil, nil
}

// change changes one job; waiting: some of the jobs wait.
func (c *UpdateJob) change(t *tx, j *Job, waiting bool) error {
	n, spec := *j, *j.Spec
	n.Spec, spec.Layout = &spec, spec.Layout.Clone()
	p, err := c.whileRunning(t, j, &n)
	if err != nil {
		return err
	}
	if what := p.early(j.Spec); what != "" && j.Phase != Pending {
		if waiting {
			return nil // the tasks of an array that wait are meant
		}
		return Errorf(Conflict, ErrNotPending, "%s of job %d can only change while it is pending", what, j.ID)
	}
	if err := p.times(t, &n, &spec); err != nil {
		return err
	}
	if err := p.order(t, &n, &spec); err != nil {
		return err
	}
	p.shape(&spec)
	p.texts(&spec)
	if err := p.admit(t, j, &n); err != nil {
		return err
	}
	p.requeue(t, &n)
	t.interned.share(&spec)
	t.putJob(&n)
	t.tell(&n)
	t.partNever(n.ID)
	return nil
}

// whileRunning changes what can change of a job that runs; n is a copy. It returns what is left of the patch.
func (c *UpdateJob) whileRunning(t *tx, j, n *Job) (p Patch, err error) {
	p = c.Patch
	if !c.Runs {
		return p, nil
	}
	if p.resizes(j) {
		if p, err = t.resize(n, p); err != nil {
			return p, err
		}
	}
	if p.Licenses != nil && j.holds() && j.Phase != Ending {
		if p, err = t.license(n, p); err != nil {
			return p, err
		}
	}
	if p.misranged(n.Spec) {
		return p, Errorf(Invalid, ErrNodeCount,
			"job %d would need %d nodes at least and have fewer at most: name both, as 2-4", n.ID,
			*p.MinNodes)
	}
	return p, nil
}

// requeue gives a changed job its place among the others.
func (p *Patch) requeue(t *tx, n *Job) {
	if n.Phase != Pending {
		if p.Nice != nil || p.Site != nil || p.Priority != nil {
			t.rank(n)
		}
		return
	}
	n.Limit = t.TimeLimit(n.Spec)
	t.evaluate(n)
	if p.ResetAccrue && !n.Accrue.IsZero() {
		n.Accrue = later(n.Accrue, t.at)
	}
	if n.Held == NotHeld {
		t.rank(n)
	}
}

// license gives a job that runs other licenses; n is a copy. It returns what is left of the patch.
func (t *tx) license(n *Job, p Patch) (Patch, error) {
	want := *p.Licenses
	if p.Licenses = nil; want == n.Spec.Licenses {
		return p, nil
	}
	if err := t.config.admitLicenses(want); err != nil {
		return p, err
	}
	if !t.by.Operator() {
		return p, Errorf(Denied, ErrAccess, "only operators may change the licenses of job %d while it runs", n.ID)
	}
	n.Spec.Licenses = want
	return p, nil
}

// misranged reports whether a job would need more nodes at least than it may have at most.
func (p *Patch) misranged(s *JobSpec) bool {
	most := s.MaxNodes
	if p.MaxNodes != nil {
		most = *p.MaxNodes
	}
	return p.MinNodes != nil && most > 0 && *p.MinNodes > most
}

// early names what the patch changes that only a pending job can have changed, "" if nothing.
func (p *Patch) early(s *JobSpec) string {
	q, probe := *p, *s
	probe.Layout = s.Layout.Clone()
	if slices.Equal(q.Partitions, s.Partitions) {
		q.Partitions = nil
	}
	if q.Reservation != nil && *q.Reservation == s.Reservation {
		q.Reservation = nil
	}
	for _, x := range []struct {
		what  string
		asked bool
	}{
		{"the age", p.ResetAccrue}, {"the account", p.Account != nil}, {"the QOS", p.QOS != nil},
		{"the wckey", p.WCKey != nil}, {"the dependency", p.Depends != nil},
		{"the begin time", p.Begin != nil},
		{"the files", p.Stdin != nil || p.Stdout != nil || p.Stderr != nil},
		{"the working directory", p.WorkDir != nil}, {"the size", q.shape(&probe)},
		{"the clusters", p.Features != nil || p.Clusters != nil},
	} {
		if x.asked {
			return x.what
		}
	}
	return ""
}

// admit holds what became of a job to what is asked of a submission, and finds its association.
func (p *Patch) admit(t *tx, was, n *Job) error {
	spec := n.Spec
	if err := p.places(t, n, spec); err != nil {
		return err
	}
	asked := *spec
	if n.Phase != Pending && spec.Expands() != 0 {
		asked.Depends = Depends{} // met: the job that it was to expand may be over, or have its nodes
	}
	admitted, err := Admit(&Snapshot{*t.tables}, Identity{System: true, UID: spec.UID}, asked)
	switch {
	case err != nil:
		return err
	case p.Account != nil && *p.Account == "" && t.Accounting():
		return Errorf(Invalid, ErrAccount, "job %d can not be without an account: name one", n.ID)
	}
	if p.Partitions != nil && n.Phase == Pending {
		if err := t.closed(spec.Partitions); err != nil {
			return err
		}
	}
	if p.WCKey != nil {
		spec.WCKey = admitted.WCKey
	}
	if p.QOS != nil { // none: the default one
		spec.QOS = admitted.QOS
	}
	if a, ok := t.assocFor(spec); ok {
		n.Assoc = a.ID
	} else if p.Account != nil || p.Partitions != nil {
		n.Assoc = 0
	}
	return t.admitMove(was, n, p.Limit != nil || p.LimitDelta != 0)
}

func set[T any](to *T, from *T) bool {
	if from == nil {
		return false
	}
	*to = *from
	return true
}

func (p *Patch) times(t *tx, n *Job, s *JobSpec) error {
	limit := s.Limit
	if limit == 0 {
		limit = n.Limit
	}
	changed := set(&limit, p.Limit)
	if p.LimitDelta != 0 && limit != Unlimited {
		limit, changed = limit+p.LimitDelta, true
	}
	if p.End != nil {
		switch {
		case n.Started.IsZero():
			return Errorf(Conflict, ErrNotRunning,
				"job %d has not begun, so its end can not be set: set its time limit", n.ID)
		case p.End.Before(t.at.Add(-time.Minute)):
			return Errorf(Invalid, ErrBeginTime, "job %d can not end at %s, which is over", n.ID,
				p.End.Format(time.DateTime))
		}
		limit, changed = max(p.End.Sub(n.begun())-n.SuspendTotal, time.Second), true
	}
	if changed {
		if limit <= 0 {
			return Errorf(Invalid, ErrTimeLimit, "a time limit of %s is not positive", limit)
		}
		if n.Phase != Pending && limit > n.Limit && !t.by.Operator() {
			return Errorf(Denied, ErrAccess, "only operators may raise the time limit of running job %d", n.ID)
		}
		if most := t.partitionTime(s); s.Limit != 0 && limit > max(s.Limit, most) && !t.by.Operator() {
			return Errorf(Denied, ErrAccess,
				"only operators may raise the time limit of job %d above that of its partition, %s", n.ID,
				most)
		}
		s.Limit, n.Limit = limit, limit
	}
	set(&s.LimitMin, p.LimitMin)
	set(&s.DelayBoot, p.DelayBoot)
	set(&s.Begin, p.Begin)
	if p.Deadline != nil && !t.by.Operator() {
		return Errorf(Denied, ErrAccess, "only operators may change a deadline")
	}
	set(&s.Deadline, p.Deadline)
	return nil
}

func (p *Patch) order(t *tx, n *Job, s *JobSpec) error {
	if p.Nice != nil && *p.Nice < 0 && !t.by.Operator() {
		return Errorf(Denied, ErrAccess, "only operators may set a negative nice value")
	}
	if s.Priority == nil || !t.config.Priority.Multifactor {
		set(&s.Nice, p.Nice)
	}
	switch {
	case p.MinNodes != nil && *p.MinNodes == 0:
		return Errorf(Invalid, ErrNodeCount, "job %d needs a node at least", n.ID)
	case p.Tasks != nil && *p.Tasks == 0:
		return Errorf(Invalid, ErrTaskCount, "job %d needs a task at least", n.ID)
	}
	set(&s.Site, p.Site)
	if err := p.priority(t, n, s); err != nil {
		return err
	}
	if err := p.dependency(n, s); err != nil {
		return err
	}
	if p.ArrayLimit != nil && s.Array != nil {
		a := *s.Array
		a.Limit, s.Array = *p.ArrayLimit, &a
	}
	if (p.CoreSpec != nil || p.ThreadSpec != nil) && !t.config.SpecUse {
		return Errorf(Denied, ErrAccess,
			"no job may say what it leaves of its nodes: AllowSpecResourcesUsage=yes in slurm.conf lets them")
	}
	return CheckRights(t.by, p)
}

// priority sets it as it is; 0 is a hold, as in Slurm.
func (p *Patch) priority(t *tx, n *Job, s *JobSpec) error {
	if p.Priority == nil {
		return nil
	}
	if *p.Priority == 0 {
		hold := HeldUser
		if t.by.Operator() {
			hold = HeldAdmin
		}
		t.setHold(n, max(hold, n.Held))
		return nil
	}
	switch {
	case n.Held != NotHeld:
		return Errorf(Conflict, ErrNotHeld, "job %d is held; release it instead", n.ID)
	case !t.by.Operator() && *p.Priority <= n.Priority:
		return Errorf(Denied, ErrPriorityReset,
			"only operators may set a priority, the next computation would change it: set nice instead")
	case !t.by.Operator():
		return Errorf(Denied, ErrAccess, "only operators may set a priority")
	case t.config.Priority.Multifactor:
		s.Nice = 0 // what was set counts as it is
	}
	s.Priority = p.Priority
	return nil
}

// dependency sets what the job waits for.
func (p *Patch) dependency(n *Job, s *JobSpec) error {
	if p.Depends == nil {
		return nil
	}
	own := func(id JobID) bool {
		return id == n.ID || id == n.ArrayID || n.Het != nil && id >= n.Het.ID && id <= n.Het.Last()
	}
	for _, d := range p.Depends.Terms {
		if d.Job != 0 && own(d.Job) {
			return Errorf(Invalid, ErrDependency, "job %d can not wait for itself", n.ID)
		}
	}
	if s.Depends.expands() || p.Depends.expands() {
		return Errorf(Invalid, ErrDependency, "which job is expanded is said when job %d is submitted", n.ID)
	}
	s.Depends = p.Depends.asked()
	n.Depends = s.Depends
	return nil
}

// shape changes what the job needs; it reports whether anything was asked.
func (p *Patch) shape(s *JobSpec) bool {
	n := 0
	count := func(ok bool) {
		if ok {
			n++
		}
	}
	count(set(&s.MinNodes, p.MinNodes))
	count(set(&s.MaxNodes, p.MaxNodes))
	count(set(&s.Tasks, p.Tasks))
	if p.MinNodes != nil && s.Tasks > 0 { // one for each node at least
		s.Tasks = max(s.Tasks, s.MinNodes)
	}
	count(set(&s.TasksPerNode, p.TasksPerNode))
	count(set(&s.CPUsPerTask, p.CPUsPerTask))
	count(set(&s.MinCPUs, p.MinCPUs))
	count(set(&s.TmpMB, p.TmpMB))
	count(set(&s.Mem, p.Mem))
	count(set(&s.PerNode, p.PerNode))
	count(set(&s.PerJob, p.PerJob))
	count(set(&s.CPUsPerGPU, p.CPUsPerGPU))
	count(set(&s.Constraint, p.Constraint))
	count(set(&s.Prefer, p.Prefer))
	count(set(&s.NodeList, p.NodeList))
	count(set(&s.Exclude, p.Exclude))
	count(set(&s.Switches, p.Switches))
	count(set(&s.Sharing, p.Sharing))
	count(set(&s.Contiguous, p.Contiguous))
	count(p.leaves(s))
	count(set(&s.Licenses, p.Licenses))
	count(set(&s.Reservation, p.Reservation))
	if p.Partitions != nil {
		s.Partitions = slices.Clone(p.Partitions)
		n++
	}
	return n > 0
}

// leaves changes what a job leaves of its nodes, cores or threads; it reports whether it was asked.
func (p *Patch) leaves(s *JobSpec) bool {
	if p.CoreSpec == nil && p.ThreadSpec == nil {
		return false
	}
	s.CoreSpec, s.ThreadSpec = p.CoreSpec, nil
	if p.CoreSpec == nil {
		s.ThreadSpec = p.ThreadSpec
	}
	if n := cmp.Or(p.CoreSpec, p.ThreadSpec); *n < 0 {
		s.CoreSpec, s.ThreadSpec = nil, nil
	}
	s.Sharing = ShareExclusive
	return true
}

func (p *Patch) texts(s *JobSpec) {
	set(&s.Name, p.Name)
	set(&s.Comment, p.Comment)
	set(&s.AdminComment, p.AdminComment)
	set(&s.Account, p.Account)
	set(&s.QOS, p.QOS)
	set(&s.WCKey, p.WCKey)
	set(&s.Stdin, p.Stdin)
	set(&s.Stdout, p.Stdout)
	set(&s.Stderr, p.Stderr)
	set(&s.WorkDir, p.WorkDir)
	set(&s.MailUser, p.MailUser)
	if p.MailType != nil {
		if s.MailType = p.MailType; slices.Equal(p.MailType, []string{"NONE"}) {
			s.MailType = nil
		}
		s.MailUser = cmp.Or(s.MailUser, s.User)
	}
	if p.Requeue != nil {
		r := *p.Requeue
		s.Requeue = &r
	}
}
