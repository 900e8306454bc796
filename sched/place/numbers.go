package place

import (
	"fmt"
	"slices"

	"dev.muster/cluster"
)

// Numbers is what a job asks for by number, of all that decides where it fits: one for each row of numberRows.
type Numbers [numbers]int64

type number int

// The numbers.
const (
	leastNodes number = iota
	mostNodes
	tasks
	tasksOnNode
	tasksOnSocket
	tasksOnCore
	tasksOnGPU
	taskCPUs
	gpuCPUs
	nodeCPUs
	segmentNodes
	// From here on a node must have at least so much.
	nodeTmpMB
	nodeSockets
	socketCores
	coreThreads
	numbers
)

// numberRows are how a job asks for each.
var numberRows = [numbers]struct {
	asked func(*cluster.JobSpec) int64
	// has is what a node has of it, of which a job wants at least its number; nil: it is about something else.
	has func(*cluster.Inventory) int64
	// hint is what Slurm says where no node has enough.
	hint string
	// option is the one that asks for it, where it is about how a job's nodes lie: reasons why a job waits name it.
	option string
}{
	leastNodes:    {asked: func(s *cluster.JobSpec) int64 { return int64(s.MinNodes) }},
	mostNodes:     {asked: func(s *cluster.JobSpec) int64 { return int64(s.MaxNodes) }},
	tasks:         {asked: func(s *cluster.JobSpec) int64 { return int64(s.Tasks) }},
	tasksOnNode:   {asked: func(s *cluster.JobSpec) int64 { return int64(s.TasksPerNode) }},
	tasksOnSocket: {asked: func(s *cluster.JobSpec) int64 { return int64(s.TasksPerSocket) }},
	tasksOnCore:   {asked: func(s *cluster.JobSpec) int64 { return int64(s.TasksPerCore) }},
	tasksOnGPU:    {asked: func(s *cluster.JobSpec) int64 { return int64(s.TasksPerGPU) }},
	taskCPUs:      {asked: func(s *cluster.JobSpec) int64 { return int64(s.CPUsPerTask) }},
	gpuCPUs:       {asked: func(s *cluster.JobSpec) int64 { return int64(s.CPUsPerGPU) }},
	nodeCPUs:      {asked: func(s *cluster.JobSpec) int64 { return int64(s.MinCPUs) }},
	segmentNodes:  {asked: func(s *cluster.JobSpec) int64 { return int64(s.Segment) }, option: "segment"},
	nodeTmpMB: {
		asked: func(s *cluster.JobSpec) int64 { return s.TmpMB },
		has:   func(inv *cluster.Inventory) int64 { return inv.TmpMB },
		hint:  "Temporary disk specification can not be satisfied",
	},
	nodeSockets: {
		asked: func(s *cluster.JobSpec) int64 { return int64(s.SocketsPerNode) },
		has:   func(inv *cluster.Inventory) int64 { return int64(inv.Sockets) },
		hint:  shapeHint,
	},
	socketCores: {
		asked: func(s *cluster.JobSpec) int64 { return int64(s.CoresPerSocket) },
		has:   func(inv *cluster.Inventory) int64 { return int64(inv.CoresPerSocket) },
		hint:  shapeHint,
	},
	coreThreads: {
		asked: func(s *cluster.JobSpec) int64 { return int64(s.ThreadsPerCore) },
		has:   func(inv *cluster.Inventory) int64 { return int64(inv.ThreadsPerCore) },
		hint:  shapeHint,
	},
}

const shapeHint = "Socket, core and/or thread specification can not be satisfied"

// NumbersOf is what a spec asks for by number.
func NumbersOf(spec *cluster.JobSpec) (n Numbers) {
	for i := range numberRows {
		n[i] = numberRows[i].asked(spec)
	}
	return n
}

// of is one of the numbers.
func (n *Numbers) of(what number) int { return int(n[what]) }

// allow reports whether a node of this hardware has enough of all that a node must have.
func (n *Numbers) allow(inv *cluster.Inventory) bool {
	for i := nodeTmpMB; i < numbers; i++ {
		if n[i] > 0 && numberRows[i].has(inv) < n[i] {
			return false
		}
	}
	return true
}

// layoutOptions are the options among the numbers that say how a job's nodes are to lie.
func (n *Numbers) layoutOptions() (list []string) {
	for i := range numberRows {
		if name := numberRows[i].option; name != "" && n[i] > 0 {
			list = append(list, fmt.Sprintf("--%s=%d", name, n[i]))
		}
	}
	return list
}

// shortHint is what Slurm says of the first number that no node reaches, or of all together if none has them; "" of
// none.
func (n *Numbers) shortHint(nodes []*cluster.Inventory) string {
	for i := nodeTmpMB; i < numbers; i++ {
		row := &numberRows[i]
		if !slices.ContainsFunc(nodes, func(inv *cluster.Inventory) bool { return row.has(inv) >= n[i] }) {
			return row.hint
		}
	}
	if !slices.ContainsFunc(nodes, n.allow) {
		return shapeHint
	}
	return ""
}
