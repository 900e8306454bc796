package server

import (
	"context"
	"fmt"
	"net"
	"slices"
	"strings"
	"time"

	"dev.muster/agent/visibility"
	"dev.muster/agent/watches"
	"dev.muster/api"
	"dev.muster/cluster"
)

// Findings of samples about jobs, and the leader's actions (package watches).

// tellTime bounds the call that tells a job something.
const tellTime = 5 * time.Second

// listIdle answers for who may see the jobs.
func listIdle(s *Server) func(context.Context, api.Caller, api.IdleQuery) (api.IdleAnswer, error) {
	return func(_ context.Context, who api.Caller, q api.IdleQuery) (api.IdleAnswer, error) {
		snap, now := s.Snapshot(), time.Now()
		sees := visibility.Of(snap, who)
		list := s.hist.Samples.Idle(snap, q.For, now)
		return api.IdleAnswer{
			Now: now, Jobs: slices.DeleteFunc(list, func(j api.IdleJob) bool { return !sees.Job(j.Job) }),
		}, nil
	}
}

// watchServer is this server as package watches needs it.
type watchServer struct{ *Server }

func (s watchServer) Committed() *cluster.Snapshot { return s.committed() }

// Propose has commands of the leader itself written to the log.
func (s watchServer) Propose(ctx context.Context, cmds ...cluster.Command) ([]any, error) {
	values, _, err := s.propose(ctx, cluster.Identity{System: true}, cmds...)
	return values, err
}

// TellJob writes a line into a job's output, if somebody takes it.
func (s watchServer) TellJob(ctx context.Context, job cluster.JobID, text string) {
	if _, err := callAsRoot(ctx, s, api.NotifyJob, api.NotifyRequest{Job: job, Text: text}); err != nil {
		s.slog.Warn("a job could not be told what was found of it", "job", job, "err", err)
	}
}

// callAsRoot calls a node in the name of root.
func callAsRoot[Q, R any](ctx context.Context, s watchServer, e api.Endpoint[Q, R], q Q) (out R, err error) {
	call := s.inName.Load()
	if call == nil {
		return out, cluster.Errorf(cluster.Unavailable, "", "this server has not begun to serve")
	}
	ctx, cancel := context.WithTimeout(ctx, tellTime)
	defer cancel()
	root := api.Caller{Identity: cluster.Identity{User: "root", Admin: true}}
	return api.CallAs(ctx, *call, root, e, q)
}

// Bounds of the stacks that are written into a job's output.
const (
	stackNodes = 16       // the first of a job
	stackPart  = 2 << 10  // bytes that are told at once
	stackText  = 64 << 10 // bytes of a node
)

// TellStacks writes where the processes of a job are in the kernel into its output.
func (s watchServer) TellStacks(ctx context.Context, id cluster.JobID) {
	j, ok := s.committed().Job(id)
	if !ok || j.Alloc == nil {
		return
	}
	for i, sh := range j.Alloc.Shares {
		if i == stackNodes {
			s.TellJob(ctx, id, fmt.Sprintf("muster: the stacks of %d more nodes are left out", len(j.Alloc.Shares)-i))
			return
		}
		got, err := callAsRoot(ctx, s, api.ShowStacks, api.StackQuery{Job: id, Node: sh.Node})
		if err != nil {
			s.TellJob(ctx, id, fmt.Sprintf("muster: the stacks on node %s could not be read: %v", sh.Node, err))
			continue
		}
		tellParts(ctx, s, id, got.Text[:min(len(got.Text), stackText)])
	}
}

// tellParts writes a text into a job's output, whole lines at a time.
func tellParts(ctx context.Context, s watchServer, id cluster.JobID, text string) {
	for len(text) > 0 {
		end := len(text)
		if end > stackPart {
			end = max(strings.LastIndexByte(text[:stackPart], '\n'), 1)
		}
		s.TellJob(ctx, id, strings.TrimSuffix(text[:end], "\n"))
		text = strings.TrimPrefix(text[end:], "\n")
	}
}

// resilienceRoutes registers what jobs and nodes tell of progress.
func resilienceRoutes(s *Server, m *api.Mux) {
	write(m, s, api.SaveCheckpoint)
	handle(s, m, api.SwapNode, swapNode(s))
	handle(s, m, api.TellCheckpoint, tellCheckpoint(s))
	handle(s, m, api.TellHang, tellHang(s))
}

// jobOfNode returns a job that a member leads, in the attempt that it speaks of.
func jobOfNode(s *Server, who api.Caller, id cluster.JobID, attempt int) (*cluster.Job, error) {
	j, ok := s.Snapshot().Job(id)
	if !ok || j.Alloc == nil || j.Phase != cluster.Running || j.Attempt != attempt {
		return nil, cluster.Errorf(cluster.NotFound, cluster.ErrJobID, "job %d does not run in attempt %d", id, attempt)
	}
	return j, s.owns(who, j.Alloc.Shares[0].Node)
}

// swapNode has a spare take the place of a node.
func swapNode(s *Server) func(context.Context, api.Caller, cluster.SwapNode) (api.SwapResponse, error) {
	return func(ctx context.Context, who api.Caller, q cluster.SwapNode) (api.SwapResponse, error) {
		values, _, err := s.propose(ctx, who.Identity, &q)
		if err != nil {
			return api.SwapResponse{}, err
		}
		node, _ := values[0].(cluster.NodeName)
		return api.SwapResponse{Node: node}, nil
	}
}

// nodeAt returns the node of a job that has an address; "": none has it.
func nodeAt(s *cluster.Snapshot, j *cluster.Job, host string) cluster.NodeName {
	for _, sh := range j.Alloc.Shares {
		n, ok := s.Node(sh.Node)
		if !ok || host == "" {
			continue
		}
		if at, _, err := net.SplitHostPort(n.Inventory.Addr); err == nil && at == host {
			return n.Name
		}
	}
	return ""
}

// tellCheckpoint notes that a job has saved a checkpoint, as its first node has seen.
func tellCheckpoint(s *Server) func(context.Context, api.Caller, api.NodeCheckpoint) (api.Empty, error) {
	return func(ctx context.Context, who api.Caller, q api.NodeCheckpoint) (api.Empty, error) {
		if _, err := jobOfNode(s, who, q.Job, q.Attempt); err != nil {
			return api.Empty{}, err
		}
		_, _, err := s.propose(ctx, cluster.Identity{System: true}, &cluster.CheckpointDone{Job: q.Job, Path: q.Path})
		return api.Empty{}, err
	}
}

// isDebugged reports whether a debugger has stopped a process of the job on the node whose rank is behind: NCCL gets no
// answer of that either.
func isDebugged(ctx context.Context, s watchServer, c *cluster.HangFound) bool {
	if c.Node == "" {
		return false
	}
	got, err := callAsRoot(ctx, s, api.ShowStacks, api.StackQuery{Job: c.Job, Node: c.Node})
	return err == nil && got.Traced > 0
}

// tellHang deals with a job that hangs, as its first node has found.
func tellHang(s *Server) func(context.Context, api.Caller, api.NodeHang) (api.Empty, error) {
	return func(ctx context.Context, who api.Caller, q api.NodeHang) (api.Empty, error) {
		j, err := jobOfNode(s, who, q.Job, q.Attempt)
		if err != nil || !watches.Hangs(s.Snapshot(), j, cluster.HangRAS, time.Now()) {
			return api.Empty{}, err
		}
		found := &cluster.HangFound{Job: q.Job, Attempt: q.Attempt, Kind: cluster.HangRAS, Text: q.Text}
		found.Node = nodeAt(s.Snapshot(), j, q.Host)
		if isDebugged(ctx, watchServer{s}, found) {
			return api.Empty{}, nil
		}
		return api.Empty{}, watches.Deal(ctx, watchServer{s}, found)
	}
}
