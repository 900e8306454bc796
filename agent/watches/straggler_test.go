package watches

import (
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"dev.muster/agent/samples"
	"dev.muster/api"
	"dev.muster/cluster"
	"dev.muster/telemetry"
)

// noisy is a gang of 32 nodes with 8 GPUs whose clocks differ as those of real ones do.
type noisy struct {
	*gang
	rnd   *rand.Rand
	own   [32][8]float64 // how each GPU differs from the others, by a factor
	drift float64        // of all of them: the power that they draw changes with the work
	slow  time.Time      // from when one GPU runs at 80 %; zero: never
	store *samples.Store
}

// slowNode and slowGPU name it.
const slowNode, slowGPU = 19, 5

// newNoisy makes such a gang, alone in a cluster.
func newNoisy(t *testing.T, seed uint64) (*noisy, *cluster.Snapshot) {
	t.Helper()
	state, list := gangs(t, 63) // 1, 2, 4, 8, 16 and 32 nodes
	g := &noisy{gang: list[5], rnd: rand.New(rand.NewPCG(seed, 0)), drift: 1, store: samples.New()}
	if n := len(g.job.Alloc.Shares); n != 32 {
		t.Fatalf("%d nodes", n)
	}
	for i := range g.own {
		for k := range g.own[i] {
			g.own[i][k] = 1 + 0.015*g.rnd.NormFloat64()
		}
	}
	return g, state.Snapshot()
}

// pass tells what the gang did in a minute, as a whole or with its first node at work alone.
func (g *noisy) pass(at time.Time, p *phase) {
	g.drift = min(max(g.drift+0.02*g.rnd.NormFloat64(), 0.85), 1.05)
	end := at.Add(time.Minute)
	slowFor := 0.0 // of the minute
	if !g.slow.IsZero() {
		slowFor = min(max(end.Sub(g.slow).Seconds()/60, 0), 1)
	}
	list := make([]api.NodeSample, len(g.own))
	for i := range list {
		d := p.rest
		if i == 0 {
			d = p.first
		}
		s := telemetry.New(telemetry.OfJob)
		for k := range 8 {
			v := s.GPU(k).Values
			v[telemetry.GPUUtil] = min(max(d.util+3*g.rnd.NormFloat64(), 0), 100)
			v[telemetry.GPUPower] = d.power
			v[telemetry.GPUTemp] = 60
			v[telemetry.GPUClock] = d.clock * g.own[i][k] * g.drift * (1 + 0.01*g.rnd.NormFloat64())
			if i == slowNode && k == slowGPU {
				v[telemetry.GPUClock] *= 1 - 0.2*slowFor
				v[telemetry.GPUThrottle] = 0x40 * min(1, 1000*slowFor)
			}
		}
		list[i] = api.NodeSample{Node: g.job.Alloc.Shares[i].Node, At: at.Unix(), Span: 60, Data: nodeIdle,
			Jobs: []api.JobSample{{Job: g.job.ID, Data: s.Pack()}}}
	}
	g.store.Take(list)
}

// TestStragglerFound: one GPU of 256 that runs at 80 % of its clock is found within three minutes, and named.
func TestStragglerFound(t *testing.T) {
	train := phase{first: trains, rest: trains}
	for second := 0; second < 60; second += 7 {
		g, snap := newNoisy(t, uint64(second))
		w := &Watcher{Samples: g.store}
		g.slow = dayStart.Add(20*time.Minute + time.Duration(second)*time.Second)
		found := time.Time{}
		for m := 0; m < 30 && found.IsZero(); m++ {
			at := dayStart.Add(time.Duration(m) * time.Minute)
			g.pass(at, &train)
			now := at.Add(time.Minute + 7*time.Second) // nodes tell within five, and the servers look every two
			for _, f := range findSlow(w, snap, now) {
				if f.job.ID != g.job.ID || now.Before(g.slow) {
					t.Fatalf("second %d: job %d is found at %v", second, f.job.ID, now)
				}
				found = now
			}
		}
		if took := found.Sub(g.slow); found.IsZero() || took > 3*time.Minute {
			t.Errorf("second %d: found after %v, want 3m at most", second, took)
		}
		list := g.store.Slow(snap, found)
		if len(list) != 1 || list[0].Node != g.job.Alloc.Shares[slowNode].Node ||
			!strings.HasPrefix(list[0].Text, "GPU 5 of node "+string(list[0].Node)+" runs at ") ||
			!strings.HasSuffix(list[0].Text, "; 60 °C, hardware thermal slowdown") {
			t.Errorf("found: %+v", list)
		}
	}
}

// TestNoStraggler: in a day of a gang whose clocks differ and drift, and whose first node evaluates, saves and loads data
// alone at times, no GPU is found to be slow.
func TestNoStraggler(t *testing.T) {
	for seed := range uint64(3) {
		g, snap := newNoisy(t, 100+seed)
		w := &Watcher{Samples: g.store}
		for m := range 24 * 60 {
			now := dayStart.Add(time.Duration(m) * time.Minute)
			g.pass(now, at(benign, m))
			for range findSlow(w, snap, now.Add(67*time.Second)) {
				t.Fatalf("seed %d, minute %d, %s: %+v", seed, m, at(benign, m).name, g.store.Slow(snap, now.Add(67*time.Second)))
			}
			g.store.Unwritten(now)
		}
	}
}
