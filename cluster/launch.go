package cluster

// Launch is one task about to be started on a node, with everything that the dialect needs to
// compute its environment and file names. Step is nil for a batch script.
type Launch struct {
	Job       *Job
	Config    *Config
	Inventory *Inventory // of this node
	Node      NodeName
	NodeID    int // index of the node in the step (job for a batch script)
	Step      *Step
	Spec      *StepSpec
	Rank      int
	LocalRank int
	Ranks     [][]int // ranks of every node of the step, by NodeID
	TaskGPUs  IDSet   // devices the task may use
	Daemon    string  // address for clients inside the job
}

// ShareHere is the job's share on the launch's node.
func (l *Launch) ShareHere() Share { s, _ := l.Job.Share(l.Node); return s }
