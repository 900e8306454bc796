package samples

import (
	"strings"
	"testing"
	"time"

	"dev.muster/agent/agenttest"
	"dev.muster/api"
	"dev.muster/cluster"
	"dev.muster/telemetry"
)

// doing is what a job does on a node in a minute.
type doing struct {
	util, power  float64 // of each GPU: %, W
	cpu, written float64 // cores, kB/s
	traced       float64 // processes that a debugger has stopped
	unknown      bool    // the GPUs are not measured
}

// Typical minutes of jobs: the last three are of jobs that hang, or whose GPUs nobody measures.
var (
	trains     = doing{util: 98, power: 600, cpu: 4, written: 20}
	computes   = doing{util: 98, power: 600}
	loads      = doing{cpu: 6}
	evaluates  = doing{util: 60, power: 350, cpu: 1}
	checkpoint = doing{cpu: 1, written: 500_000}
	compiles   = doing{cpu: 1, written: 5}
	quiet      = doing{cpu: 0.01}
	spins      = doing{util: 100, power: 150, cpu: 8}
	debugged   = doing{cpu: 0.01, traced: 1}
	unmeasured = doing{unknown: true}
)

func (d doing) sample(job cluster.JobID, p *api.Progress) api.JobSample {
	one := telemetry.New(telemetry.OfJob)
	for i := range one.Own {
		one.Own[i] = 0
	}
	one.Own[telemetry.JobCPU], one.Own[telemetry.JobWritten] = d.cpu, d.written
	one.Own[telemetry.JobTraced] = d.traced
	for i := range 8 {
		if d.unknown {
			break
		}
		v := one.GPU(i).Values
		v[telemetry.GPUUtil], v[telemetry.GPUPower] = d.util, d.power
	}
	return api.JobSample{Job: job, Data: one.Pack(), Progress: p}
}

// minutes is so many of one thing.
func minutes(n int, d doing) []doing {
	var out []doing
	for range n {
		out = append(out, d)
	}
	return out
}

// life is what a job does, minute by minute, on one node.
func life(parts ...[]doing) (out []doing) {
	for _, p := range parts {
		out = append(out, p...)
	}
	return out
}

// TestHung: what hangs is found by its rule's time, with the kind of evidence; what only pauses is not.
func TestHung(t *testing.T) {
	snap := agenttest.Cluster(t, 1, 1).Snapshot()
	for _, c := range []struct {
		name string
		life []doing
		last int // the last minute in which it reported a step, of one every 10 s; 0: it reports none
		want cluster.HangKind
		says string
	}{
		{"trains", life(minutes(30, trains)), 0, "", ""},
		{"computes without a word", life(minutes(30, computes)), 0, "", ""},
		{"loads data for half an hour", life(minutes(30, loads)), 0, "", ""},
		{"evaluates without steps", life(minutes(5, trains), minutes(30, evaluates)), 5, "", ""},
		{"saves for a quarter of an hour", life(minutes(5, trains), minutes(15, checkpoint)), 5, "", ""},
		{"compiles", life(minutes(20, compiles)), 0, "", ""},
		{"a short pause", life(minutes(20, trains), minutes(5, quiet)), 0, "", ""},
		{"it goes on again", life(minutes(5, trains), minutes(20, quiet), minutes(1, trains)), 0, "", ""},
		{"the GPUs are not measured", life(minutes(30, unmeasured)), 0, "", ""},
		{"stands in a debugger", life(minutes(5, trains), minutes(60, debugged)), 5, "", ""},
		{"quiet", life(minutes(5, trains), minutes(11, quiet)), 0, cluster.HangQuiet, "have done nothing"},
		{"spins", life(minutes(5, trains), minutes(11, spins)), 0, cluster.HangSpin, "waited at little power"},
		{"no step, and quiet", life(minutes(10, trains), minutes(3, quiet)), 10, cluster.HangStep, ", since step 60;"},
		{"no step, and spins", life(minutes(10, trains), minutes(3, spins)), 10, cluster.HangStep, "usually reports one every 10s"},
	} {
		t.Run(c.name, func(t *testing.T) {
			j, _ := snap.Job(1)
			run := *j
			run.Phase = cluster.Running
			h := New()
			now := run.Started.Truncate(time.Second).Add(time.Second)
			for i, d := range c.life {
				at := now
				now = now.Add(time.Minute)
				var p *api.Progress
				if c.last > 0 {
					steps := min(i+1, c.last)
					p = &api.Progress{Step: int64(6 * steps), Pace: 10, At: run.Started.Add(time.Duration(steps) * time.Minute).Unix()}
				}
				h.Take([]api.NodeSample{{Node: run.Alloc.Shares[0].Node, At: at.Unix(), Span: 60,
					Data: telemetry.New(telemetry.OfNode).Pack(), Jobs: []api.JobSample{d.sample(1, p)}}})
			}
			got, hangs := h.signs[1].find(&run, cluster.HangAfter, now)
			if !hangs {
				got = Hung{}
			}
			if got.Kind != c.want || !strings.Contains(got.Text, c.says) {
				t.Errorf("%v %q: %s, want %q: %s", hangs, got.Kind, got.Text, c.want, c.says)
			}
		})
	}
}
