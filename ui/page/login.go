package page

import (
	"cmp"
	"context"
	"crypto/hmac"
	"encoding/base64"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"dev.muster/agent/origin"
	"dev.muster/agent/session"
	"dev.muster/agent/sparse"
	"dev.muster/agent/users"
	"dev.muster/agent/visibility"
	"dev.muster/agent/webpage"
	"dev.muster/api"
	"dev.muster/cluster"
	"dev.muster/ui"
	"dev.muster/ui/login"
)

// How visitors log in: by a link that the local socket gave out, by an OpenID provider, or by name and password.

// logins are the ways into the page.
type logins struct {
	*pages
	providers *login.Providers
	passwords *login.Passwords
	refused   sparse.Lines
}

func newLogins(s *pages) *logins {
	return &logins{pages: s, providers: login.NewProviders(), passwords: login.NewPasswords()}
}

func (l *logins) routes(mux *http.ServeMux) {
	mux.HandleFunc("GET /login", l.ask)
	mux.HandleFunc("POST /login", l.byLink)
	mux.HandleFunc("POST /login/password", l.byPassword)
	mux.HandleFunc("GET /login/oidc", l.toProvider)
	mux.HandleFunc("GET "+login.DonePath, l.fromProvider)
	mux.HandleFunc("POST "+logoutPath, l.form(l.logout))
}

func (l *logins) settings() webpage.Settings { return webpage.Read(l.Snapshot().Config().Keys) }

// bearer is the token that a program has sent; "": none.
func bearer(r *http.Request) string {
	word, rest, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if !strings.EqualFold(word, "Bearer") {
		return ""
	}
	return strings.TrimSpace(rest)
}

// openPaths need no login whatever StatusPage and PrivateData say.
var openPaths = []string{"/livez", "/readyz", "/healthz", "/login", "/static/"}

// closed answers where somebody may not look: StatusPage=login and PrivateData keep all from those without a login,
// PrivateData sums over all jobs from all but operators. Views know what else they leave out.
func (l *logins) closed(w http.ResponseWriter, r *http.Request) bool {
	path := r.URL.Path
	if slices.ContainsFunc(openPaths, func(p string) bool { return strings.HasPrefix(path, p) }) {
		return false
	}
	who, _ := l.visitor(r)
	snap := l.Snapshot()
	hidden, set := visibility.Restricts(snap.Config()), l.settings()
	switch {
	case who.UID == visibility.Nobody && (hidden || set.Closed):
		if r.Method == http.MethodGet && strings.Contains(r.Header.Get("Accept"), "text/html") {
			l.send(w, r)
			return true
		}
		why := "StatusPage=login is set"
		if hidden {
			why = "PrivateData is set"
		}
		l.say(w, r, http.StatusForbidden, "Log in", why+": log in first. On a login host or a server, muster ui "+
			"prints a link that logs you in. Programs send the token that scontrol token prints as "+
			"Authorization: Bearer.")
	case hidden && strings.HasPrefix(path, "/metrics") && !visibility.Of(snap, who).All:
		l.say(w, r, http.StatusForbidden, "Not allowed", "PrivateData restricts this page to operators.")
	default:
		return false
	}
	return true
}

// send has a visitor log in first, and come back then.
func (l *logins) send(w http.ResponseWriter, r *http.Request) {
	http.Redirect(w, r, ui.Login{To: r.URL.RequestURI()}.Goes("/login"), http.StatusSeeOther)
}

// landing is a path of this page that a visitor asked for: nothing that leads elsewhere.
func landing(to string) string {
	u, err := url.Parse(to)
	if err != nil || u.IsAbs() || u.Host != "" || strings.HasPrefix(u.Path, "/login") {
		return "/"
	}
	if !strings.HasPrefix(to, "/") || strings.HasPrefix(to, "//") || strings.ContainsAny(to, "\\\r\n") {
		return "/"
	}
	return u.RequestURI()
}

// badLink is what is wrong with a link that no server knows.
const badLink = "It has been used, is older than five minutes, or its server is unreachable. " +
	"muster ui prints a new one."

// ask shows the forms that open a session. A link is used up by the form alone: programs that look at links beforehand
// do no harm.
func (l *logins) ask(w http.ResponseWriter, r *http.Request) {
	once := r.URL.Query().Get("once")
	who, ok := l.Link(r.Context(), once, false)
	switch {
	case ok:
		l.render(w, r, nil, http.StatusOK, "login", "Log in", ui.Login{Once: once, User: who.User,
			Operator: who.UID == 0 || who.Admin, Hours: int(session.SessionLife / time.Hour)})
	case once != "":
		l.say(w, r, http.StatusGone, "The link has expired", badLink)
	default:
		l.offer(w, r, http.StatusOK, ui.Login{To: landing(r.URL.Query().Get("to"))})
	}
}

// offer shows the ways that the configuration has opened.
func (l *logins) offer(w http.ResponseWriter, r *http.Request, code int, v ui.Login) {
	s := l.settings()
	_, err := safePlace(r)
	v.Password, v.Plain = s.Password != "" && err == nil, s.Password != "" && err != nil
	if u, err := url.Parse(s.OIDC.Issuer); err == nil {
		v.Provider = u.Hostname()
	}
	l.render(w, r, nil, code, "login", "Log in", v)
}

func (l *logins) byLink(w http.ResponseWriter, r *http.Request) {
	if !readForm(w, r, maxForm) {
		return
	}
	who, ok := l.Link(r.Context(), r.PostForm.Get("once"), true)
	if !ok {
		l.say(w, r, http.StatusGone, "The link has expired", badLink)
		return
	}
	if l.open(w, r, who, "link", "") {
		http.Redirect(w, r, "/", http.StatusSeeOther)
	}
}

// open gives the visitor the session; idToken is what the provider said of them, if it was it that did.
func (l *logins) open(w http.ResponseWriter, r *http.Request, who session.Session, by, idToken string) bool {
	who.TLS = session.Secure(r)
	value, err := l.Sessions.Seal(&who)
	if err != nil {
		http.Error(w, "cannot create the session", http.StatusInternalServerError)
		return false
	}
	l.Log.Info("session opened", "user", who.User, "uid", who.UID, "by", by, "from", r.RemoteAddr)
	l.Note(r.Context(), &who, pageOrigin(r), cluster.AuditNote{
		Action: "page login", Object: "page of " + l.Name, New: "by=" + by,
	})
	session.SetCookie(w, r, value)
	l.remember(w, r, &who, idToken)
	return true
}

// pageOrigin is where a visitor comes from, as the audit trail shows it.
func pageOrigin(r *http.Request) string {
	if at := origin.Of(r).Address; at.IsValid() {
		return "page:" + at.String()
	}
	return "page"
}

// logoutPath is where sessions end. The browser keeps for it alone that the provider let the visitor in, and what it
// said then, so that any server can have the provider end its session, too. With the session's ID it is authenticated,
// because other hosts of the domain can plant such a cookie. Its path keeps the 4 KiB out of all other requests, so it
// has not the name of one that nobody can plant.
const (
	logoutPath  = "/logout"
	maxToken    = 3800 // of a cookie's 4 KiB
	noToken     = "-"  // it was too long
	tokenCookie = "muster-oidc-in"
)

// remember has the browser keep an ID token for a session; "" takes away one of before.
func (l *logins) remember(w http.ResponseWriter, r *http.Request, who *session.Session, idToken string) {
	if idToken == "" && l.settings().OIDC.Issuer == "" {
		return // no provider has let anybody in
	}
	c := &http.Cookie{Name: tokenCookie, Path: logoutPath, HttpOnly: true, Secure: session.Secure(r),
		SameSite: http.SameSiteStrictMode, MaxAge: int(session.SessionLife / time.Second)}
	switch {
	case idToken == "":
		c.MaxAge = -1
	case len(idToken) > maxToken:
		c.Value = l.keptToken(who, noToken)
	default:
		c.Value = l.keptToken(who, idToken)
	}
	http.SetCookie(w, c)
}

// keptToken is what the browser keeps of an ID token: the token, and a proof that it is one of the session.
func (l *logins) keptToken(who *session.Session, idToken string) string {
	sum := l.Sessions.MAC("id token", who.ID+"\n"+idToken)
	return base64.RawURLEncoding.EncodeToString(sum) + "." + idToken
}

// remembered returns the ID token that the browser has kept for a session, "" if it was too long; false: no provider
// has let the visitor in.
func (l *logins) remembered(r *http.Request, who *session.Session) (idToken string, ok bool) {
	for _, c := range r.CookiesNamed(tokenCookie) {
		_, idToken, _ = strings.Cut(c.Value, ".")
		if hmac.Equal([]byte(c.Value), []byte(l.keptToken(who, idToken))) {
			return strings.TrimPrefix(idToken, noToken), true
		}
	}
	return "", false
}

// logout ends the session, and the one at the provider that let the visitor in. That is asked for by a page that goes
// on by itself: forms of this page lead to no other site.
func (l *logins) logout(w http.ResponseWriter, r *http.Request, in *session.Session) {
	l.LogOut(r.Context(), in)
	l.Log.Info("session ended", "user", in.User, "uid", in.UID)
	session.SetCookie(w, r, "")
	l.remember(w, r, in, "")
	to := ""
	if idToken, ok := l.remembered(r, in); ok {
		s, err := l.settings(), error(nil)
		if to, err = l.providers.Leave(&s, idToken, time.Now()); err != nil {
			l.Log.Warn("the provider was not told that a session has ended", "user", in.User, "err", err)
		}
	}
	if to == "" {
		http.Redirect(w, r, "/", http.StatusSeeOther)
		return
	}
	w.Header().Set("Refresh", "0; url="+to)
	l.render(w, r, nil, http.StatusOK, "say", "Logged out",
		"You are logged out. The single sign-on provider has been asked to end its session as well.")
}

// refuse tells the visitor and the log why there is no session.
func (l *logins) refuse(w http.ResponseWriter, r *http.Request, v ui.Login, by string, err error) {
	l.refused.Say(l.Log.Info, "login refused", "user", v.Name, "by", by, "from", r.RemoteAddr, "err", err)
	v.Refusal = "Not logged in: " + err.Error() + "."
	l.offer(w, r, http.StatusForbidden, v)
}

// sessionOf is the session of a user of this server's system. Root, and who runs the servers or their programs
// (SlurmUser), come by a link alone: what they may do is not left to a provider or a password.
func (l *logins) sessionOf(name string) (none session.Session, err error) {
	who, err := users.Caller(name)
	if err != nil {
		return none, err
	}
	if who.Operator() || who.User == l.Snapshot().Config().ServerUser {
		return none, cluster.Errorf(cluster.Denied, cluster.ErrAccess,
			"%s logs in by a link alone, which muster ui prints", name)
	}
	return session.Begin(session.Session{
		UID: who.UID, GID: who.GID, User: who.User, Groups: who.Groups,
	}, time.Now()), nil
}

// safePlace refuses what would go over a network for all to read: passwords, and what is typed in a shell. It returns
// the address whose failed attempts count together.
func safePlace(r *http.Request) (address string, err error) {
	o := origin.Of(r)
	if !o.Secure && (o.Proxied || !o.Address.IsLoopback()) {
		return "", cluster.Errorf(cluster.Denied, cluster.ErrAccess,
			"login requires TLS (PageCertificate in muster.conf; for a proxy with TLS, TrustedProxies)")
	}
	if !o.Address.IsValid() {
		return "", nil
	}
	if o.Address.Is6() { // whoever has one has all of the network
		p, err := o.Address.Prefix(64)
		return p.Addr().String(), err
	}
	return o.Address.String(), nil
}

// nobody is a name that no user has.
const nobody = "-"

func (l *logins) byPassword(w http.ResponseWriter, r *http.Request) {
	if !readForm(w, r, maxForm) {
		return
	}
	s := l.settings()
	v := ui.Login{To: landing(r.PostForm.Get("to")), Name: strings.TrimSpace(r.PostForm.Get("user"))}
	if s.Password == "" {
		l.say(w, r, http.StatusNotFound, "Page not found", "Password login is disabled (PagePassword in muster.conf).")
		return
	}
	address, err := safePlace(r)
	who, refused := l.sessionOf(v.Name)
	name := v.Name
	if refused != nil {
		name = nobody // root's password is answered as a wrong one is, and as late
	}
	if err == nil {
		err = l.passwords.Check(r.Context(), &s, name, r.PostForm.Get("password"), address)
	}
	if err == nil {
		err = refused
	}
	if err != nil {
		l.refuse(w, r, v, "password", err)
		return
	}
	if l.open(w, r, who, "password", "") {
		http.Redirect(w, r, v.To, http.StatusSeeOther)
	}
}

// flowName is that of the cookie that holds a login that has gone to the provider.
const flowName = "muster-oidc"

// flowCookie holds a login that has gone to the provider. Browsers send it with the way back, which comes from another
// site: so it is Lax.
func flowCookie(r *http.Request, value string) *http.Cookie {
	c := &http.Cookie{
		Name: session.CookieName(r, flowName), Value: value, Path: "/", HttpOnly: true, Secure: session.Secure(r),
		SameSite: http.SameSiteLaxMode, MaxAge: int(login.FlowLife / time.Second),
	}
	if value == "" {
		c.MaxAge = -1
	}
	return c
}

func (l *logins) toProvider(w http.ResponseWriter, r *http.Request) {
	s := l.settings()
	v := ui.Login{To: landing(r.URL.Query().Get("to"))}
	if s.OIDC.Issuer == "" {
		l.say(w, r, http.StatusNotFound, "Page not found",
			"Single sign-on is not configured (OIDCIssuer in muster.conf).")
		return
	}
	at, flow, err := l.providers.Begin(&s, v.To, time.Now())
	if err != nil {
		l.refuse(w, r, v, "provider", err)
		return
	}
	value, err := l.Sessions.Sign("oidc", &flow)
	if err != nil {
		l.refuse(w, r, v, "provider", err)
		return
	}
	http.SetCookie(w, flowCookie(r, value))
	http.Redirect(w, r, at, http.StatusSeeOther)
}

// fromProvider ends a login. The session's cookie is Strict, and browsers do not send it along on a way that another
// site began: so the answer is a page that goes on by itself.
func (l *logins) fromProvider(w http.ResponseWriter, r *http.Request) {
	s, flow := l.settings(), login.Flow{}
	http.SetCookie(w, flowCookie(r, ""))
	c, err := r.Cookie(session.CookieName(r, flowName))
	if s.OIDC.Issuer == "" || err != nil || !l.Sessions.Signed("oidc", c.Value, &flow) {
		l.refuse(w, r, ui.Login{To: "/"}, "provider",
			cluster.Errorf(cluster.Denied, "", "this browser has not started a login, or the login has expired"))
		return
	}
	v := ui.Login{To: landing(flow.To)}
	visitor, err := l.providers.Finish(r.Context(), &s, &flow, r.URL.Query(), time.Now())
	who := session.Session{}
	if err == nil {
		v.Name = visitor.User
		who, err = l.sessionOf(visitor.User)
	}
	if err == nil {
		err = l.level(r.Context(), &s, who.User, &visitor)
	}
	if err != nil {
		l.refuse(w, r, v, "provider", err)
		return
	}
	if l.open(w, r, who, "provider", visitor.Token) {
		w.Header().Set("Refresh", "0; url="+v.To)
		l.render(w, r, &who, http.StatusOK, "say", "Logged in", "You are logged in as "+who.User+".")
	}
}

// level gives a user the AdminLevel in the books that the groups at the provider say, where muster.conf has it so.
func (l *logins) level(ctx context.Context, s *webpage.Settings, name string, v *login.Visitor) error {
	level, decides := v.Level(s)
	if !decides {
		return nil
	}
	user := cluster.User{Name: name}
	old, there := l.Snapshot().User(name)
	if there {
		user = *old
	}
	if cmp.Or(user.AdminLevel, "None") == cmp.Or(level, "None") {
		return nil
	}
	user.AdminLevel = level
	by := api.Caller{Identity: cluster.Identity{User: cluster.RootName}}
	_, err := api.CallAs(ctx, l.Call, by, api.ChangeAccounts, cluster.ChangeAccounts{
		Changes: []cluster.Change{{User: &user}}})
	l.Log.Info("level by groups of the provider", "user", name, "level", cmp.Or(level, "None"), "err", err)
	return err
}
