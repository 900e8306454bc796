package trust

import (
	"crypto/ecdsa"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"strings"
	"sync"
	"time"

	"dev.muster/cluster"
	"dev.muster/wire"
)

// Limits of assertions.
const (
	vouchLife  = time.Minute
	clockSlack = 30 * time.Second // clocks of members may differ by this much
	maxNonces  = 1 << 20
)

// User is whom a member vouches for: what the kernel of that member said of the caller.
type User struct {
	UID    uint32   `json:"uid"`
	GID    uint32   `json:"gid"`
	Name   string   `json:"name,omitempty"`
	Groups []uint32 `json:"groups,omitempty"`
	Admin  bool     `json:"admin,omitempty"` // the user who runs a server
	Via    string   `json:"via,omitempty"`   // the member whose word a server passes on
	// Origin says where the call came from, for the audit trail. It is believed of servers alone.
	Origin string `json:"origin,omitempty"`
}

// Assertion says that a user makes one request, signed by the member on whose socket it arrived.
type Assertion struct {
	User
	Cluster string    `json:"cluster"`
	By      string    `json:"by"` // the member
	At      time.Time `json:"at"`
	Nonce   string    `json:"nonce"`
	Call    string    `json:"call"` // method and path
	Body    string    `json:"body"` // hex of SHA-256
}

// Vouch signs an assertion for one request.
func (c *Credentials) Vouch(u User, call string, body []byte, now time.Time) (string, error) {
	nonce := make([]byte, 12)
	if _, err := rand.Read(nonce); err != nil {
		return "", err
	}
	sum := sha256.Sum256(body)
	a, err := wire.Marshal(Assertion{User: u, Cluster: c.Cluster, By: c.Name, At: now,
		Nonce: hex.EncodeToString(nonce), Call: call,
		Body: hex.EncodeToString(sum[:])})
	if err != nil {
		return "", err
	}
	digest := sha256.Sum256(a)
	sig, err := ecdsa.SignASN1(rand.Reader, c.key, digest[:])
	if err != nil {
		return "", fmt.Errorf("sign for user %d: %w", u.UID, err)
	}
	enc := base64.RawURLEncoding
	return enc.EncodeToString(a) + "." + enc.EncodeToString(sig), nil
}

// Checker verifies assertions and remembers which were seen.
type Checker struct {
	// Member finds a member that was not revoked, for assertions that a server forwards.
	Member func(name string) (*cluster.Member, bool)

	mu   sync.Mutex
	seen map[string]time.Time // nonce → when it may be forgotten
}

// Check verifies an assertion for a request that came over the connection of peer: it must be signed
// by that peer itself, or by a member for whom a server forwards.
func (k *Checker) Check(text string, peer Peer, call string, body []byte, now time.Time) (Assertion, error) {
	refuse := func(format string, args ...any) (Assertion, error) {
		return Assertion{}, cluster.Errorf(cluster.Denied, cluster.ErrAccess, "assertion by "+peer.Name+": "+format, args...)
	}
	left, right, ok := strings.Cut(text, ".")
	raw, err := base64.RawURLEncoding.DecodeString(left)
	sig, serr := base64.RawURLEncoding.DecodeString(right)
	var a Assertion
	if !ok || err != nil || serr != nil || wire.Unmarshal(raw, &a) != nil {
		return refuse("it cannot be read")
	}
	if a.By != peer.Name && peer.Role != cluster.RoleServer {
		return refuse("it is signed by %s", a.By)
	}
	public := []byte(peer.Public)
	if a.By != peer.Name {
		m, ok := k.Member(a.By)
		if !ok {
			return refuse("%s is not a member", a.By)
		}
		public = m.Public
	}
	pub, err := x509.ParsePKIXPublicKey(public)
	digest := sha256.Sum256(raw)
	if key, ok := pub.(*ecdsa.PublicKey); err != nil || !ok || !ecdsa.VerifyASN1(key, digest[:], sig) {
		return refuse("its signature is wrong")
	}
	sum := sha256.Sum256(body)
	switch {
	case a.Cluster != peer.Cluster:
		return refuse("it is meant for another cluster")
	case a.Call != call || a.Body != hex.EncodeToString(sum[:]):
		return refuse("it is meant for another request")
	case a.At.After(now.Add(clockSlack)) || a.At.Before(now.Add(-vouchLife-clockSlack)):
		return refuse("it was made at %s, now is %s: set the clocks right", a.At.Format(time.RFC3339),
			now.Format(time.RFC3339))
	}
	if !k.fresh(a.By+" "+a.Nonce, now) {
		return refuse("it was used before")
	}
	return a, nil
}

// fresh remembers a nonce for as long as its assertion could be used.
func (k *Checker) fresh(nonce string, now time.Time) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.seen == nil {
		k.seen = map[string]time.Time{}
	}
	if _, again := k.seen[nonce]; again {
		return false
	}
	if len(k.seen) >= maxNonces/2 {
		for n, until := range k.seen {
			if now.After(until) {
				delete(k.seen, n)
			}
		}
	}
	if len(k.seen) >= maxNonces {
		return false
	}
	k.seen[nonce] = now.Add(vouchLife + 2*clockSlack)
	return true
}

// JoinText is what the proof of a join covers besides the connection.
func JoinText(token string, role cluster.Role, name, addr string, csr []byte) []byte {
	return append([]byte(strings.Join([]string{token, string(role), name, addr, ""}, "\n")), csr...)
}
