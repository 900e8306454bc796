package trust

import (
	"crypto/sha256"
	"errors"
	"strings"
	"testing"

	"dev.muster/cluster"
)

// FuzzParseToken: a text is a token only if it is written as tokens are, and it proves nothing for another one.
func FuzzParseToken(f *testing.F) {
	ca, err := NewCA(begin)
	if err != nil {
		f.Fatal(err)
	}
	text, id, verifier, err := NewToken(ca)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(text)
	f.Add(" " + text + "\n")
	f.Add(tokenPrefix + "." + strings.Repeat("a", 64) + ".id." + strings.Repeat("0", 32))
	f.Add(tokenPrefix + "....")
	stored := &cluster.Token{ID: id, Verifier: verifier}
	f.Fuzz(func(t *testing.T, in string) {
		k, err := ParseToken(in)
		if err != nil {
			return
		}
		if strings.Count(in, ".") != 3 || k.ID == "" || len(k.Authority) != 2*sha256.Size {
			t.Errorf("%q is taken for %+v", in, k)
		}
		request := JoinText(k.ID, cluster.RoleNode, "n1", "h:1", nil)
		if CheckProof(stored, []byte("conn"), request, k.Proof([]byte("conn"), request)) && !strings.EqualFold(lastPart(in), lastPart(text)) {
			t.Errorf("%q proves that it is %q", in, text)
		}
	})
}

func lastPart(token string) string {
	token = strings.TrimSpace(token)
	return token[strings.LastIndex(token, ".")+1:]
}

// FuzzIssue: whatever a machine hands in for a certificate request, it gets one only for a key with which it has
// signed, and only for the role and the name that were granted.
func FuzzIssue(f *testing.F) {
	ca, err := NewCA(begin)
	if err != nil {
		f.Fatal(err)
	}
	good, err := NewApplicant()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(good.Request)
	f.Add(good.Request[:len(good.Request)/2])
	f.Add([]byte{0x30, 0x84, 0xff, 0xff, 0xff, 0xff})
	f.Fuzz(func(t *testing.T, csr []byte) {
		cert, public, err := Issue(ca, csr, cluster.RoleNode, "n1", begin)
		if err != nil {
			if e := (*cluster.Error)(nil); !errors.As(err, &e) {
				t.Errorf("%x is refused as a fault of the server: %v", csr, err)
			}
			return
		}
		c, err := parseCert(cert)
		if err != nil {
			t.Fatal(err)
		}
		if p, err := peerOf(c); err != nil || p.Name != "n1" || p.Role != cluster.RoleNode || p.Public != string(public) || c.IsCA {
			t.Errorf("%x gets %+v, %v", csr, p, err)
		}
	})
}

// FuzzCheck: an assertion that this member has not signed is never taken.
func FuzzCheck(f *testing.F) {
	ca, err := NewCA(begin)
	if err != nil {
		f.Fatal(err)
	}
	self, err := SelfSigned(f.TempDir(), ca, "s1", begin)
	if err != nil {
		f.Fatal(err)
	}
	good, err := self.Vouch(User{UID: 7}, "POST /v1/x", []byte("{}"), begin)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(good)
	f.Add(good[:len(good)-4])
	f.Add("e30.")
	f.Add(".")
	f.Fuzz(func(t *testing.T, in string) {
		k := Checker{Member: func(string) (*cluster.Member, bool) { return nil, false }}
		a, err := k.Check(in, self.Peer, "POST /v1/x", []byte("{}"), begin)
		if err == nil && (a.UID != 7 || a.Admin) {
			t.Errorf("%q is taken for %+v", in, a)
		}
	})
}
