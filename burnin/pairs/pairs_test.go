package pairs

import (
	"fmt"
	"math/bits"
	"math/rand/v2"
	"slices"
	"testing"
)

// TestRounds: each node has one partner in each round, and no partner twice.
func TestRounds(t *testing.T) {
	for n := range 200 {
		rounds := Rounds(n)
		want := 0
		if n > 1 {
			want = min(n+n%2-1, max(3, bits.Len(uint(n-1))))
		}
		if len(rounds) != want {
			t.Errorf("%d nodes: %d rounds, want %d", n, len(rounds), want)
		}
		met, paused := map[Pair]bool{}, map[int]int{}
		for _, round := range rounds {
			busy := map[int]bool{}
			for _, p := range round {
				if p[0] >= p[1] || p[1] >= n || met[p] || busy[p[0]] || busy[p[1]] {
					t.Fatalf("%d nodes: pair %v in %v", n, p, rounds)
				}
				met[p], busy[p[0]], busy[p[1]] = true, true, true
			}
			for i := range n {
				if !busy[i] {
					paused[i]++
				}
			}
			if len(round) != n/2 {
				t.Errorf("%d nodes: %d pairs", n, len(round))
			}
		}
		for i, times := range paused {
			if times > 1 {
				t.Errorf("%d nodes: node %d pauses %d times", n, i, times)
			}
		}
	}
}

// network is one whose bandwidths are known but for noise.
type network struct {
	nodes, rails int
	noise        float64
	sends        map[int]float64  // share that a node can send; 1 if it is not named
	receives     map[int]float64  // receive
	path         map[Pair]float64 // from, to
	rail         map[int]float64
	dead         map[int]bool // nodes without any connection
	rnd          *rand.Rand
}

func share[K comparable](m map[K]float64, k K) float64 {
	if f, ok := m[k]; ok {
		return f
	}
	return 1
}

func (w *network) measure(rounds [][]Pair) (out []Sample) {
	for _, round := range rounds {
		for _, p := range round {
			for _, d := range [2]Pair{{p[0], p[1]}, {p[1], p[0]}} {
				for r := range w.rails {
					s := Sample{From: d[0], To: d[1], Rail: r}
					if w.dead[d[0]] || w.dead[d[1]] {
						s.Err = "no route to host"
					} else {
						f := min(share(w.sends, d[0]), share(w.receives, d[1]), share(w.path, d), share(w.rail, r))
						s.Gbits = max(0, 400*f*(1+w.noise*w.rnd.NormFloat64()))
					}
					out = append(out, s)
				}
			}
		}
	}
	return out
}

// test does what a whole test does.
func (w *network) test() (Verdict, []Way) {
	t := Test{Nodes: w.nodes, Rails: max(w.rails, 1)}
	w.rails = t.Rails
	t.Samples = w.measure(Rounds(w.nodes))
	suspects := t.Suspects()
	t.Confirmed = w.measure(t.Confirm(suspects))
	return t.Judge(suspects, true), suspects
}

func TestVerdicts(t *testing.T) {
	half := func(list ...int) map[int]float64 {
		m := map[int]float64{}
		for _, i := range list {
			m[i] = 0.5
		}
		return m
	}
	both := func(n int) Part { return Part{From: n, To: n, Sends: true, Receives: true} }
	met := Rounds(8)[1][2] // a pair that meets
	for _, c := range []struct {
		name  string
		w     network
		want  []Part
		rails []int
	}{
		{"all are well", network{nodes: 8}, nil, nil},
		{"a slow node", network{nodes: 8, sends: half(3), receives: half(3)}, []Part{both(3)}, nil},
		{"a slow node of four", network{nodes: 4, sends: half(3), receives: half(3)}, []Part{both(3)}, nil},
		{"a slow node of five", network{nodes: 5, sends: half(0), receives: half(0)}, []Part{both(0)}, nil},
		{"a node that sends slowly", network{nodes: 8, sends: half(0)}, []Part{{Sends: true}}, nil},
		{"two slow nodes", network{nodes: 16, sends: half(3, 4), receives: half(3, 4)}, []Part{both(3), both(4)}, nil},
		{"a node that receives slowly", network{nodes: 9, receives: half(8)}, []Part{{From: 8, To: 8, Receives: true}}, nil},
		{"a node without a connection", network{nodes: 8, dead: map[int]bool{7: true}}, []Part{both(7)}, nil},
		{"a slow path", network{nodes: 8, path: map[Pair]float64{met: 0.5}}, []Part{{From: met[0], To: met[1]}}, nil},
		{"a slow rail", network{nodes: 8, rails: 4, rail: half(2)}, nil, []int{2}},
		{"the slower of two rails", network{nodes: 8, rails: 2, rail: half(1)}, nil, []int{1}},
		{"two nodes cannot be compared", network{nodes: 2, sends: half(1)}, nil, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.w.rnd = rand.New(rand.NewPCG(1, 2))
			v, _ := c.w.test()
			slices.SortFunc(v.Slow, func(a, b Part) int { return a.From - b.From })
			if fmt.Sprint(v.Slow, v.Rails) != fmt.Sprint(c.want, c.rails) || v.Once != nil || v.Unsure != nil {
				t.Errorf("got %+v, want %+v, rails %v", v, c.want, c.rails)
			}
		})
	}
}

// TestMinimum: a minimum that is given counts for any number of nodes.
func TestMinimum(t *testing.T) {
	test := Test{Nodes: 2, Rails: 1, Min: 350,
		Samples: []Sample{{From: 0, To: 1, Gbits: 390}, {From: 1, To: 0, Gbits: 340}}}
	if got := test.Suspects(); len(got) != 1 || got[0] != (Way{From: 1, To: 0}) {
		t.Errorf("got %+v", got)
	}
}

// TestOneRail: a node that is slow on one of its rails is slow there alone.
func TestOneRail(t *testing.T) {
	test := Test{Nodes: 8, Rails: 2}
	w := network{nodes: 8, rails: 2, rnd: rand.New(rand.NewPCG(1, 2))}
	spoil := func(all []Sample) []Sample {
		for i := range all {
			if all[i].Rail == 1 && (all[i].From == 5 || all[i].To == 5) {
				all[i].Gbits /= 4
			}
		}
		return all
	}
	test.Samples = spoil(w.measure(Rounds(8)))
	suspects := test.Suspects()
	test.Confirmed = spoil(w.measure(test.Confirm(suspects)))
	v := test.Judge(suspects, true)
	if len(v.Slow) != 1 || v.Slow[0] != (Part{From: 5, To: 5, Rail: 1, Sends: true, Receives: true}) || v.Rails != nil {
		t.Errorf("got %+v", v)
	}
}

// TestConfirm: suspects are measured again with good partners, and in rounds without a node twice.
func TestConfirm(t *testing.T) {
	rnd := rand.New(rand.NewPCG(3, 4))
	for range 2000 {
		w := network{nodes: 4 + rnd.IntN(61), sends: map[int]float64{}, rails: 1, rnd: rnd}
		for range rnd.IntN(w.nodes / 4) {
			w.sends[rnd.IntN(w.nodes)] = 0.3
		}
		test := Test{Nodes: w.nodes, Rails: 1, Samples: w.measure(Rounds(w.nodes))}
		suspects := test.Suspects()
		times := map[int]int{}
		for _, round := range test.Confirm(suspects) {
			busy := map[int]bool{}
			for _, p := range round {
				_, a := w.sends[p[0]]
				_, b := w.sends[p[1]]
				if busy[p[0]] || busy[p[1]] || a == b {
					t.Fatalf("%d nodes, suspects %v: pair %v", w.nodes, suspects, p)
				}
				busy[p[0]], busy[p[1]] = true, true
				for _, i := range p {
					times[i]++
				}
			}
		}
		for i := range w.sends {
			if times[i] != timesConfirmed {
				t.Fatalf("%d nodes, suspects %v: node %d is confirmed %d times", w.nodes, suspects, i, times[i])
			}
		}
	}
}

// TestAway: a node that does not take part confirms nothing, and does not count as one to compare.
func TestAway(t *testing.T) {
	test := Test{Nodes: 6, Rails: 1, Away: map[int]bool{0: true, 5: true}}
	for _, round := range test.Confirm([]Way{{From: 1, To: Any}, {From: 2, To: 3}}) {
		for _, p := range round {
			if test.Away[p[0]] || test.Away[p[1]] {
				t.Errorf("pair %v", p)
			}
		}
	}
	if n := test.Compared(); n != 4 {
		t.Errorf("%d nodes are compared", n)
	}
}

// TestNoise: noise of 10 % makes nothing slow in 10,000 tests, and hides nothing that is half as fast.
func TestNoise(t *testing.T) {
	rnd := rand.New(rand.NewPCG(5, 6))
	const tests = 10_000
	wrong, suspected := 0, 0
	for range tests {
		w := network{nodes: 4 + rnd.IntN(61), noise: 0.1, rnd: rnd}
		v, suspects := w.test()
		if len(suspects) > 0 {
			suspected++
		}
		if len(v.Slow) > 0 {
			wrong++
		}
	}
	if wrong > 0 || suspected > tests/10 {
		t.Errorf("%d of %d tests found what is well; %d had suspects", wrong, tests, suspected)
	}
	for _, c := range []struct {
		name string
		bad  int
	}{{"one node", 1}, {"two nodes", 2}} {
		t.Run(c.name, func(t *testing.T) {
			found, more := 0, 0
			const tests = 2000
			for range tests {
				w := network{nodes: 16 + rnd.IntN(49), noise: 0.1, sends: map[int]float64{}, rnd: rnd}
				for len(w.sends) < c.bad {
					w.sends[rnd.IntN(w.nodes)] = 0.4
				}
				v, _ := w.test()
				for _, p := range v.Slow {
					if _, bad := w.sends[p.From]; bad && p.IsNode() {
						found++
					} else {
						more++
					}
				}
			}
			if found < tests*c.bad*99/100 || more > 0 {
				t.Errorf("found %d of %d, and %d that are well", found, tests*c.bad, more)
			}
		})
	}
	t.Run("one path", func(t *testing.T) {
		found, more := 0, 0
		const tests = 2000
		for range tests {
			w := network{nodes: 16 + rnd.IntN(49), noise: 0.1, rnd: rnd}
			round := Rounds(w.nodes)[rnd.IntN(4)]
			pair := round[rnd.IntN(len(round))]
			w.path = map[Pair]float64{pair: 0.4}
			v, _ := w.test()
			for _, p := range v.Slow {
				if p == (Part{From: pair[0], To: pair[1]}) {
					found++
				} else {
					more++
				}
			}
		}
		if found < tests*98/100 || more > 0 {
			t.Errorf("found %d of %d, and %d that are well", found, tests, more)
		}
	})
}
