// Package show is what squeue and sinfo print, and how a job, a step, a node, a reservation and the books are
// written wherever else they are shown. It changes nothing, and knows neither what submits nor what changes.
// Begin with jobview.go and nodeview.go: a row is a record with what its texts need (View).
package show

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"dev.muster/api"
	"dev.muster/cluster"
	"dev.muster/slurm/format"
	"dev.muster/slurm/front"
)

// View is what the texts of jobs, steps and nodes need besides the records.
type View struct {
	Sys     *front.Sys
	Now     time.Time
	Raw     bool   // --noconvert
	Unit    byte   // --units; 0: as it comes
	TimeFmt string // SLURM_TIME_FORMAT
	Conf    *api.ClusterResponse
	Books   *Books
	Fed     *api.FederationResponse
	Place   string // the cluster, where lines of several are shown together

	nodes    map[cluster.NodeName]*cluster.Inventory
	reserved map[cluster.NodeName]string // the reservation of each node; nil: not asked for yet
}

// QOSID is the number of a QOS, 0: there is none of that name any more.
func (v *View) QOSID(name string) uint32 {
	for _, q := range v.AllBooks().QOS {
		if q.Name == name {
			return q.ID
		}
	}
	return 0
}

// WCKeyID is the number of a job's wckey, 0 if its user has none of that name.
func (v *View) WCKeyID(user, key string) uint32 {
	if u := v.AllBooks().User(user); u != nil {
		for _, k := range u.WCKeys {
			if k.Name == strings.TrimPrefix(key, cluster.WCKeyDefault) {
				return k.ID
			}
		}
	}
	return 0
}

// AllBooks asks for the books when a text first needs them.
func (v *View) AllBooks() *Books {
	if v.Books == nil {
		r, _ := front.Call(v.Sys, api.ListBooks, api.AfterQuery{})
		v.Books = &Books{r}
	}
	return v.Books
}

// Config asks for the configuration when a text first needs it. An old or absent server leaves it empty.
func (v *View) Config() *api.ClusterResponse {
	if v.Conf == nil {
		r, _ := front.Call(v.Sys, api.ShowCluster, api.Empty{})
		v.Conf = &r
	}
	return v.Conf
}

// inventory asks for the nodes when a text first needs one. One that is not there is nil.
func (v *View) inventory(name cluster.NodeName) *cluster.Inventory {
	if v.nodes == nil {
		v.nodes = map[cluster.NodeName]*cluster.Inventory{}
		r, _ := front.Call(v.Sys, api.ListNodes, api.NodeQuery{})
		for i := range r.Nodes {
			n := &r.Nodes[i]
			v.nodes[n.Name] = &n.Inventory
		}
	}
	return v.nodes[name]
}

// Mem writes an amount of memory.
func (v *View) Mem(m cluster.MemMB) string {
	switch {
	case v.Unit != 0:
		return format.MemIn(m, v.Unit)
	case v.Raw:
		return format.MemRaw(m)
	}
	return format.Mem(m)
}

// TimeFormat is SLURM_TIME_FORMAT. One that no time is written by is told and counts as none.
func TimeFormat(s *front.Sys) string {
	form := s.Getenv("SLURM_TIME_FORMAT")
	switch {
	case form == "", form == "standard", form == "relative", strings.Contains(form, "%"):
		return form
	}
	s.Say("error: invalid SLURM_TIME_FORMAT = '%s'", form)
	return ""
}

// When writes a time of day as squeue does.
func (v *View) When(t time.Time) string { return v.Stamp(t, "N/A") }

// Stamp writes a time in the form of SLURM_TIME_FORMAT, or none where there is no time.
func (v *View) Stamp(t time.Time, none string) string {
	switch {
	case t.IsZero():
		return none
	case v.TimeFmt == "" || v.TimeFmt == "standard":
		return format.Stamp(t, "")
	case v.TimeFmt == "relative":
		return relative(t.Local(), v.Now.Local())
	}
	return strftime(v.TimeFmt, t.Local())
}

// relative writes times of today and its neighbours without the date.
func relative(t, now time.Time) string {
	day := func(t time.Time) int {
		y, m, d := t.Date()
		return int(time.Date(y, m, d, 0, 0, 0, 0, time.UTC).Unix() / 86400)
	}
	switch n := day(t) - day(now); {
	case n == 0:
		return t.Format("15:04:05")
	case n == -1:
		return t.Format("Ystday 15:04")
	case n == 1:
		return t.Format("Tomorr 15:04")
	case n > 6, n < -6:
		if t.Year() != now.Year() {
			return t.Format("2 Jan 2006")
		}
		return t.Format("2 Jan 15:04")
	}
	return t.Format("Mon 15:04")
}

// strftimeForms are the conversions of strftime(3) that have a layout of Go's.
var strftimeForms = [...]struct {
	code byte
	form string
}{{'a', "Mon"}, {'A', "Monday"}, {'b', "Jan"}, {'B', "January"}, {'h', "Jan"},
	{'c', "Mon Jan _2 15:04:05 2006"}, {'d', "02"}, {'D', "01/02/06"},
	{'e', "_2"}, {'F', "2006-01-02"}, {'H', "15"}, {'I', "03"}, {'j', "002"}, {'m', "01"}, {'M', "04"},
	{'p', "PM"}, {'r', "03:04:05 PM"}, {'R', "15:04"},
	{'S', "05"}, {'T', "15:04:05"}, {'x', "01/02/06"}, {'X', "15:04:05"}, {'y', "06"}, {'Y', "2006"},
	{'z', "-0700"}, {'Z', "MST"}}

// strftime formats as the C function of that name.
func strftime(form string, t time.Time) string {
	var b strings.Builder
	for i := 0; i < len(form); i++ {
		if form[i] != '%' || i+1 == len(form) {
			b.WriteByte(form[i])
			continue
		}
		i++
		switch c := form[i]; c {
		case '%':
			b.WriteByte('%')
		case 'n':
			b.WriteByte('\n')
		case 't':
			b.WriteByte('\t')
		case 's':
			b.WriteString(strconv.FormatInt(t.Unix(), 10))
		case 'k', 'l':
			h := t.Hour()
			if c == 'l' {
				h = (h+11)%12 + 1
			}
			if h < 10 {
				b.WriteByte(' ')
			}
			b.WriteString(strconv.Itoa(h))
		default:
			k := slices.IndexFunc(strftimeForms[:], func(r struct {
				code byte
				form string
			}) bool {
				return r.code == c
			})
			if k < 0 {
				b.WriteString(form[i-1 : i+1])
				continue
			}
			b.WriteString(t.Format(strftimeForms[k].form))
		}
	}
	return b.String()
}

// JobRow is one line of squeue or one record of scontrol: a job, some tasks of an array, or (with
// -r) one task of it.
type JobRow struct {
	*cluster.Job
	View  *View
	part  string // the one partition of several that this line is about
	State *JobState
}

// NewRow is the line of a job.
func NewRow(v *View, j *cluster.Job) JobRow { return JobRow{Job: j, View: v, State: stateNow(j)} }

// JobState is a row of the table of states: which jobs are in it, and what it is called.
type JobState struct {
	Short, Long, Means string
	phases             []cluster.Phase // in which a job can have it
	Is                 func(*cluster.Job) bool
}

// JobStates are the states. A job's is the first row that fits.
func JobStates() []JobState {
	jobStates.once.Do(func() { jobStates.rows = makeJobStates() })
	return jobStates.rows
}

var jobStates struct {
	once sync.Once
	rows []JobState
}

// makeJobStates makes the table: the states of jobs that live, and those of cluster's outcomes.
func makeJobStates() []JobState {
	const pending, starting, running = cluster.Pending, cluster.Starting, cluster.Running
	in := func(list ...cluster.Phase) []cluster.Phase { return list }
	is := func(p cluster.Phase) func(*cluster.Job) bool {
		return func(j *cluster.Job) bool { return j.Phase == p }
	}
	rows := []JobState{
		{"RV", "REVOKED", cluster.Revoked.Means(), in(pending, cluster.Ended), isRevoked},
		{
			stagingOut, "STAGE_OUT", "it is over and has given its nodes back, and its burst buffer is staged out",
			in(cluster.Ending), cluster.StagesOut,
		},
		{
			"SE", "SPECIAL_EXIT", "it ended with a code that its site treats apart, and waits for a release",
			in(pending), func(j *cluster.Job) bool { return j.Phase == pending && j.SpecialExit },
		},
		{"PD", "PENDING", "it waits for resources or a date", in(pending), is(pending)},
		{
			"ST", "STOPPED", "its processes were stopped, it keeps its resources",
			in(starting, running), func(j *cluster.Job) bool { return j.Phase == running && j.Stopped },
		},
		{"CF", "CONFIGURING", "its nodes are made ready", in(starting), cluster.Configuring},
		{
			"R", "RUNNING", "it runs",
			in(starting, running), func(j *cluster.Job) bool { return j.Phase == running || j.Phase == starting },
		},
		{
			"S", "SUSPENDED", "it was suspended, others may use its CPUs",
			in(cluster.Suspended), is(cluster.Suspended),
		},
		{"CG", "COMPLETING", "it is over, its processes are not", in(cluster.Ending), is(cluster.Ending)},
	}
	for _, o := range cluster.Outcomes() {
		if o == cluster.Revoked || o == cluster.Requeued {
			continue // that may be pending, too; this is for all that fit nowhere else
		}
		rows = append(rows, endState(o, func(j *cluster.Job) bool {
			return j.Phase == cluster.Ended && j.Outcome == o
		}))
	}
	return append(rows, endState(cluster.Requeued, func(*cluster.Job) bool { return true }))
}

func endState(o cluster.Outcome, is func(*cluster.Job) bool) JobState {
	return JobState{o.Short(), o.State(), o.Means(), []cluster.Phase{cluster.Ended}, is}
}

// stagingOut is the state of a job that is over and stages out. To the books it has ended.
const stagingOut = "SO"

// stateNow finds a job's state in the table.
func stateNow(j *cluster.Job) *JobState {
	if !cluster.StagesOut(j) {
		return StateOf(j)
	}
	return findState(func(s *JobState) bool { return s.Short == stagingOut })
}

// StateOf finds a job's state in the table, of one that stages out how it has ended.
func StateOf(j *cluster.Job) *JobState {
	return findState(func(s *JobState) bool { return s.Short != stagingOut && s.Is(j) })
}

func findState(is func(*JobState) bool) *JobState {
	rows := JobStates()
	for i := range rows {
		if is(&rows[i]) {
			return &rows[i]
		}
	}
	return nil
}

// ShownID is how users write the job: 42, 42_3 or 42_[3-5%2].
func (r *JobRow) ShownID() string {
	switch {
	case r.Het != nil:
		return front.HetText(r.Het)
	case r.ArrayID == 0:
		return strconv.FormatUint(uint64(r.ID), 10)
	case r.Task >= 0:
		return strconv.FormatUint(uint64(r.ArrayID), 10) + "_" + strconv.Itoa(r.Task)
	case r.lastTask():
		return strconv.FormatUint(uint64(r.ArrayID), 10) + "_" + strconv.Itoa(r.Tasks.Min())
	}
	return format.ArrayID(r.ArrayID, r.Tasks, r.Throttle())
}

// lastTask reports whether the record stands for the last of an array's tasks that others have been split off,
// which Slurm writes as it writes those.
func (r *JobRow) lastTask() bool {
	a := r.Spec.Array
	return r.Tasks.Len() == 1 && a != nil && a.Tasks.Len() > 1
}

// Throttle is how many tasks of an array may run at a time, 0 if any number may.
func (r *JobRow) Throttle() int {
	if r.Spec.Array == nil {
		return 0
	}
	return r.Spec.Array.Limit
}

// Reason is why a job waits, or how it came to its end.
func (r *JobRow) Reason() string {
	why, note := r.Wait, r.WaitNote
	switch {
	case r.Burst != nil && burstReason(r.Job) != "":
		return burstReason(r.Job)
	case r.Phase == cluster.Ended || r.Phase == cluster.Ending:
		why, note = r.EndReason, ""
	case r.Phase != cluster.Pending && r.Held == cluster.HeldAdmin:
		why, note = cluster.WaitHeldAdmin, ""
	case r.Phase != cluster.Pending && r.Held == cluster.HeldUser:
		why, note = cluster.WaitHeldUser, ""
	case r.Phase != cluster.Pending:
		return "None"
	}
	switch {
	case why == "":
		return "None"
	case note == "" || r.Phase != cluster.Pending || why != cluster.WaitNodeNotAvail:
		return string(why)
	case strings.HasPrefix(note, "["), !strings.ContainsAny(note, ": "): // nodes that it names, out of service
		return string(why) + ", UnavailableNodes:" + front.NodeText(noteNodes(strings.Trim(note, "[]")))
	}
	return string(why) + ", " + note
}

// burstReason is what a job's burst buffer makes its reason, "" if nothing.
func burstReason(j *cluster.Job) string {
	switch {
	case j.Burst.Why != "" && (j.Phase == cluster.Ended || j.Phase == cluster.Pending && j.Held != cluster.NotHeld):
		return j.Burst.Why
	case cluster.StagesOut(j):
		return "burst_buffer/lua: Stage-out in progress"
	}
	return ""
}

// BurstState is where a job's burst buffer stands, "" if it has none.
func BurstState(j *cluster.Job) string {
	if j.Burst == nil {
		return ""
	}
	return string(j.Burst.State)
}

// noteNodes are the names in a note, with blanks between.
func noteNodes(text string) (out []cluster.NodeName) {
	for _, name := range strings.Fields(text) {
		out = append(out, cluster.NodeName(name))
	}
	return out
}

// failed says whether squeue shows a job's reason in the place of its nodes.
func (r *JobRow) failed() bool {
	return r.Phase == cluster.Ended && r.Outcome.OwnFailure()
}

// Nodes are the job's nodes, "" while it has none.
func (r *JobRow) Nodes() string {
	if r.Alloc == nil {
		return ""
	}
	if len(r.Alloc.Shares) == 1 {
		return string(r.Alloc.Shares[0].Node)
	}
	return front.NodeText(r.AllocNodes())
}

// NodesOrReason are the job's nodes, or in parentheses why it has none.
func (r *JobRow) NodesOrReason() string {
	if r.Phase == cluster.Pending || r.failed() {
		return "(" + r.Reason() + ")"
	}
	return r.Nodes()
}

// FirstNode is where a job's script runs.
func (r *JobRow) FirstNode() string {
	if r.Alloc == nil || len(r.Alloc.Shares) == 0 {
		return ""
	}
	return string(r.Alloc.Shares[0].Node)
}

// Start is when the job started or is expected to; zero if nothing is known.
func (r *JobRow) Start() time.Time {
	switch {
	case !r.Started.IsZero():
		return r.Started
	case r.Phase == cluster.Ended:
		return r.Ended
	case r.Phase == cluster.Pending && !r.PlannedStart.IsZero():
		return r.PlannedStart
	case r.Wait == cluster.WaitBegin:
		return r.Eligible
	case r.Phase == cluster.Pending && r.Spec.Begin.After(r.View.Now):
		return r.Spec.Begin
	}
	return r.PlannedStart
}

// End is when the job ended or has to.
func (r *JobRow) End() time.Time {
	switch {
	case r.Phase == cluster.Ended:
		return r.Ended
	case r.Phase == cluster.Ending:
		return r.EndingAt
	case r.Limit == cluster.Unlimited || r.Start().IsZero():
		return time.Time{}
	}
	return r.Start().Add(r.Limit + r.SuspendTotal)
}

// EligibleTime is since when the job could have run; zero while it is held or depends on others.
func (r *JobRow) EligibleTime() time.Time {
	eligible := cmp.Or(r.Eligible, r.Submitted)
	if r.Phase != cluster.Pending {
		return eligible
	}
	switch depends := r.Wait == cluster.WaitDependency || r.Wait == cluster.WaitDependencyNever; {
	case r.Spec.Begin.After(r.View.Now):
		return r.Spec.Begin
	case r.Held != cluster.NotHeld, depends:
		return time.Time{}
	}
	return eligible
}

// AccrueTime is since when the job's age counts.
func (r *JobRow) AccrueTime() time.Time {
	if e := r.EligibleTime(); !e.After(r.View.Now) {
		return e
	}
	return time.Time{}
}

// Elapsed is how long the job has run.
func (r *JobRow) Elapsed() time.Duration { return r.RunTime(r.View.Now) }

func (r *JobRow) timeLeft() time.Duration {
	if r.Limit == cluster.Unlimited {
		return cluster.Unlimited
	}
	return r.Limit - r.Elapsed()
}

// Partition is where the job runs, or the partitions it was submitted to.
func (r *JobRow) Partition() string {
	switch {
	case r.part != "":
		return r.part
	case r.Alloc != nil:
		return r.Alloc.Partition
	case len(r.Spec.Partitions) == 1:
		return r.Spec.Partitions[0]
	}
	return strings.Join(r.Spec.Partitions, ",")
}

// NumNodes is how many nodes the job has, or asks for at least.
func (r *JobRow) NumNodes() int {
	if r.Alloc != nil {
		return len(r.Alloc.Shares)
	}
	return r.Spec.Asks().Nodes
}

// NumTasks is how many tasks were asked for, or follow from what was.
func (r *JobRow) NumTasks() int {
	s := r.Spec
	switch {
	case s.Tasks > 0:
		return s.Tasks
	case s.TasksPerNode > 0:
		return s.TasksPerNode * r.NumNodes()
	}
	return r.NumNodes()
}

// NumCPUs is how many CPUs the job has, or asks for at least.
func (r *JobRow) NumCPUs() int {
	n := 0
	if r.Alloc != nil {
		for i := range r.Alloc.Shares {
			n += r.Alloc.Shares[i].CPUs.Len()
		}
		return n
	}
	return r.Spec.Asks().CPUs
}

// NumGPUs is how many GPUs the job has, or asks for at least.
func (r *JobRow) NumGPUs() int {
	if r.Alloc != nil {
		n := 0
		for _, sh := range r.Alloc.Shares {
			n += sh.GPUs.Len()
		}
		return n
	}
	return int(r.Spec.Asks().GPUs)
}

// gpuTypes counts the GPUs by type, as far as it is known.
func (r *JobRow) gpuTypes() map[string]int64 {
	if r.Alloc != nil {
		return r.Alloc.Types
	}
	for _, g := range slices.Concat(r.Spec.PerNode, r.Spec.PerJob, r.Spec.PerTask) {
		if g.Name == "gpu" && g.Type != "" {
			return map[string]int64{g.Type: int64(r.NumGPUs())}
		}
	}
	return nil
}

// Memory is the request for memory: as asked, else the partition's or the cluster's default.
func (r *JobRow) Memory() cluster.Mem {
	if m := r.Spec.Mem; m.Per != cluster.MemDefault {
		return m
	}
	conf := &r.View.Config().Config
	for i := range conf.Partitions {
		if p := &conf.Partitions[i]; p.Name == r.Partition() && p.DefMem.MB > 0 {
			return p.DefMem
		}
	}
	return conf.DefMem
}

// MinMemory is what was asked for on a node or for a CPU.
func (r *JobRow) MinMemory() cluster.MemMB {
	if m := r.Memory(); m.Per != cluster.MemPerGPU {
		return m.MB
	}
	return 0
}

// TotalMem is what the job has on all of its nodes, or asks for.
func (r *JobRow) TotalMem() (m cluster.MemMB) {
	if r.Alloc != nil {
		for _, sh := range r.Alloc.Shares {
			m += sh.MemMB
		}
		return m
	}
	switch ask := r.Memory(); ask.Per {
	case cluster.MemPerNode:
		return ask.MB * cluster.MemMB(r.NumNodes())
	case cluster.MemPerGPU:
		return ask.MB * cluster.MemMB(r.NumGPUs())
	default:
		return ask.MB * cluster.MemMB(r.NumCPUs())
	}
}

// TRES lists what the job has, or asks for.
func (r *JobRow) TRES() string {
	return format.TRES{
		CPUs: r.NumCPUs(), Nodes: r.NumNodes(), GPUs: r.NumGPUs(), Mem: r.TotalMem(), Types: r.gpuTypes(),
		Raw: r.View.Raw,
	}.String()
}

// MinCPUs is MinCPUsNode: what one node has to have.
func (r *JobRow) MinCPUs() int {
	return max(r.Spec.MinCPUs, r.Spec.TaskCPUs()*max(r.Spec.TasksPerNode, 1))
}

// Sharing is what --exclusive and --oversubscribe made of the job.
func (r *JobRow) Sharing() string { return SharingText(r.shares()) }

// shares is what the job asks for, as far as its partition lets it choose.
func (r *JobRow) shares() cluster.Sharing {
	conf := &r.View.Config().Config
	if k := slices.IndexFunc(conf.Partitions, func(p cluster.Partition) bool { return p.Name == r.Partition() }); k >= 0 {
		return conf.Partitions[k].Sharing(r.Spec)
	}
	return r.Spec.Sharing
}

// SharingTexts are the words of OverSubscribe.
var SharingTexts = [...]string{
	cluster.ShareDefault: "OK", cluster.ShareExclusive: "NO", cluster.ShareUser: "USER",
	cluster.ShareMCS: "MCS", cluster.ShareOver: "YES",
}

// SharingText is the word of OverSubscribe for a way to share nodes; any number has one.
func SharingText(s cluster.Sharing) string { return SharingTexts[min(int(s), len(SharingTexts)-1)] }

// Group is the job's group by name, or its number.
func (r *JobRow) Group() string {
	if r.Spec.Group != "" {
		return r.Spec.Group
	}
	return strconv.FormatUint(uint64(r.Spec.GID), 10)
}

// Command is what runs; unknown for scripts from standard input and --wrap.
func (r *JobRow) Command() string {
	if len(r.Spec.Args) == 0 || r.Spec.Command == "" {
		return r.Spec.Command
	}
	return r.Spec.Command + " " + strings.Join(r.Spec.Args, " ")
}

// DependsText writes what is still unmet of the dependencies.
func (r *JobRow) DependsText() string {
	var b strings.Builder
	for i, d := range r.Depends.Terms {
		if i > 0 {
			b.WriteByte(",?"[front.BoolInt(r.Depends.Any)])
		}
		b.WriteString(string(d.Type))
		if d.Type != cluster.SingletonOf {
			b.WriteByte(':')
			b.WriteString(strconv.FormatUint(uint64(d.Job), 10))
			switch {
			case d.Array:
				b.WriteString("_*")
			case d.Task >= 0:
				b.WriteString("_" + strconv.Itoa(d.Task))
			}
			if d.Plus > 0 {
				b.WriteString("+" + strconv.Itoa(int(d.Plus/time.Minute)))
			}
		}
		if d.Failed {
			b.WriteString("(failed)")
		} else {
			b.WriteString("(unfulfilled)")
		}
	}
	return b.String()
}

// Star is n, or * where nothing was asked.
func Star(n int) string {
	if n == 0 {
		return "*"
	}
	return strconv.Itoa(n)
}

// OrNA is a list of TRES, or N/A.
func OrNA(s string) string {
	if s == "" {
		return "N/A"
	}
	return s
}

// ExitText is a status as CODE:SIGNAL.
func ExitText(e cluster.ExitStatus) string {
	return strconv.Itoa(e.Code) + ":" + strconv.Itoa(e.Signal)
}

// ShownExit is the exit code that scontrol shows: a job cancelled while it ran, or because it made room, shows the
// signal.
func ShownExit(r *JobRow) cluster.ExitStatus {
	if r.Phase == cluster.Ended && (r.Outcome == cluster.Cancelled || r.Outcome == cluster.Preempted) && !r.Started.IsZero() && r.Exit == (cluster.ExitStatus{}) {
		return cluster.ExitStatus{Signal: 15}
	}
	return r.Exit
}
