package server

import (
	"context"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"dev.muster/agent/session"
	"dev.muster/agent/sparse"
	"dev.muster/agent/usertoken"
	"dev.muster/agent/webpage"
	"dev.muster/api"
	"dev.muster/cluster"
	"dev.muster/consensus"
)

// credentials are by what visitors and programs are known: sessions of browsers, tokens of users.
type credentials struct {
	sessions *session.Store
	tokens   *usertoken.Issuer
	page     atomic.Pointer[string] // where this server's page is
	refused  sparse.Lines           // about callers whom nobody knows
}

// createLogin makes a link for the caller.
func (s *Server) createLogin(_ context.Context, who api.Caller, _ api.Empty) (api.LoginResponse, error) {
	at := s.credentials.page.Load()
	if at == nil {
		return api.LoginResponse{}, cluster.Errorf(cluster.Unavailable, "",
			"this server shows no page; start it with --http ADDRESS:PORT")
	}
	u, err := s.userOf(who, who.UID)
	if err != nil {
		return api.LoginResponse{}, err
	}
	who.User, who.Groups = u.Name, u.Groups
	secret, until, err := s.credentials.sessions.Invite(who, time.Now())
	if err != nil {
		return api.LoginResponse{}, err
	}
	s.slog.Info("login link made", "user", who.User, "uid", who.UID)
	url, set := *at, webpage.Read(s.Snapshot().Config().Keys)
	switch {
	case set.URL != "":
		url = set.URL + "/"
	case set.TLS():
		url = strings.Replace(url, "http:", "https:", 1)
	}
	return api.LoginResponse{URL: url + "login?once=" + secret, Expires: until}, nil
}

// link is whom a link of this server's lets in, if it is good.
func (c *credentials) link(text string, open bool) (session.Session, bool) {
	if open {
		return c.sessions.Open(text, time.Now())
	}
	return c.sessions.Invited(text, time.Now())
}

// openLink answers another server, to which a visitor came with a link of this one.
func (c *credentials) openLink(_ context.Context, _ api.Caller, q api.LinkQuery) (out api.LinkResponse, err error) {
	who, ok := c.link(q.Link, q.Open)
	if ok {
		out = api.LinkResponse{Good: true, Who: who.Caller().Identity, Groups: who.Groups}
	}
	return out, nil
}

// linkAnywhere is whom a link lets in, asked of the server that has made it.
func linkAnywhere(ctx context.Context, s *Server, text string, open bool) (none session.Session, ok bool) {
	maker := session.Maker(text)
	if maker == "" || maker == s.cfg.Name {
		return s.credentials.link(text, open)
	}
	group, err := s.log.Group()
	if err != nil || s.cfg.Peer == nil {
		return none, false
	}
	at := slices.IndexFunc(group, func(v consensus.Voter) bool { return string(v.ID) == maker })
	if at < 0 {
		return none, false
	}
	ctx, cancel := context.WithTimeout(ctx, pingTime)
	defer cancel()
	r, err := api.Call(ctx, s.cfg.Peer(group[at].Addr), api.OpenLink, api.LinkQuery{Link: text, Open: open})
	if err != nil {
		s.slog.Warn("a link was not asked for at the server that made it", "server", maker, "err", err)
		return none, false
	}
	if !r.Good {
		return none, false
	}
	who := session.Session{UID: r.Who.UID, GID: r.Who.GID, User: r.Who.User, Admin: r.Who.Admin, Groups: r.Groups}
	if open {
		return session.Begin(who, time.Now()), true
	}
	return who, true
}

// ShowsPage tells where browsers find this server's page, http://HOST:PORT/.
func (s *Server) ShowsPage(url string) { s.credentials.page.Store(&url) }

// endSession is another server's word that a session is over.
func (s *Server) endSession(_ context.Context, _ api.Caller, q api.SessionEnd) (api.Empty, error) {
	s.credentials.sessions.End(q.ID, q.Until, time.Now())
	return api.Empty{}, nil
}

// recordLogout writes to the log that a session of the caller has ended.
func recordLogout(s *Server) func(context.Context, api.Caller, api.SessionEnd) (api.Empty, error) {
	return func(ctx context.Context, who api.Caller, q api.SessionEnd) (none api.Empty, _ error) {
		end := &cluster.SessionEnd{Session: cluster.EndedSession{ID: q.ID, UID: who.UID, Until: q.Until}}
		_, _, err := s.proposeOf(ctx, who.Identity, end)
		return none, err
	}
}

// logOut ends a session on all servers: here at once, elsewhere by the log. Where that cannot be written, or servers
// do not know of it yet, the others are called.
func (s *Server) logOut(ctx context.Context, who *session.Session) {
	s.credentials.sessions.End(who.ID, who.Until, time.Now())
	call := s.inName.Load()
	if call != nil {
		end := api.SessionEnd{ID: who.ID, Until: who.Until}
		_, err := api.CallAs(ctx, *call, who.Caller(), api.LogOut, end)
		if err == nil {
			return
		}
		s.slog.Error("the end of a session was not recorded: it holds until servers restart",
			"user", who.User, "err", err)
	}
	tellLogout(ctx, s, who)
}

// tellLogout ends a session on the other servers that answer.
func tellLogout(ctx context.Context, s *Server, who *session.Session) {
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
				s.slog.Warn("a server was not told that a session has ended", "server", v.ID, "user",
					who.User, "err", err)
			}
		})
	}
	wg.Wait()
}
