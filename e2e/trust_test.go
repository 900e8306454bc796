package e2e

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"dev.muster/agent/trust"
	"dev.muster/api"
	"dev.muster/cluster"
)

// rogue calls members with the credentials of one of them, as somebody who has broken into it could.
type rogue struct{ creds *trust.Credentials }

func (r rogue) Credentials() *trust.Credentials { return r.creds }

func newRogue(t *testing.T, g *group, name string) rogue {
	t.Helper()
	c, err := trust.Load(filepath.Join(g.at[name].dir, "d", "trust"))
	if err != nil {
		t.Fatal(err)
	}
	return rogue{c}
}

func (r rogue) client(addr, proto string) *api.Client {
	conf := trust.ClientTLS(r, proto, cluster.RoleServer, cluster.RoleNode)
	return &api.Client{Dial: func(ctx context.Context) (api.Conn, error) {
		return (&tls.Dialer{Config: conf}).DialContext(ctx, "tcp", addr)
	}}
}

// call makes one call with a vouch header and returns the error of the answer.
func call[Q, R any](c *api.Client, e api.Endpoint[Q, R], vouch string, q Q) error {
	body, err := json.Marshal(q)
	if err != nil {
		return err
	}
	return post(c, e.Method, e.Path, vouch, body)
}

func post(c *api.Client, method, path, vouch string, body []byte) error {
	ctx, cancel := context.WithTimeout(context.Background(), patience(10*time.Second))
	defer cancel()
	r, err := c.Forward(ctx, api.Request{Method: method, Path: path, Vouch: vouch, Body: body})
	status, reply := r.Status, r.Body
	if err != nil || status == 200 {
		return err
	}
	var e api.Error
	if err := json.Unmarshal(reply, &e); err != nil {
		return err
	}
	return &e
}

// vouched makes a call for a user.
func vouched[Q, R any](r rogue, c *api.Client, e api.Endpoint[Q, R], u trust.User, q Q) error {
	body, err := json.Marshal(q)
	if err != nil {
		return err
	}
	vouch, err := r.creds.Vouch(u, e.Method+" "+e.Path, body, time.Now())
	if err != nil {
		return err
	}
	return post(c, e.Method, e.Path, vouch, body)
}

func submission(uid uint32) api.SubmitRequest {
	return api.SubmitRequest{
		Spec: cluster.JobSpec{
			Layout: &cluster.Layout{}, UID: uid, GID: uid, Name: "rogue", WorkDir: "/", Stdout: "/dev/null",
		},
		Script: cluster.BlobText("#!/bin/sh\n"),
	}
}

func hollowNode(name cluster.NodeName) api.RegisterRequest {
	return api.RegisterRequest{Nodes: []cluster.NodeUp{{Name: name,
		Inventory: cluster.Inventory{CPUs: 1, MemMB: 1024, Sockets: 1,
			CoresPerSocket: 1, ThreadsPerCore: 1, Hollow: true}}}}
}

// TestTrust does what must be refused, with the real credentials of a member. Users 1 and 2 are those
// that every Unix has.
func TestTrust(t *testing.T) {
	t.Parallel()
	if os.Getuid() != 0 {
		t.Skip("needs root: it acts as several users")
	}
	g := newGroup(t)
	g.join("s2", "s1")
	for _, c := range []string{"c1", "c2"} {
		g.join(c, "s1", "--hollow", "1x8c16g", "--hollow-prefix", c+"-", "--hollow-exec")
	}
	g.add("l1", "client", "--login", "--join", g.bind("s1"), "--token", g.joins["login"])
	g.wait("both nodes", func() bool { return strings.Count(g.must("s1", "sinfo", "-hN", "-t", "idle"), "\n") == 1 })
	g.wait("the follower", func() bool { return g.leader("s2") == "s1" })
	job := func(uid uint32, node string) string {
		t.Helper()
		out, errs, rc := g.at["l1"].as(uid, "sbatch", "--parsable", "-w", node, "-o", "/dev/null", "--wrap",
			"sleep 100")
		if rc != 0 {
			t.Fatalf("user %d cannot submit on a login host: %s", uid, errs)
		}
		return strings.TrimSpace(out)
	}
	mine, other := job(1, "c1-001"), job(2, "c2-001")
	g.wait("both to run", func() bool { return strings.Count(g.must("s1", "squeue", "-h", "-t", "R"), "\n") == 1 })

	t.Run("calls", func(t *testing.T) { refusedCalls(t, g, other) })
	t.Run("tokens", func(t *testing.T) { tokensEverywhere(t, g) })
	t.Run("users", func(t *testing.T) { refusedUsers(t, g, mine) })
	t.Run("joins", func(t *testing.T) { refusedJoins(t, g) })
	t.Run("revoked", func(t *testing.T) { revokedMember(t, g) })
}

// refusedCalls are calls over the network by somebody who has c1's key.
func refusedCalls(t *testing.T, g *group, othersJob string) {
	r := newRogue(t, g, "c1")
	var foreign cluster.JobID
	if _, err := fmt.Sscan(othersJob, &foreign); err != nil {
		t.Fatal(err)
	}
	daemon, admin := trust.User{UID: 1, GID: 1, Name: "daemon"}, trust.User{UID: 1, GID: 1, Name: "daemon", Admin: true}
	bin, root := trust.User{UID: 2, GID: 2, Name: "bin"}, trust.User{Name: "root"}
	body, err := json.Marshal(submission(1))
	if err != nil {
		t.Fatal(err)
	}
	const submit = "POST /v1/jobs/submit"
	for _, at := range []string{"s1", "s2"} { // the leader, and a follower that forwards
		c := r.client(g.bind(at), trust.ProtoAPI)
		defer c.Close()
		once, err := r.creds.Vouch(daemon, submit, body, time.Now())
		if err != nil {
			t.Fatal(err)
		}
		for _, tc := range []struct {
			name string
			err  error
			want string // "" for success
		}{
			{
				"speak for another member", call(c, api.RegisterNodes, "member c2", hollowNode("c2-001")),
				"may not speak for member c2",
			},
			{
				"be a node of another member", call(c, api.RegisterNodes, "", hollowNode("c2-001")),
				"belongs to member c2",
			},
			{
				"be a node with another member's name", call(c, api.RegisterNodes, "", hollowNode("c2")),
				"may not be node c2",
			},
			{
				"report for another member's node",
				call(c, api.ReportWork, "", api.ReportRequest{Reports: []cluster.Report{{Node: "c2-001", Seq: 1000}}}),
				"does not belong to member c1",
			},
			{
				"ask for another member's work",
				call(c, api.GetWork, "", api.WorkRequest{Nodes: map[cluster.NodeName]uint64{"c2-001": 0}}),
				"does not belong to member c1",
			},
			{"act for root", vouched(r, c, api.SubmitJob, root, submission(0)), "only a server vouches for root"},
			{
				"act for an administrator", vouched(r, c, api.SubmitJob, admin, submission(1)),
				"only a server vouches for root",
			},
			{
				"act for a user without a job there", vouched(r, c, api.SubmitJob, bin, submission(2)),
				"users who have a job there now",
			},
			{"act for a user with a job there", vouched(r, c, api.SubmitJob, daemon, submission(1)), ""},
			{
				"submit as somebody else", vouched(r, c, api.SubmitJob, daemon, submission(2)),
				"may not submit for user 2",
			},
			{
				"cancel somebody else's job",
				vouched(r, c, api.CancelJob, daemon, cluster.Cancel{Ref: cluster.Ref{Job: foreign}}),
				"user",
			},
			{
				"make a token",
				vouched(r, c, api.CreateToken, daemon, api.TokenRequest{Role: cluster.RoleServer}),
				"only an operator",
			},
			{
				"revoke a member",
				vouched(r, c, api.RevokeMember, daemon, cluster.MemberRevoke{Name: "c2"}),
				"only an operator",
			},
			{
				"move the lead", vouched(r, c, api.TransferLead, daemon, api.ServerRequest{Name: "s2"}),
				"only an operator",
			},
			{"act for nobody in particular", post(c, "POST", "/v1/jobs/submit", "", body), "cannot be read"},
			{
				"alter a request", post(c, "POST", "/v1/jobs/submit", once, append([]byte(" "), body...)),
				"meant for another request",
			},
			{"make another request", post(c, "POST", "/v1/jobs/cancel", once, body), "meant for another request"},
			{"make a request", post(c, "POST", "/v1/jobs/submit", once, body), ""},
			{"make it again", post(c, "POST", "/v1/jobs/submit", once, body), "used before"},
			{
				"add a server",
				call(c, api.AddServer, "", api.ServerRequest{Name: "c1", Addr: g.bind("c1")}),
				"for servers only",
			},
			{"admit a member", call(c, api.AdmitMember, "", cluster.MemberJoin{}), "for servers only"},
			{"copy the history", post(c, "POST", api.CopyHistory, "", nil), "for servers only"},
			{"join over a member's connection", call(c, api.Join, "", api.JoinRequest{}), "machines that join"},
			{"speak to the log", post(r.client(g.bind(at), trust.ProtoRaft), "GET", "/", "", nil), "cannot reach"},
		} {
			refusal(t, g, at+": "+tc.name, tc.err, tc.want)
		}
	}
	c := r.client(g.bind("c2"), trust.ProtoAPI)
	defer c.Close()
	refusal(t, g, "signal a step on another node",
		vouched(r, c, api.SignalStep, bin, api.StepSignal{ID: cluster.StepID{Job: foreign}}),
		"may not vouch for user 2")
}

// refusal wants an error and a line of it in the log of the member that refused.
func refusal(t *testing.T, g *group, name string, err error, want string) {
	t.Helper()
	if want == "" || err == nil {
		if want != "" || err != nil {
			t.Errorf("%s: %v, want %q", name, err, want)
		}
		return
	}
	if !strings.Contains(err.Error(), want) {
		t.Errorf("%s: %v, want %q", name, err, want)
	}
	var e *api.Error
	if !errors.As(err, &e) {
		want = "the log is for servers"
	}
	g.wait("the log of a refusal: "+want, func() bool { // the caller may hear of it first
		for _, m := range g.at {
			for line := range strings.Lines(m.read("log")) {
				if strings.Contains(line, "refused") && strings.Contains(line, want) {
					return true
				}
			}
		}
		return false
	})
}

// refusedUsers are what users try on the local sockets of hosts.
func refusedUsers(t *testing.T, g *group, job string) {
	for _, tc := range []struct {
		name, at string
		uid      uint32
		args     []string
		want     string
	}{
		{"root on a login host", "l1", 0, []string{"sbatch", "--wrap", "true"}, "denied"},
		{"root on a compute node", "c2", 0, []string{"sbatch", "--wrap", "true"}, "denied"},
		{
			"a user on a compute node without a job there", "c2", 1,
			[]string{"sbatch", "-o", "/dev/null", "--wrap", "true"}, "denied",
		},
		{"another's job on a login host", "l1", 2, []string{"scancel", job}, "denied"},
		{"another's job on a server", "s2", 2, []string{"scancel", job}, "denied"},
		{"a token by a user", "s1", 2, []string{"muster", "token", "create"}, "only an operator"},
	} {
		out, errs, rc := g.at[tc.at].as(tc.uid, tc.args[0], tc.args[1:]...)
		if rc == 0 || !strings.Contains(errs, tc.want) {
			t.Errorf("%s: exit code %d, %s%s, want %q", tc.name, rc, out, errs, tc.want)
		}
	}
	if out, errs, rc := g.at["c2"].as(1, "squeue", "-h"); rc != 0 || !strings.Contains(out, job) {
		t.Errorf("a user on a compute node may not even look: %s%s", out, errs)
	}
}

// refusedJoins are machines that should not become members.
func refusedJoins(t *testing.T, g *group) {
	used := g.must("s1", "muster", "token", "create")
	late := g.must("s1", "muster", "token", "create", "--expires", "1ms")
	gone := g.must("s1", "muster", "token", "create")
	g.must("s1", "muster", "token", "revoke", gone)
	other := newGroup(t)
	wrong := used[:len(used)-4] + "0000"
	n := 0
	try := func(mode, name, token string) (string, int) {
		n++
		dir := filepath.Join(g.dir, fmt.Sprintf("try%d", n))
		_, errs, rc := g.run("s1", "muster", mode, "--data", dir, "--socket", dir+"/s", "--node", name,
			"--bind", g.addr(100+n), "--join", g.bind("s1"), "--token", token)
		return errs, rc
	}
	g.add("c9", "client", "--hollow", "1x1c1g", "--join", g.bind("s1"), "--token", used)
	for _, tc := range []struct{ name, mode, node, token, want string }{
		{"a wrong secret", "client", "x1", wrong, "the token is unknown"},
		{"a token that was used up", "client", "x2", used, "used up"},
		{"an expired token", "client", "x3", late, "expired"},
		{"a revoked token", "client", "x4", gone, "the token is unknown"},
		{"a token of another cluster", "client", "x5", other.joins["node"], "not the cluster of the token"},
		{"a server with a node's token", "server", "x6", g.joins["node"], "is for a client"},
		{"a member's name", "client", "c1", g.joins["node"], "is a member already"},
		{"a hollow node's name", "client", "c2-001", g.joins["node"], "is one of member c2"},
		{"a name that is none", "client", "../x", g.joins["node"], "cannot be a member's name"},
		{"no token", "client", "x7", "", "no join token"},
	} {
		errs, rc := try(tc.mode, tc.node, tc.token)
		if rc == 0 || !strings.Contains(errs, tc.want) {
			t.Errorf("%s: exit code %d, %s, want %q", tc.name, rc, errs, tc.want)
		}
	}
}

// revokedMember loses its connections, its nodes and its certificate.
func revokedMember(t *testing.T, g *group) {
	r := newRogue(t, g, "c2")
	ctx, cancel := context.WithTimeout(context.Background(), patience(time.Minute))
	defer cancel()
	open := map[string]api.Conn{}
	for _, at := range []string{"s1", "s2"} {
		conn, err := r.client(g.bind(at), trust.ProtoAPI).Dial(ctx)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		if _, err := api.Call(ctx, &api.Client{Dial: func(context.Context) (api.Conn, error) { return conn, nil }}, api.PingServer, api.Empty{}); err != nil {
			t.Fatal(err)
		}
		open[at] = conn
	}
	g.must("s2", "muster", "node", "revoke", "c2")
	for at, conn := range open {
		_ = conn.SetDeadline(time.Now().Add(patience(10 * time.Second)))
		if _, err := conn.Read(make([]byte, 1)); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("%s keeps a connection of a revoked member open: %v", at, err)
		}
		if err := call(r.client(g.bind(at), trust.ProtoAPI), api.PingServer, "", api.Empty{}); err == nil {
			t.Errorf("%s takes a new connection of a revoked member", at)
		}
		csr, err := r.creds.Request()
		if err != nil {
			t.Fatal(err)
		}
		c := &api.Client{Dial: func(ctx context.Context) (api.Conn, error) {
			return (&tls.Dialer{Config: trust.RenewTLS(r)}).DialContext(ctx, "tcp", g.bind(at))
		}}
		if err := call(c, api.Renew, "", api.RenewRequest{Name: "c2", CSR: csr}); err == nil || !strings.Contains(err.Error(), "c2 is not a member") {
			t.Errorf("%s renews the certificate of a revoked member: %v", at, err)
		}
		if log := g.at[at].read("log"); !strings.Contains(log, "connection cut") {
			t.Errorf("%s does not log that it cut the connection", at)
		}
	}
	if out := g.must("s1", "sinfo", "-hN", "-n", "c2-001", "-o", "%T"); !strings.HasPrefix(out, "down") {
		t.Errorf("the node of a revoked member is %s", out)
	}
}
