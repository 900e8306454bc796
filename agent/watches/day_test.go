package watches

import (
	"flag"
	"fmt"
	"testing"
	"time"

	"dev.muster/agent/samples"
	"dev.muster/api"
	"dev.muster/cluster"
	"dev.muster/telemetry"
)

var dayNodes = flag.Int("day-nodes", 100, "nodes of the simulated days; make drill has 1,000")

// doing is what a job does on a node in a minute.
type doing struct {
	util, power, clock float64 // of each GPU: %, W, MHz
	cpu, written       float64 // cores, kB/s
	traced             float64 // processes that a debugger has stopped
}

// The activities of a job's nodes. GPUs wait when their ranks wait in a collective.
var (
	trains   = doing{util: 98, power: 620, clock: 1900, cpu: 4, written: 20}
	computes = doing{util: 97, power: 600, clock: 1900, cpu: 2}
	loads    = doing{cpu: 12, written: 0.5, clock: 345}
	compiles = doing{cpu: 1, written: 30, clock: 345}
	tests    = doing{util: 55, power: 340, clock: 1950, cpu: 1}
	waits    = doing{util: 100, power: 160, clock: 1980, cpu: 8}
	saves    = doing{cpu: 1, written: 800_000, clock: 1980}
	quiet    = doing{cpu: 0.02, clock: 345}
	debugged = doing{cpu: 0.01, clock: 345, traced: 1}
)

func (d doing) pack() []byte {
	s := telemetry.New(telemetry.OfJob)
	s.Own[telemetry.JobCPU], s.Own[telemetry.JobWritten] = d.cpu, d.written
	s.Own[telemetry.JobTraced] = d.traced
	for i := range 8 {
		v := s.GPU(i).Values
		v[telemetry.GPUUtil], v[telemetry.GPUPower], v[telemetry.GPUClock] = d.util, d.power, d.clock
	}
	return s.Pack()
}

// phase is what a job does for some minutes: its first node, and the others. A step: whether it reports one then.
type phase struct {
	name        string
	minutes     int
	first, rest doing
	steps       bool
}

// benign are a few hours of jobs that do not hang, over and over again.
var benign = []phase{
	{"compile", 15, compiles, compiles, false},
	{"load data", 25, loads, loads, false},
	{"train", 90, trains, trains, true},
	{"evaluate on all nodes", 20, tests, tests, false},
	{"train", 60, computes, computes, true},
	{"save while the others wait", 12, saves, waits, false},
	{"train", 45, trains, trains, true},
	{"evaluate on one node while the others wait", 30, tests, waits, false},
	{"load data on one node while the others wait", 18, loads, waits, false},
	{"train", 60, trains, trains, true},
	{"stand in a debugger while the others wait", 40, debugged, waits, false},
	{"train", 30, computes, computes, true},
	{"a short pause", 2, quiet, quiet, false},
	{"train", 20, trains, trains, true},
}

// gang is a running job, and how far into its phases it began.
type gang struct {
	job   *cluster.Job
	shift int
	paces float64 // seconds between its steps; 0: it reports none
	told  *api.Progress
}

// dayStart is when the simulated days begin.
var dayStart = time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)

// gangs fills nodes with running jobs of 1 to 64 nodes, whose rule acts on any sign.
func gangs(t testing.TB, nodes int) (*cluster.State, []*gang) {
	t.Helper()
	state := cluster.NewState()
	index := uint64(0)
	do := func(c cluster.Command) any {
		index++
		got := state.Apply(cluster.Entry{Index: index, At: dayStart, By: cluster.Identity{System: true}, Cmd: c})
		if got.Err != nil {
			t.Fatal(got.Err)
		}
		return got.Result
	}
	name := func(i int) cluster.NodeName { return cluster.NodeName(fmt.Sprintf("n%04d", i)) }
	inv := cluster.Inventory{Sockets: 2, CoresPerSocket: 32, ThreadsPerCore: 1, CPUs: 64, MemMB: 512_000}
	for i := range 8 {
		inv.GPUs = append(inv.GPUs, cluster.GPU{Index: i, Type: "h100"})
	}
	for i := range nodes {
		do(&cluster.NodeUp{Name: name(i), Inventory: inv})
	}
	var out []*gang
	for at, k := 0, 0; at < nodes; k++ {
		size := min(1<<(k%7), nodes-at)
		id := do(&cluster.Submit{Spec: &cluster.JobSpec{
			Name: "j", UID: 1000, User: "u", Partitions: []string{"main"}, Kind: cluster.Batch,
			Limit:      48 * time.Hour,
			Layout:     &cluster.Layout{MinNodes: size, MaxNodes: size, PerNode: []cluster.GRES{{Name: "gpu", Count: 8}}},
			Resilience: &cluster.Resilience{Hang: "requeue,after=10m"},
		}}).(cluster.JobID)
		start := &cluster.Alloc{Partition: "main", Types: map[string]int64{"h100": int64(8 * size)}}
		for i := range size {
			start.Shares = append(start.Shares, cluster.Share{Node: name(at + i),
				CPUs: cluster.RangeIDSet(0, 7), GPUs: cluster.RangeIDSet(0, 7), Tasks: 1})
		}
		do(&cluster.Decide{Decisions: []cluster.Decision{{Job: id, Task: cluster.TaskAny, Start: start}}})
		for i := range size {
			do(&cluster.Report{Node: name(at + i), Seq: 1, Updates: []cluster.Update{
				{Kind: cluster.NodeReady, Job: id, Attempt: 1, At: dayStart}}})
		}
		j, _ := state.Snapshot().Job(id)
		if j.Phase != cluster.Running {
			t.Fatalf("job %d is in phase %v", id, j.Phase)
		}
		out = append(out, &gang{job: j, shift: 37 * k, paces: [...]float64{0, 10, 60}[k%3]})
		at += size
	}
	return state, out
}

// minute tells what the nodes of a gang did in a minute.
func (g *gang) minute(store *samples.Store, at time.Time, p *phase, packed map[doing][]byte) {
	end := at.Add(time.Minute)
	if p.steps && g.paces > 0 {
		g.told = &api.Progress{Step: end.Unix(), Pace: g.paces, At: end.Unix()}
	}
	list := make([]api.NodeSample, len(g.job.Alloc.Shares))
	for i := range list {
		d := p.rest
		one := api.JobSample{Job: g.job.ID}
		if i == 0 {
			d = p.first
			one.Progress = g.told
		}
		if packed[d] == nil {
			packed[d] = d.pack()
		}
		one.Data = packed[d]
		list[i] = api.NodeSample{Node: g.job.Alloc.Shares[i].Node, At: at.Unix(), Span: 60, Data: nodeIdle,
			Jobs: []api.JobSample{one}}
	}
	store.Take(list)
}

// nodeIdle is a sample of a node of which nothing is known.
var nodeIdle = telemetry.New(telemetry.OfNode).Pack()

// at is the phase of a minute of a life that begins again at its end.
func at(life []phase, minute int) *phase {
	all := 0
	for i := range life {
		all += life[i].minutes
	}
	minute %= all
	for i := range life {
		if minute -= life[i].minutes; minute < 0 {
			return &life[i]
		}
	}
	panic("not reached")
}

// TestBenignDay: in a day of a cluster whose jobs compile, load data, evaluate, save and stand in a debugger, nothing is
// found, though the rule of each job acts on any sign.
func TestBenignDay(t *testing.T) {
	state, list := gangs(t, *dayNodes)
	snap := state.Snapshot()
	w := &Watcher{Samples: samples.New()}
	packed := map[doing][]byte{}
	looks := 0
	for m := range 24 * 60 {
		now := dayStart.Add(time.Duration(m) * time.Minute)
		for _, g := range list {
			g.minute(w.Samples, now, at(benign, m+g.shift), packed)
		}
		for second := 60; second < 120; second += 20 {
			looks++
			for _, f := range findHung(w, snap, now.Add(time.Duration(second)*time.Second)) {
				t.Fatalf("minute %d: job %d on %d nodes, which does this: %s", m, f.job.ID, len(f.job.Alloc.Shares),
					at(benign, m+list[f.job.ID-1].shift).name)
			}
		}
		w.Samples.Unwritten(now) // as a server does every few seconds
	}
	t.Logf("%d jobs on %d nodes, %d looks: nothing found", len(list), *dayNodes, looks)
}

// TestHangsFound: of the same jobs, those that hang are found within the time of the rule, or of their steps.
func TestHangsFound(t *testing.T) {
	const before, rule = 30, 10 * time.Minute
	for _, c := range []struct {
		name  string
		hangs phase
		paces float64
		bound time.Duration // from when the job stops
	}{
		{"all wait", phase{first: waits, rest: waits}, 0, rule + time.Minute},
		{"one stops, the others wait", phase{first: quiet, rest: waits}, 0, rule + time.Minute},
		{"all stop", phase{first: quiet, rest: quiet}, 0, rule + time.Minute},
		{"a step every 10 s, all wait", phase{first: waits, rest: waits}, 10, 3 * time.Minute},
		{"a step every minute, all stop", phase{first: quiet, rest: quiet}, 60, 6 * time.Minute},
	} {
		t.Run(c.name, func(t *testing.T) {
			state, list := gangs(t, 63)
			snap := state.Snapshot()
			w := &Watcher{Samples: samples.New()}
			packed := map[doing][]byte{}
			train := phase{first: trains, rest: trains, steps: true}
			stops := dayStart.Add(before * time.Minute)
			found := map[cluster.JobID]time.Duration{}
			for m := range 60 {
				now := dayStart.Add(time.Duration(m) * time.Minute)
				for _, g := range list {
					g.paces = c.paces
					p := &train
					if m >= before {
						p = &c.hangs
					}
					g.minute(w.Samples, now, p, packed)
				}
				end := now.Add(time.Minute)
				for _, f := range findHung(w, snap, end) {
					if end.Before(stops) {
						t.Fatalf("job %d is found before it hangs", f.job.ID)
					}
					if _, known := found[f.job.ID]; !known {
						found[f.job.ID] = end.Sub(stops)
					}
				}
			}
			for _, g := range list {
				if took, ok := found[g.job.ID]; !ok || took > c.bound {
					t.Errorf("job %d on %d nodes: found %v, after %v, want %v at most", g.job.ID,
						len(g.job.Alloc.Shares), ok, took, c.bound)
				}
			}
		})
	}
}
