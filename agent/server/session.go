package server

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"net/http"
	"strings"
	"sync"
	"time"

	"dev.muster/agent/login"
	"dev.muster/api"
	"dev.muster/cluster"
	"dev.muster/wire"
)

// Bounds of logins to the page.
const (
	linkLife    = 5 * time.Minute
	sessionLife = 12 * time.Hour
	maxLinks    = 4096 // that wait to be opened
	maxUserLink = 16   // of one user; the oldest goes
)

// session is who looks at the page. It travels in a cookie that is signed with a key which all servers of the cluster
// derive from its authority, so any of them takes it.
type session struct {
	ID     string    `json:"id"`
	UID    uint32    `json:"uid"`
	GID    uint32    `json:"gid"`
	User   string    `json:"user"`
	Groups []uint32  `json:"groups,omitempty"`
	Admin  bool      `json:"admin,omitempty"`
	Until  time.Time `json:"until"`
}

// caller is as whom the session acts.
func (s *session) caller() api.Caller {
	return api.Caller{Identity: cluster.Identity{UID: s.UID, GID: s.GID, User: s.User, Admin: s.Admin}, Groups: s.Groups}
}

// link is a login that waits to be opened.
type link struct {
	who   session
	until time.Time
}

// sessions makes links and sessions and knows which are over.
type sessions struct {
	authority func() *cluster.CA // nil: the cluster is this process
	own       [32]byte           // the secret then

	users readTokens // tokens of users that were shown

	mu    sync.Mutex
	links map[[sha256.Size]byte]link // by hash: what is kept opens nothing
	ended map[string]time.Time       // sessions that were logged out, until when they would have lasted
}

func newSessions(authority func() *cluster.CA) *sessions {
	s := &sessions{authority: authority, links: map[[sha256.Size]byte]link{}, ended: map[string]time.Time{}}
	_, _ = rand.Read(s.own[:]) // never fails
	return s
}

// randomText is 256 random bits.
func randomText() string {
	var b [32]byte
	_, _ = rand.Read(b[:])
	return base64.RawURLEncoding.EncodeToString(b[:])
}

// mac authenticates a text for one purpose.
func (s *sessions) mac(purpose, text string) []byte {
	secret := s.own[:]
	if ca := s.authority(); ca != nil {
		secret = []byte(ca.Key)
	}
	h := hmac.New(sha256.New, secret)
	h.Write([]byte("muster page " + purpose + "\n" + text))
	return h.Sum(nil)
}

// invite makes a link for a caller: the secret that opens it, once.
func (s *sessions) invite(who api.Caller, now time.Time) (secret string, until time.Time, err error) {
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
		return "", until, cluster.Errorf(cluster.Unavailable, "", "%d links wait to be opened already; try again in a few minutes", maxLinks)
	}
	secret, until = randomText(), now.Add(linkLife)
	s.links[sha256.Sum256([]byte(secret))] = link{session{UID: who.UID, GID: who.GID, User: who.User, Groups: who.Groups, Admin: who.Admin}, until}
	return secret, until, nil
}

// invited says for whom a link is, if it is good.
func (s *sessions) invited(secret string, now time.Time) (session, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	l, ok := s.links[sha256.Sum256([]byte(secret))]
	return l.who, ok && !now.After(l.until)
}

// open uses a link up: the session is new, whatever cookie came along.
func (s *sessions) open(secret string, now time.Time) (session, bool) {
	who, ok := s.invited(secret, now)
	s.mu.Lock()
	defer s.mu.Unlock()
	k := sha256.Sum256([]byte(secret))
	if _, still := s.links[k]; !ok || !still {
		return session{}, false
	}
	delete(s.links, k)
	return begun(who, now), true
}

// begun is a new session of somebody.
func begun(who session, now time.Time) session {
	who.ID, who.Until = randomText(), now.Add(sessionLife)
	return who
}

// seal is the cookie's value of a session.
func (s *sessions) seal(who *session) (string, error) {
	return s.sign("session", who)
}

// sign makes a text of a value that only a server of this cluster can make, for one purpose.
func (s *sessions) sign(purpose string, value any) (string, error) {
	text, err := wire.Marshal(value)
	if err != nil {
		return "", err
	}
	enc := base64.RawURLEncoding
	left := enc.EncodeToString(text)
	return left + "." + enc.EncodeToString(s.mac(purpose, left)), nil
}

// signed reads what sign has made, and reports whether it is that.
func (s *sessions) signed(purpose, text string, value any) bool {
	left, right, _ := strings.Cut(text, ".")
	enc := base64.RawURLEncoding
	sum, err := enc.DecodeString(right)
	if err != nil || !hmac.Equal(sum, s.mac(purpose, left)) {
		return false
	}
	plain, err := enc.DecodeString(left)
	return err == nil && wire.Unmarshal(plain, value) == nil
}

// read is the session of a cookie's value, nil if it is none or is over.
func (s *sessions) read(value string, now time.Time) *session {
	var who session
	if !s.signed("session", value, &who) || now.After(who.Until) {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, over := s.ended[who.ID]; over {
		return nil
	}
	return &who
}

// end makes a session one that no cookie opens any more.
func (s *sessions) end(id string, until, now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for old, t := range s.ended {
		if now.After(t) {
			delete(s.ended, old)
		}
	}
	if now.Before(until) && until.Before(now.Add(sessionLife+time.Minute)) {
		s.ended[id] = until
	}
}

// csrf is the token that every form of a session carries.
func (s *sessions) csrf(who *session) string { return hex.EncodeToString(s.mac("form", who.ID)) }

// secure reports whether the visitor came by TLS, here or at a proxy before.
func secure(r *http.Request) bool {
	return r.TLS != nil || strings.EqualFold(r.Header.Get("X-Forwarded-Proto"), "https")
}

// cookieName is the cookie's; where there is TLS browsers hold its name to that.
func cookieName(r *http.Request) string {
	if secure(r) {
		return "__Host-muster"
	}
	return "muster"
}

// setCookie sets the session's cookie, or with an empty value takes it away.
func setCookie(w http.ResponseWriter, r *http.Request, value string) {
	c := &http.Cookie{Name: cookieName(r), Value: value, Path: "/", HttpOnly: true, Secure: secure(r), SameSite: http.SameSiteStrictMode, MaxAge: int(sessionLife / time.Second)}
	if value == "" {
		c.MaxAge = -1
	}
	http.SetCookie(w, c)
}

// createLogin makes a link for the caller.
func (s *Server) createLogin(_ context.Context, who api.Caller, _ api.Empty) (api.LoginResponse, error) {
	at := s.page.Load()
	if at == nil {
		return api.LoginResponse{}, cluster.Errorf(cluster.Unavailable, "", "this server shows no page; start it with --http ADDRESS:PORT")
	}
	u, err := s.userOf(who, who.UID)
	if err != nil {
		return api.LoginResponse{}, err
	}
	who.User, who.Groups = u.name, u.groups
	secret, until, err := s.sessions.invite(who, time.Now())
	if err != nil {
		return api.LoginResponse{}, err
	}
	s.slog.Info("login link made", "user", who.User, "uid", who.UID)
	url, set := *at, login.Read(s.Snapshot().Config().Keys)
	switch {
	case set.URL != "" && len(s.servers()) == 1: // elsewhere it may lead to another server, which does not know the link
		url = set.URL + "/"
	case set.TLS():
		url = strings.Replace(url, "http:", "https:", 1)
	}
	return api.LoginResponse{URL: url + "login?once=" + secret, Expires: until}, nil
}

// ShowsPage tells where browsers find this server's page, http://HOST:PORT/.
func (s *Server) ShowsPage(url string) { s.page.Store(&url) }

// endSession is another server's word that a session is over.
func (s *Server) endSession(_ context.Context, _ api.Caller, q api.SessionEnd) (api.Empty, error) {
	s.sessions.end(q.ID, q.Until, time.Now())
	return api.Empty{}, nil
}

// logOut ends a session here and on every other server that answers.
func (s *Server) logOut(ctx context.Context, who *session) {
	s.sessions.end(who.ID, who.Until, time.Now())
	group, err := s.log.Group()
	if err != nil || s.cfg.Peer == nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, pingTime)
	defer cancel()
	var wg sync.WaitGroup
	for _, v := range group {
		if v.ID == s.cfg.Name {
			continue
		}
		wg.Go(func() {
			if _, err := api.Call(ctx, s.cfg.Peer(v.Addr), api.EndSession, api.SessionEnd{ID: who.ID, Until: who.Until}); err != nil {
				s.slog.Warn("a server was not told that a session has ended", "server", v.ID, "user", who.User, "err", err)
			}
		})
	}
	wg.Wait()
}
