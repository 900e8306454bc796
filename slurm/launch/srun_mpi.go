package launch

import (
	"io"
	"strings"

	"dev.muster/api/stream"
	"dev.muster/pmi"
)

// mpiHub is srun's part of the process manager of an MPI program: what the servers beside the tasks
// tell each other comes by the streams of their nodes, and leaves by them.
type mpiHub struct {
	hub  *pmi.Hub
	from []*io.PipeWriter // what each node's server says
	read []chan struct{}  // closed once the hub has read all of it
}

// toServer writes to the step's server on a node.
type toServer struct{ to *stream.Stream }

func (w toServer) Write(b []byte) (int, error) { return len(b), w.to.Input(stream.StepServer, b) }

// hub is made when the first of the servers speaks: a step without them has none. The listeners of
// all nodes call it.
func (run *stepRun) hub() *mpiHub {
	run.mpiMu.Lock()
	defer run.mpiMu.Unlock()
	if run.mpi != nil {
		return run.mpi
	}
	var to []io.Writer
	var from []*io.PipeReader
	run.mpi = &mpiHub{}
	for _, st := range run.streams {
		r, w := io.Pipe()
		to, from = append(to, toServer{st}), append(from, r)
		run.mpi.from = append(run.mpi.from, w)
		run.mpi.read = append(run.mpi.read, make(chan struct{}))
	}
	run.mpi.hub = run.newHub(to, func(a pmi.Aborted) { run.events <- nodeEvent{aborted: &a} })
	run.mpi.hub.Starts(run.spawn)
	for i, r := range from {
		go run.serveNode(run.mpi, i, r) // ends with the node's stream, which closes the pipe
	}
	return run.mpi
}

// newHub makes the hub of the step, or of one that a task of another step has asked for.
func (run *stepRun) newHub(to []io.Writer, aborted func(pmi.Aborted)) *pmi.Hub {
	sp := run.spawned
	if sp == nil {
		return pmi.NewHub(to, aborted)
	}
	return sp.parent.hub().hub.Child(to, aborted, sp.parent.stepText(), sp.asked, func() { close(sp.begun) })
}

// serveNode has the hub listen to a node's server.
func (run *stepRun) serveNode(m *mpiHub, i int, from *io.PipeReader) {
	defer close(m.read[i])
	if err := m.hub.Serve(i, from); err != nil {
		run.events <- nodeEvent{aborted: &pmi.Aborted{Rank: run.resp.Nodes[i].Ranks[0], Code: 1, Text: err.Error()}}
	}
	_ = from.Close()
}

// served takes a frame of a node's server.
func (run *stepRun) served(i int, f stream.Frame) {
	switch {
	case f.Kind == stream.Stdout && run.to != nil && !run.sent.Load():
		run.to.List[i].Take(f.Data)
	case f.Kind == stream.Stdout:
		_, _ = run.hub().from[i].Write(f.Data) // a hub that has failed has told
	case f.Kind == stream.Stderr:
		node := run.resp.Nodes[i]
		for line := range strings.Lines(string(f.Data)) {
			text := "slurmstepd-" + string(node.Node) + ": " + strings.TrimSuffix(line, "\n") + "\n"
			run.io.write(stream.Frame{Kind: stream.Stderr, Task: int32(node.Ranks[0]), Data: []byte(text)})
		}
	}
}

// unserved tells the others that a node says nothing more.
func (run *stepRun) unserved(i int) {
	if run.to != nil {
		run.to.List[i].Lost(nil)
	}
	run.mpiMu.Lock()
	m := run.mpi
	run.mpiMu.Unlock()
	if m != nil {
		_ = m.from[i].Close()
		<-m.read[i] // an abort is known before the node's end
		m.hub.Lose(i)
	}
}

// mpiAborted ends the step as one of its tasks has asked, or because the nodes do not understand
// each other. Where the exit of that task was known first and has ended the step, it only tells.
func (run *stepRun) mpiAborted(a *pmi.Aborted) {
	if run.killed && run.told {
		return
	}
	if a.Text != "" && run.req.Client.Quiet == 0 {
		run.sys.Say("error: mpi: task %d: %s", a.Rank, a.Text)
	}
	if run.killed {
		run.sayAbort()
		return
	}
	run.killed = true
	run.abort()
}
