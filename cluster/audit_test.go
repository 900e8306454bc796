package cluster

import (
	"bytes"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
	"time"
)

// from returns an identity whose commands come from host s1.
func from(id Identity) Identity {
	id.Origin = "host:s1"
	return id
}

// TestAuditRows: each kind of command is shown by the audit trail, or left out for a reason.
func TestAuditRows(t *testing.T) {
	reasons := map[string]string{}
	for _, u := range unaudited {
		if reasons[u.kind] != "" || u.why == "" || newCommand(u.kind) == nil {
			t.Errorf("the row of %s: twice, without a reason, or of no command", u.kind)
		}
		reasons[u.kind] = u.why
	}
	r := rand.New(rand.NewPCG(1, 2))
	for _, c := range commands {
		says := c.make()
		_, shown := says.(audited)
		if shown == (reasons[c.kind] != "") {
			t.Errorf("%s needs either a method audit or a row of unaudited", c.kind)
		}
		if !shown {
			continue
		}
		tx := &tx{tables: &NewState().tables, by: from(bob)}
		for range 50 {
			cmd := c.make()
			fillSome(r, reflect.ValueOf(cmd).Elem(), 0)
			if s, ok := cmd.(*Submit); ok && s.Spec == nil {
				s.Spec = &JobSpec{}
			}
			describeChange(tx, cmd) // nothing panics
		}
		if s, ok := says.(*Submit); ok {
			s.Spec = &JobSpec{}
		}
		if n, ok := says.(*AuditNote); ok {
			n.Action = "log level"
		}
		a := describeChange(tx, says)
		if a == nil || a.Action == "" || a.By == "" || a.Origin != "host:s1" {
			t.Errorf("%s is shown as %+v", c.kind, a)
		}
	}
}

// TestAudit makes changes as an operator, a user and the leader.
func TestAudit(t *testing.T) {
	w := newWorld(t, 1)
	id := w.submit(nil)
	ref := Ref{Job: id}
	priority, limit, why := uint32(7), 10*time.Minute, "broken"
	weight := 3
	cfg := DefaultConfig()
	part := cfg.Partitions[0]
	part.State = PartitionDown
	admin := from(root)
	admin.Login = "root"
	for _, c := range []struct {
		by   Identity
		cmd  Command
		want string // action|object|by|old|new
	}{
		{admin, &UpdateJob{Ref: ref, Patch: Patch{Priority: &priority, Limit: &limit}},
			"job update|job 1|root|user=alice limit=unlimited priority=4294901759|limit=10m0s priority=7"},
		{from(alice), &HoldJobs{Ref: ref, Hold: HeldUser}, "job hold|job 1|alice|user=alice|by user"},
		{from(alice), &HoldJobs{Ref: ref}, "job release|job 1|alice|user=alice|"},
		{sys, &NodeQuiet{Nodes: []NodeName{"n0"}}, ""},
		{root, &NodeSet{Nodes: []NodeName{"n0"}, Weight: &weight}, ""}, // without an origin
		{admin, &NodeSet{Nodes: []NodeName{"n0"}, Action: NodeDrain, Reason: &why},
			"node drain|node n0|root||reason=broken"},
		{admin, &NodeSet{Nodes: []NodeName{"n0"}, Action: NodeResume},
			"node resume|node n0|root|drained reason=broken|"},
		{admin, &PartitionSet{Partition: part}, "partition update|partition " + part.Name + "|root|state=UP|state=DOWN"},
		{from(alice), &Cancel{Ref: ref}, "job cancel|job 1|alice|user=alice|"},
		{admin, &AuditNote{Action: "server loglevel", Object: "server s1", New: "debug"},
			"server loglevel|server s1|root||debug"},
	} {
		out := w.ok(c.by, c.cmd)
		got := ""
		for _, e := range out.Events {
			if a := e.Audit; a != nil {
				got += strings.Join([]string{a.Action, a.Object, a.By, a.Old, a.New}, "|")
			}
		}
		if got != c.want {
			t.Errorf("%s: %s\nwant %s", c.cmd.kind(), got, c.want)
		}
	}
	before := len(w.s.Audits())
	w.refused(from(bob), &Cancel{Ref: ref}, ErrAccess)
	w.refused(alice, &AuditNote{Action: "server loglevel"}, "")
	if n := len(w.s.Audits()); n != before || n != 8 {
		t.Errorf("%d changes are recorded, were %d", n, before)
	}
	var text bytes.Buffer
	if err := w.s.Snapshot().Encode(&text); err != nil {
		t.Fatal(err)
	}
	again, err := Decode(&text)
	if err != nil || !reflect.DeepEqual(again.Audits(), w.s.Audits()) {
		t.Errorf("a snapshot does not keep the record: %v", err)
	}
}

// TestAuditBounds: users push out neither others' changes nor more than their share, and texts are cut.
func TestAuditBounds(t *testing.T) {
	s := NewState()
	index := uint64(0)
	apply := func(by Identity, cmd Command) {
		index++
		if out := s.Apply(Entry{Index: index, At: epoch, By: by, Cmd: cmd}); out.Err != nil {
			t.Fatal(out.Err)
		}
	}
	apply(sys, &RaiseLevel{Level: Newest})
	apply(from(root), &AuditNote{Action: "first", Object: "x"})
	long := strings.Repeat("ä\n", 9999)
	for range maxUserAudits + 10 {
		apply(from(alice), &AuditNote{Action: "page login", Object: long, Old: long, New: long})
	}
	list := s.Audits()
	if len(list) != maxUserAudits+1 || list[0].Action != "first" || list[1].N != 11 {
		t.Errorf("%d changes, the first %+v, %+v", len(list), list[0], list[1])
	}
	if a := list[len(list)-1]; len(a.Object) > maxAuditText || strings.Contains(a.Object, "\n") {
		t.Errorf("the object has %d bytes: %q", len(a.Object), a.Object)
	}
	for range maxAudits {
		apply(from(root), &AuditNote{Action: "later", Object: "x"})
	}
	list = s.Audits()
	if len(list) != maxUserAudits+maxAudits || list[len(list)-1].N != maxAudits+1 {
		t.Errorf("%d changes", len(list))
	}
	if list[0].Action == "first" {
		t.Error("the oldest change is still there")
	}
}
