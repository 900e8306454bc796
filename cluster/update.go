package cluster

import (
	"slices"
	"time"
)

// Patch holds the fields of a job to change; nil ones stay.
//
// Each is a row of a table: its tags say who may ask for it (by), what a refusal calls it where only a pending job can
// have it changed (pending), and by which step of patchSteps it is judged and set (rule). One without a rule replaces
// the field of JobSpec that has its name.
type Patch struct {
	Name         *string        `json:"name,omitempty"`
	Comment      *string        `json:"comment,omitempty" text:"1024,lines"`
	AdminComment *string        `json:"admin_comment,omitempty" text:"1024,lines" by:"operator"`
	Account      *string        `json:"account,omitempty" pending:"the account"`
	QOS          *string        `json:"qos,omitempty" pending:"the QOS"`
	WCKey        *string        `json:"wckey,omitempty" pending:"the wckey"`
	Partitions   []string       `json:"partitions,omitempty" pending:"the size"`
	Limit        *time.Duration `json:"limit,omitempty" rule:"limit"`
	LimitDelta   time.Duration  `json:"limit_delta,omitempty" rule:"limit"`
	LimitMin     *time.Duration `json:"limit_min,omitempty"`
	End          *time.Time     `json:"end,omitempty" rule:"limit"` // when the limit of a running job is to end it
	Begin        *time.Time     `json:"begin,omitempty" pending:"the begin time"`
	Deadline     *time.Time     `json:"deadline,omitempty"`
	Nice         *int           `json:"nice,omitempty" rule:"nice"`
	Priority     *uint32        `json:"priority,omitempty" rule:"priority"`
	Site         *int           `json:"site,omitempty" by:"operator"`
	Depends      *Depends       `json:"depends,omitempty" pending:"the dependency" rule:"dependency"`
	ArrayLimit   *int           `json:"array_limit,omitempty" rule:"throttle"`
	Requeue      *bool          `json:"requeue,omitempty"`
	MinNodes     *int           `json:"min_nodes,omitempty" pending:"the size"`
	MaxNodes     *int           `json:"max_nodes,omitempty" pending:"the size"`
	Tasks        *int           `json:"tasks,omitempty" pending:"the size"`
	TasksPerNode *int           `json:"tasks_per_node,omitempty" pending:"the size"`
	CPUsPerTask  *int           `json:"cpus_per_task,omitempty" pending:"the size"`
	MinCPUs      *int           `json:"min_cpus,omitempty" pending:"the size"`
	TmpMB        *int64         `json:"tmp_mb,omitempty" pending:"the size"`
	Mem          *Mem           `json:"mem,omitempty" pending:"the size"`
	PerNode      *[]GRES        `json:"per_node,omitempty" pending:"the size"`
	PerJob       *[]GRES        `json:"per_job,omitempty" pending:"the size"`
	Constraint   *string        `json:"constraint,omitempty" pending:"the size"`
	NodeList     *[]NodeName    `json:"node_list,omitempty" pending:"the size"`
	Exclude      *[]NodeName    `json:"exclude,omitempty" pending:"the size"`
	Licenses     *string        `json:"licenses,omitempty" pending:"the size"`
	Reservation  *string        `json:"reservation,omitempty" pending:"the size"`
	Stdin        *string        `json:"stdin,omitempty" text:"4096" pending:"the files"`
	Stdout       *string        `json:"stdout,omitempty" text:"4096" pending:"the files"`
	Stderr       *string        `json:"stderr,omitempty" text:"4096" pending:"the files"`
	WorkDir      *string        `json:"work_dir,omitempty" text:"4096" pending:"the working directory"`
	MailUser     *string        `json:"mail_user,omitempty"`
	MailType     []string       `json:"mail_type,omitempty" rule:"mail"` // NONE: no mail
	Switches     *int           `json:"switches,omitempty" pending:"the size"`
	Sharing      *Sharing       `json:"sharing,omitempty" by:"operator" pending:"the size"`
	Contiguous   *bool          `json:"contiguous,omitempty" by:"operator" pending:"the size"`
	// Below 0: what the node keeps.
	CoreSpec   *int `json:"core_spec,omitempty" by:"operator" pending:"the size" rule:"leaves"`
	ThreadSpec *int `json:"thread_spec,omitempty" by:"operator" pending:"the size" rule:"leaves"`

	CPUsPerGPU  *int           `json:"cpus_per_gpu,omitempty" pending:"the size"`
	Prefer      *string        `json:"prefer,omitempty" pending:"the size"`
	DelayBoot   *time.Duration `json:"delay_boot,omitempty"`
	ResetAccrue bool           `json:"reset_accrue,omitempty" pending:"the age" rule:"requeue"` // counts anew
	// Features and Clusters say where in the federation a job that waits may run.
	Features *string `json:"cluster_features,omitempty" since:"6" pending:"the clusters" rule:"places"`
	Clusters *string `json:"clusters,omitempty" since:"6" pending:"the clusters" rule:"places"`
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
	n := *j
	spec := *j.Spec
	n.Spec = &spec
	spec.Layout = spec.Layout.Clone()
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
	if err := p.apply(t, &n); err != nil {
		return err
	}
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

// pendingOrder is the order in which early looks for what only a pending job can have changed.
var pendingOrder = [...]string{
	"the age", "the account", "the QOS", "the wckey", "the dependency", "the begin time", "the files",
	"the working directory", "the size", "the clusters",
}

// early names what the patch changes that only a pending job can have changed, "" if nothing.
func (p *Patch) early(s *JobSpec) string {
	q := *p
	if slices.Equal(q.Partitions, s.Partitions) {
		q.Partitions = nil
	}
	if q.Reservation != nil && *q.Reservation == s.Reservation {
		q.Reservation = nil
	}
	asked := map[string]bool{}
	for f := range q.asked() {
		asked[f.Tag.Get("pending")] = true
	}
	for _, what := range pendingOrder {
		if asked[what] {
			return what
		}
	}
	return ""
}

// admit holds what became of a job to what is asked of a submission, and finds its association.
func (p *Patch) admit(t *tx, was, n *Job) error {
	spec := n.Spec
	asked := *spec
	if n.Phase != Pending && spec.Expands() != 0 {
		asked.Depends = Depends{} // met: the job that it was to expand may be over, or have its nodes
	}
	admitted, err := Admit(&Snapshot{*t.tables}, Identity{System: true, UID: spec.UID}, asked)
	if err != nil {
		return err
	}
	if err := p.checkMove(t, n); err != nil {
		return err
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

// checkMove refuses a job its new account or partitions, where the way there is closed.
func (p *Patch) checkMove(t *tx, n *Job) error {
	if p.Account != nil && *p.Account == "" && t.Accounting() {
		return Errorf(Invalid, ErrAccount, "job %d can not be without an account: name one", n.ID)
	}
	if p.Partitions == nil || n.Phase != Pending {
		return nil
	}
	return t.closed(n.Spec.Partitions)
}

// set puts what is asked in place of what is.
func set[T any](to *T, from *T) bool {
	if from == nil {
		return false
	}
	*to = *from
	return true
}
