package e2e

import (
	"bytes"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"database/sql"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	_ "modernc.org/sqlite" // the provider's database
)

// glewlwydTables is what Debian's package of the provider makes its database with.
const glewlwydTables = "/usr/share/dbconfig-common/data/glewlwyd/install/sqlite3"

// glewlwyd is a real OpenID provider, with its administrator logged in. Its users may change the property that becomes
// the claim preferred_username.
type glewlwyd struct {
	t     *testing.T
	url   string
	admin *http.Client
}

// startGlewlwyd starts the provider for a page, with users whose password is their name.
func startGlewlwyd(t *testing.T, page string, users ...string) *glewlwyd {
	t.Helper()
	program, err := exec.LookPath("glewlwyd")
	if err != nil {
		t.Skip("no glewlwyd: install it from Debian, and stop its service")
	}
	tables, err := os.ReadFile(glewlwydTables)
	if err != nil {
		t.Skip("no tables of glewlwyd: ", err)
	}
	dir, addr := t.TempDir(), freeAddr(t)
	db, err := sql.Open("sqlite", filepath.Join(dir, "db"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := db.Exec(string(tables)); err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	host, port, _ := strings.Cut(addr, ":")
	const lib = "/usr/lib/glewlwyd/"
	conf := fmt.Sprintf("port=%s\nbind_address=%q\nexternal_url=\"http://%s/\"\n", port, host, addr) +
		"api_prefix=\"api\"\nlog_mode=\"console\"\nlog_level=\"ERROR\"\nsession_key=\"SID\"\nsession_expiration=3600\n" +
		"login_url=\"login.html\"\nadmin_scope=\"g_admin\"\nprofile_scope=\"g_profile\"\nhash_algorithm=\"SHA512\"\n" +
		"user_module_path=\"" + lib + "user\"\nclient_module_path=\"" + lib + "client\"\n" +
		"user_auth_scheme_module_path=\"" + lib + "scheme\"\nplugin_module_path=\"" + lib + "plugin\"\n" +
		"static_files_path=\"/usr/share/glewlwyd/webapp/\"\n" +
		"static_files_mime_types = ({ extension = \".html\"; mime_type = \"text/html\"; });\n" +
		"database = { type = \"sqlite3\"; path = \"" + filepath.Join(dir, "db") + "\"; };\n"
	cmd := exec.Command(program, "--config-file="+writeFile(t, "glewlwyd.conf", conf))
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	g := &glewlwyd{t: t, url: "http://" + addr, admin: webClient(t, "")}
	for end := time.Now().Add(20 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		r, err := http.Get(g.url + "/api/config")
		if err == nil {
			_ = r.Body.Close()
			break
		}
		if time.Now().After(end) {
			t.Fatal("the provider does not answer: ", err)
		}
	}
	g.setUp(page, users)
	return g
}

// call makes a call of the provider's own API, and reads its answer.
func (g *glewlwyd) call(c *http.Client, method, path string, in, out any) {
	g.t.Helper()
	body, err := json.Marshal(in)
	if err != nil {
		g.t.Fatal(err)
	}
	r, err := http.NewRequest(method, g.url+"/api"+path, bytes.NewReader(body))
	if err != nil {
		g.t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	w, err := c.Do(r)
	if err != nil {
		g.t.Fatal(err)
	}
	defer w.Body.Close()
	text, err := io.ReadAll(w.Body)
	if err == nil && w.StatusCode != http.StatusOK {
		err = fmt.Errorf("%d", w.StatusCode)
	}
	if err == nil && out != nil {
		err = json.Unmarshal(text, out)
	}
	if err != nil {
		g.t.Fatalf("%s %s: %v: %s", method, path, err, text)
	}
}

type object = map[string]any

// setUp makes the provider one of OpenID Connect for a page.
func (g *glewlwyd) setUp(page string, users []string) {
	g.t.Helper()
	g.call(g.admin, "POST", "/auth", object{"username": "admin", "password": "password"}, nil)
	var modules []object
	g.call(g.admin, "GET", "/mod/user/", nil, &modules)
	format := modules[0]["parameters"].(object)["data-format"].(object)
	format["preferred"] = object{"read": true, "write": true, "profile-read": true, "profile-write": true}
	g.call(g.admin, "PUT", "/mod/user/database", modules[0], nil)
	g.call(g.admin, "PUT", "/mod/user/database/reset", object{}, nil)
	g.call(g.admin, "POST", "/mod/plugin/", g.plugin(), nil)
	g.call(g.admin, "POST", "/scope/", object{"name": "profile", "password_required": true, "scheme": object{}}, nil)
	g.call(g.admin, "POST", "/client/", object{"client_id": "page", "confidential": true, "enabled": true,
		"client_secret": "secret of page", "redirect_uri": []string{page + "/login/oidc/done"},
		"authorization_type": []string{"code"}, "scope": []string{"openid", "profile"}, "source": "database",
		"token_endpoint_auth_method": []string{"client_secret_basic", "client_secret_post"}}, nil)
	for _, u := range users {
		g.call(g.admin, "POST", "/user/?source=database", object{"username": u, "password": u, "preferred": u,
			"enabled": true, "scope": []string{"g_profile", "openid", "profile"}}, nil)
	}
}

// plugin is the provider's part for OpenID Connect, with a new key.
func (g *glewlwyd) plugin() object {
	g.t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		g.t.Fatal(err)
	}
	public, err := x509.MarshalPKIXPublicKey(&key.PublicKey)
	if err != nil {
		g.t.Fatal(err)
	}
	text := func(kind string, der []byte) string {
		return string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}))
	}
	return object{"module": "oidc", "name": "oidc", "parameters": object{
		"iss": g.url + "/api/oidc", "jwt-type": "rsa", "jwt-key-size": "256", "jwks-show": true,
		"key":  text("RSA PRIVATE KEY", x509.MarshalPKCS1PrivateKey(key)),
		"cert": text("PUBLIC KEY", public), "access-token-duration": 3600, "refresh-token-duration": 3600,
		"code-duration": 600, "refresh-token-rolling": true, "allow-non-oidc": false,
		"auth-type-code-enabled": true, "auth-type-id-token-enabled": true, "auth-type-refresh-enabled": true,
		"auth-type-token-enabled": false, "auth-type-password-enabled": false, "auth-type-client-enabled": false,
		"pkce-allowed": true, "pkce-method-plain-allowed": false, "subject-type": "public",
		"session-management-allowed": true, "session-cookie-name": "OIDC_SID", "session-cookie-expiration": 3600,
		"address-claim": object{"type": "no"}, "name-claim": "no", "email-claim": "no", "scope-claim": "no",
		"allowed-scope": []string{"openid"}, "claims": []object{{"name": "preferred_username", "type": "string",
			"mandatory": true, "user-property": "preferred", "on-demand": false, "scope": []string{}}}}}
}

// visitor is a browser whose user has logged in at the provider, and lets the page know who that is.
func (g *glewlwyd) visitor(authorities, user string) *http.Client {
	g.t.Helper()
	c := webClient(g.t, authorities)
	g.call(c, "POST", "/auth", object{"username": user, "password": user}, nil)
	g.call(c, "PUT", "/auth/grant/page", object{"scope": "openid profile"}, nil)
	return c
}

// rename has a user change the claim.
func (g *glewlwyd) rename(c *http.Client, to string) {
	g.t.Helper()
	var list []object
	g.call(c, "GET", "/profile_list", nil, &list)
	list[0]["preferred"] = to
	g.call(c, "PUT", "/profile", list[0], nil)
}

// begin begins a login at the page, and returns where the provider sends the browser back to.
func (g *glewlwyd) begin(c *http.Client, page string) string {
	g.t.Helper()
	w, text := answer(g.t, c, "GET", page+"/login/oidc?to=/plan", nil)
	if w.StatusCode != http.StatusSeeOther {
		g.t.Fatalf("begin: %d %s", w.StatusCode, text)
	}
	w, text = answer(g.t, c, "GET", w.Header.Get("Location")+"&g_continue", nil)
	back := w.Header.Get("Location")
	if !strings.HasPrefix(back, page+"/login/oidc/done?") {
		g.t.Fatalf("the provider: %d to %s %s", w.StatusCode, back, text)
	}
	return back
}

// TestLiveProvider: visitors log in by a real OpenID provider; answers that were used, or are of others, open no
// session, and neither does a name that a user of the provider has chosen, unless it is one of the system's.
func TestLiveProvider(t *testing.T) {
	t.Parallel()
	addr, dir := freeAddr(t), t.TempDir()
	page := "https://" + addr
	g := startGlewlwyd(t, page, "daemon", "eve")
	secret := writeFile(t, "secret", "secret of page\n")
	startDev(t, "--hollow", "1x8c16g", "--http", addr, "--conf", confWith(t, dir, "PageCertificate=cluster\nPageURL="+
		page+"\nOIDCIssuer="+g.url+"/api/oidc\nOIDCClientID=page\nOIDCSecretFile="+secret+"\n"))
	_, ca := answer(t, webClient(t, ""), "GET", "http://"+addr+"/authority.pem", nil)
	user := func(c *http.Client) string {
		_, text := answer(t, c, "GET", page+"/queue", nil)
		_, text, _ = strings.Cut(text, "<span>")
		name, _, _ := strings.Cut(text, "</span>")
		return strings.TrimSpace(name)
	}
	refused := func(what string, c *http.Client, at, says string) {
		t.Helper()
		if w, text := answer(t, c, "GET", at, nil); w.StatusCode != 403 || !strings.Contains(text, says) {
			t.Errorf("%s: %d, want %q\n%s", what, w.StatusCode, says, text)
		}
	}

	c := g.visitor(ca, "daemon")
	back := g.begin(c, page)
	kept := cookiesAt(t, c, page+"/login/oidc/done")
	w, text := answer(t, c, "GET", back, nil)
	if w.StatusCode != 200 || w.Header.Get("Refresh") != "0; url=/plan" || user(c) != "daemon" {
		t.Fatalf("login: %d %s", w.StatusCode, text)
	}
	again := webClient(t, ca)
	setCookies(t, again, page, kept)
	refused("the same answer again", again, back, "was ended before")
	fresh := g.begin(c, page)
	refused("a code that was used", c, withCode(t, fresh, back), "does not take the code")

	eve := g.visitor(ca, "eve")
	theirs := g.begin(eve, page)
	g.begin(c, page)
	refused("another's answer", c, theirs, "(state)")
	refused("another's code", c, withCode(t, g.begin(c, page), theirs), "does not take the code")
	for name, says := range map[string]string{"root": "root logs in by a link alone", "Daemon": "does not exist",
		"daemon ": "does not exist", "ｒｏｏｔ": "does not exist", "0": "does not exist", "1": "does not exist",
		"daemon@elsewhere": "does not exist"} {
		g.rename(eve, name)
		refused("the name "+name, eve, g.begin(eve, page), says)
	}

	g.call(g.admin, "PUT", "/mod/plugin/oidc", g.plugin(), nil)
	g.call(g.admin, "PUT", "/mod/plugin/oidc/reset", object{}, nil)
	c = g.visitor(ca, "daemon")
	if w, text := answer(t, c, "GET", g.begin(c, page), nil); w.StatusCode != 200 || user(c) != "daemon" {
		t.Errorf("by a new key: %d %s", w.StatusCode, text)
	}
	m := csrfField.FindStringSubmatch(first(answer(t, c, "GET", page+"/queue", nil)))
	w, _ = answer(t, c, "POST", page+"/logout", url.Values{"csrf": {m[1]}})
	if to := w.Header.Get("Refresh"); !strings.Contains(to, "/end_session?") || !strings.Contains(to, "id_token_hint=ey") ||
		user(c) != "" {
		t.Errorf("log out: on to %q as %q", to, user(c))
	}
}

// first is the text of an answer.
func first(_ *http.Response, text string) string { return text }

// withCode is an answer of the provider with the code of another.
func withCode(t *testing.T, answer, other string) string {
	t.Helper()
	u, err := url.Parse(answer)
	if err != nil {
		t.Fatal(err)
	}
	o, err := url.Parse(other)
	if err != nil {
		t.Fatal(err)
	}
	q := u.Query()
	q.Set("code", o.Query().Get("code"))
	u.RawQuery = q.Encode()
	return u.String()
}

// cookiesAt are those that a browser sends to an address.
func cookiesAt(t *testing.T, c *http.Client, at string) []*http.Cookie {
	t.Helper()
	u, err := url.Parse(at)
	if err != nil {
		t.Fatal(err)
	}
	return c.Jar.(*cookiejar.Jar).Cookies(u)
}

// setCookies has a browser send cookies to an address.
func setCookies(t *testing.T, c *http.Client, at string, list []*http.Cookie) {
	t.Helper()
	u, err := url.Parse(at)
	if err != nil {
		t.Fatal(err)
	}
	for _, k := range list {
		k.Secure, k.Path = true, "/"
	}
	c.Jar.SetCookies(u, list)
}

// TestLiveProviderBrowser: a browser that keeps to the rules of cookies by TLS comes back from the provider's site and
// has a session.
func TestLiveProviderBrowser(t *testing.T) {
	t.Parallel()
	b := startBrowser(t, t.TempDir())
	if b == nil {
		t.Skip("no chromium")
	}
	addr, dir := freeAddr(t), t.TempDir()
	page := "https://" + addr
	g := startGlewlwyd(t, page, "daemon")
	secret := writeFile(t, "secret", "secret of page\n")
	startDev(t, "--hollow", "1x8c16g", "--http", addr, "--conf", confWith(t, dir, "PageCertificate=cluster\nPageURL="+
		page+"\nOIDCIssuer="+g.url+"/api/oidc\nOIDCClientID=page\nOIDCSecretFile="+secret+"\n"))
	b.call("Security.setIgnoreCertificateErrors", map[string]any{"ignore": true}, nil)
	b.open(g.url+"/login.html", 1000, "light")
	const ask = `(m, u, d) => { const x = new XMLHttpRequest(); x.open(m, u, false);
		x.setRequestHeader("Content-Type", "application/json"); x.send(JSON.stringify(d)); return String(x.status) }`
	if got := b.run("[(" + ask + `)("POST", "/api/auth", {username: "daemon", password: "daemon"}), (` + ask +
		`)("PUT", "/api/auth/grant/page", {scope: "openid profile"})]`); strings.Join(got, " ") != "200 200" {
		t.Fatalf("at the provider: %q", got)
	}
	b.open(page+"/login/oidc?to=/plan", 1000, "light")
	to := b.seen(`new URL(location.href).searchParams.get("callback_url") || ""`) // its login page goes there
	if !strings.HasPrefix(to, g.url) {
		t.Fatalf("the provider's login page leads to %q, from %s", to, b.seen("location.href"))
	}
	b.run(fmt.Sprintf("location.href = %q, []", to+"&g_continue"))
	for end := time.Now().Add(patience(browserTime)); ; time.Sleep(20 * time.Millisecond) {
		at := b.seen("document.readyState == 'complete' ? location.pathname + ' ' + document.body.innerText : ''")
		if strings.HasPrefix(at, "/plan") && strings.Contains(at, "daemon") {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("it is at %s", at)
		}
	}
	if text := b.seen("document.cookie"); strings.Contains(text, "muster") { // the provider's are of the same host
		t.Errorf("scripts see the cookie %s", text)
	}
}
