// Package session knows who looks at the status page: links that open it once, and cookies that any server of the
// cluster takes.
package session

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/hex"
	"net/http"
	"strings"
	"sync"
	"time"

	"dev.muster/agent/origin"
	"dev.muster/api"
	"dev.muster/cluster"
	"dev.muster/wire"
)

// Bounds of logins to the page.
const (
	linkLife    = 5 * time.Minute
	SessionLife = 12 * time.Hour
	maxLinks    = 4096 // that wait to be opened
	maxUserLink = 16   // of one user; the oldest goes
)

// Session is who looks at the page. It travels in a cookie that is signed with a key which all servers of the cluster
// derive from its authority, so any of them takes it.
type Session struct {
	ID     string    `json:"id"`
	UID    uint32    `json:"uid"`
	GID    uint32    `json:"gid"`
	User   string    `json:"user"`
	Groups []uint32  `json:"groups,omitempty"`
	Admin  bool      `json:"admin,omitempty"`
	Until  time.Time `json:"until"`
	// TLS: it began by TLS, so nobody has read its cookie on the way. It is valid only where the visitor comes by TLS,
	// and one that began without is not valid there.
	TLS bool `json:"tls,omitempty"`
}

// Caller is as whom the session acts.
func (s *Session) Caller() api.Caller {
	return api.Caller{
		Identity: cluster.Identity{UID: s.UID, GID: s.GID, User: s.User, Admin: s.Admin}, Groups: s.Groups,
	}
}

// link is a login that waits to be opened.
type link struct {
	who   Session
	until time.Time
}

// Store makes links and sessions and knows which are over.
type Store struct {
	name      string              // of this server, which is in its links
	authority func() *cluster.CA  // nil: the cluster is this process
	own       [32]byte            // the secret then
	over      func(*Session) bool // reports whether the cluster's state has it as logged out

	mu    sync.Mutex
	links map[[sha256.Size]byte]link // by hash: what is kept opens nothing
	ended map[string]time.Time       // sessions that were logged out, until when they would have lasted
}

// New returns a store without links and sessions; name is this server's. over reports whether the cluster's state has a
// session as logged out.
func New(name string, authority func() *cluster.CA, over func(*Session) bool) *Store {
	s := &Store{name: name, authority: authority, over: over,
		links: map[[sha256.Size]byte]link{}, ended: map[string]time.Time{}}
	_, _ = rand.Read(s.own[:]) // never fails
	return s
}

// randomText is 256 random bits.
func randomText() string {
	var b [32]byte
	_, _ = rand.Read(b[:])
	return base64.RawURLEncoding.EncodeToString(b[:])
}

// MAC authenticates a text for one purpose.
func (s *Store) MAC(purpose, text string) []byte {
	secret := s.own[:]
	if ca := s.authority(); ca != nil {
		secret = []byte(ca.Key)
	}
	h := hmac.New(sha256.New, secret)
	h.Write([]byte("muster page " + purpose + "\n" + text))
	return h.Sum(nil)
}

// Invite makes a link for a caller: the secret that opens it, once.
func (s *Store) Invite(who api.Caller, now time.Time) (secret string, until time.Time, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	count, oldest := 0, [sha256.Size]byte{}
	for k, l := range s.links {
		switch {
		case now.After(l.until):
			delete(s.links, k)
		case l.who.UID == who.UID:
			if count++; count == 1 || l.until.Before(s.links[oldest].until) {
				oldest = k
			}
		}
	}
	if count >= maxUserLink {
		delete(s.links, oldest)
	}
	if len(s.links) >= maxLinks {
		return "", until, cluster.Errorf(cluster.Unavailable, "",
			"%d links wait to be opened already; try again in a few minutes", maxLinks)
	}
	secret, until = randomText()+"."+s.name, now.Add(linkLife)
	s.links[sha256.Sum256([]byte(secret))] = link{
		Session{UID: who.UID, GID: who.GID, User: who.User, Groups: who.Groups, Admin: who.Admin}, until,
	}
	return secret, until, nil
}

// Maker is the server that has made a link: it alone knows whether that was opened before.
func Maker(secret string) string {
	_, name, _ := strings.Cut(secret, ".")
	return name
}

// Invited says for whom a link is, if it is good.
func (s *Store) Invited(secret string, now time.Time) (Session, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	l, ok := s.links[sha256.Sum256([]byte(secret))]
	return l.who, ok && !now.After(l.until)
}

// Open uses a link up: the session is new, whatever cookie came along.
func (s *Store) Open(secret string, now time.Time) (Session, bool) {
	who, ok := s.Invited(secret, now)
	s.mu.Lock()
	defer s.mu.Unlock()
	k := sha256.Sum256([]byte(secret))
	if _, still := s.links[k]; !ok || !still {
		return Session{}, false
	}
	delete(s.links, k)
	return Begin(who, now), true
}

// Begin is a new session of somebody.
func Begin(who Session, now time.Time) Session {
	who.ID, who.Until = randomText(), now.Add(SessionLife)
	return who
}

// Seal is the cookie's value of a session.
func (s *Store) Seal(who *Session) (string, error) {
	return s.Sign("session", who)
}

// Sign makes a text of a value that only a server of this cluster can make, for one purpose.
func (s *Store) Sign(purpose string, value any) (string, error) {
	text, err := wire.Marshal(value)
	if err != nil {
		return "", err
	}
	enc := base64.RawURLEncoding
	left := enc.EncodeToString(text)
	return left + "." + enc.EncodeToString(s.MAC(purpose, left)), nil
}

// Signed reads what sign has made, and reports whether it is that.
func (s *Store) Signed(purpose, text string, value any) bool {
	left, right, _ := strings.Cut(text, ".")
	enc := base64.RawURLEncoding
	sum, err := enc.DecodeString(right)
	if err != nil || !hmac.Equal(sum, s.MAC(purpose, left)) {
		return false
	}
	plain, err := enc.DecodeString(left)
	return err == nil && wire.Unmarshal(plain, value) == nil
}

// Read is the session of a cookie's value, nil if it is none or is over.
func (s *Store) Read(value string, now time.Time) *Session {
	var who Session
	if !s.Signed("session", value, &who) || now.After(who.Until) {
		return nil
	}
	s.mu.Lock()
	_, over := s.ended[who.ID]
	s.mu.Unlock()
	if over || s.over(&who) {
		return nil
	}
	return &who
}

// Of is the session of a request, nil if it has none.
func (s *Store) Of(r *http.Request, now time.Time) *Session {
	c, err := r.Cookie(CookieName(r, Cookie))
	if err != nil {
		return nil
	}
	if who := s.Read(c.Value, now); who != nil && who.TLS == Secure(r) {
		return who
	}
	return nil
}

// End makes a session one that no cookie opens any more at this server, until it restarts: the state may not know yet.
func (s *Store) End(id string, until, now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for old, t := range s.ended {
		if now.After(t) {
			delete(s.ended, old)
		}
	}
	if now.Before(until) && until.Before(now.Add(SessionLife+time.Minute)) {
		s.ended[id] = until
	}
}

// CSRF is the token that every form of a session carries. Each time it is written another way, so that the length of a
// compressed page tells nothing of it (BREACH).
func (s *Store) CSRF(who *Session) string {
	token := s.MAC("form", who.ID)
	out := make([]byte, 2*len(token))
	_, _ = rand.Read(out[:len(token)]) // it never fails
	subtle.XORBytes(out[len(token):], out, token)
	return hex.EncodeToString(out)
}

// Meant reports whether a form that was sent carries the token of a session.
func (s *Store) Meant(who *Session, token string) bool {
	sent, err := hex.DecodeString(token)
	want := s.MAC("form", who.ID)
	if err != nil || len(sent) != 2*len(want) {
		return false
	}
	subtle.XORBytes(sent[:len(want)], sent, sent[len(want):])
	return subtle.ConstantTimeCompare(sent[:len(want)], want) == 1
}

// Secure reports whether the visitor came by TLS, here or at a proxy that the site trusts.
func Secure(r *http.Request) bool { return origin.Of(r).Secure }

// Cookie is the name of the session's cookie.
const Cookie = "muster"

// CookieName is the name under which a cookie is kept and read. Where there is TLS, browsers take cookies of such names
// from the page's own host alone: other hosts of its domain can plant none.
func CookieName(r *http.Request, name string) string {
	if Secure(r) {
		return "__Host-" + name
	}
	return name
}

// SetCookie sets the session's cookie, or with an empty value takes it away.
func SetCookie(w http.ResponseWriter, r *http.Request, value string) {
	c := &http.Cookie{
		Name: CookieName(r, Cookie), Value: value, Path: "/", HttpOnly: true, Secure: Secure(r),
		SameSite: http.SameSiteStrictMode, MaxAge: int(SessionLife / time.Second),
	}
	if value == "" {
		c.MaxAge = -1
	}
	http.SetCookie(w, c)
}
