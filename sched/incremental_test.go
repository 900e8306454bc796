package sched

import (
	"cmp"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"dev.muster/cluster"
	"dev.muster/sched/place"
	"dev.muster/sched/schedtest"
)

// TestIncrementalPassDecidesAsFullPass is what an incremental pass is held to: on random histories a scheduler that
// goes on from its last cycle decides, at every step, what a full pass over the same snapshot does.
func TestIncrementalPassDecidesAsFullPass(t *testing.T) {
	seed := rand.Uint64()
	all, gaveUp := history{}, map[string]int{}
	rounds := [][2]uint64{
		{8675013886422728710, 128},  // a limit held a job back for another reason, whose turn had passed
		{11150048111643752551, 204}, // a job for which nodes were kept free was made smaller while it ran
	}
	for k := range uint64(330) {
		rounds = append(rounds, [2]uint64{seed, k})
	}
	for _, round := range rounds {
		t.Run(fmt.Sprintf("seed %d round %d", round[0], round[1]), func(t *testing.T) {
			h := newHistory(t, rand.New(rand.NewPCG(round[0], round[1])))
			h.gaveUp = gaveUp
			if round[1]%2 == 0 {
				h.scheduler.Images = h.withImage
			}
			if round[1]%3 == 1 {
				h.limitCPUs(1 + int(round[1])%16)
			}
			for range 60 {
				h.step()
				for n := 0; h.decide() && n < 3; n++ {
				}
			}
			all.count(h)
		})
		if t.Failed() {
			return
		}
	}
	t.Logf("%d cycles went on from the last one, %d of them while nodes were kept free and %d beside reservations, and started %d jobs, "+
		"%d of these held back by limits before; limits came to hold back %d; %d nodes were given back",
		all.incrementalPasses, all.protectedPasses, all.reservedPasses, all.incrementalStarts,
		all.limitedStarts, all.limitedWaits, all.nodesGivenBack)
	for _, why := range slices.Sorted(maps.Keys(gaveUp)) {
		t.Logf("%5d times %s", gaveUp[why], why)
	}
	few := all.incrementalPasses < 1000 || all.incrementalStarts < 100 || all.protectedPasses < 200 || all.reservedPasses < 100
	if few || all.limitedStarts < 30 || all.limitedWaits < 100 || all.nodesGivenBack < 30 {
		t.Error("the histories say little")
	}
	if all.imageStarts < 100 {
		t.Errorf("%d jobs have started where their images are: the histories say little of that", all.imageStarts)
	}
}

// limitCPUs has all jobs of the last partition have no more than so many CPUs of a node together.
func (h *history) limitCPUs(most int) {
	cfg := *h.S.Config()
	cfg.Partitions = slices.Clone(cfg.Partitions)
	cfg.Partitions[len(cfg.Partitions)-1].MaxCPUsPerNode = most
	h.Apply(&cluster.Configure{Config: &cfg})
}

// count adds up what was met in a history.
func (h *history) count(o *history) {
	h.incrementalPasses += o.incrementalPasses
	h.incrementalStarts += o.incrementalStarts
	h.protectedPasses += o.protectedPasses
	h.reservedPasses += o.reservedPasses
	h.limitedStarts += o.limitedStarts
	h.limitedWaits += o.limitedWaits
	h.nodesGivenBack += o.nodesGivenBack
	h.imageStarts += o.imageStarts
}

// TestIncrementalPassEnds: this history once kept the scheduler busy for good: a job whose shape failed beside the
// starts planned at its turn was taken for one that may fit, over and over.
func TestIncrementalPassEnds(t *testing.T) {
	h := newHistory(t, rand.New(rand.NewPCG(5139, 135)))
	for range 40 {
		h.step()
		h.decide()
	}
	if h.incrementalPasses == 0 {
		t.Error("the history says nothing")
	}
}

// history plays a random history on a cluster, and has two schedulers decide after each step: one that goes on from
// its last cycle, and a full pass that knows nothing.
type history struct {
	*testbed
	gaveUp            map[string]int // why incremental passes gave up; nil: nobody asks
	r                 *rand.Rand
	scheduler         Scheduler
	incrementalPasses int  // cycles that went on from the last one
	incrementalStarts int  // in these
	protectedPasses   int  // of these, while nodes were kept free in the responsive order
	maxMinutes        int  // how much time goes by at most, minutes
	plainJobs         bool // jobs and nodes are of the usual kind only
	judge             Judge
	seen              []cluster.JobID
	hasHet            bool // there are heterogeneous jobs
	hasLimits         bool // there are accounts with limits
	hasReservations   bool // there are reservations at times
	reservedPasses    int  // cycles that went on while there was one
	nodesGivenBack    int  // nodes that jobs gave back and were clean of
	limitedStarts     int  // jobs that had waited for limits and started in cycles that went on
	limitedWaits      int  // jobs that wait for limits from then on
	imageStarts       int  // jobs that started in cycles that went on, on nodes that have their image
}

func newHistory(t *testing.T, r *rand.Rand) *history {
	nodes := 2 + r.IntN(10)
	var parts []cluster.Partition
	if r.IntN(2) == 0 {
		parts = append(parts, cluster.Partition{
			Name: "half", Nodes: []cluster.NodeName{nodeName(0), nodeName(1)}, State: cluster.PartitionUp,
			PriorityTier: r.IntN(2),
		})
	}
	h := &history{
		testbed: newTestbed(t, nodes, parts...), r: r, hasHet: r.IntN(3) == 0, maxMinutes: 40 << r.IntN(4),
		plainJobs: r.IntN(2) == 0,
	}
	if r.IntN(2) == 0 {
		h.scheduler.mostRecords = 3 + r.IntN(20)
	}
	cfg := *h.S.Config()
	cfg.Licenses = []cluster.License{{Name: "lic", Total: 2}}
	if r.IntN(5) == 0 {
		cfg.CompleteWait, cfg.CompleteLocal = time.Minute, r.IntN(2) == 0
	}
	cfg.StrictOrder = r.IntN(2) == 0
	cfg.BestFit = r.IntN(4) == 0
	cfg.Gradient = r.IntN(4) == 0
	cfg.ShortestFirst = r.IntN(4) == 0
	cfg.PlanWhole = r.IntN(4) == 0
	cfg.NoBestFit = cfg.ShortestFirst != cfg.PlanWhole // no draw of its own: histories that are named stay what they are
	h.Apply(&cluster.Configure{Config: &cfg})
	h.hasReservations = r.IntN(3) == 0
	if h.hasLimits = r.IntN(2) == 0; h.hasLimits {
		h.addLimits()
	}
	return h
}

// addLimits sets up accounts with limits at random: users u and v in team, two QOS, one of them perhaps that of a
// partition too.
func (h *history) addLimits() {
	r, cfg := h.r, *h.S.Config()
	cfg.Enforce = cluster.Enforce{Associations: true, Limits: true, QOS: true, Safe: r.IntN(3) == 0}
	cfg.Priority = cluster.PriorityConfig{
		Multifactor: r.IntN(2) == 0, CalcPeriod: time.Hour, HalfLife: time.Hour, MaxAge: time.Hour,
		Weights: cluster.PriorityWeights{Age: 1000, FairShare: 1000},
	}
	cfg.Partitions = slices.Clone(cfg.Partitions)
	main := &cfg.Partitions[0]
	if r.IntN(4) == 0 {
		main.MaxCPUsPerUser = 1 + r.IntN(40)
	}
	if r.IntN(4) == 0 {
		main.QOS = "long"
	}
	if r.IntN(8) == 0 {
		cfg.Partitions[len(cfg.Partitions)-1].DenyQOS = []string{"long"}
	}
	h.Apply(&cluster.Configure{Config: &cfg})
	team := &cluster.Association{Account: "team", Shares: 1, QOS: []string{"normal", "long"}, Limits: h.someLimits()}
	h.Apply(&cluster.ChangeAccounts{
		Changes: []cluster.Change{
			h.someQOS("normal"), h.someQOS("long"), {Account: &cluster.Account{Name: "team"}},
			{Assoc: team, Under: "root"},
		},
	})
	for _, user := range []string{"u", "v"} {
		h.Apply(&cluster.ChangeAccounts{
			Changes: []cluster.Change{{User: &cluster.User{Name: user, DefaultAccount: "team"}}, h.someUser(user)},
		})
	}
}

func (h *history) someQOS(name string) cluster.Change {
	q := &cluster.QOS{Name: name, UsageFactor: 1, Limits: h.someLimits()}
	if least := 0.3; h.r.IntN(12) == 0 {
		q.UsageThreshold, q.Flags = &least, []string{"EnforceUsageThreshold"}
	}
	if h.r.IntN(12) == 0 {
		q.Flags = append(q.Flags, "NoReserve")
	}
	return cluster.Change{QOS: q}
}

func (h *history) someUser(name string) cluster.Change {
	return cluster.Change{
		Assoc: &cluster.Association{
			Account: "team", User: name, Shares: 1, QOS: []string{"normal", "long"}, Limits: h.someLimits(),
		},
		Under: "team",
	}
}

// someLimits are a few that hold back some of randomJob's jobs.
func (h *history) someLimits() cluster.Limits {
	text, nodes := "", h.S.Snapshot().NodeCount()
	for _, l := range []struct {
		name string
		most int
	}{{"GrpTRES=cpu", 16 * nodes}, {"GrpTRES=node", nodes}, {"GrpTRES=gres/gpu", 4 * nodes},
		{"GrpJobs", 3 * nodes}, {"MaxJobs", 2 * nodes}, {"MaxTRES=cpu", 60}, {"MaxTRES=node", 4}, {"MaxTRESPerUser=cpu", 16 * nodes},
		{"MaxTRESPerAccount=mem", 64000 * nodes}, {"MaxJobsPerUser", 3 * nodes},
		{"GrpTRESRunMins=cpu", 2000 * nodes}, {"MaxTRESRunMinsPerUser=cpu", 1000 * nodes},
		{"GrpTRESMins=cpu", 20000 * nodes},
		{"GrpWall", 600000}, {"MaxWall", 12000}, {"MaxTRESMins=cpu", 6000}, {"MinTRES=cpu", 2}} {
		if h.r.IntN(8) == 0 {
			text += fmt.Sprintf(" %s=%d", l.name, 1+h.r.IntN(l.most))
		}
	}
	return schedtest.Limits(h.T, text)
}

// step changes something.
func (h *history) step() {
	r := h.r
	some := func() cluster.JobID { return h.seen[r.IntN(len(h.seen))] }
	try := func(c cluster.Command) { // it may be refused
		h.N++
		if out := h.S.Apply(cluster.Entry{
			Index: h.N, At: h.Now, By: cluster.Identity{System: true}, Cmd: c,
		}); out.Panic != "" {
			h.T.Fatal(out.Panic)
		}
	}
	switch k := r.IntN(22); {
	case k < 9 && h.hasHet && r.IntN(10) == 0:
		c := &cluster.SubmitHet{}
		for range 2 + r.IntN(3) {
			s := &cluster.JobSpec{Layout: &cluster.Layout{}, Name: "h", User: "u"}
			h.randomJob(s)
			s.UID, s.Kind, s.Array = 1, cluster.Batch, nil
			c.Specs = append(c.Specs, s)
		}
		h.seen = append(h.seen, h.Apply(c).(cluster.JobID))
	case k < 9 || len(h.seen) == 0:
		for range 1 + r.IntN(3) {
			h.seen = append(h.seen, h.Submit(h.inSomeImage))
		}
	case k < 14:
		for j := range h.S.Snapshot().Live() {
			if r.IntN(3) == 0 {
				try(&cluster.Cancel{Ref: cluster.Ref{Job: j.ID}})
				if r.IntN(3) > 0 {
					h.EndJob(j.ID)
				}
				break
			}
		}
	case k == 14:
		try(&cluster.Cancel{Ref: cluster.Ref{Job: some()}})
	case k == 15:
		hold := cluster.NotHeld
		if r.IntN(2) == 0 {
			hold = cluster.HeldAdmin
		}
		try(&cluster.HoldJobs{Ref: cluster.Ref{Job: some()}, Hold: hold})
	case k == 16 && !h.plainJobs:
		set, why := cluster.NodeDrain, "x"
		if r.IntN(3) > 0 {
			set = cluster.NodeResume
		}
		try(&cluster.NodeSet{Nodes: []cluster.NodeName{nodeName(r.IntN(3))}, Action: set, Reason: &why})
	case k >= 20: // some of those that run give nodes back, which are clean of them at once or when they end
		tell := func(j *cluster.Job, name cluster.NodeName, what cluster.UpdateKind) {
			n, _ := h.S.Node(name)
			try(&cluster.Report{
				Node: name, Seq: n.ReportSeq + 1,
				Updates: []cluster.Update{{Kind: what, Job: j.ID, Attempt: j.Attempt}},
			})
		}
		for j := range h.S.Snapshot().Live() {
			if len(j.AllocNodes()) < 2 || j.Phase == cluster.Ending {
				continue
			}
			for _, name := range j.Waiting {
				tell(j, name, cluster.NodeReady)
			}
			least := 1 + r.IntN(len(j.AllocNodes()))
			try(&cluster.UpdateJob{Ref: cluster.Ref{Job: j.ID}, Patch: cluster.Patch{MinNodes: &least}, Runs: true})
			if j, _ = h.S.Job(j.ID); r.IntN(2) == 0 && len(j.Leaving()) > 0 {
				tell(j, j.Leaving()[0].Node, cluster.NodeDone)
				h.nodesGivenBack++
			}
		}
	case k == 17:
		limit := time.Duration(1+r.IntN(300)) * time.Minute
		try(&cluster.UpdateJob{Ref: cluster.Ref{Job: some()}, Patch: cluster.Patch{Limit: &limit}})
	case k == 19 && h.hasLimits && r.IntN(4) == 0:
		try(&cluster.ChangeAccounts{Changes: []cluster.Change{h.someQOS([]string{"normal", "long"}[r.IntN(2)])}})
	case k == 18 && h.hasReservations && r.IntN(2) == 0:
		start := h.Now.Add(time.Duration(r.IntN(3*h.maxMinutes)) * time.Minute)
		v := cluster.Reservation{
			Name: fmt.Sprint("r", r.IntN(3)), Start: start,
			End: start.Add(time.Duration(1+r.IntN(300)) * time.Minute), Users: []string{"u"},
		}
		if v.Nodes = []cluster.NodeName{nodeName(r.IntN(2))}; r.IntN(2) == 0 {
			v.Flags = cluster.ResvMaint
		}
		if m := start.Minute(); m%3 == 0 { // no draw of its own, too
			v.GRES, v.PerNode = []cluster.GRES{{Name: "gpu", Count: int64(1 + m%2)}}, true
			if chosen, err := ReserveParts(h.S.Snapshot(), &v, h.Now); err == nil {
				v = *chosen
			}
		}
		if r.IntN(4) == 0 {
			try(&cluster.ReservationDrop{Name: v.Name})
		} else {
			try(&cluster.ReservationPut{Reservation: v})
		}
	case k == 18 && r.IntN(4) == 0:
		first := uint32(1 << 31)
		try(&cluster.UpdateJob{Ref: cluster.Ref{Job: some()}, Patch: cluster.Patch{Priority: &first}})
	}
	if r.IntN(2) == 0 {
		h.Now = h.Now.Add(time.Duration(r.IntN(h.maxMinutes)) * time.Minute)
		for _, c := range cluster.Due(h.S.Snapshot(), h.Now) {
			try(c)
		}
	}
}

// inSomeImage is randomJob, every other one in an image. Histories draw nothing for that, so that those that are named
// stay what they are.
func (h *history) inSomeImage(s *cluster.JobSpec) {
	h.randomJob(s)
	if h.N%2 == 0 {
		s.Inside = &cluster.Container{Image: fmt.Sprint("image", h.N%6)}
	}
}

// withImage are other nodes from time to time.
func (h *history) withImage(image string) (out []cluster.NodeName) {
	age, number := int(h.N/16), int(image[len(image)-1])
	for i := range h.S.Snapshot().NodeCount() {
		if (i+age+number)%3 == 0 {
			out = append(out, nodeName(i))
		}
	}
	return out
}

// hasImage reports whether all nodes that a job starts on have its image.
func (h *history) hasImage(j *cluster.Job, a *cluster.Alloc) bool {
	if j.Spec.Inside == nil || h.scheduler.Images == nil {
		return false
	}
	have := h.withImage(j.Spec.Inside.Image)
	return !slices.ContainsFunc(a.Shares, func(sh cluster.Share) bool { return !slices.Contains(have, sh.Node) })
}

func (h *history) randomJob(s *cluster.JobSpec) {
	r := h.r
	s.UID = uint32(1 + r.IntN(2))
	if h.hasLimits {
		s.User, s.Account, s.QOS = []string{"u", "v"}[s.UID-1], "team", []string{"normal", "long"}[r.IntN(2)]
	}
	s.Limit = time.Duration(5+r.IntN(200)) * time.Minute
	if len(h.S.Config().Partitions) > 1 {
		s.Partitions = [][]string{{"main"}, {"half"}, {"main", "half"}}[r.IntN(3)]
	}
	one := func(n int) bool { return r.IntN(n) == 0 }
	switch {
	case one(3):
		s.MinNodes = 1 + r.IntN(h.S.Snapshot().NodeCount())
		s.MaxNodes, s.CPUsPerTask = s.MinNodes, 16
		if h.hasLimits && one(2) { // some limits make a range narrower
			s.MaxNodes += r.IntN(4)
		}
	case one(3):
		s.PerNode = []cluster.GRES{{Name: "gpu", Count: int64(1 + r.IntN(4))}}
	case one(8):
		s.PerNode = []cluster.GRES{{Name: "lscratch", Count: int64(1 + r.IntN(8))}}
		s.Tasks = 1 + r.IntN(20)
	case one(8):
		s.PerNode = []cluster.GRES{{Name: "shard", Count: int64(1 + r.IntN(3))}}
		s.MinNodes = 1 + r.IntN(2)
		s.MaxNodes = s.MinNodes
	case one(3):
		s.Tasks = 1 + r.IntN(40)
	default:
		s.CPUsPerTask = 1 + r.IntN(16)
	}
	if one(10) {
		s.Nice = r.IntN(100) - 50
	}
	if one(8) && !h.plainJobs {
		s.Kind, s.Array = cluster.Batch, &cluster.ArraySpec{Tasks: cluster.RangeIDSet(1, 1+r.IntN(6)), Limit: r.IntN(3)}
	}
	if h.plainJobs {
		return
	}
	if one(8) {
		s.Licenses = "lic"
	}
	if one(8) {
		s.Begin = h.Now.Add(time.Duration(r.IntN(60)) * time.Minute)
	}
	if one(8) && len(h.seen) > 0 {
		s.Depends.Terms = []cluster.Depend{{Type: cluster.AfterAny, Job: h.seen[len(h.seen)-1], Task: cluster.TaskAny}}
	}
	if list := h.S.Snapshot().Reservations(); one(10) && len(list) > 0 && s.User != "v" {
		s.Reservation = list[0].Name
	}
	if one(300) {
		s.Sharing = cluster.ShareUser
	}
}

// decide compares the two, and carries out what they decide, or at times loses a part of it.
func (h *history) decide() bool {
	snap := h.S.Snapshot()
	full, last := newCycle(snap, h.Now), h.scheduler.last
	full.images = place.NewImageNodes(h.scheduler.Images)
	want := full.fullPass(cmp.Or(h.scheduler.mostRecords, full.queueDepth()))
	got := h.scheduler.Schedule(snap, h.Now)
	spec := cluster.JobSpec{Layout: &cluster.Layout{}, Partitions: []string{"main"}}
	h.randomJob(&spec)
	spec.MinNodes += h.r.IntN(2)
	if a, b := fmt.Sprint(h.judge.Feasible(snap, &spec, h.Now)), fmt.Sprint(new(Judge).Feasible(snap, &spec, h.Now)); a != b {
		h.T.Fatalf("a judge who knows the nodes says of %+v %v, a new one %v", spec, a, b)
	}
	if c := (&cycle{given: given{s: snap}}); !snap.Config().StrictOrder {
		c.sortDecisions(want)
		c.sortDecisions(got)
	}
	if a, b := fmt.Sprintf("%+v", dump(got)), fmt.Sprintf("%+v", dump(want)); a != b {
		h.T.Fatalf("at %v it decides (gone on: %v)\n%s\nnot\n%s", h.Now, last != nil && last == h.scheduler.last, a, b)
	}
	if why := h.scheduler.gaveUp; why != nil && h.gaveUp != nil {
		h.gaveUp[why.Error()]++
	}
	if last != nil && last == h.scheduler.last {
		h.incrementalPasses++
		h.reservedPasses += b2i(len(snap.Reservations()) > 0)
		h.protectedPasses += b2i(last.protectedStarts > 0)
		for _, d := range got {
			h.incrementalStarts += b2i(d.Start != nil)
			j, _ := h.S.Job(d.Job)
			h.imageStarts += b2i(d.Start != nil && h.hasImage(j, d.Start))
			h.limitedStarts += b2i(d.Start != nil && isLimit(j.Wait))
			h.limitedWaits += b2i(d.Start == nil && isLimit(d.Wait))
		}
	}
	if h.r.IntN(20) == 0 {
		want = want[:h.r.IntN(len(want)+1)]
	}
	if len(want) > 0 {
		h.Apply(&cluster.Decide{Decisions: want})
	}
	return len(want) > 0
}

// isLimit reports whether a reason is one of limits.
func isLimit(why cluster.Reason) bool {
	return strings.HasPrefix(string(why), "Assoc") || strings.HasPrefix(string(why), "QOS")
}

func dump(ds []cluster.Decision) (out []string) {
	for _, d := range ds {
		alloc := "-"
		if d.Start != nil {
			alloc = fmt.Sprintf("%+v", d.Start.Shares)
			d.Start = nil
		}
		for _, w := range d.With {
			alloc += fmt.Sprintf(" %d %+v", w.Job, w.Start.Shares)
		}
		d.With = nil
		out = append(out, fmt.Sprintf("%+v %s\n", d, alloc))
	}
	return out
}

// TestIncrementalBurst: a job whose burst buffer has gone on is looked at again, though its reason is the same.
func TestIncrementalBurst(t *testing.T) {
	was := &cluster.Job{Spec: &cluster.JobSpec{}, Wait: cluster.WaitStageIn}
	was.Burst = &cluster.Burst{State: cluster.BurstStagingIn}
	is := *was
	if !waitsAsDecided(was, &is, nil) {
		t.Error("a job that has not changed is looked at again")
	}
	is.Burst = &cluster.Burst{State: cluster.BurstStagedIn}
	if waitsAsDecided(was, &is, nil) {
		t.Error("a job that has staged in is not looked at again")
	}
}
