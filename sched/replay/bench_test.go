package replay

import (
	"math"
	"math/rand/v2"
	"strconv"
	"testing"
)

// log is a workload as the public logs have it: 77,000 jobs on one machine of 430 processors at a load of 0.8.
func log() *Trace {
	t := &Trace{Nodes: []Node{{Name: "m", CPUs: 430}}}
	rng := rand.New(rand.NewPCG(3, 4))
	at := 0.0
	for i := range 77_000 {
		run := math.Exp(6.5 + 2*rng.NormFloat64())
		j := Job{
			ID: strconv.Itoa(i), Submit: int64(at), Run: min(max(int64(run), 1), 64_800),
			CPUs: 1 << min(int(rng.ExpFloat64()*2), 8), User: strconv.Itoa(rng.IntN(80)),
		}
		j.Limit = (j.Run*int64(1+rng.IntN(8))/900 + 1) * 900
		t.Jobs = append(t.Jobs, j)
		at += rng.ExpFloat64() * float64(j.Run) * float64(j.CPUs) / 430 / 0.8
	}
	return t
}

// BenchmarkLog replays a log of 77,000 jobs by the real scheduler.
func BenchmarkLog(b *testing.B) {
	t := log()
	for b.Loop() {
		if _, err := t.Replay(nil, nil); err != nil {
			b.Fatal(err)
		}
	}
}
