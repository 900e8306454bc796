package page

import (
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"dev.muster/agent/origin"
	"dev.muster/cluster"
)

// TestLanding: after a login one comes to a path of the page, and to no other site.
func TestLanding(t *testing.T) {
	for to, want := range map[string]string{"/queue?user=a&state=pending": "/queue?user=a&state=pending",
		"/jobs/1_3": "/jobs/1_3", "": "/", "queue": "/", "//evil.example": "/", "/\\evil.example": "/",
		"https://evil.example/": "/", "javascript:alert(1)": "/", "/login?to=/": "/", "/a\r\nX: y": "/", "/%zz": "/"} {
		if got := landing(to); got != want {
			t.Errorf("%q: %q, want %q", to, got, want)
		}
	}
}

// TestSafePlace takes passwords by TLS, or from a browser on this machine; addresses of IPv6 count by their network.
func TestSafePlace(t *testing.T) {
	for _, c := range []struct{ at, trusted, headers, want, refused string }{
		{"127.0.0.1:1", "", "", "127.0.0.1", ""}, {"10.0.0.1:1", "", "", "", "yes"}, {"[::1]:1", "", "", "::", ""},
		{"127.0.0.1:1", "", "X-Forwarded-For", "", "yes"}, {"127.0.0.1:1", "", "Forwarded", "", "yes"},
		{"10.0.0.1:1", "", "X-Forwarded-Proto", "", "yes"}, {"127.0.0.1:1", "", "X-Forwarded-Proto", "", "yes"},
		{"10.0.0.1:1", "10.0.0.1", "X-Forwarded-Proto", "10.0.0.1", ""},
		{"10.0.0.1:1", "10.0.0.1", "X-Forwarded-For", "", "yes"},
	} {
		r := httptest.NewRequest("POST", "http://page/login/password", nil)
		r.RemoteAddr = c.at
		if c.headers != "" {
			r.Header.Set(c.headers, "https")
		}
		proxies, err := origin.Parse(strings.Fields(c.trusted))
		if err != nil {
			t.Fatal(err)
		}
		at, err := safePlace(origin.Marked(r, proxies))
		if at != c.want || (err != nil) != (c.refused != "") {
			t.Errorf("%+v: %q, %v", c, at, err)
		}
	}
}

// TestServerUsers: neither a provider nor a password opens a session of root or of SlurmUser.
func TestServerUsers(t *testing.T) {
	s, state := pageServer(t, 1, 0)
	l := newLogins(s)
	if who, err := l.sessionOf("daemon"); err != nil || who.User != "daemon" {
		t.Errorf("an ordinary user: %+v, %v", who, err)
	}
	cfg := *state.Snapshot().Config()
	cfg.ServerUser = "daemon"
	if out := state.Apply(cluster.Entry{
		Index: 1000, At: time.Now(), By: cluster.Identity{System: true},
		Cmd: &cluster.Configure{Config: &cfg},
	}); out.Err != nil {
		t.Fatal(out.Err)
	}
	for _, name := range []string{"root", "daemon"} {
		if who, err := l.sessionOf(name); err == nil || !strings.Contains(err.Error(), "by a link alone") {
			t.Errorf("%s: %+v, %v", name, who, err)
		}
	}
}
