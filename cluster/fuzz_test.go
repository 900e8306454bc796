package cluster

import (
	"bytes"
	"io"
	"math/rand/v2"
	"os"
	"strings"
	"testing"
	"time"
)

// source draws small numbers from fuzz bytes; past their end it draws zeros.
type source struct{ b []byte }

func (r *source) n(below int) int {
	if len(r.b) == 0 {
		return 0
	}
	v := int(r.b[0])
	r.b = r.b[1:]
	return v % below
}

func (r *source) yes() bool { return r.n(2) == 1 }
func (r *source) id() JobID { return JobID(r.n(24)) }

func (r *source) node() NodeName { return nodeName(r.n(5)) } // n4 does not exist at first

func (r *source) resv() string { return []string{"r1", "r2", "", "a,b"}[r.n(4)] }

func (r *source) set(below int) (s IDSet) {
	for range r.n(4) {
		s = s.Union(NewIDSet(r.n(below)))
	}
	return s
}

func (r *source) ref() Ref {
	ref := Ref{Job: r.id()}
	if r.yes() {
		ref.Tasks = r.set(8)
	}
	return ref
}

func (r *source) span() time.Duration { return time.Duration(r.n(40)-4) * 15 * time.Second }

func (r *source) depends() (d Depends) {
	kinds := []DependType{After, AfterAny, AfterOK, AfterNotOK, AfterCorr, AfterBurst, ExpandJob, SingletonOf, "junk"}
	d.Any = r.yes()
	for range r.n(3) {
		t := Depend{Type: kinds[r.n(len(kinds))], Job: r.id(), Task: r.n(5) - 1, Plus: r.span(), Failed: r.yes()}
		if t.Type == SingletonOf {
			t.Job = 0
		}
		d.Terms = append(d.Terms, t)
	}
	return d
}

func (r *source) spec(now time.Time) *JobSpec {
	s := &JobSpec{Name: string(rune('a' + r.n(3))), UID: uint32(1000 + r.n(2)),
		User: []string{"alice", "bob"}[r.n(2)], Kind: Kind(r.n(3)), JobFlags: JobFlags{Hold: r.n(6) == 0},
		Reservation: []string{"", "", "", "r1", "r2"}[r.n(5)], QOS: []string{"", "q", "normal"}[r.n(3)],
		Partitions: []string{"two", "main"}[:r.n(3)], Nice: r.n(5) - 1, Limit: r.span(),
		Layout: &Layout{MinNodes: r.n(4), Tasks: r.n(4)}}
	if r.yes() {
		s.Array = &ArraySpec{Tasks: r.set(6), Limit: r.n(3)}
	}
	if r.yes() {
		s.Depends = r.depends()
	}
	if r.n(4) == 0 {
		s.Begin = now.Add(r.span())
	}
	if r.n(4) == 0 {
		s.Deadline = now.Add(r.span())
	}
	if r.n(3) == 0 {
		s.Script = HashBlob([]byte{byte('0' + r.n(3))})
	}
	if r.n(3) == 0 {
		v := r.yes()
		s.Requeue, s.KillInvalidDepend = &v, &v
	}
	return s
}

func (r *source) decision() Decision {
	d := Decision{Job: r.id(), Task: r.n(7) - 1}
	if r.n(5) == 0 {
		d.Wait = WaitPriority
		return d
	}
	switch r.n(6) {
	case 0:
		d.Resume = true
		return d
	case 1, 2:
		d.Evict = []JobID{r.id(), r.id()}[:1+r.n(2)]
		d.Partition = []string{"main", "two", "junk"}[r.n(3)]
		d.Wait = WaitResources
		for k := range r.n(3) {
			d.With = append(d.With, Decision{
				Job: d.Job + JobID(k) + 1, Task: TaskAny, Evict: []JobID{r.id()}[:r.n(2)],
				Partition: d.Partition, Wait: WaitResources,
			})
		}
		return d
	}
	d.Start = &Alloc{Partition: []string{"main", "two"}[r.n(2)]}
	for range 1 + r.n(2) {
		d.Start.Shares = append(d.Start.Shares, Share{
			Node: r.node(), CPUs: r.set(9), GPUs: r.set(3), MemMB: MemMB(r.n(40)-2) * 100,
		})
	}
	return d
}

func (r *source) update(s *State) Update {
	kinds := []UpdateKind{NodeReady, NodeDone, BatchOver, LaunchFailed, StepNow, JobLost, "junk"}
	u := Update{Kind: kinds[r.n(len(kinds))], Job: r.id(), Exit: ExitStatus{Code: r.n(3)}, OOM: r.n(9) == 0}
	if j, ok := s.Job(u.Job); ok && r.n(8) > 0 {
		u.Attempt = j.Attempt
	}
	if r.n(4) > 0 {
		u.Step = &Step{ID: StepID{u.Job, r.n(4) - 1}, Attempt: u.Attempt, Started: s.Now}
		if r.yes() {
			u.Step.Ended = s.Now
		}
	}
	return u
}

func (r *source) accounts() Command {
	name := func() string { return []string{"root", "a", "b", "c"}[r.n(4)] }
	c := &ChangeAccounts{}
	for range 1 + r.n(3) {
		x := Change{Delete: r.n(4) == 0, Reset: r.n(8) == 0}
		if r.n(8) == 0 {
			x.Usage = &Spent{Raw: float64(r.n(99))}
		}
		switch r.n(4) {
		case 0:
			x.Account = &Account{Name: name()}
		case 1:
			x.User = &User{Name: []string{"alice", "bob"}[r.n(2)], DefaultAccount: name()}
		case 2:
			x.QOS = &QOS{
				Name: []string{"normal", "q"}[r.n(2)], Priority: r.n(9), UsageFactor: 1.5,
				GraceTime: max(r.span(), 0), Preempt: []string{"normal", "q"}[:r.n(3)],
			}
		default:
			x.Assoc = &Association{
				Account: name(), User: []string{"", "alice", "bob"}[r.n(3)], Parent: AssocID(r.n(6)),
				Shares: r.n(9) - 1,
			}
		}
		c.Changes = append(c.Changes, x)
	}
	return c
}

func (r *source) command(s *State) Command {
	kinds := Kinds()
	switch kinds[r.n(len(kinds))] {
	case "put_blob":
		text := BlobText{byte('0' + r.n(3))}
		return &PutBlob{Hash: HashBlob(text), Text: text}
	case "submit":
		return &Submit{Spec: r.spec(s.Now)}
	case "take_turns":
		return &TakeTurns{}
	case "submit_het":
		c := &SubmitHet{}
		for range 1 + r.n(3) {
			one := r.spec(s.Now)
			if len(c.Specs) > 0 {
				one.UID, one.Kind, one.Script = c.Specs[0].UID, c.Specs[0].Kind, ""
			}
			c.Specs = append(c.Specs, one)
		}
		return c
	case "update":
		d, limit, n := r.depends(), r.span(), r.n(4)
		p := Patch{}
		for _, set := range []func(){func() { p.Depends = &d }, func() { p.Limit = &limit },
			func() { p.ArrayLimit = &n }, func() { p.MinNodes = &n },
			func() { p.Nice = &n }, func() { at := s.Now.Add(r.span()); p.Deadline = &at },
			func() { p.Mem = &Mem{Per: MemPerNode, MB: MemMB(r.n(4)) * 500} }} {
			if r.n(3) == 0 {
				set()
			}
		}
		return &UpdateJob{Ref: r.ref(), Patch: p, Runs: true, Memory: true}
	case "hold":
		return &HoldJobs{Ref: r.ref(), Hold: Hold(r.n(3))}
	case "requeue":
		return &Requeue{Ref: r.ref(), Hold: r.yes(), SpecialExit: r.yes()}
	case "suspend":
		return &Suspend{Ref: r.ref(), Resume: r.yes()}
	case "cancel":
		return &Cancel{Ref: r.ref(), Sig: r.n(3) * 5, Scope: SignalScope(r.n(3))}
	case "finish":
		return &Finish{Job: r.id(), Exit: ExitStatus{Code: r.n(2)}}
	case "decide":
		c := &Decide{}
		for range 1 + r.n(3) {
			c.Decisions = append(c.Decisions, r.decision())
		}
		return c
	case "report":
		n := r.node()
		c := &Report{Node: n, Seq: uint64(r.n(6))}
		if old, ok := s.Node(n); ok {
			c.Seq += old.ReportSeq
		}
		for range r.n(4) {
			c.Updates = append(c.Updates, r.update(s))
		}
		return c
	case "expire":
		return &Expire{
			Jobs: []JobID{r.id(), r.id()},
			Why:  []Reason{EndTimeLimit, EndDeadline, WaitDependencyNever, EndPreempted, "junk"}[r.n(5)],
		}
	case "purge":
		return &Purge{Jobs: []JobID{r.id(), r.id()}, Blobs: []BlobHash{HashBlob([]byte{byte('0' + r.n(3))}), ""}}
	case "node_up":
		inv := smallNode()
		inv.CPUs -= r.n(3)
		inv.GPUs = inv.GPUs[:r.n(3)]
		inv.BootID = string(rune('a' + r.n(3)))
		return &NodeUp{Name: r.node(), Inventory: inv, Seq: uint64(r.n(4))}
	case "node_create":
		return &NodeCreate{
			Nodes: []Node{
				{
					Name: r.node(), Inventory: smallNode(),
					Expected: []Expected{ExpectedCloud, ExpectedFuture, "junk"}[r.n(3)],
				},
			},
		}
	case "node_delete":
		return &NodeDelete{Nodes: []NodeName{r.node()}}
	case "node_reboot":
		return &NodeReboot{
			Nodes: []NodeName{r.node()}, Asap: r.yes(),
			Next: []NodeAction{"", NodeResume, NodeSetDown, "junk"}[r.n(4)], Cancel: r.n(4) == 0,
		}
	case "node_reboot_due":
		return &NodeRebootDue{Issue: []NodeName{r.node()}, Late: []NodeName{r.node()}}
	case "node_resume_due":
		return &NodeResumeDue{Nodes: []NodeName{r.node()}}
	case "node_down":
		return &NodeDown{Nodes: []NodeName{r.node(), r.node()}}
	case "node_set":
		why := "test"
		return &NodeSet{
			Nodes: []NodeName{r.node()}, Reason: &why,
			Action: []NodeAction{NodeDrain, NodeResume, NodeSetDown, NodeFail, ""}[r.n(5)],
		}
	case "reservation_put":
		at := s.Now.Add(time.Duration(r.n(100)-50) * time.Minute)
		return &ReservationPut{Update: r.yes(),
			Reservation: Reservation{Name: r.resv(), Start: at, End: at.Add(time.Duration(r.n(100)) * time.Minute),
				Nodes:     []NodeName{r.node(), r.node()}[:r.n(3)],
				Partition: []string{"", "main", "junk"}[r.n(3)], Users: []string{"alice", "root"}[:r.n(3)],
				UsersNot: r.yes(), Accounts: []string{"physics"}[:r.n(2)], Flags: ResvFlags(r.n(1 << 20)),
				PurgeAfter: max(r.span(), 0), Count: r.n(3), Cores: []int{1, 2}[:r.n(3)],
				CPUs: []IDSet{r.set(8), r.set(8)}[:r.n(3)]}, Skip: r.n(8) == 0}
	case "reservation_drop":
		return &ReservationDrop{Name: r.resv()}
	case "reservation_nodes":
		return &ReservationNodes{Name: r.resv(), Drop: []NodeName{r.node()}, Add: []NodeName{r.node()}}
	case "reservations_due":
		return &ReservationsDue{Names: []string{r.resv(), r.resv()}}
	case "partition_set":
		return &PartitionSet{
			Partition: Partition{
				Name: []string{"main", "two"}[r.n(2)], All: true, State: PartitionUp, Default: r.yes(),
			},
			Delete: r.n(4) == 0,
		}
	case "account":
		return r.accounts()
	case "decay":
		return &Decay{}
	case "top":
		return &TopJobs{Refs: []Ref{r.ref(), r.ref()}}
	default:
		cfg := DefaultConfig()
		cfg.Priority = PriorityConfig{Multifactor: r.yes(), MaxAge: time.Hour, HalfLife: r.span(),
			CalcPeriod: r.span(), IncrOnly: r.yes(), NoFairTree: r.yes(),
			Weights: PriorityWeights{Age: 100, FairShare: uint32(r.n(200)), Size: 10, Partition: 7}}
		cfg.Partitions[0].PriorityTier = r.n(3)
		cfg.MinJobAge, cfg.RequeueDelay, cfg.MaxJobID = r.span(), max(r.span(), 0), JobID(r.n(60))
		cfg.RebootProgram = "reboot"
		cfg.Preempt = PreemptConfig{Type: []PreemptType{PreemptTier, PreemptQOS, PreemptNone}[r.n(3)],
			Exempt: max(r.span(), 0),
			Mode:   []string{"REQUEUE", "CANCEL", "SUSPEND", "CANCEL,WITHIN", "OFF", "junk"}[r.n(6)]}
		cfg.Partitions[0].GraceTime = []time.Duration{0, time.Minute}[r.n(2)]
		cfg.Partitions = append(cfg.Partitions, Partition{Name: "two", All: true, State: PartitionUp, PriorityTier: 2})
		return &Configure{Config: &cfg}
	}
}

// play runs a session drawn from bytes on two states.
func play(t testing.TB, data []byte) {
	r := &source{data}
	w := newWorld(t, 4)
	twin := newWorld(t, 4)
	who := []Identity{root, sys, alice, bob}
	for range 60 {
		if len(r.b) == 0 {
			break
		}
		w.pass(max(r.span(), 0) / 4)
		twin.now = w.now
		by := who[r.n(len(who))]
		cmds := []Command{r.command(w.s)}
		if r.n(6) == 0 {
			cmds = append(cmds, Due(w.s.Snapshot(), w.now)...)
		}
		for _, c := range cmds {
			w.apply(by, c)
			twin.apply(by, c)
		}
	}
	if content(t, w.s) != content(t, twin.s) {
		t.Fatal("two states fed the same entries differ")
	}
}

func FuzzApply(f *testing.F) {
	r := rand.New(rand.NewPCG(7, 7))
	for range 8 {
		b := make([]byte, 600)
		for i := range b {
			b[i] = byte(r.Uint32())
		}
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, data []byte) { play(t, data) })
}

// TestApplyRandom is a fixed piece of what FuzzApply explores.
func TestApplyRandom(t *testing.T) {
	rounds := 150
	if testing.Short() {
		rounds = 20
	}
	r := rand.New(rand.NewPCG(11, 3))
	for range rounds {
		b := make([]byte, 900)
		for i := range b {
			b[i] = byte(r.Uint32())
		}
		play(t, b)
	}
}

func FuzzDecodeEntry(f *testing.F) {
	for _, k := range Kinds() {
		f.Add([]byte(`{"v":1,"kind":"` + k + `","at":"2026-03-01T08:00:00Z","by":{"uid":0},"body":{"ref":{"job":1},"node":"n0","seq":9,"jobs":[1]}}`))
	}
	f.Add([]byte(`{"v":1,"kind":"decide","at":"2026-03-01T08:00:00Z","by":{},"body":{"decisions":[{"job":1,"task":-1,"start":{"shares":[{"node":"n0","cpus":"0-3"}]}}]}}`))
	f.Add([]byte(`{"v":2,"kind":"cancel"}`))
	for line := range bytes.Lines(newestGolden(f, "log")) {
		f.Add(bytes.TrimSuffix(line, []byte("\n")))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		if huge(text) {
			return
		}
		e, err := DecodeEntry(text)
		if err != nil {
			return
		}
		again, err := EncodeEntry(e)
		if err != nil {
			return // e.g. a year that JSON cannot write
		}
		back, err := DecodeEntry(again)
		if err != nil {
			t.Fatalf("%s does not read back: %v", again, err)
		}
		third, err := EncodeEntry(back)
		if err != nil || !bytes.Equal(third, again) {
			t.Fatalf("%s\nreads back as\n%s", again, third)
		}
		w := newWorld(t, 2)
		id := w.submit(nil)
		w.run(id, 0, "n0")
		before := content(t, w.s)
		e.At = epoch
		if out := w.s.Apply(e); out.Err != nil && content(t, w.s) != before {
			t.Fatalf("refused %s changed the state", text)
		}
		if err := w.s.Check(); err != nil {
			t.Fatal(err)
		}
	})
}

// FuzzDecode: no bytes of a snapshot end the process, and a state that is read is written and read again as the same.
func FuzzDecode(f *testing.F) {
	text := newestGolden(f, "state")
	head, rest, _ := bytes.Cut(text, []byte("\n"))
	f.Add(text[:0])
	f.Add(head)
	for line := range bytes.Lines(rest) {
		f.Add(line)
		f.Add(append(bytes.Clone(line), line...))
	}
	f.Fuzz(func(t *testing.T, rest []byte) {
		if huge(rest) {
			return
		}
		s, err := Decode(io.MultiReader(bytes.NewReader(head), strings.NewReader("\n"), bytes.NewReader(rest)))
		if err != nil {
			return
		}
		var texts [3]bytes.Buffer // a list of none in a struct of zeros is lost once
		for i := range texts {
			if err := s.Snapshot().Encode(&texts[i]); err != nil {
				return // e.g. a year that JSON cannot write
			}
			if s, err = Decode(bytes.NewReader(texts[i].Bytes())); err != nil {
				t.Fatalf("%s is not read back: %v", texts[i].Bytes(), err)
			}
		}
		if !bytes.Equal(texts[1].Bytes(), texts[2].Bytes()) {
			t.Fatalf("%s\nreads back as\n%s", texts[1].Bytes(), texts[2].Bytes())
		}
	})
}

// newestGolden is a part of the newest golden log.
func newestGolden(f *testing.F, part string) (text []byte) {
	for n := 0; ; n++ {
		next, err := os.ReadFile(golden(n, part))
		if err != nil {
			return text
		}
		text = next
	}
}

// huge reports whether a text may name sets of millions, which take their time.
func huge(text []byte) bool {
	return len(text) > 8192 || bytes.Contains(text, []byte("000")) && bytes.Contains(text, []byte("-")) && bytes.Count(text, []byte("0")) > 200
}
