package cluster

import (
	"cmp"
	"iter"
	"reflect"
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

	CPUsPerGPU *int `json:"cpus_per_gpu,omitempty" pending:"the size"`

	Prefer      *string        `json:"prefer,omitempty" pending:"the size"`
	DelayBoot   *time.Duration `json:"delay_boot,omitempty"`
	ResetAccrue bool           `json:"reset_accrue,omitempty" pending:"the age" rule:"requeue"` // counts again
	// Features and Clusters say where in the federation a job that waits may run.
	Features *string `json:"cluster_features,omitempty" pending:"the clusters" rule:"places"`
	Clusters *string `json:"clusters,omitempty" pending:"the clusters" rule:"places"`
	PatchMore
}

// PatchMore are the fields of a patch that replace fields of the request as they are.
type PatchMore struct {
	Extra      *string        `json:"extra,omitempty" text:"1024,lines"`
	MCSLabel   *string        `json:"mcs_label,omitempty" pending:"the size"`
	SwitchWait *time.Duration `json:"switch_wait,omitempty" pending:"the size"`
	// Of each node.
	MinCPUs        *int   `json:"min_cpus,omitempty" pending:"the size"`
	TmpMB          *int64 `json:"tmp_mb,omitempty" pending:"the size"`
	SocketsPerNode *int   `json:"sockets_per_node,omitempty" pending:"the size"`
	CoresPerSocket *int   `json:"cores_per_socket,omitempty" pending:"the size"`
	ThreadsPerCore *int   `json:"threads_per_core,omitempty" pending:"the size"`
}

// patchSteps judge and set what a patch asks for, in this order: the first error is the answer. Those behind the plain
// fields follow from what is set there.
var patchSteps = [...]struct {
	rule string // as the tag of the fields has it; "": of no field alone
	do   func(p *Patch, t *tx, n *Job) error
}{
	{"limit", (*Patch).setLimit},
	{"", (*Patch).checkDeadline},
	{"nice", (*Patch).setNice},
	{"", (*Patch).checkCounts},
	{"priority", (*Patch).setPriority},
	{"dependency", (*Patch).setDependency},
	{"throttle", (*Patch).setThrottle},
	{"", (*Patch).checkSpecialized},
	{"", func(p *Patch, t *tx, _ *Job) error { return CheckRights(t.by, p) }},
	{"places", (*Patch).setPlaces},
	{"", (*Patch).setPlain},
	{"", (*Patch).raiseTasks},
	{"leaves", (*Patch).setLeaves},
	{"mail", (*Patch).setMail},
}

// apply changes a job; n is a copy, its spec too.
func (p *Patch) apply(t *tx, n *Job) error {
	for _, step := range patchSteps {
		if err := step.do(p, t, n); err != nil {
			return err
		}
	}
	return nil
}

// asked are the fields that a patch sets, with the values.
func (p *Patch) asked() iter.Seq2[reflect.StructField, reflect.Value] {
	v := reflect.ValueOf(p).Elem()
	return func(yield func(reflect.StructField, reflect.Value) bool) {
		for _, f := range reflect.VisibleFields(v.Type()) {
			if at := v.FieldByIndex(f.Index); !f.Anonymous && !at.IsZero() && !yield(f, at) {
				return
			}
		}
	}
}

// setPlain replaces the fields of the spec that have no rule.
func (p *Patch) setPlain(_ *tx, n *Job) error {
	spec := reflect.ValueOf(n.Spec).Elem()
	for f, v := range p.asked() {
		if f.Tag.Get("rule") != "" {
			continue
		}
		to := spec.FieldByName(f.Name)
		if v.Type() != to.Type() {
			v = v.Elem()
		}
		to.Set(v)
	}
	return nil
}

// setLimit changes how long a job may run: to a time, by a time, or until a moment.
func (p *Patch) setLimit(t *tx, n *Job) error {
	limit := cmp.Or(n.Spec.Limit, n.Limit)
	asked := p.Limit != nil || p.End != nil || p.LimitDelta != 0 && limit != Unlimited
	if p.Limit != nil {
		limit = *p.Limit
	}
	if limit != Unlimited {
		limit += p.LimitDelta
	}
	if p.End != nil {
		if err := checkEnd(t, n, *p.End); err != nil {
			return err
		}
		limit = max(p.End.Sub(n.Begun())-n.SuspendTotal, time.Second)
	}
	if !asked {
		return nil
	}
	if err := checkLimit(t, n, limit); err != nil {
		return err
	}
	n.Spec.Limit = limit
	n.Limit = limit
	return nil
}

// checkEnd refuses to have a job end at a moment.
func checkEnd(t *tx, n *Job, end time.Time) error {
	return firstError(
		refuseIf(n.Started.IsZero(),
			Conflict, ErrNotRunning,
			"job %d has not begun, so its end cannot be set: set its time limit", n.ID),
		refuseIf(end.Before(t.at.Add(-time.Minute)),
			Invalid, ErrBeginTime, "job %d cannot end at %s, which is over", n.ID,
			end.Format(time.DateTime)),
	)
}

// checkLimit refuses a job a time limit.
func checkLimit(t *tx, n *Job, limit time.Duration) error {
	if limit <= 0 {
		return Errorf(Invalid, ErrTimeLimit, "a time limit of %s is not positive", limit)
	}
	if t.by.Operator() {
		return nil
	}
	if n.Phase != Pending && limit > n.Limit {
		return Errorf(Denied, ErrAccess, "only operators may raise the time limit of running job %d", n.ID)
	}
	own := n.Spec.Limit
	most := partitionTime(t.tables, n.Spec)
	if own != 0 && limit > max(own, most) {
		return Errorf(Denied, ErrAccess,
			"only operators may raise the time limit of job %d above that of its partition, %s", n.ID, most)
	}
	return nil
}

func (p *Patch) checkDeadline(t *tx, _ *Job) error {
	if p.Deadline != nil && !t.by.Operator() {
		return Errorf(Denied, ErrAccess, "only operators may change a deadline")
	}
	return nil
}

func (p *Patch) setNice(t *tx, n *Job) error {
	if p.Nice == nil {
		return nil
	}
	if *p.Nice < 0 && !t.by.Operator() {
		return Errorf(Denied, ErrAccess, "only operators may set a negative nice value")
	}
	if n.Spec.Priority == nil || !t.config.Priority.Multifactor {
		n.Spec.Nice = *p.Nice
	}
	return nil
}

func (p *Patch) checkCounts(_ *tx, n *Job) error {
	return firstError(
		refuseIf(p.MinNodes != nil && *p.MinNodes == 0,
			Invalid, ErrNodeCount, "job %d needs a node at least", n.ID),
		refuseIf(p.Tasks != nil && *p.Tasks == 0,
			Invalid, ErrTaskCount, "job %d needs a task at least", n.ID),
	)
}

// setPriority sets it as it is; 0 is a hold, as in Slurm.
func (p *Patch) setPriority(t *tx, n *Job) error {
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
	if n.Held != NotHeld {
		return Errorf(Conflict, ErrNotHeld, "job %d is held; release it instead", n.ID)
	}
	if !t.by.Operator() {
		return checkOwnPriority(n, *p.Priority)
	}
	if t.config.Priority.Multifactor {
		n.Spec.Nice = 0 // what was set counts as it is
	}
	n.Spec.Priority = p.Priority
	return nil
}

// checkOwnPriority is why a user cannot set the priority of a job.
func checkOwnPriority(n *Job, priority uint32) error {
	if priority <= n.Priority {
		return Errorf(Denied, ErrPriorityReset,
			"only operators may set a priority, the next computation would change it: set nice instead")
	}
	return Errorf(Denied, ErrAccess, "only operators may set a priority")
}

// setDependency sets what the job waits for.
func (p *Patch) setDependency(_ *tx, n *Job) error {
	if p.Depends == nil {
		return nil
	}
	own := func(d Depend) bool {
		return d.Job != 0 && isOwnID(n, d.Job)
	}
	if err := firstError(
		refuseIf(slices.ContainsFunc(p.Depends.Terms, own),
			Invalid, ErrDependency, "job %d cannot wait for itself", n.ID),
		refuseIf(n.Spec.Depends.expands() || p.Depends.expands(),
			Invalid, ErrDependency, "which job is expanded is said when job %d is submitted", n.ID),
	); err != nil {
		return err
	}
	n.Spec.Depends = p.Depends.asked()
	n.Depends = n.Spec.Depends
	return nil
}

// isOwnID reports whether an id is the job's, its array's, or that of a component of the same heterogeneous job.
func isOwnID(j *Job, id JobID) bool {
	if id == j.ID || id == j.ArrayID {
		return true
	}
	return j.Het != nil && id >= j.Het.ID && id <= j.Het.Last()
}

// setThrottle sets how many tasks of an array may run at once.
func (p *Patch) setThrottle(_ *tx, n *Job) error {
	if p.ArrayLimit == nil || n.Spec.Array == nil {
		return nil
	}
	a := *n.Spec.Array
	a.Limit = *p.ArrayLimit
	n.Spec.Array = &a
	return nil
}

func (p *Patch) checkSpecialized(t *tx, _ *Job) error {
	if (p.CoreSpec != nil || p.ThreadSpec != nil) && !t.config.SpecUse {
		return Errorf(Denied, ErrAccess,
			"no job may say what it leaves of its nodes: AllowSpecResourcesUsage=yes in slurm.conf lets them")
	}
	return nil
}

// raiseTasks gives each of more nodes a task.
func (p *Patch) raiseTasks(_ *tx, n *Job) error {
	if p.MinNodes != nil && n.Spec.Tasks > 0 {
		n.Spec.Tasks = max(n.Spec.Tasks, n.Spec.MinNodes)
	}
	return nil
}

// setLeaves changes what a job leaves of its nodes, cores or threads.
func (p *Patch) setLeaves(_ *tx, n *Job) error {
	asked := cmp.Or(p.CoreSpec, p.ThreadSpec)
	if asked == nil {
		return nil
	}
	s := n.Spec
	s.CoreSpec = p.CoreSpec
	s.ThreadSpec = nil
	if p.CoreSpec == nil {
		s.ThreadSpec = p.ThreadSpec
	}
	if *asked < 0 {
		s.CoreSpec = nil
		s.ThreadSpec = nil
	}
	s.Sharing = ShareExclusive
	return nil
}

// setMail sets at which events mail is sent: to the job's user, where nobody is named.
func (p *Patch) setMail(_ *tx, n *Job) error {
	if p.MailType == nil {
		return nil
	}
	n.Spec.MailType = p.MailType
	if slices.Equal(p.MailType, []string{"NONE"}) {
		n.Spec.MailType = nil
	}
	n.Spec.MailUser = cmp.Or(n.Spec.MailUser, n.Spec.User)
	return nil
}

// set puts what is asked in place of what is.
func set[T any](to *T, from *T) bool {
	if from == nil {
		return false
	}
	*to = *from
	return true
}
