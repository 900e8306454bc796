package cluster

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"dev.muster/cluster/federation"
)

// A log that some version of muster has written must be read by all later ones, and mean the same.
// testdata has generations of it, golden.0, golden.1, …: .log are entries as the log holds them, one a
// line, .snapshot is the state half way through, .state the state at the end. A generation that was once
// released never changes; -update adds one if the story below gives another log than the newest.
var update = flag.Bool("update", false, "write a new generation of testdata/golden")

const goldenFiles = "testdata/golden."

// generations counts those that there are: the newest is one less.
func generations(t *testing.T) int {
	t.Helper()
	logs, err := filepath.Glob(goldenFiles + "*.log")
	if err != nil {
		t.Fatal(err)
	}
	return len(logs)
}

func golden(n int, part string) string { return fmt.Sprintf("%s%d.%s", goldenFiles, n, part) }

func readGolden(t *testing.T, n int, part string) []byte {
	t.Helper()
	text, err := os.ReadFile(golden(n, part))
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// replay applies entries that follow what a state has: entry i has index i+1.
func replay(t *testing.T, s *State, log [][]byte) {
	t.Helper()
	for i, line := range log {
		if uint64(i) < s.Index {
			continue
		}
		e, err := DecodeEntry(line)
		if err != nil {
			t.Fatalf("entry %d: %v", i+1, err)
		}
		e.Index = uint64(i + 1)
		if out := s.Apply(e); out.Err != nil && out.Err.Code == Internal {
			t.Fatalf("entry %d: %v", i+1, out.Err)
		}
	}
	if err := whole(t, s); err != nil {
		t.Fatal(err)
	}
}

func encoded(t *testing.T, s *State) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := s.Snapshot().Encode(&b); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// TestGolden replays every generation, from the beginning and from its snapshot.
func TestGolden(t *testing.T) {
	count := generations(t)
	if *update {
		count = writeGolden(t, count)
	}
	if count == 0 {
		t.Fatal("no golden log: go test ./cluster -run TestGolden -update")
	}
	for n := range count {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			log, want := linesOf(readGolden(t, n, "log")), readGolden(t, n, "state")
			for i, line := range log {
				e, err := DecodeEntry(line)
				if err != nil {
					t.Fatalf("entry %d: %v", i+1, err)
				}
				again, err := EncodeEntry(e)
				if err != nil {
					t.Fatal(err)
				}
				if err := kept(line, again); err != nil {
					t.Errorf("entry %d is read without something: %v\n%s", i+1, err, line)
				}
			}
			s := NewState()
			replay(t, s, log)
			sameState(t, "the log", want, encoded(t, s))
			half, err := Decode(bytes.NewReader(readGolden(t, n, "snapshot")))
			if err != nil {
				t.Fatal(err)
			}
			sameState(t, "the snapshot itself", readGolden(t, n, "snapshot"), encoded(t, half))
			replay(t, half, log)
			sameState(t, "the snapshot and what follows", want, encoded(t, half))
		})
	}
}

// TestGoldenComplete wants every kind of entry in the newest generation, and that one to be what is
// written now.
func TestGoldenComplete(t *testing.T) {
	newest := generations(t) - 1
	missing := map[string]bool{}
	for _, k := range Kinds() {
		missing[k] = true
	}
	log := readGolden(t, newest, "log")
	for _, line := range linesOf(log) {
		e, err := DecodeEntry(line)
		if err != nil {
			t.Fatal(err)
		}
		delete(missing, e.Cmd.kind())
	}
	if len(missing) > 0 {
		t.Errorf("the newest golden log lacks %v: add them to goldenStory, then go test ./cluster -run TestGolden -update",
			slices.Sorted(maps.Keys(missing)))
	}
	if !bytes.Equal(log, unlines(goldenStory(t))) {
		t.Errorf("goldenStory gives another log than generation %d: if the format was meant to grow, go test ./cluster -run TestGolden -update",
			newest)
	}
}

func linesOf(text []byte) [][]byte {
	return bytes.Split(bytes.TrimSuffix(text, []byte("\n")), []byte("\n"))
}
func unlines(log [][]byte) []byte { return append(bytes.Join(log, []byte("\n")), '\n') }

// writeGolden adds a generation if the newest is not what is written now, and counts them.
func writeGolden(t *testing.T, count int) int {
	t.Helper()
	log := goldenStory(t)
	if count > 0 && bytes.Equal(readGolden(t, count-1, "log"), unlines(log)) {
		return count
	}
	half, all := NewState(), NewState()
	replay(t, half, log[:len(log)/2])
	replay(t, all, log)
	for part, text := range map[string][]byte{
		"log": unlines(log), "snapshot": encoded(t, half), "state": encoded(t, all),
	} {
		if err := os.WriteFile(golden(count, part), text, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return count + 1
}

// sameState compares two encoded states line by line: everything that the older version wrote must be
// there; fields that it did not know may stand beside.
func sameState(t *testing.T, what string, want, got []byte) {
	t.Helper()
	w, g := linesOf(want), linesOf(got)
	if len(w) != len(g) {
		t.Fatalf("%s gives %d records, want %d", what, len(g), len(w))
	}
	for i := range w {
		if err := kept(w[i], g[i]); err != nil {
			t.Errorf("%s: %v\nwant %s\ngot  %s", what, err, w[i], g[i])
		}
	}
}

// kept tells what of an older JSON text is not in a newer one.
func kept(old, now []byte) error {
	var a, b any
	if err := json.Unmarshal(old, &a); err != nil {
		return err
	}
	if err := json.Unmarshal(now, &b); err != nil {
		return err
	}
	return keptAt("", a, b)
}

func keptAt(at string, old, now any) error {
	switch o := old.(type) {
	case map[string]any:
		n, ok := now.(map[string]any)
		if !ok {
			break
		}
		for k, v := range o {
			if err := keptAt(at+"."+k, v, n[k]); err != nil {
				return err
			}
		}
		return nil
	case []any:
		n, ok := now.([]any)
		if !ok || len(n) != len(o) {
			break
		}
		for i := range o {
			if err := keptAt(fmt.Sprintf("%s[%d]", at, i), o[i], n[i]); err != nil {
				return err
			}
		}
		return nil
	default:
		if old == now {
			return nil
		}
	}
	return fmt.Errorf("%s was %v and is %v", strings.TrimPrefix(at, "."), old, now)
}

// goldenStory is a life of a cluster in which every kind of entry occurs. It uses nothing random.
func goldenStory(t *testing.T) [][]byte {
	w := newWorld(t, 3)
	goldenTrust(w)
	goldenResize(w)
	goldenMemory(w)
	goldenHet(w)
	goldenHooks(w)
	goldenResilience(w)
	goldenPower(w)
	goldenRetain(w)
	goldenJobs(w)
	goldenNodes(w)
	goldenAccounts(w)
	goldenPreempt(w)
	goldenTurns(w)
	goldenLeaves(w)
	goldenBurnin(w)
	goldenAmend(w)
	goldenPreemptSet(w)
	goldenCron(w)
	goldenPeers(w)
	goldenTokens(w)
	goldenTriggers(w)
	goldenPrefetch(w)
	goldenBurst(w)
	goldenExpand(w)
	goldenFederation(w)
	goldenResume(w)
	goldenNoKill(w)
	goldenAudit(w)
	goldenImport(w)
	goldenSpares(w)
	return w.log
}

// goldenImport is the history of another cluster.
func goldenImport(w *world) {
	first := importOf(w.t, 0, 1, importedJob(700_000))
	first.Steps = append(first.Steps, encodedText(w.t, &Step{ID: StepID{700_000, BatchStep}, Attempt: 1_700_000_000, Name: "batch",
		Imported: &ImportedStep{State: 3, TRESAlloc: "cpu=4", In: ImportedUse{Ave: "cpu=10"}}}))
	first.Gap = 1000
	w.ok(root, first)
	last := importOf(w.t, 1, 2, importedJob(700_001))
	last.Import.Over = true
	last.Import.Refused = 1
	last.Resvs = append(last.Resvs, encodedText(w.t, importedResv()))
	w.ok(root, last)
}

// goldenAudit is an operator's and a user's change, a login and a machine that joined.
func goldenAudit(w *world) {
	from := func(id Identity, origin, login string) Identity {
		id.Origin, id.Login = origin, login
		return id
	}
	id := w.submit(nil)
	w.ok(from(root, "host:s1", "root"), &HoldJobs{Ref: Ref{Job: id}, Hold: HeldAdmin})
	w.ok(from(alice, "token:t1@192.0.2.7", ""), &Cancel{Ref: Ref{Job: id}})
	w.ok(from(alice, "page:192.0.2.8", ""), &AuditNote{Action: "page login", Object: "page", New: "link"})
}

// goldenResume is a node that was resumed at its time, and one that is to be.
func goldenResume(w *world) {
	why, soon, later := "a while", time.Minute, time.Hour
	for _, s := range []*NodeSet{
		{Nodes: []NodeName{"image"}, Action: NodeDrain, Reason: &why, ResumeAfter: &soon},
		{Nodes: []NodeName{"burst"}, Action: NodeDrain, Reason: &why, ResumeAfter: &later},
	} {
		w.ok(root, s)
	}
	w.pass(2 * time.Minute)
	w.ok(sys, &NodeResumeDue{Nodes: []NodeName{"image", "burst"}})
}

// goldenPrefetch is a job whose node has got its image, and one whose node gets it.
func goldenPrefetch(w *world) {
	w.ok(sys, &NodeUp{Name: "image", Inventory: smallNode()})
	cfg := *w.s.Config()
	cfg.Containers.Global = true
	w.ok(root, &Configure{Config: &cfg})
	w.run(w.submit(prefetching), 0, "image")
	w.start(w.submit(prefetching), TaskAny, 1, "image")
}

// goldenBurst are jobs with burst buffers: one stages in, one is prepared, one stages out, one has failed and one is
// cancelled in a hurry.
func goldenBurst(w *world) {
	w.ok(sys, &NodeUp{Name: "burst", Inventory: smallNode()})
	cfg := *w.s.Config()
	cfg.Burst = &BurstConfig{Directive: "BB_LUA", StageIn: time.Hour, StageOut: time.Hour, Other: time.Minute}
	w.ok(root, &Configure{Config: &cfg})
	id := w.submit(staged)
	w.waits(id)
	w.called(id, CallSetup, "")
	w.start(w.stagedIn(nil), TaskAny, 0, "burst")
	id = w.start(w.stagedIn(nil), TaskAny, 1, "burst")
	w.called(id, CallPreRun, "", "BB=/x")
	w.report("burst", id, NodeReady)
	w.over(id, 0)
	id = w.submit(staged)
	w.waits(id)
	w.called(id, CallSetup, "no space")
	id = w.running(2, "burst")
	w.ok(alice, &Cancel{Ref: Ref{Job: id}, Hurry: true})
	w.report("burst", id, NodeDone)
}

// goldenFederation is a job that another cluster has run, one that it holds, and one of it that was granted and given
// back.
func goldenFederation(w *world) {
	cfg := *w.s.config
	cfg.ClusterName = "alpha"
	w.ok(root, &Configure{Config: &cfg})
	w.ok(root, &PeerPut{
		Peer: PeerCluster{Name: "beta", URLs: "http://h:1", Send: "s", Accept: strings.Repeat("0a", 32)},
	})
	w.ok(root, &FederationPut{Record: twoMembers(1)})
	over, held := sharedSubmit(w, 1, 2), sharedSubmit(w, 2)
	for _, id := range []JobID{over, held} {
		w.ok(sys, &FederationReports{
			From: 2, Rows: []FederationReport{{Job: id, Report: federation.Report{Asks: true}}},
		})
	}
	w.ok(sys, &FederationReports{From: 2,
		Rows: []FederationReport{{Job: over, Outcome: Failed, Exit: ExitStatus{Code: 3},
			Report: federation.Report{Phase: federation.Ended, Grant: 1}}}})
	w.ok(alice, &Cancel{Ref: Ref{Job: held}})
	spec := AsAsked(w.job(held))
	far := JobID(federation.ID(2).Number(1))
	w.ok(sys, &FederationOrders{From: 2, Index: 7, Rows: []FederationOrder{{Job: far, Spec: &spec, Hash: "h", By: alice,
		Submitted: w.now, Order: federation.Order{Viable: federation.SetOf(1, 2), Holder: 1, Grant: 1}}}})
	w.ok(sys, &FederationReturn{Jobs: []JobID{far}})
	w.ok(sys, &FederationAway{ID: 2, Away: true})
	child := w.submit(func(s *JobSpec) {
		s.Depends.Terms = []Depend{{Type: AfterOK, Job: far, Task: TaskAny}, {Type: AfterAny, Job: far, Task: TaskAny}}
	})
	w.ok(sys, &FederationParents{From: 2, Rows: []ParentTerm{
		{Term: Depend{Type: AfterOK, Job: far, Task: TaskAny}, Never: true},
		{Term: Depend{Type: AfterAny, Job: far, Task: TaskAny}},
	}})
	if !w.job(child).DependNever() {
		w.t.Errorf("job %d: %+v", child, w.job(child).Depends)
	}
}

// goldenTriggers is a trigger of each kind: one was met and its program is to be run, one is met and not due yet.
func goldenTriggers(w *world) {
	set := func(g Trigger) { w.ok(root, &TriggerSet{Trigger: g}) }
	set(Trigger{
		Program: "/a", Permanent: true, Events: []TriggerEvent{TriggerDown, TriggerFail},
		Nodes: []NodeName{"n0"},
	})
	set(Trigger{Events: []TriggerEvent{TriggerIdle}, Offset: time.Hour, Program: "/b x"})
	set(Trigger{Events: []TriggerEvent{TriggerLeaderLost}, Program: "/c"})
	set(Trigger{Events: []TriggerEvent{TriggerReconfig}, Program: "/d"})
	set(Trigger{Events: []TriggerEvent{TriggerFini}, Job: w.submit(nil), Program: "/e"})
	w.ok(root, &TriggerClear{ID: 4})
	w.ok(sys, &TriggerServer{Events: []TriggerEvent{TriggerLeaderLost}})
	why := "why"
	w.ok(root, &NodeSet{Nodes: []NodeName{"n0"}, Action: NodeSetDown, Reason: &why})
	w.ok(sys, &TriggersDue{})
	w.pass(triggerGather)
	w.ok(sys, &TriggersDue{})
}

// goldenTokens is a key of users' tokens that was rotated, and tokens that were ended.
func goldenTokens(w *world) {
	w.ok(sys, &JWTKey{Key: UserKey{ID: "a", Secret: make([]byte, userKeyBytes)}, First: true})
	w.ok(root, &JWTKey{Key: UserKey{ID: "b", Secret: make([]byte, userKeyBytes)}, Cut: true})
	w.ok(root, &JWTKey{Key: UserKey{ID: "c", Secret: make([]byte, userKeyBytes)}})
	w.ok(root, &JWTEnd{User: "alice"})
	w.ok(root, &JWTEnd{User: "bob", Token: "t", Until: w.now.Add(time.Hour)})
	w.ok(alice, &SessionEnd{EndedSession{ID: "a", UID: alice.UID, Until: w.now.Add(time.Hour)}})
}

// goldenPeers is a cluster that is made a peer, and one that was.
func goldenPeers(w *world) {
	hash := strings.Repeat("0a", 32)
	w.ok(root, &PeerPut{Peer: PeerCluster{Name: "beside", Accept: hash, Root: true}})
	w.ok(sys, &PeerPut{
		Peer: PeerCluster{Name: "beside", Accept: hash, Root: true, URLs: "http://10.0.0.9:7480", Send: "secret"},
	})
	w.ok(root, &PeerPut{Peer: PeerCluster{Name: "gone"}})
	w.ok(root, &PeerDrop{Name: "gone"})
}

// goldenCron is a crontab whose job runs, is to begin again and is ended.
func goldenCron(w *world) {
	cfg := *w.s.config
	keys := map[string]string{"scronparameters": "enable"}
	for k, v := range cfg.Keys {
		keys[k] = v
	}
	cfg.Keys = keys
	w.ok(root, &Configure{Config: &cfg})
	spec := &JobSpec{
		Layout: &Layout{}, Name: "cron", UID: alice.UID, GID: alice.GID, User: "alice", Kind: Batch,
		Timing: Timing{Cron: &Cron{When: "0 * * * *"}},
	}
	id := w.ok(alice, &CrontabPut{
		UID: alice.UID, Text: "@hourly true\n", Jobs: []CronJob{{spec, 1, 1}},
	}).Result.([]JobID)[0]
	w.ok(alice, &Requeue{Ref: Ref{Job: id}})
	w.ok(sys, &CronNext{Begins: []CronBegin{{id, w.now.Add(time.Hour)}}})
	w.ok(alice, &Cancel{Ref: Ref{Job: id}, Cron: true})
}

func goldenTrust(w *world) {
	key := strings.Repeat("0a", 32)
	member := func(name string, role Role) Member {
		return Member{
			Name: name, Role: role, Key: key[:62] + fmt.Sprintf("%02d", len(name)),
			Public: []byte("public key of " + name), Addr: "10.0.0.1:7440",
		}
	}
	w.ok(sys, &TrustInit{
		CA:     CA{ClusterID: "golden", Cert: "certificate", Key: "secret", Gossip: [][]byte{make([]byte, 32)}},
		Member: member("s1", RoleServer),
	})
	for _, k := range []Token{
		{ID: "nodes", Role: RoleNode, Uses: 5, Hollow: true},
		{ID: "spare", Role: RoleServer, Uses: 1, Replace: true},
	} {
		k.Verifier, k.Expires = key, w.now.Add(24*time.Hour)
		w.ok(root, &TokenPut{Token: k})
	}
	w.pass(time.Second)
	for _, name := range []string{"n0", "n1", "n22"} {
		w.ok(sys, &MemberJoin{Token: "nodes", Member: member(name, RoleNode)})
	}
	w.ok(root, &TokenRevoke{ID: "spare"})
	w.refused(alice, &TokenRevoke{ID: "nodes"}, ErrAccess)
	w.ok(sys, &MemberMove{Name: "n0", Addr: "10.0.0.7:7440"})
	w.ok(root, &MemberRevoke{Name: "n22"})
	w.ok(sys, &GossipRotate{Key: bytes.Repeat([]byte{7}, 32)})
}

func goldenJobs(w *world) {
	text, env := BlobText("#!/bin/sh\necho \"é\x00\n"), BlobText("PATH=/bin\x00HOME=/root\x00")
	w.ok(alice, &PutBlob{Hash: HashBlob(text), Text: text})
	w.ok(alice, &PutBlob{Hash: HashBlob(env), Text: env})
	scripted := func(s *JobSpec) {
		s.Script = HashBlob(text)
		s.Env = HashBlob(env)
		s.Limit = time.Hour
		s.WorkDir = "/home/alice"
		s.Stdout = "slurm-%j.out"
		s.PerNode = []GRES{{Name: "gpu", Type: "h100", Count: 1}}
		s.Mem = Mem{Per: MemPerNode, MB: 100}
		s.Account = "team"
		s.MailType = []string{"END"}
	}
	plain := w.run(w.submit(scripted), 0, "n0")
	array := w.submit(func(s *JobSpec) {
		scripted(s)
		s.Array = &ArraySpec{
			Tasks: RangeIDSet(0, 4), Limit: 2, Text: "0-4%2",
		}
	})
	task := w.start(array, 1, 1, "n0")
	waits := w.submit(func(s *JobSpec) {
		s.Depends = Depends{
			Terms: []Depend{{Type: AfterOK, Job: plain, Task: TaskAny}, {Type: SingletonOf, Task: TaskAny}},
		}
	})
	w.pass(time.Minute)
	limit, name, nice := 2*time.Hour, "renamed", 3
	w.ok(alice, &UpdateJob{Ref: Ref{Job: waits}, Patch: Patch{Limit: &limit, Name: &name, Nice: &nice}})
	w.ok(alice, &HoldJobs{Ref: Ref{Job: waits}, Hold: HeldUser})
	w.ok(sys, &Decide{Decisions: []Decision{{Job: array, Wait: WaitResources, StartsAt: w.now.Add(time.Hour)}}})
	w.seq["n0"]++
	w.ok(sys, &Report{Node: "n0", Seq: w.seq["n0"], Updates: []Update{{Kind: StepNow, Job: plain, Attempt: 1, At: w.now,
		Step: &Step{ID: StepID{plain, 0}, Attempt: 1, Name: "train", UID: alice.UID, User: "alice",
			Tasks: 2, Started: w.now, Ports: "12000-12002,12007",
			Shares: []Share{{Node: "n0", CPUs: NewIDSet(0), MemMB: 100, Tasks: 2}}}}}})
	w.ok(root, &Suspend{Ref: Ref{Job: plain}})
	w.pass(time.Minute)
	w.ok(root, &Suspend{Ref: Ref{Job: plain}, Resume: true})
	w.ok(alice, &Cancel{Ref: Ref{Job: plain}, Sig: 10, Scope: SignalFull})
	w.report("n0", task, NodeReady)
	w.ok(alice, &Cancel{Ref: Ref{Job: task}})
	w.report("n0", task, NodeDone)
	alloc := w.run(w.submit(func(s *JobSpec) { s.Kind = Allocation }), 2, "n1", "n2")
	w.ok(alice, &Finish{Job: alloc, Exit: ExitStatus{Code: 4}})
	w.report("n1", alloc, NodeDone)
	w.report("n2", alloc, NodeDone)
	again := w.run(w.submit(nil), 3, "n1")
	w.ok(alice, &Requeue{Ref: Ref{Job: again}, Hold: true})
	w.report("n1", again, NodeDone)
	w.over(w.run(w.submit(nil), 4, "n2"), 9)
	late := w.run(w.submit(func(s *JobSpec) { s.Limit = time.Minute }), 5, "n2")
	w.pass(10 * time.Minute)
	w.due()
	w.report("n2", late, NodeDone)
	w.run(w.submit(nil), 6, "n2")
}

func goldenNodes(w *world) {
	cfg := *w.s.Config()
	cfg.ClusterName, cfg.Keys = "golden", map[string]string{"clustername": "golden"}
	cfg.Declared = []Node{{Name: "d0", Inventory: smallNode()}}
	cfg.Topology = []Switch{{Name: "leaf", Nodes: []NodeName{"n0", "n1"}}}
	w.ok(root, &Configure{Config: &cfg})
	w.ok(root, &PartitionSet{
		Partition: Partition{Name: "short", Nodes: []NodeName{"n0", "n1"}, State: PartitionUp,
			PartitionLimits: PartitionLimits{MaxTime: time.Hour}},
	})
	w.ok(sys, &NodeQuiet{Nodes: []NodeName{"n1"}, Quiet: true})
	why, weight := "disk", 5
	w.ok(root, &NodeSet{
		Nodes: []NodeName{"n0"}, Action: NodeDrain, Reason: &why, Weight: &weight,
		Features: &[]string{"red"},
	})
	w.ok(sys, &NodeDown{Nodes: []NodeName{"n2"}, Why: "Not responding", Keep: true})
	w.ok(sys, &NodeUp{Name: "n1", Inventory: smallNode(), Seq: w.seq["n1"], Owner: "n1"})
	w.ok(sys, &Purge{})
	w.ok(sys, &NodeTell{
		Node: "n1", NextJob: 7, Unknown: []JobID{9},
	}) // in a state that was never restored it means nothing
	goldenAdmin(w)
	goldenReservations(w)
}

func goldenReservations(w *world) {
	now := w.now
	put := func(name string, in, long time.Duration, change func(*Reservation)) {
		r := Reservation{
			Name: name, Start: now.Add(in), End: now.Add(in + long), Nodes: []NodeName{"n0", "n1"},
			Users: []string{"alice"}, Flags: ResvOverlap | ResvSpecNodes,
		}
		change(&r)
		w.ok(root, &ReservationPut{Reservation: r})
	}
	put("once", 0, time.Minute, func(r *Reservation) { r.Flags |= ResvIgnoreJobs | ResvMaint })
	put("daily", time.Hour, time.Hour, func(r *Reservation) { r.Flags |= ResvDaily; r.Accounts = []string{"physics"} })
	put("idle", time.Hour, time.Hour, func(r *Reservation) { r.PurgeAfter = time.Minute; r.Count = 2 })
	put("gone", time.Hour, time.Hour, func(r *Reservation) {
		r.Groups = []string{"users"}
		r.GIDs = []uint32{100}
		r.UsersNot = true
	})
	w.ok(root, &ReservationDrop{Name: "gone"})
	put("some", time.Hour, time.Hour, func(r *Reservation) { r.Count, r.Flags = 2, ResvOverlap|ResvReplace })
	w.ok(root, &ReservationNodes{Name: "some", Drop: []NodeName{"n1"}})
	put("cores", time.Hour, time.Hour, func(r *Reservation) {
		r.Cores = []int{2, 1}
		r.CPUs = []IDSet{NewIDSet(0, 1), NewIDSet(0)}
		r.Flags = ResvOverlap | ResvSpecNodes | ResvFirstCores
	})
	put("gpus", time.Hour, time.Hour, func(r *Reservation) {
		r.GRES = []GRES{{Name: "gpu", Count: 1}}
		r.PerNode = true
		r.CPUs = []IDSet{NewIDSet(2), NewIDSet(2)}
		r.GPUs = []IDSet{NewIDSet(0), NewIDSet(1)}
	})
	w.pass(2 * time.Minute)
	w.due()
}

func goldenAdmin(w *world) {
	w.ok(root, &NodeCreate{
		Nodes: []Node{
			{Name: "x0", Expected: ExpectedCloud, Inventory: smallNode()},
			{Name: "x1", Expected: ExpectedFuture, Inventory: smallNode()},
		},
	})
	w.ok(root, &NodeDelete{Nodes: []NodeName{"x1"}})
	cfg := *w.s.Config()
	cfg.RebootProgram, cfg.ResumeTimeout = "/sbin/reboot", time.Minute
	w.ok(root, &Configure{Config: &cfg})
	less := smallNode()
	less.GPUs, less.BootID = less.GPUs[:1], "one"
	w.ok(sys, &NodeUp{Name: "x0", Inventory: less})
	w.ok(root, &NodeReboot{Nodes: []NodeName{"x0", "n1"}, Asap: true, Next: NodeResume, Reason: "kernel"})
	w.due()
	less.BootID = "two"
	w.ok(sys, &NodeUp{Name: "x0", Inventory: less})
	w.pass(time.Minute)
	w.due() // the other one is late
	w.ok(root, &NodeReboot{Nodes: []NodeName{"x0"}})
}

func goldenAccounts(w *world) {
	cfg := *w.s.Config()
	cfg.Priority = PriorityConfig{Multifactor: true, MaxAge: time.Hour, HalfLife: time.Hour,
		CalcPeriod: time.Minute, UsageReset: ResetYearly,
		Weights: PriorityWeights{
			Age: 1000, Assoc: 10, FairShare: 5000, Size: 100, Partition: 10, QOS: 20,
			TRES: []Amount{{"cpu", 3}, {"gres/gpu", 5}},
		}}
	cfg.Enforce, cfg.UserTop = Enforce{Associations: true, QOS: true, Limits: true, WCKeys: true}, true
	cfg.Partitions = append(cfg.Partitions, Partition{Name: "billed", All: true, State: PartitionUp,
		PriorityTier: 2, PriorityJobFactor: 3,
		BillingWeights: []Amount{{"cpu", 1.5}, {"mem", .25 / 1024}, {"gres/gpu", 7}}})
	w.ok(root, &Configure{Config: &cfg})
	limits := Limits{}.With(Limit{Name: "GrpTRES", TRES: "gres/gpu", Max: 8}).With(Limit{Name: "MaxJobs", Max: 100})
	w.ok(root, &ChangeAccounts{Changes: []Change{{
		QOS: &QOS{
			Name: "high", Priority: 10, UsageFactor: .5, Flags: []string{"DenyOnLimit"},
			Preempt: []string{"normal"},
		},
	},
		{Account: &Account{Name: "team", Description: "a team"}},
		{Assoc: &Association{Account: "team", Shares: 3, Limits: limits}},
		{
			User: &User{
				Name: "alice", DefaultAccount: "team", WCKeys: []WCKey{{Name: "proj1"}, {Name: "proj2"}},
				DefaultWCKey: "proj1",
			},
		},
		{
			Assoc: &Association{
				Account: "team", User: "alice", Shares: 2, Priority: 4, QOS: []string{"normal", "high"},
				DefaultQOS: "high",
			},
		}}})
	w.refused(alice, &ChangeAccounts{Changes: []Change{{Account: &Account{Name: "other"}}}}, ErrAccess)
	billed := func(s *JobSpec) { s.Partitions = []string{"billed"} }
	w.due()
	w.ok(sys, &NodeUp{Name: "y0", Inventory: smallNode()})
	first := w.run(w.submit(billed), 7, "y0")
	waits, last := w.submit(billed), w.submit(billed)
	w.pass(90 * time.Second)
	w.due()
	w.ok(alice, &TopJobs{Refs: []Ref{{Job: last}}})
	site := 3
	w.ok(root, &UpdateJob{Ref: Ref{Job: waits}, Patch: Patch{Site: &site}})
	w.pass(time.Minute)
	w.over(first, 0)
	w.pass(time.Minute)
	w.due()
}

func goldenPreempt(w *world) {
	cfg := *w.s.Config()
	cfg.Preempt = PreemptConfig{Type: PreemptTier, Mode: "REQUEUE", Exempt: time.Second, Youngest: true, Reorders: 2}
	for _, name := range []string{"CANCEL", "GANG,SUSPEND"} {
		cfg.Partitions = append(cfg.Partitions, Partition{Name: name, All: true, State: PartitionUp, PreemptMode: name})
	}
	cfg.Partitions[0].GraceTime = time.Minute
	w.ok(root, &Configure{Config: &cfg})
	w.ok(sys, &NodeUp{Name: "z0", Inventory: smallNode()})
	runs := func(cpu int, part string) JobID {
		id := w.submit(func(s *JobSpec) { s.Partitions = []string{part} })
		w.ok(sys, &Decide{
			Decisions: []Decision{
				{
					Job: id, Task: TaskAny,
					Start: &Alloc{
						Partition: part,
						Shares:    []Share{{Node: "z0", CPUs: NewIDSet(cpu), MemMB: 100, Tasks: 1}},
					},
				},
			},
		})
		w.report("z0", id, NodeReady)
		w.want(id, Running)
		return id
	}
	kind, gone, asleep := runs(0, "main"), runs(1, "CANCEL"), runs(2, "GANG,SUSPEND")
	job := w.submit(func(s *JobSpec) { s.Partitions = []string{"billed"} })
	w.pass(time.Minute)
	for _, refused := range []bool{false, true} {
		out := w.ok(sys, &Decide{Decisions: []Decision{{Job: job, Task: TaskAny, Wait: WaitResources,
			StartsAt: w.now, Nodes: []NodeName{"z0"},
			Evict: []JobID{kind, gone, asleep}, Partition: "billed"}}}).Result.([]*Error)[0]
		if (out != nil) != refused {
			w.t.Fatalf("eviction: %v", out)
		}
	}
	w.pass(time.Minute)
	w.due()
	w.report("z0", kind, NodeDone)
	w.report("z0", gone, NodeDone)
	w.ok(sys, &Decide{Decisions: []Decision{{Job: asleep, Task: TaskAny, Resume: true}}})
	w.want(kind, Pending)
	w.want(gone, Ended)
	w.want(asleep, Running)
}

// goldenPreemptSet has jobs leave for a heterogeneous one in a reservation, and heterogeneous ones leave.
func goldenPreemptSet(w *world) {
	w.ok(sys, &NodeUp{Name: "z3", Inventory: smallNode()})
	nodes := []NodeName{"z0", "z3"}
	w.ok(root, &ReservationPut{Reservation: Reservation{Name: "lent", Start: w.now,
		End: w.now.Add(time.Hour), Nodes: nodes[1:], Users: []string{"alice"},
		Flags: ResvOverlap, MaxStartDelay: time.Minute}})
	set := func(change func(int, *JobSpec)) JobID {
		lead := w.submitHet(2, change)
		d := w.setOf(lead, 3)
		d.Start.Shares[0].Node, d.With[0].Start.Shares[0].Node = nodes[0], nodes[1]
		if err := w.decide(d); err != nil {
			w.t.Fatal(err)
		}
		for k, n := range nodes {
			w.report(n, lead+JobID(k), NodeReady)
		}
		return lead
	}
	leaves := set(func(_ int, s *JobSpec) { s.Signal = Signal{Num: 10, Before: 30 * time.Second, Reservation: true} })
	lead := w.submitHet(2, func(k int, s *JobSpec) {
		s.Partitions = []string{"billed"}
		if k == 1 {
			s.Partitions, s.Reservation = []string{"main"}, "lent"
		}
	})
	w.pass(time.Minute)
	if err := w.decide(Decision{Job: lead, Task: TaskAny, Wait: WaitResources, Partition: "billed", With: []Decision{
		{Job: lead + 1, Task: TaskAny, Wait: WaitResources, Partition: "main", Reservation: "lent", Evict: []JobID{leaves}}}}); err != nil {
		w.t.Fatal(err)
	}
	w.phases(leaves, "22")
	w.pass(30 * time.Second)
	w.due()
	for k, n := range nodes {
		w.report(n, leaves+JobID(k), NodeDone)
	}
	w.phases(leaves, "00")
}

func goldenTurns(w *world) {
	cfg := *w.s.Config()
	cfg.Preempt.TurnLength = time.Minute
	cfg.Partitions = append(cfg.Partitions, Partition{
		Name: "turns", All: true, State: PartitionUp, PreemptMode: "GANG", OverSubscribe: "FORCE:2",
	})
	w.ok(root, &Configure{Config: &cfg})
	w.ok(sys, &NodeUp{Name: "z1", Inventory: smallNode()})
	runs := func() JobID {
		id := w.submit(func(s *JobSpec) { s.Partitions = []string{"turns"} })
		w.ok(sys, &Decide{Decisions: []Decision{{Job: id, Task: TaskAny, Start: &Alloc{Partition: "turns", Over: 2,
			Shares: []Share{{Node: "z1", CPUs: NewIDSet(0, 1), MemMB: 100, Tasks: 1}}}}}})
		w.report("z1", id, NodeReady)
		return id
	}
	first, second := runs(), runs()
	w.due()
	w.want(second, Suspended)
	w.pass(time.Minute)
	w.due()
	w.want(first, Suspended)
	w.want(second, Running)
}

func goldenHet(w *world) {
	lead := w.submitHet(3, nil)
	w.startHet(lead, 4)
	w.ok(alice, &Cancel{Ref: Ref{Job: lead + 2}})
	w.ok(alice, &Requeue{Ref: Ref{Job: lead}})
	for k := range 3 {
		w.report(nodeName(k), lead+JobID(k), NodeDone)
	}
	w.ok(alice, &HoldJobs{Ref: Ref{Job: lead, Part: 2}, Hold: HeldUser})
}

// goldenHooks has programs run at the server, and messages that wait or were sent.
func goldenHooks(w *world) {
	cfg := *w.s.Config()
	cfg.PrologServer = "/etc/prolog"
	cfg.EpilogServer = "/etc/epilog"
	cfg.MailProg = "/bin/mail"
	cfg.MailDomain = "x.org"
	cfg.ServerUser = "slurm"
	w.ok(root, &Configure{Config: &cfg})
	node := nodeName(0)
	id := w.start(w.submit(func(s *JobSpec) {
		s.MailType = []string{"BEGIN", "TIME_LIMIT_50"}
		s.MailUser = "alice@x.org"
		s.Notify = "https://x.org/a"
		s.Limit = 10 * time.Minute
	}), TaskAny, 6, node)
	for e := range w.s.Hooks() {
		if e.Kind == HookProlog {
			w.ok(sys, &HooksDone{Ends: []HookEnd{{ID: e.ID}}})
		}
	}
	w.report(node, id, NodeReady)
	w.pass(6 * time.Minute)
	w.ok(sys, &Remind{Jobs: []JobID{id}})
	w.over(id, 1)
	w.ok(sys, &HooksDone{Ends: []HookEnd{{ID: w.s.LastHook - 1, Failed: "exit status 1"}}})
}

// goldenPower has nodes of the cloud that come, do not come, and go.
func goldenPower(w *world) {
	cfg := *w.s.Config()
	cfg.PrologServer, cfg.EpilogServer = "", ""
	cfg.Power = PowerConfig{Resume: "/on", Suspend: "/off", ResumeFail: "/late", After: 1000 * time.Hour,
		Leaving: time.Minute, ResumeRate: 9, SuspendRate: 9,
		ExceptNodes: []NodeName{"n0"}, ExceptParts: []string{"short"}}
	cfg.Declared = append(slices.Clone(cfg.Declared), Node{
		Name: "c0", Inventory: smallNode(), Expected: ExpectedCloud,
	}, Node{Name: "c1", Inventory: smallNode(), Expected: ExpectedCloud})
	w.ok(root, &Configure{Config: &cfg})
	id := w.start(w.submit(nil), TaskAny, 0, "c0")
	w.ok(root, &NodeSet{Nodes: []NodeName{"c1"}, Action: NodePowerUp})
	w.due()
	w.ok(sys, &NodeUp{Name: "c0", Inventory: smallNode()})
	w.report("c0", id, NodeReady)
	w.pass(10 * time.Minute)
	w.due()
	w.over(id, 0)
	w.ok(root, &NodeSet{Nodes: []NodeName{"c0"}, Action: NodePowerDown})
	w.due()
	w.pass(2 * time.Minute)
	w.due()
	w.start(w.submit(nil), TaskAny, 0, "c1")
}

// goldenRetain has history forgotten and loaded, and a QOS with a budget.
func goldenRetain(w *world) {
	cfg := *w.s.Config()
	cfg.Retention = Retention{
		Dir:   "/archive",
		Rules: []RetainRule{{JobRecords, Age{2, AgeMonths}, true}, {UsageRecords, Age{400, AgeDays}, false}},
	}
	cfg.JobComp = JobComp{Kind: "filetxt", Loc: "/comp"}
	w.ok(root, &Configure{Config: &cfg})
	w.ok(alice, &Cancel{Ref: Ref{Job: w.submit(nil)}})
	w.ok(sys, &Retain{})
	w.ok(sys, &HooksDone{Ends: []HookEnd{{ID: w.s.LastHook}}})
	j := w.job(w.submit(nil))
	ended := *j
	ended.Phase, ended.Outcome, ended.Ended = Ended, Completed, w.now
	w.ok(root, &LoadHistory{
		Records: []Archived{{Job: &ended, Seq: 3}, {Step: &Step{ID: StepID{Job: ended.ID}, Name: "s", Started: w.now}}},
	})
	at := w.now.Unix()
	w.ok(root, &LoadHistory{Records: []Archived{{
		Event: &NodeSpan{Node: "n0", From: at - 9, To: at, Down: true, Reason: "broken"},
	},
		{Resv: &ResvSpan{Name: "r", From: at - 9, To: at, Users: []string{"alice"}}},
		{Change: &Transaction{At: w.now, Action: "Add Users", Actor: "root", Where: "name='alice'"}}}})
	w.ok(root, &Retain{
		Retention{
			Script: "/bin/archive",
			Rules: []RetainRule{
				{EventRecords, Age{5, AgeHours}, true}, {ResvRecords, Age{5, AgeHours}, true},
				{StepRecords, Age{5, AgeHours}, true}, {TxnRecords, Age{5, AgeDays}, false},
			},
		},
	})
	w.ok(root, &ChangeAccounts{Changes: []Change{{QOS: &QOS{Name: "gold", UsageFactor: 1, UsageReset: ResetMonthly}}}})
	used := Spent{Raw: 9, Wall: 3, TRES: []Amount{{"cpu", 2}}}
	w.ok(root, &ChangeAccounts{Changes: []Change{{QOS: &QOS{Name: "gold", UsageFactor: 1}, Usage: &used}}})
}

func goldenLeaves(w *world) {
	cfg := *w.s.Config()
	cfg.SpecUse, cfg.CompleteWait, cfg.CompleteLocal = true, time.Minute, true
	w.ok(root, &Configure{Config: &cfg})
	w.ok(sys, &NodeUp{Name: "z2", Inventory: smallNode()})
	cores, threads := 1, 2
	id := w.submit(func(s *JobSpec) { s.ThreadSpec, s.Sharing = &threads, ShareExclusive })
	w.ok(root, &UpdateJob{Ref: Ref{Job: id}, Patch: Patch{ThreadSpec: &threads}})
	w.ok(root, &UpdateJob{Ref: Ref{Job: id}, Patch: Patch{CoreSpec: &cores}})
	start := func(usable IDSet) *Error {
		return w.ok(sys, &Decide{
			Decisions: []Decision{
				{
					Job: id, Task: TaskAny,
					Start: &Alloc{
						Partition: "main",
						Shares:    []Share{{Node: "z2", CPUs: RangeIDSet(0, 3), Usable: usable, MemMB: 100, Tasks: 1}},
					},
				},
			},
		}).Result.([]*Error)[0]
	}
	if out := start(RangeIDSet(0, 99)); out == nil {
		w.t.Fatal("a job may use CPUs that its node has not")
	}
	if out := start(RangeIDSet(0, 2)); out != nil {
		w.t.Fatal(out)
	}
	w.report("z2", id, NodeReady)
	w.want(id, Running)
}
