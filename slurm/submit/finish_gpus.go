package submit

import (
	"cmp"
	"fmt"
	"slices"

	"dev.muster/cluster"
	"dev.muster/slurm/opt"
	"dev.muster/slurm/values"
)

// asksGPUs is how many GPUs a request wants of each kind of thing, and of so many tasks and nodes.
type asksGPUs struct {
	node, job, task, socket int64
	fixed                   bool // the number of nodes is
}

func (r *Request) asksGPUs() asksGPUs {
	j := &r.Job
	return asksGPUs{
		node:   gresSum(onlyGPUs(r.gres, r.gpusPerNode)),
		job:    gresSum(onlyGPUs(j.PerJob)),
		task:   gresSum(onlyGPUs(j.PerTask)),
		socket: gresSum(onlyGPUs(j.PerSocket)),
		fixed:  j.MinNodes > 0 && j.MinNodes == j.MaxNodes,
	}
}

// lineFirst forgets what the job's environment says of GPUs where srun's own line asks for some, or for none: they
// are the step's then. How many each task has stays, as in Slurm, where there are enough for that.
func (r *Request) lineFirst() {
	j := &r.Job
	asks := []struct {
		long string
		list *[]cluster.GRES
	}{
		{"gres", &r.gres},
		{"gpus-per-node", &r.gpusPerNode},
		{"gpus", &j.PerJob},
		{"gpus-per-socket", &j.PerSocket},
		{"gpus-per-task", &j.PerTask},
	}
	own := false
	for _, a := range asks {
		own = own || r.From(a.long) == FromLine
	}
	some := int64(0)
	for _, a := range asks {
		stays := a.list == &j.PerTask && some > 0 && r.enoughForTasks()
		if own && r.From(a.long) == FromEnv && !stays {
			*a.list = nil
		}
		some += gresSum(*a.list)
	}
	r.noGPUs = own && some == 0
}

// enoughForTasks reports whether the GPUs that are asked for otherwise come to as many for each task as
// --gpus-per-task says.
func (r *Request) enoughForTasks() bool {
	j, a := &r.Job, r.asksGPUs()
	nodes := max(j.MinNodes, 1)
	each := int64((max(j.Tasks, 1) + nodes - 1) / nodes)
	switch {
	case r.From("ntasks-per-gpu") != NotGiven || !multiple(a.node, a.task):
		return false
	case a.node > 0 && a.node < a.task*each:
		return false
	}
	return a.job == 0 || a.task*int64(j.Tasks) <= a.job
}

// mergePerNode makes one list of what nodes have. --gres and --gpus-per-node are two words for the same GPUs: the
// nearer source counts, and of two on one line --gres, as in Slurm.
func (r *Request) mergePerNode() {
	isGPU := func(g cluster.GRES) bool { return g.Name == "gpu" }
	if slices.ContainsFunc(r.gres, isGPU) && len(r.gpusPerNode) > 0 {
		if r.From("gpus-per-node") > r.From("gres") {
			r.gres = slices.DeleteFunc(slices.Clone(r.gres), isGPU)
		} else {
			r.gpusPerNode = nil
		}
	}
	r.Job.PerNode = slices.Concat(r.gres, r.gpusPerNode)
}

// mixesTypes reports whether some GPUs are asked for by their type and others without.
func (r *Request) mixesTypes() bool {
	typed, plain := false, false
	for _, g := range onlyGPUs(r.gres, r.gpusPerNode, r.Job.PerJob, r.Job.PerTask, r.Job.PerSocket) {
		typed, plain = typed || g.Type != "", plain || g.Type == ""
	}
	return typed && plain
}

// known reports whether it can be told how many tasks GPUs are asked for.
func (a asksGPUs) known(j *cluster.JobSpec) bool {
	return j.Tasks > 0 || a.job > 0 || a.fixed || j.MinNodes == 0 && j.TasksPerNode > 0
}

// tasksOfGPUs works out what options of GPUs and tasks leave open: of so many tasks how many GPUs they need, of
// GPUs how many tasks.
func (r *Request) tasksOfGPUs() {
	j, a := &r.Job, r.asksGPUs()
	nodes, each := max(j.MinNodes, 1), int64(j.TasksPerGPU)
	switch {
	case a.task > 0 && j.Tasks > 0 || a.task == 0 && each == 0:
	case a.task > 0 && a.job > 0:
		j.Tasks = int(a.job / a.task)
	case a.task > 0 && a.node > 0:
		j.Tasks = int(a.node/a.task) * nodes
	case a.task > 0:
		j.Tasks = max(j.TasksPerNode, 1) * nodes
	case j.Tasks == 0 && a.job > 0:
		j.Tasks = int(a.job * each)
	case j.Tasks == 0 && a.node > 0:
		j.Tasks = int(a.node*each) * nodes
	case a.node == 0 && a.job == 0:
		j.Tasks = max(j.Tasks, nodes)
		j.PerJob = []cluster.GRES{{Name: "gpu", Count: (int64(j.Tasks) + each - 1) / each}}
	}
}

// multiple reports whether n is a multiple of each; it is if one of them was not given.
func multiple(n, each int64) bool { return n == 0 || each == 0 || n%each == 0 }

// gpuRule says what is wrong with what was asked for, if it is.
type gpuRule struct {
	wrong bool
	text  string
}

// amountRules are how the counts of a node, a socket, a task and the job go together.
func amountRules(j *cluster.JobSpec, a asksGPUs, nodes int64, given func(string) bool) []gpuRule {
	return []gpuRule{
		{a.node > 0 && a.node < max(a.task, a.socket), "Failed to ensure --gpus >= --gpus-per-task"},
		{
			a.job > 0 && a.job < max(a.task, a.node, a.socket),
			"Failed to ensure --gpus >= --gres=gpu/--gpus-per-node >= --gpus-per-socket",
		},
		{
			given("gpus-per-task") && a.task > 0 && !a.known(j),
			"Failed to validate job spec. --gpus-per-task used without either --gpus or -n/--ntasks is not allowed.",
		},
		{
			!multiple(a.node, a.socket),
			"Failed to validate job spec, --gres=gpu/--gpus-per-node not multiple of --gpus-per-socket.",
		},
		{a.node > 0 && a.socket > 0 && a.node != a.socket*int64(j.SocketsPerNode),
			"Failed to validate job spec. Based on --gres=gpu/--gpus-per-node and --gpus-per-socket required number of sockets differ from --sockets-per-node."},
		{
			!multiple(a.socket, a.task),
			"Failed to validate job spec, --gpus-per-socket not multiple of --gpus-per-task.",
		},
		{
			!multiple(a.node, a.task),
			"Failed to validate job spec, --gres=gpu/--gpus-per-node not multiple of --gpus-per-task.",
		},
		{!multiple(a.job, a.task), "Failed to validate job spec, --gpus not multiple of --gpus-per-task"},
		{
			a.task > 0 && a.job > 0 && given("gpus") && (j.Tasks > 0 && a.job != a.task*int64(j.Tasks) || a.job < a.task*nodes),
			"Failed to validate job spec. Based on --gpus and --gpus-per-task number of requested tasks differ from -n/--ntasks.",
		},
		{a.task > 0 && a.node > 0 && j.TasksPerNode > 0 && a.node != a.task*int64(j.TasksPerNode),
			"Failed to validate job spec. Based on --gres=gpu/--gpus-per-node and --gpus-per-task requested number of tasks per node differ from --ntasks-per-node."},
	}
}

// checkGPUs refuses options of GPUs that say different things, in Slurm's words, which are not always of the
// options meant.
func (r *Request) checkGPUs(given func(string) bool) error {
	inJob := r.prog == opt.Srun && r.sys.Getenv("SLURM_JOB_ID") != ""
	if !inJob && r.mixesTypes() {
		return opt.Named(r.prog, "", "", opt.Errorf(opt.CodeError,
			"error: Invalid GRES specification (with and without type identification)"))
	}
	j, a := &r.Job, r.asksGPUs()
	nodes := int64(j.MinNodes)
	if j.Tasks > 0 {
		nodes = min(nodes, int64(j.Tasks))
	}
	rules := slices.Concat(optionRules(r, a, inJob, given), amountRules(j, a, nodes, given))
	if given("gpus") {
		rules = append(rules, totalRules(j, a, nodes, inJob)...)
	}
	for _, c := range rules {
		if c.wrong {
			return opt.Named(r.prog, "", "", &opt.UsageError{
				Code: opt.CodeError, Lines: []string{"error: " + c.text, values.BadGRES},
			})
		}
	}
	return nil
}

// optionRules are what options of GPUs need beside them.
func optionRules(r *Request, a asksGPUs, inJob bool, given func(string) bool) []gpuRule {
	j := &r.Job
	none := !inJob && a.node+a.job+a.task == 0 && len(j.PerSocket) == 0
	return []gpuRule{
		{
			given("cpus-per-gpu") && r.From("cpus-per-gpu") == r.From("cpus-per-task"),
			"--cpus-per-gpu is mutually exclusive with --cpus-per-task",
		},
		{
			len(j.PerSocket) > 0 && j.SocketsPerNode == 0,
			"--gpus-per-socket option requires --sockets-per-node specification",
		},
		{
			none && r.From("mem-per-gpu") != NotGiven && j.Mem.Per == cluster.MemPerGPU,
			fmt.Sprintf("Requested mem_per_tres=gres:gpu:%d but did not request any GPU.", j.Mem.MB),
		},
		{
			none && j.TasksPerGPU > 0 && j.Tasks == 0 && !a.fixed,
			"gres_job_state_validate: --ntasks-per-tres needs either a GRES GPU specification " +
				"or a node/ntask specification",
		},
		{
			none && j.TasksPerGPU > 0 && !multiple(int64(j.Tasks), int64(j.TasksPerGPU)),
			"Failed to validate job spec, -n/--ntasks has to be a multiple of --ntasks-per-gpu.",
		},
	}
}

// totalRules are how --gpus goes together with the number of nodes.
func totalRules(j *cluster.JobSpec, a asksGPUs, nodes int64, inJob bool) []gpuRule {
	least, most := max(j.MinNodes, 1), cmp.Or(j.MaxNodes, j.MinNodes)
	need := 0
	if a.node > 0 {
		need = int(a.job / a.node)
	}
	outside := need < least || most > 0 && need > most
	return []gpuRule{
		{
			!multiple(a.job, a.node),
			"Failed to validate job spec, --gpus is not multiple of --gres=gpu/--gpus-per-node",
		},
		{!inJob && a.job > 0 && a.job < nodes, "Failed to validate job spec, --gpus < -N"},
		{
			!inJob && need > 0 && outside,
			fmt.Sprintf("Failed to validate job spec. Based on --gpu and --gres=gpu/--gpus-per-node required nodes (%d) "+
				"doesn't fall between min_nodes (%d) and max_nodes (%d) boundaries.", need, least, most),
		},
	}
}

func gresSum(list []cluster.GRES) (n int64) {
	for _, g := range list {
		n += g.Count
	}
	return n
}

// onlyGPUs is what of lists of generic resources are GPUs.
func onlyGPUs(lists ...[]cluster.GRES) (out []cluster.GRES) {
	for _, g := range slices.Concat(lists...) {
		if g.Name == "gpu" && g.Count > 0 {
			out = append(out, g)
		}
	}
	return out
}
