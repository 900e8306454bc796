package replay

import (
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"
)

// promise is a job's place in the dumb plan; a running one's is kept from its start to its limit.
type promise struct {
	*Job
	start int64
	at    []piece
	runs  bool
	turn  int // how many have started before it
}

// dumb replays a trace under the conservative policy as docs/simulator.md puts it, with nothing remembered but the
// promises: second by second, and each look for a place sums up all others at all moments.
func dumb(m *machine, jobs []Job, better Placement) map[string]*promise {
	out := map[string]*promise{}
	var held []*promise // in order of submission
	// earliest is the first start from now on that the others leave.
	earliest := func(j *Job, now int64) (int64, []piece) {
		free := func(at int64) []int {
			f := slices.Clone(m.has)
			for _, h := range held {
				if h.Job != j && h.at != nil && h.start <= at && at < h.start+h.Limit {
					take(f, h.at)
				}
			}
			return f
		}
		for start := now; ; start++ {
			least := free(start)
			at := m.place(least, j.GPUs, j.Nodes, better)
			for t := start + 1; t < start+j.Limit && at != nil; t++ {
				for i, f := range free(t) {
					least[i] = min(least[i], f)
				}
				at = m.place(least, j.GPUs, j.Nodes, better)
			}
			if at != nil {
				return start, at
			}
		}
	}
	begin := func(now int64) {
		for _, h := range held {
			if !h.runs && h.at != nil && h.start == now {
				h.runs, h.turn = true, len(out)
				out[h.ID] = h
			}
		}
	}
	for now := int64(0); len(out) < len(jobs); now++ {
		for _, over := range endingNow(held, now) {
			held = slices.DeleteFunc(held, func(h *promise) bool { return h == over })
			for _, h := range held {
				if over.Run == over.Limit || h.runs {
					continue
				}
				if start, at := earliest(h.Job, now); start < h.start {
					h.start, h.at = start, at
				}
			}
		}
		begin(now)
		for i := range jobs {
			if j := &jobs[i]; j.Submit == now {
				h := &promise{Job: j}
				held = append(held, h)
				h.start, h.at = earliest(j, now)
			}
		}
		begin(now)
	}
	return out
}

// endingNow lists the jobs that end at a time, in the order of their starts.
func endingNow(held []*promise, now int64) (over []*promise) {
	for _, h := range held {
		if h.runs && h.start+h.Run == now {
			over = append(over, h)
		}
	}
	slices.SortFunc(over, func(a, b *promise) int { return a.turn - b.turn })
	return over
}

// TestConservative: what the quick plan decides is what the dumb one does, job for job, on machines of one node and
// of several, where most jobs end early and dozens wait.
func TestConservative(t *testing.T) {
	moved := 0
	for seed := range uint64(150) {
		rng := rand.New(rand.NewPCG(seed, 9))
		tr := &Trace{}
		for i := range 1 + rng.IntN(2)*(1+rng.IntN(4)) {
			tr.Nodes = append(tr.Nodes, Node{Name: "n" + strconv.Itoa(i), GPUs: []int{4, 4, 8, 2}[rng.IntN(4)]})
		}
		for i := range 60 {
			j := Job{
				ID: strconv.Itoa(i), Submit: int64(i * rng.IntN(3) / 2), Limit: 1 + rng.Int64N(14),
				GPUs: 1 + rng.IntN(1+rng.IntN(8)), Nodes: rng.IntN(2) * rng.IntN(3),
			}
			j.Run = 1 + rng.Int64N(j.Limit)
			j.GPUs = max(j.GPUs, j.Nodes)
			tr.Jobs = append(tr.Jobs, j)
		}
		tr.clean()
		for name, better := range Placements {
			want := dumb(&tr.parts()[0].machine, tr.Jobs, better)
			for _, r := range tr.Textbook(Named("conservative"), better, nil) {
				w := want[r.Job.ID]
				var nodes []int
				for _, x := range w.at {
					nodes = append(nodes, x.node)
				}
				if slices.Sort(nodes); r.Start != w.start || !slices.Equal(r.Nodes, nodes) {
					t.Fatalf("trace %d, %s: job %s starts at %d on %v, want %d on %v", seed, name, r.Job.ID,
						r.Start, r.Nodes, w.start, nodes)
				}
				if r.Start > r.Job.Submit {
					moved++
				}
			}
		}
	}
	if moved < 15_000 {
		t.Errorf("only %d jobs had to wait", moved)
	}
}
