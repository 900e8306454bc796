package agent

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"dev.muster/agent/trust"
	"dev.muster/api"
	"dev.muster/cluster"
)

// auditBook is a log of which the lines of the audit trail are kept.
type auditBook struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (b *auditBook) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

// lines returns the lines of the audit trail that contain all words.
func (b *auditBook) lines(words ...string) (out []string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for line := range strings.Lines(b.text.String()) {
		has := strings.Contains(line, "msg=audit ")
		for _, w := range words {
			has = has && strings.Contains(line, w)
		}
		if has {
			out = append(out, line)
		}
	}
	return out
}

// TestAuditTrail makes changes by each way into a server: the record and the log name the actor and the origin.
func TestAuditTrail(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		book := &auditBook{}
		b := newBubbleLog(t, "2x8c16g", time.Hour, slog.New(slog.NewTextHandler(book, nil)))
		defer b.api.Close()
		time.Sleep(time.Second)
		id := b.submitAs(1)
		time.Sleep(time.Second)
		ref := cluster.Ref{Job: id}
		priority, limit, why := uint32(7), time.Hour, "broken"
		nodes := []cluster.NodeName{"node1"}
		if n, err := api.Call(t.Context(), b.api, api.ListNodes, api.NodeQuery{}); err == nil && len(n.Nodes) > 0 {
			nodes[0] = n.Nodes[0].Name
		}
		part := cluster.DefaultConfig().Partitions[0]
		part.State = cluster.PartitionDown
		begin := time.Now().Add(time.Hour)
		resv := cluster.ReservationPut{Reservation: cluster.Reservation{
			Name: "r", Nodes: nodes, Start: begin, End: begin.Add(time.Hour), Users: []string{"root"},
		}}
		here := "host:" + hostName()
		for _, c := range []struct {
			action, object string
			do             func() error
		}{
			{"job update", fmt.Sprintf("job %d", id), func() error {
				_, err := api.Call(t.Context(), b.api, api.UpdateJob,
					cluster.UpdateJob{Ref: ref, Patch: cluster.Patch{Priority: &priority, Limit: &limit}})
				return err
			}},
			{"job suspend", fmt.Sprintf("job %d", id), func() error {
				_, err := api.Call(t.Context(), b.api, api.SuspendJob, cluster.Suspend{Ref: ref})
				return err
			}},
			{"job resume", fmt.Sprintf("job %d", id), func() error {
				_, err := api.Call(t.Context(), b.api, api.SuspendJob, cluster.Suspend{Ref: ref, Resume: true})
				return err
			}},
			{"job requeue", fmt.Sprintf("job %d", id), func() error {
				_, err := api.Call(t.Context(), b.api, api.RequeueJob, cluster.Requeue{Ref: ref})
				return err
			}},
			{"job hold", fmt.Sprintf("job %d", id), func() error {
				time.Sleep(time.Second)
				_, err := api.Call(t.Context(), b.api, api.HoldJob, cluster.HoldJobs{Ref: ref, Hold: cluster.HeldAdmin})
				return err
			}},
			{"job release", fmt.Sprintf("job %d", id), func() error {
				_, err := api.Call(t.Context(), b.api, api.HoldJob, cluster.HoldJobs{Ref: ref})
				return err
			}},
			{"job cancel", fmt.Sprintf("job %d", id), func() error {
				_, err := api.Call(t.Context(), b.api, api.CancelJob, cluster.Cancel{Ref: ref})
				return err
			}},
			{"node drain", "node " + string(nodes[0]), func() error {
				_, err := api.Call(t.Context(), b.api, api.SetNodes,
					cluster.NodeSet{Nodes: nodes, Action: cluster.NodeDrain, Reason: &why})
				return err
			}},
			{"node resume", "node " + string(nodes[0]), func() error {
				_, err := api.Call(t.Context(), b.api, api.SetNodes,
					cluster.NodeSet{Nodes: nodes, Action: cluster.NodeResume})
				return err
			}},
			{"partition update", "partition " + part.Name, func() error {
				_, err := api.Call(t.Context(), b.api, api.SetPartition, cluster.PartitionSet{Partition: part})
				return err
			}},
			{"reservation create", "reservation r", func() error {
				time.Sleep(10 * time.Second) // of the bubble: the cancelled job has left its node
				_, err := api.Call(t.Context(), b.api, api.PutReservation, resv)
				return err
			}},
			{"reservation delete", "reservation r", func() error {
				_, err := api.Call(t.Context(), b.api, api.DropReservation, cluster.ReservationDrop{Name: "r"})
				return err
			}},
			{"accounts change", "Accounts name='a'", func() error {
				_, err := api.Call(t.Context(), b.api, api.ChangeAccounts, cluster.ChangeAccounts{
					Changes: []cluster.Change{{Account: &cluster.Account{Name: "a"}}}})
				return err
			}},
			{"config reconfigure", "configuration", func() error {
				_, err := api.Call(t.Context(), b.api, api.Reconfigure, api.Empty{})
				return err
			}},
			{"server loglevel", "server s1", func() error {
				_, err := api.Call(t.Context(), b.api, api.SetLogLevel, api.LogLevelRequest{Level: "info"})
				return err
			}},
			{"token rotate", "key ", func() error {
				_, err := api.Call(t.Context(), b.api, api.RotateJWT, api.JWTRotation{})
				return err
			}},
			{"token create", "token ", func() error {
				_, err := api.Call(t.Context(), b.api, api.MakeUserToken, api.UserTokenRequest{})
				return err
			}},
			{"token end", "tokens of root", func() error {
				_, err := api.Call(t.Context(), b.api, api.EndJWT, api.JWTEndRequest{})
				return err
			}},
		} {
			if err := c.do(); err != nil { // a bubble has no subtests
				t.Errorf("%s: %v", c.action, err)
				continue
			}
			wantAudit(t, b, book, c.action, c.object, "root", here)
		}
	})
}

// wantAudit wants a change in the record and in the log.
func wantAudit(t *testing.T, b *bubble, book *auditBook, action, object, by, origin string) {
	t.Helper()
	r, err := api.Call(t.Context(), b.api, api.ListAudit, api.AuditQuery{Action: action, Object: object})
	if err != nil || len(r.Changes) == 0 {
		t.Errorf("%s of %s is not in the record: %v", action, object, err)
		return
	}
	a := r.Changes[len(r.Changes)-1]
	if a.By != by || a.Origin != origin {
		t.Errorf("%s: by %q from %q, want %q from %q", action, a.By, a.Origin, by, origin)
	}
	if len(book.lines("action=", action, "by="+by, "origin="+origin)) == 0 {
		t.Errorf("%s is not in the log: %v", action, book.lines())
	}
}

// TestAuditPage: logins and changes by the page name the visitor's address; users see only their own changes, and
// refused calls have ten lines per minute.
func TestAuditPage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		book := &auditBook{}
		b := newBubbleLog(t, "1x8c16g", time.Hour, slog.New(slog.NewTextHandler(book, nil)))
		defer b.api.Close()
		time.Sleep(time.Second)
		v := b.visitor(0)
		wantAudit(t, b, book, "page login", "page of s1", "root", "page:192.0.2.1")
		v.ask("POST", "/logout", url.Values{"csrf": {v.csrf("/queue")}})
		wantAudit(t, b, book, "page logout", "page session", "root", "page")
		id := b.submitAs(1)
		list := func(uid uint32) []*cluster.Audit {
			r, err := api.CallAs(t.Context(), b.handler.callAs, as(uid), api.ListAudit, api.AuditQuery{})
			if err != nil {
				t.Fatal(err)
			}
			return r.Changes
		}
		ref := cluster.Ref{Job: id}
		for range 50 {
			_, err := api.CallAs(t.Context(), b.handler.callAs, as(2), api.CancelJob, cluster.Cancel{Ref: ref})
			if e := new(cluster.Error); !errors.As(err, &e) || e.Code != cluster.Denied {
				t.Fatalf("another user's job: %v", err)
			}
		}
		if lines := book.lines("outcome=refused", "uid=2"); len(lines) != refusalLines {
			t.Errorf("50 refused calls have %d lines", len(lines))
		}
		time.Sleep(time.Minute)
		_, _ = api.CallAs(t.Context(), b.handler.callAs, as(2), api.CancelJob, cluster.Cancel{Ref: ref})
		if lines := book.lines("outcome=refused", "uid=2", "omitted=40"); len(lines) != 1 {
			t.Errorf("the refused calls without a line are counted in %d lines", len(lines))
		}
		_, err := api.CallAs(t.Context(), b.handler.callAs, as(1), api.CancelJob, cluster.Cancel{Ref: ref})
		if err != nil {
			t.Fatal(err)
		}
		if own := list(1); len(own) != 1 || own[0].Action != "job cancel" || own[0].UID != 1 {
			t.Errorf("a user sees %d changes", len(own))
		}
		if other, all := list(2), list(0); len(other) != 0 || len(all) != 3 {
			t.Errorf("another user sees %d changes, root %d", len(other), len(all))
		}
	})
}

// TestVouchedOrigin: a server may name the origin of its callers, other members may not.
func TestVouchedOrigin(t *testing.T) {
	for _, c := range []struct {
		role          cluster.Role
		by, via, says string
		want          string
	}{
		{cluster.RoleServer, "s2", "", "", "host:s2@192.0.2.1"},
		{cluster.RoleServer, "s2", "", "page:192.0.2.9", "page:192.0.2.9"},
		{cluster.RoleServer, "s2", "login1", "host:login1@192.0.2.5", "host:login1@192.0.2.5"},
		{cluster.RoleServer, "s2", "login1", "", "host:login1@192.0.2.1"},
		{cluster.RoleLogin, "login1", "", "host:s1", "host:login1@192.0.2.1"},
		{cluster.RoleNode, "n1", "", "", "host:n1@192.0.2.1"},
	} {
		a := &trust.Assertion{By: c.by}
		a.Via, a.Origin = c.via, c.says
		if got := vouchedOrigin(a, c.role, "192.0.2.1"); got != c.want {
			t.Errorf("%+v: %s", c, got)
		}
	}
}
