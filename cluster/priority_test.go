package cluster

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"
)

// books is a tree of accounts as text: account, or account/user, with shares and usage; indented below.
func tree(rows ...Association) func(func(*Association) bool) {
	ids := map[string]AssocID{}
	for i := range rows {
		rows[i].ID = AssocID(i + 1)
		if rows[i].User == "" {
			ids[rows[i].Account] = rows[i].ID
		}
	}
	for i := range rows {
		switch r := &rows[i]; {
		case r.User != "":
			r.Parent = ids[r.Account]
		case r.Comment != "": // an account below another one
			r.Parent = ids[r.Comment]
		case r.Account != RootName:
			r.Parent = 1
		}
	}
	return func(yield func(*Association) bool) {
		for i := range rows {
			if !yield(&rows[i]) {
				return
			}
		}
	}
}

func assoc(account, user string, shares int, usage float64) Association {
	return Association{Account: account, User: user, Shares: shares, Spent: Spent{Raw: usage}}
}

// TestFairTree is the worked example of Slurm's own figures.
func TestFairTree(t *testing.T) {
	const a, b = .926280, .073720
	teamC := assoc("team-c", "", 3, a*.357966)
	teamC.Comment = "team-a"
	rows := []Association{assoc("root", "", 1, 1), assoc("root", "root", 1, 0), assoc("team-a", "", 60, a),
		assoc("team-b", "", 40, b), teamC,
		assoc("team-a", "alice", 2, a*.615790), assoc("team-a", "carol", 1, a*.026244),
		assoc("team-c", "bob", 2, a*.357966),
		assoc("team-b", "bob", 1, b*.016752), assoc("team-b", "carol", 1, b*.983248)}
	got := FairShares(tree(rows...), false, 0)
	for id, want := range map[AssocID]string{
		2: "0.009901 0.000000 +Inf 1.000000", 3: "0.594059 0.926280 0.6413 0.000000",
		4: "0.396040 0.073720 5.3722 0.000000",
		5: "0.500000 0.357966 1.3968 0.000000", 6: "0.333333 0.615790 0.5413 0.166667",
		7: "0.166667 0.026244 6.3507 0.500000",
		8: "1.000000 1.000000 1.0000 0.333333", 9: "0.500000 0.016752 29.8472 0.833333",
		10: "0.500000 0.983248 0.5085 0.666667",
	} {
		s := got[id]
		if text := fmt.Sprintf("%.6f %.6f %.4f %.6f", s.NormShares, s.Usage, s.LevelFS, s.FairShare); text != want {
			t.Errorf("association %d: %s, want %s", id, text, want)
		}
	}
}

// TestFairTreeTies: accounts with one level of fair share are merged, their users tie, and root's user,
// who alone has used anything, comes last: as a real cluster shows it.
func TestFairTreeTies(t *testing.T) {
	got := FairShares(tree(assoc("root", "", 1, 3602), assoc("root", "root", 1, 3602), assoc("team-a", "", 60, 0), assoc("team-b", "", 40, 0),
		assoc("team-a", "alice", 1, 0), assoc("team-a", "carol", 1, 0), assoc("team-b", "bob", 1, 0), assoc("team-b", "carol", 1, 0)), false, 0)
	var fs []float64
	for id := AssocID(2); id <= 8; id++ {
		fs = append(fs, got[id].FairShare)
	}
	if want := []float64{.2, 0, 0, 1, 1, 1, 1}; !slices.Equal(fs, want) {
		t.Errorf("fair shares %v, want %v", fs, want)
	}
	parent := FairShares(tree(assoc("root", "", 1, 100), assoc("a", "", ShareParent, 60), assoc("b", "", 1, 40),
		assoc("a", "x", 1, 60), assoc("b", "y", ShareParent, 40)), false, 0)
	if s := parent[4]; s.NormShares != .5 || s.Usage != .6 {
		t.Errorf("a user below fairshare=parent has %v of the shares and %v of the usage of the level above, want 0.5 and 0.6",
			s.NormShares, s.Usage)
	}
	if s := parent[5]; !math.IsInf(s.LevelFS, 1) || s.FairShare != 1 {
		t.Errorf("a user with fairshare=parent stands at %+v", s)
	}
}

// TestClassic: 2^(-usage/shares/damp), where what the account has used counts for its users by their shares.
func TestClassic(t *testing.T) {
	got := FairShares(tree(assoc("root", "", 1, 100), assoc("a", "", 60, 80), assoc("b", "", 40, 20),
		assoc("a", "x", 1, 80), assoc("a", "y", 3, 0)),
		true, 2)
	for id, want := range map[AssocID]string{
		2: "0.6000 0.8000 0.629961", 4: "0.1500 0.8000 0.157490", 5: "0.4500 0.6000 0.629961",
	} {
		s := got[id]
		if text := fmt.Sprintf("%.4f %.4f %.6f", s.NormShares, s.Usage, s.FairShare); text != want {
			t.Errorf("association %d: %s, want %s", id, text, want)
		}
	}
	for _, x := range []float64{0, .1, .5, 1, 1.75, 3.3, 20.01, 1080} {
		if g, w := half(x), math.Exp2(-x); math.Abs(g-w) > 1e-15*max(w, 1e-300) {
			t.Errorf("half(%v) = %v, want %v", x, g, w)
		}
	}
}

// TestBilling is the worked example, and the two ways to take the largest.
func TestBilling(t *testing.T) {
	p := &Partition{BillingWeights: []Amount{{"cpu", 1}, {"mem", .25 / 1024}, {"gres/gpu", 2}}}
	big := []Amount{{"cpu", 8}, {"mem", 16 << 10}, {"node", 1}, {"gres/gpu", 4}}
	small := []Amount{{"cpu", 3}, {"mem", 2 << 10}, {"node", 1}}
	for _, c := range []struct {
		cfg  PriorityConfig
		part *Partition
		list []Amount
		want float64
	}{{PriorityConfig{}, p, big, 20}, {PriorityConfig{}, p, small, 3.5}, {PriorityConfig{MaxTRES: true}, p, big, 8},
		{PriorityConfig{MaxTRESGRES: true}, p, big, 16}, {PriorityConfig{}, &Partition{}, big, 8}} {
		if got := Billing(&c.cfg, c.part, c.list); got != c.want {
			t.Errorf("%+v: %v is billed, want %v", c.cfg, got, c.want)
		}
	}
}

// ranked is a cluster as in the worked example of priorities.
func ranked(t *testing.T, change func(*Config)) *world {
	w := &world{t: t, s: NewState(), now: epoch, seq: map[NodeName]uint64{}}
	cfg := DefaultConfig()
	cfg.Priority = PriorityConfig{Multifactor: true, MaxAge: time.Hour, HalfLife: 7 * 24 * time.Hour,
		CalcPeriod: 5 * time.Minute,
		Weights: PriorityWeights{Age: 1000, Assoc: 500, FairShare: 50000, Size: 2000, Partition: 3000, QOS: 4000,
			TRES: []Amount{{"cpu", 1000}, {"mem", 2000}, {"gres/gpu", 3000}}}}
	cfg.Partitions[0].PriorityJobFactor, cfg.Partitions[0].PriorityTier = 1, 1
	cfg.Partitions = append(cfg.Partitions, Partition{
		Name: "wide", All: true, State: PartitionUp, PriorityJobFactor: 2, PriorityTier: 1,
	})
	if change != nil {
		change(&cfg)
	}
	w.ok(root, &Configure{Config: &cfg})
	inv := Inventory{Sockets: 2, CoresPerSocket: 8, ThreadsPerCore: 1, CPUs: 16, MemMB: 64000}
	for i := range 8 {
		inv.GPUs = append(inv.GPUs, GPU{Index: i, Type: "h100"})
	}
	for i := range 8 {
		w.ok(sys, &NodeUp{Name: nodeName(i), Inventory: inv})
	}
	w.ok(root, &ChangeAccounts{Changes: []Change{
		{QOS: &QOS{Name: "high", Priority: 1000, UsageFactor: 1}}, {Account: &Account{Name: "team-a"}},
		{Account: &Account{Name: "team-b"}},
		{Assoc: &Association{Account: "team-a", Shares: 60}},
		{Assoc: &Association{Account: "team-b", Shares: 40, Priority: 40}},
		{User: &User{Name: "alice", DefaultAccount: "team-a"}}, {User: &User{Name: "bob", DefaultAccount: "team-b"}},
		{
			Assoc: &Association{
				Account: "team-a", User: "alice", Shares: 1, Priority: 10, QOS: []string{"normal", "high"},
			},
		},
		{Assoc: &Association{Account: "team-b", User: "bob", Shares: 1}},
	}})
	return w
}

// TestPriorityExample: the figures of the worked example to the digit.
func TestPriorityExample(t *testing.T) {
	w := ranked(t, nil)
	id := w.submit(func(s *JobSpec) {
		s.MinNodes, s.MaxNodes, s.Tasks, s.QOS, s.Limit = 2, 2, 20, "high", time.Hour
		s.Mem, s.PerNode = Mem{Per: MemPerNode, MB: 16384}, []GRES{{Name: "gpu", Count: 4}}
	})
	a, _ := w.s.AssocOf("team-a", "alice", "")
	if a.ID != w.job(id).Assoc {
		t.Fatalf("the job is charged to association %d, want %d", w.job(id).Assoc, a.ID)
	}
	b := *a
	b.FairShare = 1.0 / 6
	w.s.assocs.Set(b.ID, &b)
	f := w.s.Ranker().Factors(w.job(id), "main", w.now.Add(24*time.Second)).Weigh(&w.s.config.Priority.Weights)
	got := fmt.Sprintf("age %.3f assoc %.0f fs %.2f size %.2f part %.0f qos %.0f cpu %.2f mem %.0f gpu %.0f", f.Age, f.Assoc, f.FairShare, f.Size, f.Partition, f.QOS,
		f.TRES[0].N, f.TRES[1].N, f.TRES[2].N)
	if want := "age 6.667 assoc 125 fs 8333.33 size 406.25 part 1500 qos 4000 cpu 156.25 mem 128 gpu 375"; got != want {
		t.Errorf("factors %s\nwant    %s", got, want)
	}
	if f.Priority() != 15030 {
		t.Errorf("priority %d, want 15030", f.Priority())
	}
}

// TestBillingFactor: what a job is billed counts against what its partition would be, both in whole numbers.
func TestBillingFactor(t *testing.T) {
	for weights, want := range map[string]float64{
		"": 20.0 / 128, "cpu": 26.0 / 166, "gres/gpu": 10.0 / 83,
	} { // 20 CPUs and 8 GPUs of 128 and 64, weighed by 1.3
		w := ranked(t, func(cfg *Config) {
			cfg.Priority.Weights.TRES = []Amount{{"billing", 1000}}
			if weights != "" {
				cfg.Partitions[0].BillingWeights = []Amount{{weights, 1.3}}
			}
		})
		id := w.submit(func(s *JobSpec) {
			s.MinNodes, s.MaxNodes, s.Tasks, s.QOS, s.PerNode = 2, 2, 20, "high", []GRES{{Name: "gpu", Count: 4}}
		})
		if f := w.s.Ranker().Factors(w.job(id), "main", w.now); len(f.TRES) != 1 || f.TRES[0].N != want {
			t.Errorf("weight %q: the factor is %v, want %v", weights, f.TRES, want)
		}
	}
}

// TestPriorityFlags: what each flag makes of one factor.
func TestPriorityFlags(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(*PriorityConfig)
		of     func(Factors) float64
		want   float64
	}{
		{"large", func(*PriorityConfig) {}, func(f Factors) float64 { return f.Size }, (2.0/8 + 20.0/128) / 2},
		{
			"small", func(p *PriorityConfig) { p.FavorSmall = true },
			func(f Factors) float64 { return f.Size }, (6.0/8 + 108.0/128) / 2,
		},
		{
			"relative", func(p *PriorityConfig) { p.SmallRelativeToTime = true },
			func(f Factors) float64 { return f.Size }, 32.0 / 60 / 128,
		},
		{"relative, small", func(p *PriorityConfig) {
			p.SmallRelativeToTime = true
			p.FavorSmall = true
		}, func(f Factors) float64 { return f.Size }, 1 - 32.0/60/128},
		{"raw assoc", func(p *PriorityConfig) { p.RawAssoc = true }, func(f Factors) float64 { return f.Assoc }, 10},
		{"raw part", func(p *PriorityConfig) { p.RawPart = true }, func(f Factors) float64 { return f.Partition }, 2},
		{"raw qos", func(p *PriorityConfig) { p.RawQOS = true }, func(f Factors) float64 { return f.QOS }, 1000},
		{"raw tres", func(p *PriorityConfig) { p.RawTRES = true }, func(f Factors) float64 { return f.TRES[0].N }, 20},
		{"not yet eligible", func(*PriorityConfig) {}, func(f Factors) float64 { return f.Age }, 0},
		{
			"always ages", func(p *PriorityConfig) { p.AccrueAlways = true },
			func(f Factors) float64 { return f.Age }, .5,
		},
	} {
		w := ranked(t, func(cfg *Config) { c.change(&cfg.Priority) })
		id := w.submit(func(s *JobSpec) {
			s.MinNodes = 2
			s.MaxNodes = 2
			s.Tasks = 20
			s.QOS = "high"
			s.Limit = time.Hour
			s.Partitions = []string{"wide"}
			s.Begin = w.now.Add(time.Hour)
		})
		if got := c.of(w.s.Ranker().Factors(w.job(id), "wide", w.now.Add(30*time.Minute))); got != c.want {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}

// TestPrioritySize has 22.05's figures (sprio %j and %J): a limit of more than a year counts as it is, none as
// 2³²-1 minutes, and named nodes are asked for.
func TestPrioritySize(t *testing.T) {
	for _, c := range []struct {
		weight   float64
		relative bool
		change   func(*JobSpec)
		want     string
	}{
		{4e9, true, func(s *JobSpec) { s.Tasks, s.Limit = 128, Unlimited }, "0.9313"},
		{4e9, true, func(s *JobSpec) { s.Tasks, s.Limit = 128, 365*24*time.Hour }, "7610.3501"},
		{4e9, true, func(s *JobSpec) { s.Tasks, s.Limit = 128, 5000*24*time.Hour }, "555.5556"},
		{4e9, true, func(s *JobSpec) { s.Tasks, s.Limit = 5, 90*time.Second }, "250000000.0000"},
		{1, false, func(s *JobSpec) { s.NodeList = []NodeName{"n1", "n2"} }, "0.1328"},
		{1, false, func(s *JobSpec) { s.Partitions = []string{"three"} }, "0.1914"},
		{1, false, func(s *JobSpec) {
			s.PerJob, s.PerNode = []GRES{{Name: "gpu", Count: 20}}, []GRES{{Name: "gpu", Count: 4}}
		}, "0.3164"},
	} {
		w := ranked(t, func(cfg *Config) {
			cfg.Priority.SmallRelativeToTime, cfg.Partitions[0].MaxTime = c.relative, Unlimited
			cfg.Partitions = append(cfg.Partitions, Partition{
				Name: "three", All: true, State: PartitionUp, PartitionLimits: PartitionLimits{MinNodes: 3},
			})
		})
		id := w.submit(func(s *JobSpec) { s.Tasks, s.MinNodes, s.MaxNodes = 0, 0, 0; c.change(s) })
		if got := fmt.Sprintf("%.4f", c.weight*w.s.Ranker().Factors(w.job(id), w.job(id).Spec.Partitions[0], w.now).Size); got != c.want {
			t.Errorf("%+v: %s, want %s", w.job(id).Spec, got, c.want)
		}
	}
}

// TestIncrOnly: with INCR_ONLY the clock does not lower a priority, an update does, as in 22.05.
func TestIncrOnly(t *testing.T) {
	w := ranked(t, func(cfg *Config) { cfg.Priority.IncrOnly = true })
	id := w.submit(nil)
	first := w.job(id).Priority
	w.ok(root, &ChangeAccounts{
		Changes: []Change{{Assoc: &Association{Account: "team-b", Shares: 40, Priority: 4000}}},
	}) // others' weighs more
	w.pass(time.Hour)
	w.ok(sys, &Decay{})
	if got := w.job(id).Priority; got < first {
		t.Errorf("recomputed: %d, was %d", got, first)
	}
	nice := 30
	before := w.job(id).Priority
	w.ok(root, &UpdateJob{Ref: Ref{Job: id}, Patch: Patch{Nice: &nice}})
	if got := w.job(id).Priority; got != before-30 {
		t.Errorf("after nice=30: %d, was %d", got, before)
	}
}

// TestPriorityMemory: --mem=0 counts as the memory of whole nodes, as 22.05 has it.
func TestPriorityMemory(t *testing.T) {
	w := ranked(t, nil)
	for want, nodes := range map[string]int{"128000": 2, "64000": 0} {
		id := w.submit(func(s *JobSpec) { s.MinNodes, s.MaxNodes, s.Mem = nodes, nodes, Mem{Per: MemPerNode} })
		if got := fmt.Sprint(amountOf(w.s.Ranker().Factors(w.job(id), "main", w.now).TRES, "mem") * 8 * 64000); got != want {
			t.Errorf("%d nodes: %s MB, want %s", nodes, got, want)
		}
	}
}

// TestUsage: a running job is charged at each Decay and at its end, to its association, all above, and its
// QOS; usage fades by Slurm's own figure.
func TestUsage(t *testing.T) {
	const half = 1000
	w := ranked(t, func(cfg *Config) {
		cfg.Priority.HalfLife = half * time.Second
		cfg.Partitions[0].BillingWeights = []Amount{{"cpu", 2}, {"mem", .5 / 100}}
	})
	w.ok(sys, &Decay{})
	id := w.run(w.submit(nil), 3, "n0")
	w.pass(300*time.Second + 200*time.Millisecond)
	w.due()
	f := 1 - .693/half
	want := 300 * math.Pow(f, 300) * 2.5
	near := func(what string, got, want float64) {
		t.Helper()
		if math.Abs(got-want) > 1e-9*want {
			t.Errorf("%s: %v, want %v", what, got, want)
		}
	}
	mine := func(account, user string) Spent { a, _ := w.s.AssocOf(account, user, ""); return a.Spent }
	near("alice", mine("team-a", "alice").Raw, want)
	near("team-a", mine("team-a", "").Raw, want)
	near("root", mine("root", "").Raw, want)
	near("team-b", mine("team-b", "").Raw, 0)
	near("memory", amountOf(mine("team-a", "").TRES, "mem"), 100*want/2.5)
	w.pass(100 * time.Second)
	w.over(id, 0)
	want += 100 * math.Pow(f, 100) * 2.5
	near("at its end", mine("root", "").Raw, want)
	q, _ := w.s.QOS("normal")
	near("QOS", q.Spent.Raw, want)
	near("wall", q.Spent.Wall, want/2.5)
	w.pass(200 * time.Second)
	w.due()
	near("later", mine("team-a", "alice").Raw, want*math.Pow(f, 300))
	a, _ := w.s.AssocOf("team-a", "alice", "")
	b, _ := w.s.AssocOf("team-b", "bob", "")
	if a.FairShare != 1.0/3 || b.FairShare != 1 {
		t.Errorf("fair shares %v and %v, want 1/3 of the one who used and 1", a.FairShare, b.FairShare)
	}
}

// TestHalfLife: after exactly one half-life of h seconds (1-0.693/h)^h is left, not a half.
func TestHalfLife(t *testing.T) {
	p := PriorityConfig{HalfLife: 7 * 24 * time.Hour}
	if got, want := power(p.decayFactor(), 604800), math.Pow(1-.693/604800, 604800); math.Abs(got-want) > 1e-9 || math.Abs(got-.50007) > 1e-5 {
		t.Errorf("%v is left, want %v", got, want)
	}
	if (&PriorityConfig{}).decayFactor() != 1 {
		t.Error("without a half-life usage fades")
	}
}

// TestUsageReset: usage begins at zero with each period.
func TestUsageReset(t *testing.T) {
	at := func(text string) time.Time { x, _ := time.Parse(time.DateTime, text); return x }
	for _, c := range []struct {
		p    Period
		a, b string
		want bool
	}{{ResetDaily, "2026-03-01 23:00:00", "2026-03-01 23:59:59", false},
		{ResetDaily, "2026-03-01 23:59:59", "2026-03-02 00:00:00", true},
		{ResetWeekly, "2026-03-01 00:00:00", "2026-03-07 23:00:00", false},
		{ResetWeekly, "2026-03-07 00:00:00", "2026-03-08 00:00:01", true},
		{ResetMonthly, "2026-03-01 00:00:00", "2026-03-31 23:00:00", false},
		{ResetQuarterly, "2026-03-31 00:00:00", "2026-04-01 23:00:00", true},
		{ResetYearly, "2026-12-31 00:00:00", "2027-01-01 23:00:00", true},
		{ResetNever, "2025-12-31 00:00:00", "2027-01-01 23:00:00", false}} {
		if got := c.p.between(at(c.a), at(c.b)); got != c.want {
			t.Errorf("%s from %s to %s: %v", c.p, c.a, c.b, got)
		}
	}
}

// order is the queue as names.
func (w *world) order() string {
	var names []string
	for j := range w.s.Queue() {
		names = append(names, j.Spec.Name)
	}
	return strings.Join(names, " ")
}

func (w *world) wantOrder(want string) {
	w.t.Helper()
	if got := w.order(); got != want {
		w.t.Errorf("the queue is %q, want %q", got, want)
	}
}

// TestQueueOrder: partitions' tiers, then priority, then time of submission, then number; and what moves
// a job in it.
func TestQueueOrder(t *testing.T) {
	w := ranked(t, func(cfg *Config) {
		cfg.Partitions = append(cfg.Partitions, Partition{
			Name: "first", All: true, State: PartitionUp, PriorityTier: 9,
		})
	})
	name := func(n string, change func(*JobSpec)) JobID {
		w.pass(time.Second)
		return w.submit(func(s *JobSpec) {
			s.Name = n
			if change != nil {
				change(s)
			}
		})
	}
	a, b := name("a", nil), name("b", nil)
	name("wide", func(s *JobSpec) { s.Partitions = []string{"main", "wide"} })
	name("high", func(s *JobSpec) { s.QOS = "high" })
	name("tier", func(s *JobSpec) { s.Partitions = []string{"first"} })
	w.wantOrder("tier high wide a b")
	w.ok(root, &PartitionSet{Partition: Partition{Name: "first", All: true, State: PartitionUp, PriorityTier: 1}})
	w.wantOrder("high wide a b tier")
	nice, top := 5, uint32(1<<31)
	w.ok(alice, &UpdateJob{Ref: Ref{Job: a}, Patch: Patch{Nice: &nice}})
	w.wantOrder("high wide b a tier")
	w.ok(root, &UpdateJob{Ref: Ref{Job: a}, Patch: Patch{Priority: &top}})
	w.wantOrder("a high wide b tier")
	w.refused(alice, &UpdateJob{Ref: Ref{Job: b}, Patch: Patch{Priority: &top}}, ErrAccess)
	least := uint32(1)
	w.refused(alice, &UpdateJob{Ref: Ref{Job: b}, Patch: Patch{Priority: &least}}, ErrPriorityReset)
	w.ok(alice, &HoldJobs{Ref: Ref{Job: a}, Hold: HeldUser})
	if w.job(a).Priority != 0 {
		t.Errorf("a held job has priority %d", w.job(a).Priority)
	}
	w.ok(alice, &HoldJobs{Ref: Ref{Job: a}})
	w.wantOrder("high wide a b tier") // the nice value went with the priority that was set
	w.ok(root, &UpdateJob{Ref: Ref{Job: b}, Patch: Patch{Site: &nice}})
	w.refused(alice, &UpdateJob{Ref: Ref{Job: b}, Patch: Patch{Site: &nice}}, ErrAccess)
	p := w.job(b).Priority
	w.pass(30 * time.Minute)
	w.due()
	if got := w.job(b).Priority - p; got < 499 || got > 501 {
		t.Errorf("in half of the maximal age a job's priority rises by %d, want 500", got)
	}
	basic := *w.s.Config()
	basic.Priority = PriorityConfig{}
	w.ok(root, &Configure{Config: &basic})
	w.wantOrder("a b wide high tier") // as submitted
}

// TestTop: as a real cluster does it: the mover takes the highest priority of its kind, and the ones that
// it passes share what it gains.
func TestTop(t *testing.T) {
	w := ranked(t, nil)
	ids := []JobID{}
	for i := range 4 {
		ids = append(ids, w.submit(func(s *JobSpec) { s.Name = string(rune('a' + i)) }))
	}
	nice := 100
	w.ok(alice, &UpdateJob{Ref: Ref{Job: ids[1]}, Patch: Patch{Nice: &nice}})
	w.wantOrder("a c d b")
	w.refused(alice, &TopJobs{Refs: []Ref{{Job: ids[2]}}}, ErrAccess)
	w.ok(root, &TopJobs{Refs: []Ref{{Job: ids[2]}}})
	w.wantOrder("c a d b")
	w.ok(root, &TopJobs{Refs: []Ref{{Job: ids[3]}, {Job: ids[1]}}})
	w.wantOrder("d b c a")
	var nices []int
	for _, id := range ids {
		nices = append(nices, w.job(id).Spec.Nice)
	}
	if !slices.Equal(nices, []int{51, 1, 50, 0}) {
		t.Errorf("nice values %v, want those of a real cluster: [51 1 50 0]", nices)
	}
}

// TestTopOrder: the jobs that are named come before all others in their order, none as high as another, as in Slurm.
func TestTopOrder(t *testing.T) {
	w := ranked(t, nil)
	var ids []JobID
	for i := range 3 {
		ids = append(ids, w.submit(func(s *JobSpec) { s.Name = string(rune('a' + i)) }))
	}
	w.ok(root, &TopJobs{Refs: []Ref{{Job: ids[1]}, {Job: ids[2]}}})
	var nices []int
	for _, id := range ids {
		nices = append(nices, w.job(id).Spec.Nice)
	}
	w.wantOrder("b c a")
	if !slices.Equal(nices, []int{2, 0, 1}) {
		t.Errorf("nice values %v, want those of a real cluster: [2 0 1]", nices)
	}
}

// TestAccounts: who may do what, and what the books refuse.
func TestAccounts(t *testing.T) {
	w := ranked(t, func(cfg *Config) { cfg.Enforce = Enforce{Associations: true, QOS: true} })
	change := func(c Change) *ChangeAccounts { return &ChangeAccounts{Changes: []Change{c}} }
	w.refused(alice, change(Change{Account: &Account{Name: "mine"}}), ErrAccess)
	w.refused(root, change(Change{Assoc: &Association{Account: "none"}}), ErrAccount)
	w.refused(root, change(Change{Assoc: &Association{Account: "team-a", User: "nobody"}}), ErrUser)
	w.refused(root, change(Change{Assoc: &Association{Account: "team-a", QOS: []string{"gold"}}}), ErrQOS)
	w.refused(root, change(Change{}), ErrNoChange)
	refuse := func(kind ErrKind, change func(*JobSpec)) {
		t.Helper()
		spec := &JobSpec{Layout: &Layout{}, Name: "j", UID: 1000, User: "alice"}
		change(spec)
		w.refused(alice, &Submit{Spec: spec}, kind)
	}
	refuse(ErrAccount, func(s *JobSpec) { s.Account = "team-b" })
	refuse(ErrAccount, func(s *JobSpec) { s.User = "dave" })
	refuse(ErrQOS, func(s *JobSpec) { s.QOS = "gold" })
	w.refused(bob, &Submit{Spec: &JobSpec{Layout: &Layout{}, Name: "j", UID: 1001, User: "bob", QOS: "high"}}, ErrQOS)
	id := w.submit(func(s *JobSpec) { s.QOS = "high" })
	if j := w.job(id); j.Spec.Account != "team-a" || j.Spec.QOS != "high" {
		t.Errorf("account %s, QOS %s", j.Spec.Account, j.Spec.QOS)
	}
	w.refused(root, change(Change{User: &User{Name: "alice"}, Delete: true}), ErrJobsActive)
	w.ok(alice, &Cancel{Ref: Ref{Job: id}})
	w.ok(root, change(Change{Account: &Account{Name: "team-a"}, Delete: true}))
	refuse(ErrAccount, func(*JobSpec) {})
	if _, ok := w.s.AssocOf("team-a", "alice", ""); ok {
		t.Error("alice still is in an account that is gone")
	}
}

// TestNoAccounts: without any accounts everybody may submit as before.
func TestNoAccounts(t *testing.T) {
	w := newWorld(t, 1)
	j := w.job(w.submit(nil))
	if j.Assoc != 0 || j.Spec.Account != "alice" || j.Spec.QOS != NormalQOS || w.s.Accounting() {
		t.Errorf("association %d, account %s, QOS %s", j.Assoc, j.Spec.Account, j.Spec.QOS)
	}
	if cmds := Due(w.s.Snapshot(), w.now.Add(time.Minute)); len(cmds) != 0 {
		t.Errorf("the clock demands %+v", cmds)
	}
}
