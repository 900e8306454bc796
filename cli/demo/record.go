package demo

import (
	"fmt"
	"strings"
	"time"

	"dev.muster/cluster"
	"dev.muster/cluster/hostlist"
)

// Cluster is the name of the cluster that the jobs are said to have run on.
const Cluster = "simulated"

// firstUID is the UID of the first of people; they are no users of the machine.
const firstUID = 60001

// people are users and their accounts.
var people = [...][2]string{
	{"ada", "vision"}, {"ben", "vision"}, {"chen", "language"}, {"dina", "language"}, {"emil", "robotics"},
}

// kind is a kind of work.
type kind struct {
	name         string
	nodes, units int // units: GPUs of a node, or CPUs
	usual, limit time.Duration
}

// kindsOf are the kinds of work on nodes of so many GPUs or CPUs.
func kindsOf(units, nodes int) []kind {
	part := func(n int) int { return max(units/n, 1) }
	kinds := []kind{
		{"notebook", 1, part(8), 90 * time.Minute, 4 * time.Hour},
		{"prepare", 1, part(8), 8 * time.Minute, 30 * time.Minute},
		{"eval", 1, part(8), 12 * time.Minute, time.Hour},
		{"eval", 1, part(8), 20 * time.Minute, time.Hour},
		{"eval", 1, part(4), 30 * time.Minute, time.Hour},
		{"sweep", 1, part(8), 45 * time.Minute, 2 * time.Hour},
		{"sweep", 1, part(4), 45 * time.Minute, 2 * time.Hour},
		{"finetune", 1, part(2), 2 * time.Hour, 6 * time.Hour},
		{"finetune", 1, part(1), 2 * time.Hour, 6 * time.Hour},
	}
	if nodes > 1 {
		kinds = append(kinds, kind{"pretrain", 2, part(1), 3 * time.Hour, 8 * time.Hour})
	}
	return kinds
}

// ending is how an outcome is numbered in Slurm's database, with the wait status of a job that ended so.
type ending struct{ state, exit uint32 }

var endings = map[cluster.Outcome]ending{
	cluster.Completed: {3, 0}, cluster.Cancelled: {4, 0}, cluster.Failed: {5, 1 << 8}, cluster.TimedOut: {6, 0},
	cluster.OutOfMemory: {11, 9},
}

// run is a job on its way.
type run struct {
	*kind
	id                 cluster.JobID
	user               int
	submit, start, end time.Time
	length             time.Duration
	outcome            cluster.Outcome
	shares             []cluster.Share
}

// record is what history keeps of a job that is over.
func record(r *run, partition string) *cluster.Job {
	who := people[r.user]
	as := endings[r.outcome]
	var nodes []string
	cpus, gpus, mem := 0, 0, cluster.MemMB(0)
	for _, sh := range r.shares {
		nodes = append(nodes, string(sh.Node))
		cpus, gpus, mem = cpus+sh.CPUs.Len(), gpus+sh.GPUs.Len(), mem+sh.MemMB
	}
	given := fmt.Sprintf("cpu=%d,mem=%d,node=%d,billing=%d", cpus, mem, len(nodes), cpus)
	words := []string{"sbatch", fmt.Sprintf("--nodes=%d", r.nodes)}
	if gpus > 0 {
		given += fmt.Sprintf(",gres/gpu=%d", gpus)
		words = append(words, fmt.Sprintf("--gpus-per-node=%d", r.units))
	} else {
		words = append(words, fmt.Sprintf("--cpus-per-task=%d", r.units))
	}
	j := &cluster.Job{
		ID: r.id, Task: cluster.TaskAny, Phase: cluster.Ended, Outcome: r.outcome, Attempt: int(r.submit.Unix()),
		Submitted: r.submit.Truncate(time.Second), Eligible: r.submit.Truncate(time.Second),
		Started: r.start, Ended: r.end, Limit: r.limit,
		Exit:  cluster.ExitStatus{Code: int(as.exit >> 8), Signal: int(as.exit & 0x7f)},
		Alloc: &cluster.Alloc{Partition: partition, Shares: r.shares, Types: map[string]int64{}},
		Spec: &cluster.JobSpec{
			Layout: &cluster.Layout{MinNodes: r.nodes}, Name: r.name, User: who[0], Account: who[1],
			UID: firstUID + uint32(r.user), GID: firstUID, Partitions: []string{partition}, Limit: r.limit,
			SubmitLine: strings.Join(append(words, r.name+".sh"), " "), WorkDir: "/home/" + who[0],
			AdminComment: "simulated",
		},
	}
	if gpus > 0 {
		j.Alloc.Types[""] = int64(gpus)
	}
	j.Imported = &cluster.ImportedJob{
		Cluster: Cluster, Release: 2605, Row: uint64(r.id), Changed: r.end.Unix(), State: as.state, Exit: as.exit,
		Eligible: j.Eligible.Unix(), Start: r.start.Unix(), End: r.end.Unix(), Limit: uint32(r.limit / time.Minute),
		CPUs: uint32(cpus), Nodes: uint32(len(nodes)), NodeList: hostlist.Compress(nodes), Partition: partition,
		TRESAlloc: cluster.TRESList(given), TRESReq: cluster.TRESList(given),
	}
	return j
}
