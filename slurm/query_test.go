package slurm

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"dev.muster/api"
	"dev.muster/cluster"
	"dev.muster/slurm/front"
)

// fakeServer answers queries from fixed records, as agent/server would.
type fakeServer struct {
	own   *api.Mux // in place of all it knows
	jobs  []*cluster.Job
	nodes []api.NodeInfo
	conf  cluster.Config
	steps []*cluster.Step
	now   time.Time
	log   []string // commands that came in, as JSON
}

var fakeNow = time.Date(2026, 11, 21, 5, 51, 31, 0, time.UTC)

func ago(d time.Duration) time.Time { return fakeNow.Add(-d) }

func names(lo, hi int) (list []cluster.NodeName) {
	for i := lo; i <= hi; i++ {
		list = append(list, cluster.NodeName("gpu-node-00"+strconv.Itoa(i)))
	}
	return list
}

func newFake() *fakeServer {
	f := &fakeServer{now: fakeNow, conf: cluster.DefaultConfig()}
	f.conf.ClusterName, f.conf.DefMem = "oracle", cluster.Mem{Per: cluster.MemPerCPU, MB: 2000}
	f.conf.Partitions = []cluster.Partition{
		{Name: "debug", Nodes: names(1, 1), State: cluster.PartitionUp, MaxTime: 2 * time.Hour},
		{Name: "train", Nodes: names(1, 8), State: cluster.PartitionUp, MaxTime: 168 * time.Hour, Default: true},
		{Name: "priority", Nodes: names(1, 8), State: cluster.PartitionUp, MaxTime: 720 * time.Hour, PriorityTier: 2, PriorityJobFactor: 2},
	}
	f.conf.Topology = []cluster.Switch{{Name: "leaf1", Nodes: names(1, 4)}, {Name: "leaf2", Nodes: names(5, 8)}, {Name: "spine", Switches: []string{"leaf1", "leaf2"}}}
	for i, n := range names(1, 8) {
		inv := cluster.Inventory{Host: string(n), Addr: "127.0.0.1:2681" + strconv.Itoa(i+1), Sockets: 2, CoresPerSocket: 8, ThreadsPerCore: 1, CPUs: 16,
			MemMB: 64000, FreeMemMB: 23436, Arch: "x86_64", OS: "Linux 6.18", Features: []string{"h100", "nvlink", "rack" + strconv.Itoa(1+i/4)}, Version: "22.05.8"}
		for g := range 8 {
			inv.GPUs = append(inv.GPUs, cluster.GPU{Index: g, Type: "h100", Cores: cluster.RangeIDSet(g/4*8, g/4*8+7)})
		}
		f.nodes = append(f.nodes, api.NodeInfo{Node: cluster.Node{Name: n, Order: i, Inventory: inv, Up: true, Registered: ago(time.Hour), LastBusy: ago(time.Minute)}})
	}
	f.addJobs()
	return f
}

func spec(name string, change func(*cluster.JobSpec)) *cluster.JobSpec {
	yes := true
	s := &cluster.JobSpec{Layout: &cluster.Layout{}, Name: name, User: "root", Group: "root", Account: "root", QOS: "normal", Partitions: []string{"train"}, Requeue: &yes,
		Command: "/tmp/ora/j.sh", WorkDir: "/tmp/ora", Stdout: "/dev/null", SubmitHost: "localhost", AllocSid: 21237}
	change(s)
	return s
}

// addJobs makes records like those that the oracle was shown.
func (f *fakeServer) addJobs() {
	week := 168 * time.Hour
	add := func(j cluster.Job) *cluster.Job {
		j.Submitted = cmpTime(j.Submitted, ago(4*time.Second))
		if j.ArrayID == 0 {
			j.Task = cluster.TaskAny
		}
		if j.Limit == 0 {
			j.Limit = week
		}
		f.jobs = append(f.jobs, &j)
		return &j
	}
	share := func(n int, cpus, gpus cluster.IDSet, mem cluster.MemMB) cluster.Share {
		return cluster.Share{Node: names(n, n)[0], CPUs: cpus, GPUs: gpus, MemMB: mem}
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
	add(cluster.Job{ID: 736, Priority: 10066, Phase: cluster.Pending, Wait: cluster.WaitResources, LastEval: ago(0), PlannedStart: fakeNow.Add(week),
		PlannedNodes: names(1, 1),
		Spec: spec("excl", func(s *cluster.JobSpec) {
			s.MinNodes, s.MaxNodes, s.Sharing, s.PerJob = 1, 1, cluster.ShareExclusive, []cluster.GRES{{Name: "gpu", Count: 4}}
		})})
	add(cluster.Job{ID: 737, ArrayID: 737, Task: cluster.TaskAny, Tasks: cluster.RangeIDSet(3, 9), Priority: 10066, Wait: cluster.WaitArrayLimit,
		Spec: spec("arr", func(s *cluster.JobSpec) {
			s.Array, s.Tasks, s.Stdout = &cluster.ArraySpec{Tasks: cluster.RangeIDSet(1, 9), Limit: 2}, 1, ""
		})})
	arr := f.jobs[len(f.jobs)-1].Spec
	add(cluster.Job{ID: 745, ArrayID: 737, Task: 1, Priority: 10066, Phase: cluster.Running, Started: ago(90 * time.Second), Spec: arr,
		Alloc: &cluster.Alloc{Partition: "train", Shares: []cluster.Share{share(2, cluster.NewIDSet(4), none, 2000)}}})
	add(cluster.Job{ID: 738, Priority: 10132, Wait: cluster.WaitBegin, Eligible: fakeNow.Add(time.Hour),
		Spec: spec("beg", func(s *cluster.JobSpec) {
			s.MinNodes, s.MaxNodes, s.CPUsPerTask, s.Mem, s.Constraint = 2, 4, 2, cluster.Mem{Per: cluster.MemPerNode, MB: 4096}, "h100"
			s.Exclude, s.MailType, s.MailUser = names(8, 8), []string{"END"}, "root"
		})})
	add(cluster.Job{ID: 739, Priority: 10078, Wait: cluster.WaitDependency, Depends: cluster.Depends{Terms: []cluster.Depend{{Type: cluster.AfterOK, Job: 734, Task: -1}}},
		Spec: spec("dep", func(s *cluster.JobSpec) {
			s.Tasks, s.PerTask, s.CPUsPerGPU, s.Mem = 4, []cluster.GRES{{Name: "gpu", Count: 1}}, 2, cluster.Mem{Per: cluster.MemPerGPU, MB: 2048}
		})})
	add(cluster.Job{ID: 740, Wait: cluster.WaitHeldUser, Held: cluster.HeldUser,
		Spec: spec("held", func(s *cluster.JobSpec) {
			s.Tasks, s.PerNode, s.TmpMB, s.NodeList = 3, []cluster.GRES{{Name: "gpu", Type: "h100", Count: 2}}, 100, names(3, 3)
		})})
	add(cluster.Job{ID: 741, Priority: 10066, Phase: cluster.Ended, Outcome: cluster.Failed, EndReason: cluster.EndNonZeroExit, Exit: cluster.ExitStatus{Code: 3},
		Started: ago(2 * time.Second), Ended: ago(2 * time.Second), Spec: spec("fin", func(s *cluster.JobSpec) { s.Command = "" }),
		Alloc: &cluster.Alloc{Partition: "train", Shares: []cluster.Share{share(2, cluster.NewIDSet(6), none, 2000)}}})
	add(cluster.Job{ID: 742, Priority: 9000, Wait: cluster.WaitNodeNotAvail, WaitNote: "gpu-node-007", Spec: spec("longer-name-than-eight", func(s *cluster.JobSpec) {
		s.Partitions, s.NodeList = []string{"debug", "train"}, names(7, 7)
	})})
	add(cluster.Job{ID: 744, ArrayID: 744, Task: cluster.TaskAny, Tasks: cluster.NewIDSet(1, 3, 7, 9, 12, 15, 22, 28, 31, 44, 59), Held: cluster.HeldAdmin, Wait: cluster.WaitHeldAdmin,
		Spec: spec("arrirr", func(s *cluster.JobSpec) { s.Array = &cluster.ArraySpec{} })})
	add(cluster.Job{ID: 766, Priority: 10070, Phase: cluster.Ending, EndingWhy: cluster.Cancelled, Started: ago(3 * time.Second), EndingAt: ago(time.Second),
		Alloc: &cluster.Alloc{Partition: "train", Shares: []cluster.Share{share(1, cluster.NewIDSet(0, 1), none, 4000)}},
		Spec:  spec("wrap", func(s *cluster.JobSpec) { s.Tasks, s.Stdout, s.Command = 2, "x%j.out", "" })})
	f.steps = []*cluster.Step{{ID: cluster.StepID{Job: 735, Step: cluster.BatchStep}, Name: "batch", Shares: f.jobs[1].Alloc.Shares[:1], Tasks: 1, Started: ago(time.Second)},
		{ID: cluster.StepID{Job: 735, Step: 0}, Name: "sleep", Shares: f.jobs[1].Alloc.Shares, Tasks: 2, Started: ago(time.Second), SrunHost: "gpu-node-002", SrunPID: 23423},
		{ID: cluster.StepID{Job: 745, Step: cluster.BatchStep}, Name: "batch", Shares: f.jobs[4].Alloc.Shares, Tasks: 1, Started: ago(90 * time.Second)}}
	f.loadNodes()
}

// loadNodes makes the nodes agree with the jobs, and some of them sick.
func (f *fakeServer) loadNodes() {
	f.nodes[0].Ending, f.nodes[0].Load = true, cluster.Load{CPUUse: cluster.CPUUse{CPUs: cluster.NewIDSet(0, 1)}, MemMB: 4000}
	f.nodes[1].Load = cluster.Load{CPUUse: cluster.CPUUse{CPUs: cluster.NewIDSet(0, 1, 3, 4)}, GPUs: cluster.NewIDSet(0, 1), MemMB: 8000}
	f.nodes[2].Load = cluster.Load{CPUUse: cluster.CPUUse{CPUs: cluster.NewIDSet(0, 1)}, GPUs: cluster.NewIDSet(0, 1), MemMB: 4000}
	f.nodes[3].Load = cluster.Load{CPUUse: cluster.CPUUse{CPUs: cluster.RangeIDSet(0, 15)}, MemMB: 32000}
	f.nodes[3].Drain, f.nodes[3].Reason, f.nodes[3].ReasonBy, f.nodes[3].ReasonAt = true, "x y", "root", ago(time.Minute)
	f.nodes[6].Down, f.nodes[6].Up, f.nodes[6].Reason, f.nodes[6].ReasonBy, f.nodes[6].ReasonAt = true, false, "Not responding", "slurm", ago(time.Minute)
	f.nodes[7].Drain, f.nodes[7].Reason, f.nodes[7].ReasonBy, f.nodes[7].ReasonAt = true, "bad dimm here and more text", "root", ago(time.Minute)
}

func cmpTime(t, other time.Time) time.Time {
	if t.IsZero() {
		return other
	}
	return t
}

func (f *fakeServer) listJobs(_ context.Context, _ api.Caller, q api.JobQuery) (api.JobsResponse, error) {
	out := api.JobsResponse{Now: f.now}
	for _, r := range q.Refs {
		if !slices.ContainsFunc(f.jobs, func(j *cluster.Job) bool { return refHits(r, j) }) {
			out.Missing = append(out.Missing, r)
		}
	}
	for _, j := range f.jobs {
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

func (f *fakeServer) mux() *api.Mux {
	m := api.NewMux()
	api.Handle(m, api.ListJobs, f.listJobs)
	api.Handle(m, api.ListReservations, func(context.Context, api.Caller, api.ReservationQuery) (api.ReservationsResponse, error) {
		return api.ReservationsResponse{Now: fakeNow}, nil
	})
	api.Handle(m, api.ListNodes, func(_ context.Context, _ api.Caller, q api.NodeQuery) (api.NodesResponse, error) {
		out := api.NodesResponse{Now: f.now, Nodes: f.nodes, Partitions: f.conf.Partitions}
		if len(q.Names) > 0 {
			out.Nodes = nil
		}
		for _, n := range q.Names {
			if i := slices.IndexFunc(f.nodes, func(x api.NodeInfo) bool { return x.Name == n }); i >= 0 {
				out.Nodes = append(out.Nodes, f.nodes[i])
			} else {
				out.Missing = append(out.Missing, n)
			}
		}
		return out, nil
	})
	api.Handle(m, api.ListSteps, func(_ context.Context, _ api.Caller, q api.StepQuery) (api.StepsResponse, error) {
		out := api.StepsResponse{Now: f.now, Jobs: f.jobs}
		for _, s := range f.steps {
			if q.Job == 0 || q.Job == s.ID.Job {
				out.Steps = append(out.Steps, s)
			}
		}
		return out, nil
	})
	api.Handle(m, api.ShowCluster, func(context.Context, api.Caller, api.Empty) (api.ClusterResponse, error) {
		return api.ClusterResponse{Config: f.conf, Now: f.now, Booted: ago(time.Hour), NextJob: 800,
			Servers: []api.Server{{Name: "vm", Addr: "127.0.0.1", Leader: true}}}, nil
	})
	api.Handle(m, api.Ping, func(context.Context, api.Caller, api.Empty) (api.PingResponse, error) {
		return api.PingResponse{Servers: []api.Server{{Name: "vm", Up: true}}}, nil
	})
	logged(m, f, api.HoldJob)
	logged(m, f, api.RequeueJob)
	logged(m, f, api.SuspendJob)
	logged(m, f, api.UpdateJob)
	logged(m, f, api.TopJobs)
	logged(m, f, api.SetNodes)
	logged(m, f, api.CreateNodes)
	logged(m, f, api.DeleteNodes)
	logged(m, f, api.RebootNodes)
	logged(m, f, api.SetPartition)
	logged(m, f, api.PutReservation)
	return m
}

// logged registers a command that is only written down; job 99999 does not exist.
func logged[C, R any](m *api.Mux, f *fakeServer, e api.Endpoint[C, R]) {
	api.Handle(m, e, func(_ context.Context, _ api.Caller, c C) (none R, _ error) {
		text, _ := json.Marshal(c)
		f.log = append(f.log, string(text))
		if strings.Contains(string(text), "99999") {
			return none, cluster.Errorf(cluster.NotFound, cluster.ErrJobID, "job 99999 does not exist")
		}
		return none, nil
	})
}

// dial serves one connection through a pipe.
func (f *fakeServer) dial(t testing.TB) func(context.Context) (api.Conn, error) {
	t.Helper()
	mux := f.mux()
	if f.own != nil {
		mux = f.own
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
		text, _ := json.Marshal(v)
		w.Header().Set("Content-Length", strconv.Itoa(len(text)))
		if err != nil {
			w.WriteHeader(api.Status(api.AsError(err).Code))
		}
		_, _ = w.Write(text)
	})}
	go func() { _ = srv.Serve(ln) }()
	t.Cleanup(func() { _ = srv.Close() })
	return func(context.Context) (api.Conn, error) {
		near, far := net.Pipe()
		select {
		case ln.conns <- far:
			return near, nil
		case <-ln.done:
			return nil, net.ErrClosed
		}
	}
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

// run runs one command line and returns everything it printed.
func (f *fakeServer) run(t testing.TB, uid uint32, env []string, argv ...string) string {
	t.Helper()
	var out, errs bytes.Buffer
	sys := &front.Sys{Prog: argv[0], Stdin: strings.NewReader(""), Stdout: &out, Stderr: &errs, Environ: env, Dial: f.dial(t), UID: uid,
		Now: func() time.Time { return fakeNow }, Hostname: func() (string, error) { return "vm", nil }}
	code := Main(argv, sys)
	text := out.String()
	if errs.Len() > 0 {
		text += "--- stderr\n" + errs.String()
	}
	if code != 0 {
		text += "--- rc " + strconv.Itoa(code) + "\n"
	}
	return text
}

// goldens are files of testdata and the command lines whose output they hold.
var goldens = []struct {
	file  string
	lines []string
}{
	{"squeue", []string{"squeue", "squeue -l", "squeue -t all", "squeue --start", "squeue -r -n arr", "squeue -P -n longer-name-than-eight", "squeue -s", "squeue -s735.0",
		"squeue -j 737_3,745", "squeue -j 99999", "squeue -j 99999,99998", "squeue -j abc", "squeue -t junk", "squeue -t cg,f -h", "squeue -S -i -o %i -h", "squeue -w nonode",
		"squeue -u nouser", "squeue foo", "squeue -h -o %i|%5i|%.5i|%-5i|%!|%.2M|%2M|%.3N -j 735", "squeue -M oracle -h -j734"}},
	{"squeue-all", []string{"squeue -t all -o %all", "squeue -s -o %all"}},
	{"squeue-long", []string{"squeue -j735 -O jobid:,userid:5xyz,name:.6", "squeue -O jobarrayid:.12,arraytaskid,state:4,foo,tres-alloc:60", "squeue -j739 -O cpus-per-tres,mem-per-tres,tres-per-task"}},
	{"squeue-json", []string{"squeue -j735 --json", "squeue --yaml"}},
	{"sinfo", []string{"sinfo", "sinfo -l", "sinfo -N", "sinfo -N -l", "sinfo -s", "sinfo -R", "sinfo -R -l", "sinfo -p train -t idle", "sinfo -t alloc", "sinfo -n nosuch", "sinfo -p nosuch",
		"sinfo -t junk", "sinfo -d", "sinfo -r -h", "sinfo -o %N", "sinfo -o %P|%A|%F|%C", "sinfo -o %q|%5P|%.9P|%N", "sinfo -O foo,partition:2,nodeaiot:8,gresused", "sinfo -N -O nodelist,statecomplete", "sinfo -T"}},
	{"sinfo-all", []string{"sinfo -o %all", "sinfo -e -p train"}},
	{"scontrol-job", []string{"scontrol show job", "scontrol -d show job 735", "scontrol -o show job 736", "scontrol show job 737", "scontrol show job 737_3", "scontrol show job 99999"}},
	{"scontrol-show", []string{"scontrol show node gpu-node-004", "scontrol -o show node gpu-node-[007-008]", "scontrol show node nox", "scontrol -d show node gpu-node-002",
		"scontrol show partition", "scontrol -o show partition debug", "scontrol show partition nox", "scontrol show step", "scontrol show topology", "scontrol show config",
		"scontrol show reservation", "scontrol show foo", "scontrol show", "scontrol foo", "scontrol ping", "scontrol version", "scontrol top 5",
		"scontrol show hostnames a[1-3],b", "scontrol show hostlist a1,a2,a4", "scontrol show hostlistsorted a3,a1,a2", "scontrol show hostname"}},
	{"scontrol-change", []string{"scontrol hold 734 737_3", "scontrol uhold 734", "scontrol release 99999", "scontrol hold", "scontrol hold run1", "scontrol requeue 734", "scontrol requeuehold state=specialexit 734",
		"scontrol suspend 734,735", "scontrol resume 99999", "scontrol update JobId=734 TimeLimit=+10 Partition=debug nice=5", "scontrol update jobid=734 timelimit=1:00:00 starttime=now+1hour",
		"scontrol update jobid=734 foo=bar", "scontrol update jobid=734", "scontrol update foo=bar", "scontrol update jobid=99999 name=x", "scontrol update nodename=gpu-node-00[1-2] state=drain reason=bad",
		"scontrol update nodename=gpu-node-001 state=drain", "scontrol update nodename=gpu-node-001 state=xyz", "scontrol update partition=debug state=down maxtime=1:00:00", "scontrol update partition=nope state=up",
		"scontrol update partition=debug foo=bar", "scontrol create partition=new nodes=gpu-node-001", "scontrol create partition=debug", "scontrol delete partition=debug", "scontrol delete foo", "scontrol delete jobid=3",
		"scontrol create NodeName=new[1-2] CPUs=2 RealMemory=100 State=CLOUD", "scontrol create NodeName=new1 CPUs=2", "scontrol create nodename=new1 Foo=2 State=CLOUD", "scontrol create node new1",
		"scontrol delete NodeName=new[1-2]", "scontrol delete node new1", "scontrol reboot", "scontrol reboot gpu-node-001", "scontrol reboot nextstate=foo a", "scontrol reboot a b",
		"scontrol cancel_reboot", "scontrol cancel_reboot a b", "scontrol cancel_reboot gpu-node-001", "scontrol update nodename=gpu-node-001 state=cancel_reboot", "scontrol ping foo",
		"scontrol create reservation reservationname=r starttime=2027-01-01T00:00 duration=60 users=root nodes=ALL flags=maint", "scontrol create reservation reservationname=r starttime=2027-01-01T00:00 duration=60 users=root nodes=ALL partitionname=debug",
		"scontrol create reservation reservationname=r starttime=2027-01-01T00:00 duration=60 users=root nodes=ALL nodecnt=2", "scontrol create reservation reservationname=r starttime=2027-01-01T00:00 duration=60 users=root nodes=ALL flags=all_nodes"}},
	{"scontrol-words", []string{"scontrol update reservationname=MISSING badword", "scontrol update reservationname=MISSING badword=1", "scontrol update reservationname=MISSING duration=x badword", "scontrol update reservationname=MISSING duration",
		"scontrol update reservationname=MISSING skip", "scontrol update reservationname=MISSING =5", "scontrol update reservationname", "scontrol update reservation ra badword", "scontrol update badword=1 reservationname=ra",
		"scontrol update badword nodename=gpu-node-001", "scontrol update badword", "scontrol update badword=3", "scontrol update nodename=nope comment=x badword", "scontrol update nodename=nope badword=1", "scontrol update nodename=gpu-node-001 state",
		"scontrol update nodename foo", "scontrol update node gpu-node-001 badword", "scontrol update partitionname=nope badword", "scontrol update partitionname=nope badword=1", "scontrol update partitionname=nope =5", "scontrol update partitionname=debug state",
		"scontrol update partitionname=nope state=up", "scontrol update partition debug badword", "scontrol update jobid=999999 badword", "scontrol update jobid=999999 badword=1", "scontrol update jobid=999999 timelimit=5 badword", "scontrol update jobid=734 timelimit",
		"scontrol update job 734 badword", "scontrol update job badword", "scontrol update jobid", "scontrol create reservation", "scontrol create reservation badword", "scontrol create reservationname=ra badword", "scontrol create reservationname=ra badword=1",
		"scontrol create res duration=x badword", "scontrol create reservationname", "scontrol create partitionname=pa badword", "scontrol create partitionname=pa badword=1", "scontrol create partitionname=debug nodes", "scontrol create partition pa badword",
		"scontrol create partitionname", "scontrol create badword", "scontrol create badword=1", "scontrol create badword partitionname=pa", "scontrol create badword=1 partitionname=pa", "scontrol create node badword"}},
}

func TestQueryGolden(t *testing.T) {
	local := time.Local
	time.Local = time.UTC
	t.Cleanup(func() { time.Local = local })
	for _, g := range goldens {
		t.Run(g.file, func(t *testing.T) {
			f := newFake()
			var b strings.Builder
			for _, line := range g.lines {
				f.log = nil
				b.WriteString("$ " + line + "\n" + f.run(t, 0, nil, strings.Fields(line)...))
				for _, l := range f.log {
					b.WriteString("=> " + l + "\n")
				}
			}
			golden(t, filepath.Join("testdata", g.file+".txt"), b.String())
		})
	}
}

func golden(t *testing.T, file, got string) {
	t.Helper()
	if *update {
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	w, g := strings.Split(string(want), "\n"), strings.Split(got, "\n")
	for i := range max(len(w), len(g)) {
		if i >= len(w) || i >= len(g) || w[i] != g[i] {
			t.Fatalf("%s:%d (go test ./slurm -run Golden -update)\nwant %q\n got %q", file, i+1, at(w, i), at(g, i))
		}
	}
}

func at(lines []string, i int) string {
	if i < len(lines) {
		return lines[i]
	}
	return "<end>"
}

func TestQueueEnvironment(t *testing.T) {
	local := time.Local
	time.Local = time.UTC
	t.Cleanup(func() { time.Local = local })
	f := newFake()
	for _, c := range []struct{ env, line, want string }{
		{"SQUEUE_FORMAT=%i", "squeue -j734", "JOBID\n734\n"},
		{"SQUEUE_FORMAT2=jobid:5,name", "squeue -j734 -h", "734  run1                \n"},
		{"SQUEUE_SORT=-i", "squeue -h -o %A -j734,735", "735\n734\n"},
		{"SLURM_TIME_FORMAT=relative", "squeue -h -o %S -j734", "05:51:28\n"},
		{"SLURM_TIME_FORMAT=%H.%M", "squeue -h -o %S_%M -j734", "05.51_0:03\n"},
		{"SQUEUE_STATES=F", "squeue -h -o %i", "741\n"},
		{"SLURM_JOB_NODELIST=a[1-2]", "scontrol show hostnames", "a1\na2\n"},
	} {
		if got := f.run(t, 0, []string{c.env}, strings.Fields(c.line)...); got != c.want {
			t.Errorf("%s %s: got %q, want %q", c.env, c.line, got, c.want)
		}
	}
}

func BenchmarkSqueueRows(b *testing.B) {
	f := newFake()
	v := &view{now: fakeNow}
	var jobs []*cluster.Job
	for i := range 10_000 {
		j := *f.jobs[i%len(f.jobs)]
		j.ID += cluster.JobID(i)
		jobs = append(jobs, &j)
	}
	o := &queueOptions{allStates: true}
	for b.Loop() {
		rows := o.rows(v, jobs)
		sortRows(rows, jobColumns, jobOrders[:], o.defaultSort())
		f, _ := o.jobFormat()
		var line []byte
		for i := range rows {
			line = append(f.Row(line[:0], &rows[i]), '\n')
		}
	}
}

func TestQueryJSON(t *testing.T) {
	for _, c := range []struct{ line, list string }{
		{"squeue --json", "jobs"}, {"squeue --json -s", "steps"}, {"sinfo --json", "sinfo"}, {"sinfo --json", "nodes"},
		{"scontrol --json show job", "jobs"}, {"scontrol --json show node", "nodes"},
	} {
		var got map[string]any
		text := newFake().run(t, 0, nil, strings.Fields(c.line)...)
		if err := json.Unmarshal([]byte(text), &got); err != nil {
			t.Errorf("%s: %v", c.line, err)
		} else if list, ok := got[c.list].([]any); !ok || len(list) < 3 {
			t.Errorf("%s: no list %s", c.line, c.list)
		}
	}
}

// TestUpdateWords has what a Slurm 22.05 said of values of update job, and what it took.
func TestUpdateWords(t *testing.T) {
	f := &fakeServer{}
	for line, want := range map[string]string{
		"endtime=bad":   "Invalid time specification (pos=0): bad\n",
		"starttime=bad": "Invalid time specification (pos=0): bad\n",
		"mailtype=nope": "Invalid MailType: nope\n",
		"numnodes=abc":  "scontrol: error: Invalid numeric value \"abc\" for requested node count.\n",
		"delayboot=abc": "scontrol: error: Invalid DelayBoot value\n", "resetaccruetime=yes": "Update of this parameter is not supported: resetaccruetime=yes\nRequest aborted\n",
		"delayboot=7": "", "resetaccruetime": "", "cpuspertres=gres:gpu:2": "", "cpuspertres=gres:gpu:abc": "scontrol: error: Invalid cpuspertres value: gres:gpu:abc\nRequest aborted\n",
		"tres=cpu:1":    "Update of this parameter is not supported: tres=cpu:1\nRequest aborted\n",
		"mailtype=NONE": "", "endtime=2027-01-01T00:00:00": "",
	} {
		got := f.run(t, 0, nil, "scontrol", "update", "jobid=734", line)
		if want != "" {
			want = "--- stderr\n" + want
			if !strings.HasPrefix(line, "numnodes") { // nothing is asked for, and Slurm takes that for a success
				want += "--- rc 1\n"
			}
		}
		if got != want {
			t.Errorf("%s: %q, want %q", line, got, want)
		}
	}
	if got := strings.Join(f.log, " "); !strings.Contains(got, `"mail_type":["NONE"]`) || !strings.Contains(got, `"end":"2027-01-01T00:00:00`) || !strings.Contains(got, `"delay_boot":420000000000`) ||
		!strings.Contains(got, `"reset_accrue":true`) || !strings.Contains(got, `"cpus_per_gpu":2`) {
		t.Errorf("asked for %s", got)
	}
}
