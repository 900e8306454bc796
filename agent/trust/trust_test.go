package trust

import (
	"crypto/tls"
	"errors"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"dev.muster/cluster"
)

var begin = time.Now()

type ring struct{ c *Credentials }

func (r ring) Credentials() *Credentials { return r.c }

// member makes credentials as a join would.
func member(t *testing.T, ca *cluster.CA, role cluster.Role, name string, now time.Time) *Credentials {
	t.Helper()
	key, text, err := newKey()
	if err != nil {
		t.Fatal(err)
	}
	csr, err := request(key)
	if err != nil {
		t.Fatal(err)
	}
	cert, _, err := Issue(ca, csr, role, name, now)
	if err != nil {
		t.Fatal(err)
	}
	c, err := Store(t.TempDir(), []byte(ca.Cert), cert, text)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func newCluster(t *testing.T) *cluster.CA {
	t.Helper()
	ca, err := NewCA(begin)
	if err != nil {
		t.Fatal(err)
	}
	return ca
}

// meet makes a TLS connection between two configurations and returns both ends' errors.
func meet(t *testing.T, server, client *tls.Config) (s, c tls.ConnectionState, serr, cerr error) {
	t.Helper()
	a, b := net.Pipe()
	st, ct := tls.Server(a, server), tls.Client(b, client)
	done := make(chan error, 1)
	go func() { // ends with the handshake
		err := st.Handshake()
		if err == nil {
			_, err = st.Write([]byte("x"))
		}
		if err != nil {
			a.Close()
		}
		done <- err
	}()
	cerr = ct.Handshake()
	if cerr == nil {
		_, cerr = ct.Read(make([]byte, 1)) // TLS 1.3: a refused client certificate shows at the first read
	}
	if cerr != nil {
		b.Close()
	}
	serr = <-done
	s, c = st.ConnectionState(), ct.ConnectionState()
	return s, c, serr, cerr
}

func anybody(Peer, string) error { return nil }

func TestStoreAndLoad(t *testing.T) {
	ca := newCluster(t)
	dir := t.TempDir()
	if _, err := Load(dir); !errors.Is(err, ErrNone) {
		t.Fatalf("an empty folder: %v", err)
	}
	made, err := SelfSigned(dir, ca, "s1", begin)
	if err != nil {
		t.Fatal(err)
	}
	got, err := Load(dir)
	if err != nil || got.Peer != made.Peer || got.Role != cluster.RoleServer || got.Name != "s1" || got.Cluster != ca.ClusterID {
		t.Fatalf("loaded %+v, %v; want %+v", got, err, made.Peer)
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		info, err := e.Info()
		if err != nil {
			t.Fatal(err)
		}
		if info.Mode().Perm() != 0o600 {
			t.Errorf("%s has mode %v", e.Name(), info.Mode())
		}
	}
}

func TestMembersMeet(t *testing.T) {
	ca, other := newCluster(t), newCluster(t)
	server := member(t, ca, cluster.RoleServer, "s1", begin)
	node := member(t, ca, cluster.RoleNode, "n1", begin)
	stranger := member(t, other, cluster.RoleNode, "n1", begin)
	expired := member(t, ca, cluster.RoleNode, "n2", begin.Add(-2*LeafLife))
	serve := ServerTLS(ring{server}, anybody)
	revoked := ServerTLS(ring{server}, func(p Peer, _ string) error { return errors.New(p.Name + " was revoked") })
	for _, tc := range []struct {
		name           string
		server, client *tls.Config
		want           string // "" for success, else in either end's error
	}{
		{"a node calls a server", serve, ClientTLS(ring{node}, ProtoAPI, cluster.RoleServer), ""},
		{
			"a node of another cluster", serve, ClientTLS(ring{stranger}, ProtoAPI, cluster.RoleServer),
			"unknown authority",
		},
		{"an expired certificate", serve, ClientTLS(ring{expired}, ProtoAPI, cluster.RoleServer), "expired"},
		{"a revoked member", revoked, ClientTLS(ring{node}, ProtoAPI, cluster.RoleServer), "was revoked"},
		{"no certificate", serve, &tls.Config{InsecureSkipVerify: true, NextProtos: []string{ProtoAPI}}, "certificate"},
		{
			"a server of another cluster", ServerTLS(ring{stranger}, anybody),
			ClientTLS(ring{node}, ProtoAPI, cluster.RoleServer), "unknown authority",
		},
		{
			"a node that plays server", ServerTLS(ring{node}, anybody),
			ClientTLS(ring{server}, ProtoRaft, cluster.RoleServer), "n1 is a node",
		},
		{
			"old TLS", serve,
			&tls.Config{InsecureSkipVerify: true, MaxVersion: tls.VersionTLS12, NextProtos: []string{ProtoAPI}},
			"version",
		},
	} {
		_, _, serr, cerr := meet(t, tc.server, tc.client)
		got := errors.Join(serr, cerr)
		if tc.want == "" && got != nil || tc.want != "" && (got == nil || !strings.Contains(got.Error(), tc.want)) {
			t.Errorf("%s: %v, want %q", tc.name, got, tc.want)
		}
	}
}

func TestJoinTalksOnlyToItsCluster(t *testing.T) {
	ca, other := newCluster(t), newCluster(t)
	text, id, verifier, err := NewToken(ca)
	if err != nil {
		t.Fatal(err)
	}
	tok, err := ParseToken(text)
	if err != nil || tok.ID != id {
		t.Fatalf("parse %q: %+v, %v", text, tok, err)
	}
	s, c, _, cerr := meet(t, ServerTLS(ring{
		member(t, ca, cluster.RoleServer, "s1", begin),
	}, anybody), JoinTLS(tok.Authority))
	if cerr != nil {
		t.Fatal(cerr)
	}
	se, err1 := Exported(&s)
	ce, err2 := Exported(&c)
	if err1 != nil || err2 != nil {
		t.Fatal(err1, err2)
	}
	stored := &cluster.Token{ID: id, Verifier: verifier}
	proof := tok.Proof(ce, []byte("request"))
	if !CheckProof(stored, se, []byte("request"), proof) {
		t.Error("the right proof is refused")
	}
	if CheckProof(stored, se, []byte("another"), proof) {
		t.Error("a proof for another request is taken")
	}
	if CheckProof(stored, []byte("another connection"), []byte("request"), proof) {
		t.Error("a proof replayed on another connection is taken")
	}
	wrong := tok
	wrong.secret = make([]byte, 16)
	if CheckProof(stored, se, []byte("request"), wrong.Proof(ce, []byte("request"))) {
		t.Error("a wrong secret is taken")
	}
	if _, _, _, cerr = meet(t, ServerTLS(ring{member(t, other, cluster.RoleServer, "s1", begin)}, anybody), JoinTLS(tok.Authority)); cerr == nil ||
		!strings.Contains(cerr.Error(), "not the cluster of the token") {
		t.Errorf("a server of another cluster: %v", cerr)
	}
	if _, _, _, cerr = meet(t, ServerTLS(ring{member(t, ca, cluster.RoleNode, "n1", begin)}, anybody), JoinTLS(tok.Authority)); cerr == nil ||
		!strings.Contains(cerr.Error(), "give the address of a server") {
		t.Errorf("a node that plays server: %v", cerr)
	}
	for _, bad := range []string{
		"", "mst1.x.y.z", strings.Replace(text, "mst1", "mst9", 1), text[:len(text)-2], text + ".1",
	} {
		if _, err := ParseToken(bad); err == nil {
			t.Errorf("%q is taken for a token", bad)
		}
	}
}

func TestVouch(t *testing.T) {
	ca := newCluster(t)
	node, evil := member(t, ca, cluster.RoleNode, "n1", begin), member(t, ca, cluster.RoleNode, "n2", begin)
	server := member(t, ca, cluster.RoleServer, "s1", begin)
	var check Checker
	const call = "POST /v1/jobs/submit"
	body := []byte(`{"spec":{}}`)
	user := User{UID: 1000, GID: 1000, Name: "alice"}
	sign := func(c *Credentials, at time.Time) string {
		text, err := c.Vouch(user, call, body, at)
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	good := sign(node, begin)
	forged := good[:strings.Index(good, ".")] + "." + strings.SplitN(sign(evil, begin), ".", 2)[1]
	for _, tc := range []struct {
		name, text string
		peer       Peer
		call       string
		body       string
		want       string
	}{
		{"right", good, node.Peer, call, string(body), ""},
		{"forwarded by a server", sign(node, begin), server.Peer, call, string(body), ""},
		{"used again", good, node.Peer, call, string(body), "used before"},
		{"another request", sign(node, begin), node.Peer, "POST /v1/jobs/cancel", string(body), "another request"},
		{"an altered body", sign(node, begin), node.Peer, call, `{"spec":{"uid":0}}`, "another request"},
		{"signed by another node", sign(evil, begin), node.Peer, call, string(body), "signed by n2"},
		{"forged", forged, node.Peer, call, string(body), "signature is wrong"},
		{"too old", sign(node, begin.Add(-time.Hour)), node.Peer, call, string(body), "set the clocks right"},
		{"from the future", sign(node, begin.Add(time.Hour)), node.Peer, call, string(body), "set the clocks right"},
		{
			"of a stranger", sign(member(t, ca, cluster.RoleNode, "n9", begin), begin), server.Peer, call,
			string(body), "not a member",
		},
		{
			"of another cluster", sign(node, begin),
			Peer{Cluster: "x", Role: cluster.RoleNode, Name: "n1", Public: node.Peer.Public}, call,
			string(body), "another cluster",
		},
		{"garbage", "x.y", node.Peer, call, string(body), "cannot be read"},
	} {
		check.Member = func(name string) (*cluster.Member, bool) {
			for _, c := range []*Credentials{node, evil} {
				if c.Name == name {
					return &cluster.Member{Name: name, Public: c.Public()}, true
				}
			}
			return nil, false
		}
		a, err := check.Check(tc.text, tc.peer, tc.call, []byte(tc.body), begin)
		switch {
		case tc.want == "" && (err != nil || a.UID != user.UID || a.Name != user.Name):
			t.Errorf("%s: %+v, %v", tc.name, a, err)
		case tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)):
			t.Errorf("%s: %v, want %q", tc.name, err, tc.want)
		}
	}
}
