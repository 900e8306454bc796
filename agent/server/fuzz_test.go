package server

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"testing"
	"time"

	"dev.muster/agent/trust"
	"dev.muster/api"
	"dev.muster/cluster"
	"dev.muster/consensus"
	"dev.muster/wire"
	"github.com/hashicorp/raft"
)

// joinHouse is a leader alone, with a token for nodes.
func joinHouse(f *testing.F) (*Server, trust.JoinToken) {
	_, trans := raft.NewInmemTransport("s1")
	hist := stillHistory{}
	s, err := New(Config{
		Name: "s1", Log: consensus.Config{ID: "s1", Addr: "s1", Bootstrap: true, Memory: true},
	}, trans, hist, slog.New(slog.NewTextHandler(io.Discard, nil)))
	if err != nil {
		f.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.log.Run(ctx) }()
	f.Cleanup(func() { stop(); <-done })
	ca, err := trust.NewCA(time.Now())
	if err != nil {
		f.Fatal(err)
	}
	text, id, verifier, err := trust.NewToken(ca)
	if err != nil {
		f.Fatal(err)
	}
	tok, err := trust.ParseToken(text)
	if err != nil {
		f.Fatal(err)
	}
	for end := time.Now().Add(10 * time.Second); ; time.Sleep(10 * time.Millisecond) { // until it leads
		_, _, err := s.propose(ctx, cluster.Identity{System: true}, &cluster.TrustInit{
			CA: *ca, Member: cluster.Member{Name: "s1", Role: cluster.RoleServer, Key: "k"},
		},
			&cluster.TokenPut{
				Token: cluster.Token{
					ID: id, Role: cluster.RoleNode, Verifier: verifier, Uses: maxTokenUses,
					Expires: time.Now().Add(24 * time.Hour),
				},
			})
		if err == nil {
			return s, tok
		}
		if time.Now().After(end) {
			f.Fatal(err)
		}
	}
}

// stillHistory keeps nothing.
type stillHistory struct{ noHistory }

func (stillHistory) Sync(context.Context) error { return nil }

// FuzzJoin: whatever a machine that is no member says, it becomes one only with the proof that it has a token, only
// as what the token is for, and nothing that it says is a fault of the server.
func FuzzJoin(f *testing.F) {
	s, tok := joinHouse(f)
	key, err := trust.NewApplicant()
	if err != nil {
		f.Fatal(err)
	}
	m := api.NewMux()
	s.Routes(m)
	for _, q := range []api.JoinRequest{{},
		{Token: tok.ID, Role: cluster.RoleNode, Name: "n1", Addr: "10.0.0.1:7440", CSR: key.Request},
		{Token: tok.ID, Role: cluster.RoleServer, Name: "s2", Addr: "10.0.0.2:7440", CSR: key.Request, Level: 1},
		{Token: tok.ID, Role: "king", Name: "a\nb", CSR: key.Request[:9], Proof: []byte("x")}} {
		text, err := wire.Marshal(q)
		if err != nil {
			f.Fatal(err)
		}
		f.Add("/v1/join", text, true)
		f.Add("/v1/join", text, false)
		f.Add("/v1/renew", text, false)
	}
	who := api.Caller{Exported: []byte("what the connection exported")}
	f.Fuzz(func(t *testing.T, path string, body []byte, prove bool) {
		r, ok := m.Lookup("POST", path)
		if !ok || r.Access != api.Joiner {
			return
		}
		var q api.JoinRequest
		if prove && wire.Unmarshal(body, &q) == nil {
			q.Proof = tok.Proof(who.Exported, trust.JoinText(q.Token, q.Role, q.Name, q.Addr, q.CSR))
			body, _ = wire.Marshal(q)
		}
		out, err := r.Handle(t.Context(), who, body)
		if err != nil {
			if e := api.AsError(err); e.Code == cluster.Internal {
				t.Fatalf("%s: %v", body, err)
			}
			return
		}
		if path != "/v1/join" {
			return
		}
		_ = wire.Unmarshal(body, &q)
		member, ok := s.Member(q.Name)
		switch {
		case !prove:
			t.Fatalf("%s: joined without the token", body)
		case !ok || member.Role != cluster.RoleNode || member.Addr != q.Addr:
			t.Fatalf("%s: became %+v", body, member)
		case !bytes.Contains(out.(api.JoinResponse).Cert, []byte("CERTIFICATE")):
			t.Fatalf("%s: has no certificate", body)
		}
	})
}
