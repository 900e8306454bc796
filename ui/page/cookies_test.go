package page

import (
	"crypto/tls"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"dev.muster/agent/session"
	"dev.muster/cluster"
)

// cookieSite is the page of a site with a provider, which answers nothing but where it is asked.
func cookieSite(t *testing.T) (*pages, http.Handler) {
	t.Helper()
	var at string
	provider := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_ = json.NewEncoder(w).Encode(map[string]any{"issuer": at, "authorization_endpoint": at + "/a",
			"token_endpoint": at + "/t", "jwks_uri": at + "/k", "end_session_endpoint": at + "/end"})
	}))
	t.Cleanup(provider.Close)
	at = provider.URL
	s, state := pageServer(t, 1, 0)
	cfg := *state.Snapshot().Config()
	cfg.Keys = map[string]string{"oidcissuer": at, "oidcclientid": "page", "pageurl": "https://page.example"}
	out := state.Apply(cluster.Entry{Index: 1000, At: time.Now(), By: cluster.Identity{System: true},
		Cmd: &cluster.Configure{Config: &cfg}})
	if out.Err != nil {
		t.Fatal(out.Err)
	}
	return s, s.handler()
}

// visit makes a request by TLS, or without, with cookies in their order.
func visit(h http.Handler, secure bool, method, path string, form url.Values,
	cookies ...*http.Cookie) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, path, strings.NewReader(form.Encode()))
	if form != nil {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	if secure {
		r.TLS = &tls.ConnectionState{}
	}
	for _, c := range cookies {
		r.AddCookie(c)
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

// TestPlantedSessions: by TLS no cookie is a session but one that other hosts of the domain cannot plant, and that
// nobody can have read on the way.
func TestPlantedSessions(t *testing.T) {
	s, h := cookieSite(t)
	cookie := func(name, user string, tls bool) *http.Cookie {
		who := session.Begin(session.Session{UID: 1, GID: 1, User: user, TLS: tls}, time.Now())
		value, err := s.Sessions.Seal(&who)
		if err != nil {
			t.Fatal(err)
		}
		return &http.Cookie{Name: name, Value: value}
	}
	own := cookie("__Host-muster", "bob", true)
	planted := cookie("muster", "eve", true)
	for _, c := range []struct {
		name    string
		secure  bool
		cookies []*http.Cookie
		user    string
	}{
		{"of its own", true, []*http.Cookie{own}, "bob"},
		{"planted first", true, []*http.Cookie{planted, own}, "bob"},
		{"planted last", true, []*http.Cookie{own, planted}, "bob"},
		{"planted alone", true, []*http.Cookie{planted}, ""},
		{"of another case", true, []*http.Cookie{{Name: "__host-muster", Value: planted.Value}}, ""},
		{"begun without TLS", true, []*http.Cookie{cookie("__Host-muster", "eve", false)}, ""},
		{"begun by TLS, shown without", false, []*http.Cookie{cookie("muster", "eve", true)}, ""},
		{"without TLS", false, []*http.Cookie{cookie("muster", "bob", false)}, "bob"},
	} {
		t.Run(c.name, func(t *testing.T) {
			text := visit(h, c.secure, "GET", "/queue", nil, c.cookies...).Body.String()
			for _, user := range []string{"bob", "eve"} {
				if has := strings.Contains(text, "<span>"+user+"</span>"); has != (user == c.user) {
					t.Errorf("session of %s: %v", user, has)
				}
			}
		})
	}
}

// TestPlantedLogin: a login at the provider that another browser began cannot be planted by TLS.
func TestPlantedLogin(t *testing.T) {
	_, h := cookieSite(t)
	begin := func(secure bool) (*http.Cookie, string) {
		w := visit(h, secure, "GET", "/login/oidc", nil)
		u, err := url.Parse(w.Header().Get("Location"))
		if err != nil || w.Code != 303 || len(w.Result().Cookies()) != 1 {
			t.Fatalf("begin: %d %v %s", w.Code, err, w.Body)
		}
		return w.Result().Cookies()[0], "/login/oidc/done?code=c&state=" + u.Query().Get("state")
	}
	own, back := begin(true)
	if own.Name != "__Host-muster-oidc" || own.Path != "/" || own.Domain != "" || !own.Secure || !own.HttpOnly ||
		own.SameSite != http.SameSiteLaxMode {
		t.Errorf("by TLS: %s", own)
	}
	theirs, theirBack := begin(true)
	plain, plainBack := begin(false)
	if plain.Name != "muster-oidc" || plain.Secure {
		t.Errorf("without TLS: %s", plain)
	}
	planted := &http.Cookie{Name: "muster-oidc", Value: theirs.Value}
	const none, taken = "has not started a login", "the provider gives no token" // it is asked about the code
	for _, c := range []struct {
		name    string
		secure  bool
		back    string
		cookies []*http.Cookie
		says    string
	}{
		{"planted alone", true, theirBack, []*http.Cookie{planted}, none},
		{"planted first", true, theirBack, []*http.Cookie{planted, own}, "(state)"},
		{"planted last", true, theirBack, []*http.Cookie{own, planted}, "(state)"},
		{"of its own", true, back, []*http.Cookie{planted, own}, taken},
		{"without TLS", false, plainBack, []*http.Cookie{plain}, taken},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := visit(h, c.secure, "GET", c.back, nil, c.cookies...)
			if w.Code != 403 || !strings.Contains(w.Body.String(), c.says) {
				t.Errorf("%d, want %q in %s", w.Code, c.says, w.Body)
			}
		})
	}
}

// TestPlantedToken: who logs out tells the provider the ID token of this session, and no other.
func TestPlantedToken(t *testing.T) {
	s, h := cookieSite(t)
	l := newLogins(s)
	for _, secure := range []bool{true, false} {
		open := func(token string) (session.Session, []*http.Cookie) {
			r, w := httptest.NewRequest("GET", "/", nil), httptest.NewRecorder()
			if secure {
				r.TLS = &tls.ConnectionState{}
			}
			who := session.Begin(session.Session{UID: 1, GID: 1, User: "bob"}, time.Now())
			if !l.open(w, r, who, "provider", token) {
				t.Fatal(w.Body)
			}
			return who, w.Result().Cookies()
		}
		leave := func(who session.Session, cookies ...*http.Cookie) string {
			w := visit(h, secure, "POST", "/logout", url.Values{"csrf": {s.Sessions.CSRF(&who)}}, cookies...)
			_, at, _ := strings.Cut(w.Header().Get("Refresh"), "url=")
			u, err := url.Parse(at)
			if err != nil {
				t.Fatal(err)
			}
			if at == "" {
				return "stays"
			}
			return u.Query().Get("id_token_hint")
		}
		_, theirs := open("their.id.token")
		for _, c := range []struct {
			name, token string
			planted     *http.Cookie
			want        string
		}{
			{"none planted", "own.id.token", nil, "own.id.token"},
			{"of another session", "own.id.token", theirs[1], "own.id.token"},
			{"made up", "own.id.token", &http.Cookie{Name: theirs[1].Name, Value: "their.id.token"}, "own.id.token"},
			{"nobody came by the provider", "", theirs[1], "stays"},
			{"too long", strings.Repeat("x", maxToken+1), theirs[1], ""},
		} {
			t.Run(c.name, func(t *testing.T) {
				who, own := open(c.token)
				cookies := []*http.Cookie{own[0]}
				if c.planted != nil {
					cookies = append(cookies, c.planted)
				}
				if got := leave(who, append(cookies, own[1])...); got != c.want {
					t.Errorf("told %q, want %q", got, c.want)
				}
			})
		}
	}
}
