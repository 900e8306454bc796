package launch

import (
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"dev.muster/api"
	"dev.muster/api/stream"
	"dev.muster/cluster"
	"dev.muster/pmi"
	"dev.muster/slurm/front"
	"dev.muster/slurm/stage"
	"dev.muster/slurm/submit"
)

// nodeEvent is what happened on one node of the step.
type nodeEvent struct {
	node  int
	frame stream.Frame
	err   error // the node's stream ended: nil after Done
	over  bool
	// notice: the node has said that the step is being ended.
	notice bool
	// aborted: a task of an MPI program has asked for the step's end.
	aborted *pmi.Aborted
	// unsent: a program did not reach its nodes.
	unsent *unsent
}

// stepRun is a step in flight.
type stepRun struct {
	sys     *front.Sys
	req     *submit.Request
	resp    api.StepResponse // of all parts as one
	parts   []cluster.StepID // one a component
	first0  []int            // by node, the first rank of its part
	io      *stepIO
	streams []*stream.Stream
	events  chan nodeEvent
	running cluster.IDSet // ranks
	ended   cluster.IDSet
	exits   []exitGroup // not told yet
	worst   int
	killed  bool // this srun ends it
	forced  bool // a task was killed or terminated
	// interrupted: its user has ended it by Ctrl-C.
	interrupted bool
	lostContact bool // with a node
	told        bool // the user knows that the step is being ended
	mpiMu       sync.Mutex
	mpi         *mpiHub // nil: no server has spoken
	bare        *front.Sys
	spawned     *spawned // nil: no task has asked for this step
	children    children
	first       time.Time // when the first task ended
	programs    []program
	to          *stage.Nodes // the nodes that wait for them; nil: none do
	sent        atomic.Bool  // they have arrived
	unsent      bool         // they will not
}

// exitGroup is several tasks of a node that ended alike.
type exitGroup struct {
	node   int
	text   string
	rank   cluster.IDSet
	status int // as wait(2) has it
}

func (run *stepRun) stepText() string {
	return fmt.Sprintf("%d.%d", run.resp.Step.ID.Job, run.resp.Step.ID.Step)
}

func (run *stepRun) kill() {
	run.signal(api.StepSignal{Kill: true})
}

func (run *stepRun) send(sig int) {
	run.signal(api.StepSignal{Sig: sig})
}
