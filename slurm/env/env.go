// Package env speaks Slurm's dialect inside a job: the SLURM_* variables of scripts and tasks,
// the patterns of output names, and the lines written when a job is ended. The values of the variables
// are those of a real Slurm 22.05.
package env

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"dev.muster/cluster"
)

// Environ returns the variables of a batch script (Launch.Step is nil) or of one task of a step.
func Environ(l *cluster.Launch) []string {
	var e list
	e.job(l)
	if l.Step == nil {
		e.set("ENVIRONMENT", "BATCH")
		e.batch(l)
		e.groups(l, true)
	} else {
		e.step(l)
	}
	e.gpus(l)
	e.nccl(l)
	e.rasAddr(l)
	if l.Spec != nil && l.Spec.World != nil {
		e.world(l)
	}
	return append(e, burst(l.Job)...)
}

// Scripts is the environment of a job's prolog, or its epilog, on a node.
func Scripts(l *cluster.Launch, epilog bool) []string {
	var e list
	e.set("PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin")
	e.job(l)
	e.set("SLURM_JOB_WORK_DIR", l.Job.Spec.WorkDir)
	e.set("SLURM_JOB_GROUP", l.Job.Spec.Group)
	e.set("SLURM_JOB_CONSTRAINTS", l.Job.Spec.Constraint)
	e.set("SLURM_JOB_COMMENT", l.Job.Spec.Comment)
	e.set("SLURM_NODELIST", nodeList(l.Job.Alloc.Shares))
	e.num("SLURM_UID", int(l.Job.Spec.UID))
	e.num("SLURM_JOB_RESTART_COUNT", l.Job.Restarts)
	e.num("SLURM_JOB_NTASKS", jobTasks(l.Job))
	e.files(l.Job)
	if h := l.Job.Het; h != nil {
		e.num("SLURM_HET_JOB_ID", int(h.ID))
		e.num("SLURM_PACK_JOB_ID", int(h.ID))
	}
	if gpus := jobGPUs(l); !gpus.Empty() {
		e.set("SLURM_JOB_GPUS", commas(gpus))
		for _, v := range gpuVariables {
			if shownBy(gpus, l.Inventory, v.flag) {
				e.set(v.name, visible(gpus, l.Inventory))
			}
		}
	}
	if !epilog {
		e.set("SLURM_SCRIPT_CONTEXT", "prolog_slurmd")
		return e
	}
	e.set("SLURM_SCRIPT_CONTEXT", "epilog_slurmd")
	e.num("SLURM_JOB_EXIT_CODE", l.Job.Exit.Code<<8|l.Job.Exit.Signal)
	e.set("SLURM_JOB_EXIT_CODE2", fmt.Sprintf("%d:%d", l.Job.Exit.Code, l.Job.Exit.Signal))
	e.num("SLURM_JOB_DERIVED_EC", l.Job.Derived.Code)
	return e
}

// Allocation returns what salloc adds to its command's environment.
func Allocation(l *cluster.Launch) []string {
	var all, e list
	all.job(l)
	all.batch(l)
	for _, v := range all {
		name, _, _ := strings.Cut(v, "=")
		switch name {
		case "HOSTNAME", "SLURMD_NODENAME", "SLURM_NODEID", "SLURM_PROCID", "SLURM_LOCALID", "SLURM_GTIDS", "SLURM_PRIO_PROCESS",
			"SLURM_TOPOLOGY_ADDR", "SLURM_TOPOLOGY_ADDR_PATTERN", "SLURM_CPUS_ON_NODE", "SLURM_JOB_UID", "SLURM_JOB_GID",
			"SLURM_JOB_USER", "SLURM_WORKING_CLUSTER":
			continue
		case "SLURM_MEM_PER_CPU":
			if l.Job.Spec.Mem.Per == cluster.MemDefault { // not asked for
				continue
			}
		}
		e = append(e, v)
	}
	return append(e, burst(l.Job)...)
}

// burst are the variables that the script for burst buffers gives a job.
func burst(j *cluster.Job) []string {
	if j.Burst == nil {
		return nil
	}
	return j.Burst.Env
}

// job sets what batch scripts and tasks share.
func (e *list) job(l *cluster.Launch) {
	j, s := l.Job, l.Job.Spec
	nodes := nodeList(j.Alloc.Shares)
	id := strconv.FormatUint(uint64(j.ID), 10)
	e.set("SLURM_JOB_ID", id)
	e.set("SLURM_JOBID", id)
	e.set("SLURM_JOB_NAME", s.Name)
	e.set("SLURM_JOB_ACCOUNT", s.Account)
	e.set("SLURM_JOB_QOS", s.QOS)
	e.set("SLURM_JOB_USER", s.User)
	e.num("SLURM_JOB_UID", int(s.UID))
	e.num("SLURM_JOB_GID", int(s.GID))
	e.set("SLURM_JOB_PARTITION", j.Alloc.Partition)
	e.set("SLURM_JOB_NODELIST", nodes)
	e.num("SLURM_JOB_NUM_NODES", len(j.Alloc.Shares))
	cpus := usedCPUs(l)
	e.set("SLURM_JOB_CPUS_PER_NODE", PerNode(j.Alloc.Shares, cpus))
	e.set("SLURM_CLUSTER_NAME", l.Config.ClusterName)
	e.bundle(l)
	e.set("SLURM_SUBMIT_DIR", cmp.Or(s.SubmitDir, s.WorkDir))
	e.set("MUSTER_SOCKET", l.Daemon)
	e.set("SLURM_SUBMIT_HOST", s.SubmitHost)
	e.set("SLURM_WORKING_CLUSTER", l.Config.ClusterName+":"+l.Daemon+":0:9728:109")
	e.set("SLURMD_NODENAME", string(l.Node))
	e.set("SLURM_TOPOLOGY_ADDR", topologyAddr(l.Config.Topology, l.Node))
	e.set("SLURM_TOPOLOGY_ADDR_PATTERN", topologyPattern(l.Config.Topology, l.Node))
	e.set("SLURM_PRIO_PROCESS", "0")
	e.num("SLURM_NODEID", l.NodeID)
	e.num("SLURM_CPUS_ON_NODE", cpus(cluster.Share{CPUs: l.ShareHere().CPUs}))
	e.array(j)
	if j.Restarts > 0 {
		e.num("SLURM_RESTART_COUNT", j.Restarts)
	}
	if s.Kind != cluster.SrunJob { // srun's own allocation tells its step less
		e.set("SLURM_NODE_ALIASES", "(null)")
	}
	if s.Kind == cluster.Batch || l.Step == nil && s.Kind == cluster.Allocation { // its steps have what its shell has
		e.set("HOSTNAME", string(l.Node))
		e.memory(l)
	}
	e.asked(s)
	if s.Reservation != "" {
		e.set("SLURM_JOB_RESERVATION", s.Reservation)
	}
}

// bundle names the OCI bundle that the program runs in.
func (e *list) bundle(l *cluster.Launch) {
	in := l.Job.Spec.Inside
	if l.Spec != nil {
		in = l.Spec.Inside
	}
	if in != nil && in.Bundle {
		e.set("SLURM_CONTAINER", in.Image)
	}
}

func (e *list) array(j *cluster.Job) {
	if j.ArrayID == 0 || j.Spec.Array == nil || j.Task == cluster.TaskAny {
		return
	}
	a := j.Spec.Array
	e.num("SLURM_ARRAY_JOB_ID", int(j.ArrayID))
	e.num("SLURM_ARRAY_TASK_ID", j.Task)
	e.num("SLURM_ARRAY_TASK_COUNT", a.Tasks.Len())
	e.num("SLURM_ARRAY_TASK_MIN", a.Tasks.Min())
	e.num("SLURM_ARRAY_TASK_MAX", a.Tasks.Max())
	e.num("SLURM_ARRAY_TASK_STEP", max(a.Step, 1))
}

// memory: per CPU also when it came from the default, per node only if asked; --mem=0 sets none.
func (e *list) memory(l *cluster.Launch) {
	m := l.Job.Spec.Mem
	if m.Per == cluster.MemDefault {
		m = l.Config.DefMem
		for _, p := range l.Config.Partitions {
			if p.Name == l.Job.Alloc.Partition && p.DefMem.Per != cluster.MemDefault {
				m = p.DefMem
			}
		}
	}
	if m.MB == 0 {
		return
	}
	switch m.Per {
	case cluster.MemPerCPU:
		e.num("SLURM_MEM_PER_CPU", int(m.MB))
	case cluster.MemPerNode:
		e.num("SLURM_MEM_PER_NODE", int(m.MB))
	case cluster.MemPerGPU:
		e.num("SLURM_MEM_PER_GPU", int(m.MB))
	}
}

// asked sets what is only set because the option was given.
func (e *list) asked(s *cluster.JobSpec) {
	positive := func(name string, n int) {
		if n > 0 {
			e.num(name, n)
		}
	}
	positive("SLURM_NTASKS_PER_NODE", s.TasksPerNode)
	positive("SLURM_NTASKS_PER_SOCKET", s.TasksPerSocket)
	positive("SLURM_NTASKS_PER_CORE", s.TasksPerCore)
	positive("SLURM_CPUS_PER_TASK", s.CPUsPerTask)
	positive("SLURM_THREADS_PER_CORE", s.ThreadsPerCore)
	e.text("SLURM_DISTRIBUTION", distribution(s.Distribution))
	positive("SLURM_DIST_PLANESIZE", s.PlaneSize)
	if s.Kind != cluster.SrunJob { // srun's own allocation leaves these to its step
		e.askedGPUs(s)
		e.text("SLURM_HINT", s.Hint)
		e.text("SLURM_PROFILE", s.Profile)
	}
	if s.Overcommit {
		e.set("SLURM_OVERCOMMIT", "1")
	}
	if s.Append {
		e.set("SLURM_OPEN_MODE", "a")
	}
	if s.Truncate {
		e.set("SLURM_OPEN_MODE", "t")
	}
	if s.Export != "" && s.Kind != cluster.SrunJob {
		e.set("SLURM_EXPORT_ENV", s.Export)
	}
	if s.UserEnv {
		e.set("SLURM_GET_USER_ENV", "1")
	}
}

// askedGPUs sets what options of GPUs asked for.
func (e *list) askedGPUs(s *cluster.JobSpec) {
	if s.TasksPerGPU > 0 {
		e.num("SLURM_NTASKS_PER_GPU", s.TasksPerGPU)
	}
	if s.CPUsPerGPU > 0 && s.ByDefault&cluster.CPUsPerGPUByDefault == 0 {
		e.num("SLURM_CPUS_PER_GPU", s.CPUsPerGPU)
	}
	e.text("SLURM_GPUS", gpuText(s.PerJob))
	e.text("SLURM_GPUS_PER_SOCKET", gpuText(s.PerSocket))
	e.text("SLURM_GPUS_PER_TASK", gpuText(s.PerTask))
	if s.GPUsPerNode {
		e.text("SLURM_GPUS_PER_NODE", gpuText(s.PerNode))
	}
	e.text("SLURM_GPU_BIND", s.GPUBind)
	e.text("SLURM_GPU_FREQ", s.GPUFreq)
}

// ofSteps sets what a script, or salloc's command, hands on to the steps that it begins.
func (e *list) ofSteps(s *cluster.JobSpec) {
	e.text("SLURM_ACCTG_FREQ", s.AcctgFreq)
	e.text("SLURM_CPU_FREQ_REQ", s.CPUFreq)
	e.askedMemBinding(s.MemBind)
	if s.Kind == cluster.Allocation {
		e.text("SLURM_NETWORK", s.Network)
	}
	if distribution(s.Distribution) == "arbitrary" && len(s.NodeList) > 0 {
		e.set("SLURM_ARBITRARY_NODELIST", listNodes(s.NodeList))
	}
}

// distribution writes --distribution as Slurm tells it: in small letters, the default of nodes by its name, a plane
// without its size.
func distribution(typed string) string {
	s, _, _ := strings.Cut(strings.ToLower(typed), "=")
	if rest, is := strings.CutPrefix(s, "*"); is {
		s = "block" + rest
	}
	return s
}

// gpuText writes "2" or "h100:2", as given.
func gpuText(list []cluster.GRES) string {
	var out []string
	for _, g := range list {
		t := strconv.FormatInt(g.Count, 10)
		if g.Type != "" {
			t = g.Type + ":" + t
		}
		out = append(out, t)
	}
	return strings.Join(out, ",")
}

func (e *list) batch(l *cluster.Launch) {
	shares := l.Job.Alloc.Shares
	e.set("SLURM_NODELIST", nodeList(shares))
	e.num("SLURM_NNODES", len(shares))
	e.tasks(l.Job, usedCPUs(l))
	e.ofSteps(l.Job.Spec)
	e.set("SLURM_PROCID", "0")
	e.set("SLURM_LOCALID", "0")
	e.set("SLURM_GTIDS", "0")
}

// usedCPUs counts the CPUs of a job's share that its tasks use: one of each core if they want no more threads of
// it. Its nodes have as many as this one.
func usedCPUs(l *cluster.Launch) func(cluster.Share) int {
	threads := 1
	if l.Job.Spec.ThreadsPerCore == 1 && l.Config.CoreAlloc && l.Inventory != nil {
		threads = max(l.Inventory.ThreadsPerCore, 1)
	}
	return func(sh cluster.Share) int { return cpusOf(sh) / threads }
}

// tasks tells how many are asked for, and how many go on each node.
func (e *list) tasks(j *cluster.Job, cpus func(cluster.Share) int) {
	s := j.Spec
	e.set("SLURM_TASKS_PER_NODE", PerNode(j.Alloc.Shares, func(sh cluster.Share) int {
		if !countsTasks(s) { // not counted: as many as its CPUs are for
			return max(cpus(sh)/max(s.CPUsPerTask, 1), 1)
		}
		return max(sh.Tasks, 1)
	}))
	if n := jobTasks(j); countsTasks(s) {
		e.num("SLURM_NTASKS", n)
		e.num("SLURM_NPROCS", n)
	}
}

func (e *list) step(l *cluster.Launch) {
	st := l.Step
	nodes, per := nodeList(st.Shares), PerNode(st.Shares, func(sh cluster.Share) int { return sh.Tasks })
	id := strconv.FormatUint(uint64(uint32(st.ID.Step)), 10)
	kept := func(name, v string) { // the environment given says it, or nothing does, if it is to be believed
		if !l.Spec.KeepCounts {
			e.set(name, v)
		}
	}
	e.set("SLURM_JOB_NAME", cmp.Or(variable(l.Spec.Env, "SLURM_JOB_NAME"), st.Name))
	if l.Spec.MPI != "" {
		e.set("SLURM_MPI_TYPE", l.Spec.MPI)
	}
	e.set("SLURM_STEP_ID", id)
	e.set("SLURM_STEPID", id)
	e.set("SLURM_NODELIST", nodeList(l.Job.Alloc.Shares))
	kept("SLURM_NNODES", strconv.Itoa(len(st.Shares)))
	e.set("SLURM_STEP_NODELIST", nodes)
	e.num("SLURM_STEP_NUM_NODES", len(st.Shares))
	e.num("SLURM_STEP_NUM_TASKS", st.Tasks)
	e.set("SLURM_STEP_TASKS_PER_NODE", per)
	if st.Ports != "" {
		e.set("SLURM_STEP_RESV_PORTS", st.Ports)
	}
	kept("SLURM_TASKS_PER_NODE", per)
	kept("SLURM_NTASKS", strconv.Itoa(st.Tasks))
	kept("SLURM_NPROCS", strconv.Itoa(st.Tasks))
	e.num("SLURM_PROCID", l.Rank)
	e.num("SLURM_LOCALID", l.LocalRank)
	e.set("SLURM_GTIDS", joinInts(l.Ranks[l.NodeID]))
	e.set("SLURM_SRUN_COMM_HOST", "127.0.0.1")
	if p := l.Spec.PTY; p != nil && p.Rows > 0 && p.Cols > 0 {
		e.set("SLURM_PTY_WIN_ROW", strconv.Itoa(int(p.Rows)))
		e.set("SLURM_PTY_WIN_COL", strconv.Itoa(int(p.Cols)))
	}
	e.set("SLURM_LAUNCH_NODE_IPADDR", "127.0.0.1")
	if l.Job.Spec.Kind != cluster.SrunJob && l.Job.Het == nil {
		e.set("SLURM_JOB_CPUS_PER_NODE_PACK_GROUP_0", PerNode(l.Job.Alloc.Shares, cpusOf))
	}
	e.num("SLURM_CPUS_ON_NODE", st.Shares[l.NodeID].CPUs.Len())
	if !l.Spec.Interactive { // what would bind the steps that begin in it
		e.chosen(l)
	}
	if l.Spec.CPUsPerTask > 0 {
		e.num("SLURM_CPUS_PER_TASK", l.Spec.CPUsPerTask)
	}
	e.text("SLURM_CPU_FREQ_REQ", l.Spec.CPUFreq)
	if n := l.Spec.TasksPerGPU; n > 0 {
		e.num("SLURM_NTASKS_PER_TRES", n)
		e.set("SLURMD_TRES_BIND", "gpu:single:"+strconv.Itoa(n))
	}
	if g := st.Shares[l.NodeID].GPUs; !g.Empty() {
		if len(l.Spec.PerTask) > 0 && st.Tasks > 1 {
			e.set("SLURMD_TRES_BIND", "gpu:per_task:"+strconv.FormatInt(l.Spec.PerTask[0].Count, 10))
		}
		e.set("SLURM_STEP_GPUS", commas(l.GPUs.GPUs))
	}
}

// chosen sets what srun has chosen for its tasks.
func (e *list) chosen(l *cluster.Launch) {
	st := l.Step
	e.set("SLURM_UMASK", fmt.Sprintf("%04o", l.Spec.Umask))
	dist := distribution(l.Spec.Distribution)
	if l.Spec.PlaneSize > 0 {
		e.num("SLURM_DIST_PLANESIZE", l.Spec.PlaneSize)
	}
	own := l.Job.Spec.Kind == cluster.SrunJob
	if dist == "" && (!own || l.Spec.Mem.MB > 0 && l.Spec.Mem.Per != cluster.MemPerGPU) { // as in Slurm
		dist = "block"
		if st.Tasks == len(st.Shares) {
			dist = "cyclic"
		}
	}
	if dist != "" {
		e.set("SLURM_DISTRIBUTION", dist)
	}
	e.binding(cluster.Bind(l.Spec, st.Shares[l.NodeID], l.Inventory))
	e.memBinding(cluster.BindMem(l.Spec.MemBind))
	e.set("SRUN_DEBUG", cmp.Or(variable(l.Spec.Env, "SRUN_DEBUG"), "3"))
	if l.Spec.Label {
		e.set("SLURM_LABELIO", "1")
	}
}

// topologyAddr is the path from the top switch to the node, as SLURM_TOPOLOGY_ADDR wants it.
func topologyAddr(topo []cluster.Switch, node cluster.NodeName) string {
	return strings.Join(append(switchesAbove(topo, node), string(node)), ".")
}

func topologyPattern(topo []cluster.Switch, node cluster.NodeName) string {
	return strings.Repeat("switch.", len(switchesAbove(topo, node))) + "node"
}

func switchesAbove(topo []cluster.Switch, node cluster.NodeName) (path []string) {
	below := ""
	for range topo {
		i := slices.IndexFunc(topo, func(s cluster.Switch) bool {
			return below == "" && slices.Contains(s.Nodes, node) || below != "" && slices.Contains(s.Switches, below)
		})
		if i < 0 {
			break
		}
		below = topo[i].Name
		path = append([]string{below}, path...)
	}
	return path
}

// EndNote is the line that tells a job's readers that it is being ended, "" for none.
func EndNote(j *cluster.Job, step int, n cluster.NodeName, at time.Time) string {
	why := ""
	switch {
	case j.RequeueAfter && j.EndingWhy == cluster.Requeued:
		why = " DUE TO JOB REQUEUE"
	case j.EndingWhy == cluster.TimedOut:
		why = " DUE TO TIME LIMIT"
	case j.EndingWhy == cluster.Preempted:
		why = " DUE TO PREEMPTION"
	case j.EndingWhy == cluster.NodeFailed:
		why = " DUE TO NODE FAILURE"
	case j.EndingWhy != cluster.Cancelled && j.EndingWhy != cluster.DeadlineMissed:
		return ""
	}
	what := "JOB " + strconv.FormatUint(uint64(j.ID), 10)
	if step >= 0 {
		what = fmt.Sprintf("STEP %d.%d", j.ID, step)
	}
	return fmt.Sprintf("slurmstepd-%s: error: *** %s ON %s CANCELLED AT %s%s ***\n", n, what, n,
		at.Format("2006-01-02T15:04:05"), why)
}

// OOMNote is the line that tells a step's readers that %d of its processes were killed because the job's memory was
// used up.
func OOMNote(id cluster.StepID, n cluster.NodeName) string {
	name := fmt.Sprintf("%d.%d", id.Job, id.Step)
	if id.Step == cluster.BatchStep {
		name = fmt.Sprintf("%d.batch", id.Job)
	}
	return fmt.Sprintf("slurmstepd-%s: error: Detected %%d oom-kill event(s) in StepId=%s. Some of your processes may have been killed by the cgroup out-of-memory handler.\n",
		n, name)
}

// Variable is one that follows from a job's size, or is to be unset.
type Variable struct {
	Name, Value string
	Number      bool
	Unset       bool
}

// Size lists the variables of a job that follow from its size.
func Size(j *cluster.Job) []Variable {
	nodes, count := nodeList(j.Alloc.Shares), strconv.Itoa(len(j.Alloc.Shares))
	return []Variable{
		{Name: "SLURM_NODELIST", Value: nodes},
		{Name: "SLURM_JOB_NODELIST", Value: nodes},
		{Name: "SLURM_NNODES", Value: count, Number: true},
		{Name: "SLURM_JOB_NUM_NODES", Value: count, Number: true},
		{Name: "SLURM_JOB_CPUS_PER_NODE", Value: PerNode(j.Alloc.Shares, cpusOf)},
		{Name: "SLURM_NPROCS", Unset: true},
		{Name: "SLURM_NTASKS", Unset: true},
		{Name: "SLURM_TASKS_PER_NODE", Unset: true},
	}
}
