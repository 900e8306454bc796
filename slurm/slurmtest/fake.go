// Package slurmtest is a server for tests of front-ends: fixed records behind the real endpoints. Only tests
// import it.
package slurmtest

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"dev.muster/api"
	"dev.muster/cluster"
	"dev.muster/wire"
)

// Server answers queries from fixed records, as agent/server would.
type Server struct {
	Own   *api.Mux // in place of all it knows
	Jobs  []*cluster.Job
	Nodes []api.NodeInfo
	conf  cluster.Config
	steps []*cluster.Step
	Now   time.Time
	Log   []string // commands that came in, as JSON
}

// Clock is what the time is at a fake server.
var Clock = time.Date(2026, 11, 21, 5, 51, 31, 0, time.UTC)

func ago(d time.Duration) time.Time { return Clock.Add(-d) }

// Nodes are the names of some of a fake cluster's nodes.
func Nodes(lo, hi int) (list []cluster.NodeName) {
	for i := lo; i <= hi; i++ {
		list = append(list, cluster.NodeName("gpu-node-00"+strconv.Itoa(i)))
	}
	return list
}

// New is a server with eight nodes and jobs in each state.
func New() *Server {
	f := &Server{Now: Clock, conf: cluster.DefaultConfig()}
	f.conf.ClusterName, f.conf.DefMem = "oracle", cluster.Mem{Per: cluster.MemPerCPU, MB: 2000}
	f.conf.Partitions = []cluster.Partition{
		{Name: "debug", Nodes: Nodes(1, 1), State: cluster.PartitionUp,
			PartitionLimits: cluster.PartitionLimits{MaxTime: 2 * time.Hour}},
		{Name: "train", Nodes: Nodes(1, 8), State: cluster.PartitionUp,
			PartitionLimits: cluster.PartitionLimits{MaxTime: 168 * time.Hour}, Default: true},
		{Name: "priority", Nodes: Nodes(1, 8), State: cluster.PartitionUp,
			PartitionLimits: cluster.PartitionLimits{MaxTime: 720 * time.Hour}, PriorityTier: 2, PriorityJobFactor: 2},
	}
	f.conf.Topology = []cluster.Switch{{Name: "leaf1", Nodes: Nodes(1, 4)}, {Name: "leaf2", Nodes: Nodes(5, 8)}, {Name: "spine", Switches: []string{"leaf1", "leaf2"}}}
	for i, n := range Nodes(1, 8) {
		inv := cluster.Inventory{Host: string(n), Addr: "127.0.0.1:2681" + strconv.Itoa(i+1), Sockets: 2, CoresPerSocket: 8, ThreadsPerCore: 1, CPUs: 16,
			MemMB: 64000, FreeMemMB: 23436, Arch: "x86_64", OS: "Linux 6.18", Features: []string{"h100", "nvlink", "rack" + strconv.Itoa(1+i/4)}, Version: "22.05.8"}
		for g := range 8 {
			inv.GPUs = append(inv.GPUs, cluster.GPU{Index: g, Type: "h100", Cores: cluster.RangeIDSet(g/4*8, g/4*8+7)})
		}
		f.Nodes = append(f.Nodes, api.NodeInfo{Node: cluster.Node{Name: n, Order: i, Inventory: inv, Up: true, Registered: ago(time.Hour), LastBusy: ago(time.Minute)}})
	}
	f.AddJobs()
	return f
}

func spec(name string, change func(*cluster.JobSpec)) *cluster.JobSpec {
	yes := true
	s := &cluster.JobSpec{Layout: &cluster.Layout{}, Name: name, User: "root", Group: "root", Account: "root", QOS: "normal", Partitions: []string{"train"}, Requeue: &yes,
		Command: "/tmp/ora/j.sh", WorkDir: "/tmp/ora", Stdout: "/dev/null", SubmitHost: "localhost", AllocSid: 21237}
	change(s)
	return s
}

// AddJobs makes records like those that the oracle was shown.
func (f *Server) AddJobs() {
	week := 168 * time.Hour
	add := func(j cluster.Job) *cluster.Job {
		j.Submitted = cmpTime(j.Submitted, ago(4*time.Second))
		if j.ArrayID == 0 {
			j.Task = cluster.TaskAny
		}
		if j.Limit == 0 {
			j.Limit = week
		}
		f.Jobs = append(f.Jobs, &j)
		return &j
	}
	share := func(n int, cpus, gpus cluster.IDSet, mem cluster.MemMB) cluster.Share {
		return cluster.Share{Node: Nodes(n, n)[0], CPUs: cpus, GPUs: gpus, MemMB: mem}
	}
	none := cluster.IDSet{}
	add(cluster.Job{ID: 734, Priority: 10066, Phase: cluster.Running, Started: ago(3 * time.Second), Limit: 30 * time.Minute, Attempt: 1,
		Alloc: &cluster.Alloc{Partition: "train", Shares: []cluster.Share{share(2, cluster.NewIDSet(3), none, 2000)}},
		Spec:  spec("run1", func(s *cluster.JobSpec) { s.MinNodes, s.MaxNodes, s.Tasks = 1, 1, 1 })})
	add(cluster.Job{ID: 735, Priority: 10140, Phase: cluster.Starting, Started: ago(time.Second), Limit: 2 * time.Hour,
		Alloc: &cluster.Alloc{Partition: "train", Types: map[string]int64{"h100": 4},
			Shares: []cluster.Share{share(2, cluster.NewIDSet(0, 1), cluster.NewIDSet(0, 1), 4000), share(3, cluster.NewIDSet(0, 1), cluster.NewIDSet(0, 1), 4000)}},
		Spec: spec("gpu2", func(s *cluster.JobSpec) {
			s.MinNodes, s.MaxNodes, s.TasksPerNode, s.PerNode, s.Comment = 2, 2, 2, []cluster.GRES{{Name: "gpu", Count: 2}}, "hello"
		})})
	add(cluster.Job{ID: 736, Priority: 10066, Phase: cluster.Pending, Wait: cluster.WaitResources, LastEval: ago(0), PlannedStart: Clock.Add(week),
		PlannedNodes: Nodes(1, 1),
		Spec: spec("excl", func(s *cluster.JobSpec) {
			s.MinNodes, s.MaxNodes, s.Sharing, s.PerJob = 1, 1, cluster.ShareExclusive, []cluster.GRES{{Name: "gpu", Count: 4}}
		})})
	add(cluster.Job{ID: 737, ArrayID: 737, Task: cluster.TaskAny, Tasks: cluster.RangeIDSet(3, 9), Priority: 10066, Wait: cluster.WaitArrayLimit,
		Spec: spec("arr", func(s *cluster.JobSpec) {
			s.Array, s.Tasks, s.Stdout = &cluster.ArraySpec{Tasks: cluster.RangeIDSet(1, 9), Limit: 2}, 1, ""
		})})
	arr := f.Jobs[len(f.Jobs)-1].Spec
	add(cluster.Job{ID: 745, ArrayID: 737, Task: 1, Priority: 10066, Phase: cluster.Running, Started: ago(90 * time.Second), Spec: arr,
		Alloc: &cluster.Alloc{Partition: "train", Shares: []cluster.Share{share(2, cluster.NewIDSet(4), none, 2000)}}})
	add(cluster.Job{ID: 738, Priority: 10132, Wait: cluster.WaitBegin, Eligible: Clock.Add(time.Hour),
		Spec: spec("beg", func(s *cluster.JobSpec) {
			s.MinNodes, s.MaxNodes, s.CPUsPerTask, s.Mem, s.Constraint = 2, 4, 2, cluster.Mem{Per: cluster.MemPerNode, MB: 4096}, "h100"
			s.Exclude, s.MailType, s.MailUser = Nodes(8, 8), []string{"END"}, "root"
		})})
	add(cluster.Job{ID: 739, Priority: 10078, Wait: cluster.WaitDependency, Depends: cluster.Depends{Terms: []cluster.Depend{{Type: cluster.AfterOK, Job: 734, Task: -1}}},
		Spec: spec("dep", func(s *cluster.JobSpec) {
			s.Tasks, s.PerTask, s.CPUsPerGPU, s.Mem = 4, []cluster.GRES{{Name: "gpu", Count: 1}}, 2, cluster.Mem{Per: cluster.MemPerGPU, MB: 2048}
		})})
	add(cluster.Job{ID: 740, Wait: cluster.WaitHeldUser, Held: cluster.HeldUser,
		Spec: spec("held", func(s *cluster.JobSpec) {
			s.Tasks, s.PerNode, s.TmpMB, s.NodeList = 3, []cluster.GRES{{Name: "gpu", Type: "h100", Count: 2}}, 100, Nodes(3, 3)
		})})
	add(cluster.Job{ID: 741, Priority: 10066, Phase: cluster.Ended, Outcome: cluster.Failed, EndReason: cluster.EndNonZeroExit, Exit: cluster.ExitStatus{Code: 3},
		Started: ago(2 * time.Second), Ended: ago(2 * time.Second), Spec: spec("fin", func(s *cluster.JobSpec) { s.Command = "" }),
		Alloc: &cluster.Alloc{Partition: "train", Shares: []cluster.Share{share(2, cluster.NewIDSet(6), none, 2000)}}})
	add(cluster.Job{ID: 742, Priority: 9000, Wait: cluster.WaitNodeNotAvail, WaitNote: "gpu-node-007", Spec: spec("longer-name-than-eight", func(s *cluster.JobSpec) {
		s.Partitions, s.NodeList = []string{"debug", "train"}, Nodes(7, 7)
	})})
	add(cluster.Job{ID: 744, ArrayID: 744, Task: cluster.TaskAny, Tasks: cluster.NewIDSet(1, 3, 7, 9, 12, 15, 22, 28, 31, 44, 59), Held: cluster.HeldAdmin, Wait: cluster.WaitHeldAdmin,
		Spec: spec("arrirr", func(s *cluster.JobSpec) { s.Array = &cluster.ArraySpec{} })})
	add(cluster.Job{ID: 766, Priority: 10070, Phase: cluster.Ending, EndingWhy: cluster.Cancelled, Started: ago(3 * time.Second), EndingAt: ago(time.Second),
		Alloc: &cluster.Alloc{Partition: "train", Shares: []cluster.Share{share(1, cluster.NewIDSet(0, 1), none, 4000)}},
		Spec:  spec("wrap", func(s *cluster.JobSpec) { s.Tasks, s.Stdout, s.Command = 2, "x%j.out", "" })})
	f.steps = []*cluster.Step{{ID: cluster.StepID{Job: 735, Step: cluster.BatchStep}, Name: "batch", Shares: f.Jobs[1].Alloc.Shares[:1], Tasks: 1, Started: ago(time.Second)},
		{ID: cluster.StepID{Job: 735, Step: 0}, Name: "sleep", Shares: f.Jobs[1].Alloc.Shares, Tasks: 2, Started: ago(time.Second), SrunHost: "gpu-node-002", SrunPID: 23423},
		{ID: cluster.StepID{Job: 745, Step: cluster.BatchStep}, Name: "batch", Shares: f.Jobs[4].Alloc.Shares, Tasks: 1, Started: ago(90 * time.Second)}}
	f.loadNodes()
}

// loadNodes makes the nodes agree with the jobs, and some of them sick.
func (f *Server) loadNodes() {
	f.Nodes[0].Ending, f.Nodes[0].Load = true, cluster.Load{CPUUse: cluster.CPUUse{CPUs: cluster.NewIDSet(0, 1)}, MemMB: 4000}
	f.Nodes[1].Load = cluster.Load{CPUUse: cluster.CPUUse{CPUs: cluster.NewIDSet(0, 1, 3, 4)}, GPUs: cluster.NewIDSet(0, 1), MemMB: 8000}
	f.Nodes[2].Load = cluster.Load{CPUUse: cluster.CPUUse{CPUs: cluster.NewIDSet(0, 1)}, GPUs: cluster.NewIDSet(0, 1), MemMB: 4000}
	f.Nodes[3].Load = cluster.Load{CPUUse: cluster.CPUUse{CPUs: cluster.RangeIDSet(0, 15)}, MemMB: 32000}
	f.Nodes[3].Drain, f.Nodes[3].Reason, f.Nodes[3].ReasonBy, f.Nodes[3].ReasonAt = true, "x y", "root", ago(time.Minute)
	f.Nodes[6].Down, f.Nodes[6].Up, f.Nodes[6].Reason, f.Nodes[6].ReasonBy, f.Nodes[6].ReasonAt = true, false, "Not responding", "slurm", ago(time.Minute)
	f.Nodes[7].Drain, f.Nodes[7].Reason, f.Nodes[7].ReasonBy, f.Nodes[7].ReasonAt = true, "bad dimm here and more text", "root", ago(time.Minute)
}

func cmpTime(t, other time.Time) time.Time {
	if t.IsZero() {
		return other
	}
	return t
}

// ListJobs answers api.ListJobs.
func (f *Server) ListJobs(_ context.Context, _ api.Caller, q api.JobQuery) (api.JobsResponse, error) {
	out := api.JobsResponse{Now: f.Now}
	for _, r := range q.Refs {
		if !slices.ContainsFunc(f.Jobs, func(j *cluster.Job) bool { return refHits(r, j) }) {
			out.Missing = append(out.Missing, r)
		}
	}
	for _, j := range f.Jobs {
		switch {
		case len(q.Refs) > 0 && !slices.ContainsFunc(q.Refs, func(r cluster.Ref) bool { return refHits(r, j) }),
			len(q.Phases) > 0 && !slices.Contains(q.Phases, j.Phase),
			len(q.Names) > 0 && !slices.Contains(q.Names, j.Spec.Name),
			len(q.Users) > 0 && !slices.Contains(q.Users, j.Spec.UID),
			len(q.Partitions) > 0 && !slices.ContainsFunc(j.Spec.Partitions, func(p string) bool { return slices.Contains(q.Partitions, p) }):
		default:
			out.Jobs = append(out.Jobs, j)
		}
	}
	return out, nil
}

func refHits(r cluster.Ref, j *cluster.Job) bool {
	return (r.Job == j.ID || r.Job == j.ArrayID) && (r.Tasks.Empty() || r.Tasks.Has(j.Task) || !j.Tasks.Intersect(r.Tasks).Empty())
}

// Mux has all that a fake server answers; commands are noted down.
func (f *Server) Mux() *api.Mux {
	m := api.NewMux()
	api.Handle(m, api.ListJobs, f.ListJobs)
	api.Handle(m, api.ListReservations, func(context.Context, api.Caller, api.ReservationQuery) (api.ReservationsResponse, error) {
		return api.ReservationsResponse{Now: Clock}, nil
	})
	api.Handle(m, api.ListNodes, func(_ context.Context, _ api.Caller, q api.NodeQuery) (api.NodesResponse, error) {
		out := api.NodesResponse{Now: f.Now, Nodes: f.Nodes, Partitions: f.conf.Partitions}
		if len(q.Names) > 0 {
			out.Nodes = nil
		}
		for _, n := range q.Names {
			if i := slices.IndexFunc(f.Nodes, func(x api.NodeInfo) bool { return x.Name == n }); i >= 0 {
				out.Nodes = append(out.Nodes, f.Nodes[i])
			} else {
				out.Missing = append(out.Missing, n)
			}
		}
		return out, nil
	})
	api.Handle(m, api.ListSteps, func(_ context.Context, _ api.Caller, q api.StepQuery) (api.StepsResponse, error) {
		out := api.StepsResponse{Now: f.Now, Jobs: f.Jobs}
		for _, s := range f.steps {
			if q.Job == 0 || q.Job == s.ID.Job {
				out.Steps = append(out.Steps, s)
			}
		}
		return out, nil
	})
	api.Handle(m, api.ShowCluster, func(context.Context, api.Caller, api.Empty) (api.ClusterResponse, error) {
		return api.ClusterResponse{Config: f.conf, Now: f.Now, Booted: ago(time.Hour), NextJob: 800,
			Servers: []api.Server{{Name: "vm", Addr: "127.0.0.1", Leader: true}}}, nil
	})
	api.Handle(m, api.Ping, func(context.Context, api.Caller, api.Empty) (api.PingResponse, error) {
		return api.PingResponse{Servers: []api.Server{{Name: "vm", Up: true}}}, nil
	})
	Logged(m, f, api.HoldJob)
	Logged(m, f, api.RequeueJob)
	Logged(m, f, api.SuspendJob)
	Logged(m, f, api.UpdateJob)
	Logged(m, f, api.TopJobs)
	Logged(m, f, api.SetNodes)
	Logged(m, f, api.CreateNodes)
	Logged(m, f, api.DeleteNodes)
	Logged(m, f, api.RebootNodes)
	Logged(m, f, api.SetPartition)
	Logged(m, f, api.PutReservation)
	Logged(m, f, api.CancelJob)
	return m
}

// Logged registers a command that is only written down; job 99999 does not exist.
func Logged[C, R any](m *api.Mux, f *Server, e api.Endpoint[C, R]) {
	api.Handle(m, e, func(_ context.Context, _ api.Caller, c C) (none R, _ error) {
		text, _ := wire.Marshal(c)
		f.Log = append(f.Log, string(text))
		if strings.Contains(string(text), "99999") {
			return none, cluster.Errorf(cluster.NotFound, cluster.ErrJobID, "job 99999 does not exist")
		}
		return none, nil
	})
}

// Dial serves one connection through a pipe.
func (f *Server) Dial(t testing.TB) func(context.Context) (api.Conn, error) {
	t.Helper()
	mux := f.Mux()
	if f.Own != nil {
		mux = f.Own
	}
	ln := &pipeListener{conns: make(chan net.Conn), done: make(chan struct{})}
	srv := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		route, ok := mux.Lookup(r.Method, r.URL.Path)
		body, _ := io.ReadAll(r.Body)
		if q := r.URL.Query().Get("q"); q != "" {
			body = []byte(q)
		}
		var v any
		var err error = cluster.Errorf(cluster.NotFound, "", "no such call")
		if ok {
			v, err = route.Handle(r.Context(), api.Caller{}, body)
		}
		if err != nil {
			v = api.AsError(err)
		}
		text, _ := wire.Marshal(v)
		w.Header().Set("Content-Length", strconv.Itoa(len(text)))
		if err != nil {
			w.WriteHeader(api.Status(api.AsError(err).Code))
		}
		_, _ = w.Write(text)
	})}
	go func() { _ = srv.Serve(ln) }()
	t.Cleanup(func() { _ = srv.Close() })
	return func(context.Context) (api.Conn, error) {
		near, far, err := socketPair()
		if err != nil {
			return nil, err
		}
		select {
		case ln.conns <- far:
			return near, nil
		case <-ln.done:
			return nil, net.ErrClosed
		}
	}
}

// socketPair is a connection as to a daemon: it holds what the other side does not read yet, and tells
// who writes to one that has closed it.
func socketPair() (near, far net.Conn, err error) {
	pair, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, nil, fmt.Errorf("socketpair: %w", err)
	}
	ends := [2]net.Conn{}
	for i, fd := range pair {
		f := os.NewFile(uintptr(fd), "socket")
		if ends[i], err = net.FileConn(f); err != nil {
			return nil, nil, err
		}
		_ = f.Close() // the connection has a descriptor of its own
	}
	return ends[0], ends[1], nil
}

type pipeListener struct {
	conns chan net.Conn
	done  chan struct{}
}

func (l *pipeListener) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.done:
		return nil, net.ErrClosed
	}
}

func (l *pipeListener) Close() error { close(l.done); return nil }

func (l *pipeListener) Addr() net.Addr { return &net.UnixAddr{} }
