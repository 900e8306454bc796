package env

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"dev.muster/cluster"
)

// groups sets the variables of each component of a heterogeneous job, under the names that Slurm uses and those of
// old. batch: as its script sees them, not salloc's command.
func (e *list) groups(l *cluster.Launch, batch bool) {
	if l.Job.Het == nil || len(l.Sisters) == 0 {
		return
	}
	e.size(l.Job.Het.Size)
	*e = slices.DeleteFunc(*e, func(v string) bool { return strings.HasPrefix(v, "SLURM_CPUS_PER_TASK=") }) // as Slurm: of each group alone
	for k, j := range append([]*cluster.Job{l.Job}, l.Sisters...) {
		var own list
		own.component(l, j, batch)
		for _, v := range own {
			name, value, _ := strings.Cut(v, "=")
			switch name {
			case "SLURM_EXPORT_ENV", "SLURM_GET_USER_ENV", "SLURM_OPEN_MODE":
				continue // of the whole
			}
			e.set(name+Group(k), value)
			e.set(name+"_PACK_GROUP_"+strconv.Itoa(k), value)
		}
	}
}

// Group is what the names of a component's variables end with.
func Group(k int) string { return "_HET_GROUP_" + strconv.Itoa(k) }

func (e *list) size(n int) {
	e.num("SLURM_HET_SIZE", n)
	e.num("SLURM_PACK_SIZE", n)
}

// component sets what is told of one component.
func (e *list) component(l *cluster.Launch, j *cluster.Job, batch bool) {
	id := strconv.FormatUint(uint64(j.ID), 10)
	e.set("SLURM_JOB_ID", id)
	e.set("SLURM_JOB_ACCOUNT", j.Spec.Account)
	e.set("SLURM_JOB_CPUS_PER_NODE", PerNode(j.Alloc.Shares, cpusOf))
	e.set("SLURM_JOB_NAME", j.Spec.Name)
	e.set("SLURM_JOB_NODELIST", nodeList(j.Alloc.Shares))
	e.num("SLURM_JOB_NUM_NODES", len(j.Alloc.Shares))
	e.set("SLURM_JOB_PARTITION", j.Alloc.Partition)
	e.set("SLURM_JOB_QOS", j.Spec.QOS)
	if j.Spec.Reservation != "" {
		e.set("SLURM_JOB_RESERVATION", j.Spec.Reservation)
	}
	e.tasks(j, cpusOf)
	e.asked(j.Spec)
	if batch {
		e.memory(&cluster.Launch{Job: j, Config: l.Config})
		return
	}
	e.set("SLURM_JOBID", id)
	e.num("SLURM_NNODES", len(j.Alloc.Shares))
	e.set("SLURM_NODELIST", nodeList(j.Alloc.Shares))
	e.set("SLURM_NODE_ALIASES", "(null)")
	if j.Spec.Mem.Per != cluster.MemDefault {
		e.memory(&cluster.Launch{Job: j, Config: l.Config})
	}
}

func cpusOf(sh cluster.Share) int  { return sh.TaskCPUs().Len() }
func tasksOf(sh cluster.Share) int { return sh.Tasks }

// HetAllocation returns what salloc adds to its command's environment for a heterogeneous job; l is the leader's.
func HetAllocation(l *cluster.Launch) []string {
	var e list
	e.set("SLURM_JOB_ID", strconv.FormatUint(uint64(l.Job.ID), 10))
	e.set("SLURM_CLUSTER_NAME", l.Config.ClusterName)
	e.set("SLURM_SUBMIT_DIR", l.Job.Spec.SubmitDir)
	e.set("SLURM_SUBMIT_HOST", l.Job.Spec.SubmitHost)
	e.set("MUSTER_SOCKET", l.Daemon)
	tasks := 0
	for _, j := range append([]*cluster.Job{l.Job}, l.Sisters...) {
		if countsTasks(j.Spec) {
			tasks += jobTasks(j)
		}
	}
	if tasks > 0 { // else each step says how many
		e.num("SLURM_NTASKS", tasks)
		e.num("SLURM_NPROCS", tasks)
	}
	e.groups(l, false)
	return e
}

// world makes of a part's variables those of the whole step: all of its tasks are one world.
func (e *list) world(l *cluster.Launch) {
	w := l.Spec.World
	shares := slices.Clone(w.Shares)
	id, nodes, per := strconv.FormatUint(uint64(w.Job), 10), nodeList(shares), PerNode(shares, tasksOf)
	count, all := strconv.Itoa(len(shares)), strconv.Itoa(w.Tasks)
	dist := cmp.Or(l.Spec.Distribution, "block")
	if l.Spec.Distribution == "" && w.Tasks == len(shares) {
		dist = "cyclic"
	}
	*e = slices.DeleteFunc(*e, func(v string) bool {
		return strings.HasPrefix(v, "SLURM_DISTRIBUTION=") || strings.HasPrefix(v, "HOSTNAME=")
	})
	e.set("SLURM_DISTRIBUTION", dist)
	if host := variable(l.Spec.Env, "HOSTNAME"); host != "" { // of the whole
		e.set("HOSTNAME", host)
	}
	for name, value := range map[string]string{"SLURM_JOB_ID": id, "SLURM_JOBID": id,
		"SLURM_JOB_NODELIST": nodes, "SLURM_NODELIST": nodes,
		"SLURM_STEP_NODELIST": nodes, "SLURM_JOB_NUM_NODES": count, "SLURM_NNODES": count,
		"SLURM_STEP_NUM_NODES": count,
		"SLURM_NTASKS":         all, "SLURM_NPROCS": all, "SLURM_STEP_NUM_TASKS": all,
		"SLURM_TASKS_PER_NODE": per, "SLURM_STEP_TASKS_PER_NODE": per,
		"SLURM_JOB_CPUS_PER_NODE": PerNode(w.Given, cpusOf), "SLURM_NODEID": fmt.Sprint(l.NodeID + w.Node)} {
		if i := slices.IndexFunc(*e, func(v string) bool { return strings.HasPrefix(v, name+"=") }); i >= 0 {
			(*e)[i] = name + "=" + value
		}
	}
	e.size(w.Size)
}

// GroupEnviron is an environment as component k of a heterogeneous job's allocation has it: its own variables
// under their plain names, and none of the other components.
func GroupEnviron(environ []string, k int) []string {
	const mark = "_HET_GROUP_"
	own, of := Group(k), map[string]bool{}
	var out []string
	for _, e := range environ {
		name, value, _ := strings.Cut(e, "=")
		base, _, ok := strings.Cut(name, mark)
		if !ok || base == "SLURM_JOB_ID" || base == "SLURM_JOBID" {
			continue
		}
		if of[base] = true; name == base+own {
			out = append(out, base+"="+value)
		}
	}
	for _, e := range environ {
		if name, _, _ := strings.Cut(e, "="); !of[name] {
			out = append(out, e)
		}
	}
	return out
}
