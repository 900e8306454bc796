package e2e

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"io"
	"math/big"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"
	"github.com/golang-jwt/jwt/v5"
)

// confWith writes a slurm.conf and a muster.conf, and returns the path of the first.
func confWith(t *testing.T, dir, muster string) string {
	t.Helper()
	for name, text := range map[string]string{"slurm.conf": "ClusterName=c\nPartitionName=p Nodes=ALL Default=YES\n",
		"muster.conf": muster} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return filepath.Join(dir, "slurm.conf")
}

// webClient is a browser with cookies that trusts some authorities, and does not follow where it is sent.
func webClient(t *testing.T, authorities string) *http.Client {
	t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM([]byte(authorities))
	return &http.Client{Jar: jar, Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
}

// answer makes a request and reads all of its answer.
func answer(t *testing.T, c *http.Client, method, at string, form url.Values, header ...string) (*http.Response,
	string) {
	t.Helper()
	r, err := http.NewRequest(method, at, strings.NewReader(form.Encode()))
	if err != nil {
		t.Fatal(err)
	}
	if form != nil {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	w, err := c.Do(r)
	if err != nil {
		t.Fatalf("%s %s: %v", method, at, err)
	}
	defer w.Body.Close()
	body, err := io.ReadAll(w.Body)
	if err != nil {
		t.Fatal(err)
	}
	return w, string(body)
}

// TestPageTLS: with a certificate of the cluster's own authority, or one of files, the page and REST are reached by TLS
// alone; who comes without is sent on, and tokens that were sent without are refused.
func TestPageTLS(t *testing.T) {
	t.Parallel()
	addr, dir := freeAddr(t), t.TempDir()
	d := startDev(t, "--hollow", "1x8c16g", "--hollow-exec", "--http", addr, "--conf", confWith(t, dir,
		"PageCertificate=cluster\nPageShell=yes\n"))
	plain := webClient(t, "")
	if w, _ := answer(t, plain, "GET", "http://"+addr+"/queue?state=pending", nil); w.StatusCode != 307 ||
		w.Header.Get("Location") != "https://"+addr+"/queue?state=pending" {
		t.Errorf("without TLS: %d to %s", w.StatusCode, w.Header.Get("Location"))
	}
	if w, _ := answer(t, plain, "GET", "http://"+addr+"/livez", nil); w.StatusCode != 200 {
		t.Errorf("a load balancer gets %d", w.StatusCode)
	}
	token := tokenOf(t, d, 0)
	jobs := "://" + addr + "/slurm/v0.0.44/jobs"
	if w, text := answer(t, plain, "GET", "http"+jobs, nil, "X-SLURM-USER-TOKEN", token); w.StatusCode != 403 ||
		!strings.Contains(text, "make a new token") {
		t.Errorf("a token without TLS: %d %s", w.StatusCode, text)
	}
	_, ca := answer(t, plain, "GET", "http://"+addr+"/authority.pem", nil)
	c := webClient(t, ca)
	if w, _ := answer(t, c, "GET", "https"+jobs, nil, "X-SLURM-USER-TOKEN", token); w.StatusCode != 200 {
		t.Errorf("a token with TLS: %d", w.StatusCode)
	}
	link := d.must("muster", "ui")
	if !strings.HasPrefix(link, "https://"+addr+"/login?once=") {
		t.Fatalf("the link is %s", link)
	}
	_, once, _ := strings.Cut(link, "once=")
	w, text := answer(t, c, "POST", "https://"+addr+"/login", url.Values{"once": {once}})
	if set := w.Header.Get("Set-Cookie"); w.StatusCode != 303 || !strings.HasPrefix(set, "__Host-muster=") ||
		!strings.Contains(set, "; Secure") {
		t.Errorf("login: %d %s %s", w.StatusCode, set, text)
	}
	job := d.must("sbatch", "--parsable", "-o", "/dev/null", "--wrap", "sleep 1000")
	d.wait("a way into the job", func() bool { // squeue calls it running before its node has said so
		_, page := answer(t, c, "GET", "https://"+addr+"/jobs/"+job, nil)
		return strings.Contains(page, "open a shell")
	})
	ws, _, err := websocket.Dial(t.Context(), "wss://"+addr+"/jobs/"+job+"/shell/socket",
		&websocket.DialOptions{HTTPClient: c})
	if err != nil {
		t.Fatalf("a shell by TLS: %v", err)
	}
	if err := ws.Write(t.Context(), websocket.MessageText, []byte(`{"cols":80,"rows":24}`)); err != nil {
		t.Fatal(err)
	}
	if err := ws.Write(t.Context(), websocket.MessageBinary, []byte("echo $((6*7)); exit\n")); err != nil {
		t.Fatal(err)
	}
	shown := ""
	for err == nil {
		var more []byte
		_, more, err = ws.Read(t.Context())
		shown += string(more)
	}
	if !strings.Contains(shown, "42") || !strings.Contains(err.Error(), "the shell has ended") {
		t.Errorf("a shell by TLS: %q, %v", shown, err)
	}
	if out := d.must("muster", "config", "show"); !strings.Contains(out, "PageCertificate=cluster") {
		t.Errorf("muster config show: %s", out)
	}

	files := certificateFiles(t, dir)
	confWith(t, dir, "PageCertificate="+dir+"/p.pem\nPageKey="+dir+"/p.key\n")
	d.must("scontrol", "reconfigure")
	w, _ = answer(t, webClient(t, files), "GET", "https://"+addr+"/queue", nil)
	if w.StatusCode != 200 || w.TLS.PeerCertificates[0].Subject.CommonName != "from a file" {
		t.Errorf("with files: %d, %v", w.StatusCode, w.TLS.PeerCertificates[0].Subject)
	}
	other := freeAddr(t)
	confWith(t, dir, "PageCertificate=cluster\nPageRedirect="+other+"\n")
	d.must("scontrol", "reconfigure")
	d.wait("the other port", func() bool {
		r, err := plain.Get("http://" + other + "/map?by=job")
		if err != nil {
			return false
		}
		defer r.Body.Close()
		return r.StatusCode == 307 && r.Header.Get("Location") == "https://"+addr+"/map?by=job"
	})
	confWith(t, dir, "PageCertificate=no\n")
	d.must("scontrol", "reconfigure")
	if w, _ := answer(t, webClient(t, ""), "GET", "http://"+addr+"/queue", nil); w.StatusCode != 200 {
		t.Errorf("turned off again: %d", w.StatusCode)
	}
	confWith(t, dir, "PageCertificates=cluster\n")
	if _, errs, code := d.run("scontrol", "reconfigure"); code == 0 || !strings.Contains(errs, "there is no such key") {
		t.Errorf("a mistyped key: %d %s", code, errs)
	}
}

// certificateFiles writes p.pem and p.key for 127.0.0.1, which sign themselves.
func certificateFiles(t *testing.T, dir string) string {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	c := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "from a file"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), IPAddresses: nil,
		DNSNames: []string{"localhost"}, IsCA: true, BasicConstraintsValid: true}
	c.IPAddresses = append(c.IPAddresses, []byte{127, 0, 0, 1})
	der, err := x509.CreateCertificate(rand.Reader, c, c, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	cert := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	for name, text := range map[string][]byte{"p.pem": cert,
		"p.key": pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret})} {
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return string(cert)
}

// TestPageOIDC: visitors log in by an OpenID provider and come to what they asked for; what is not as it should be is
// told in a sentence and opens no session.
func TestPageOIDC(t *testing.T) {
	t.Parallel()
	addr, dir := freeAddr(t), t.TempDir()
	page := "http://" + addr
	i := startIssuer(t, "daemon")
	d := startDev(t, "--hollow", "1x8c16g", "--http", addr, "--conf", confWith(t, dir, "StatusPage=login\nPageURL="+
		page+"\nOIDCIssuer="+i.url+"\nOIDCClientID="+issuerClient+"\nOIDCGroupClaim=groups\nOIDCOperators=hpc-ops\n"))

	// begin goes to the provider and returns where that sends the browser back to.
	begin := func(c *http.Client) string {
		w, text := answer(t, c, "GET", page+"/login/oidc?to="+url.QueryEscape("/queue?user=me"), nil)
		if w.StatusCode != 303 {
			t.Fatalf("begin: %d %s", w.StatusCode, text)
		}
		w, text = answer(t, c, "GET", w.Header.Get("Location"), nil)
		if w.StatusCode != 302 {
			t.Fatalf("the provider: %d %s", w.StatusCode, text)
		}
		return w.Header.Get("Location")
	}
	inside := func(c *http.Client) bool {
		w, text := answer(t, c, "GET", page+"/queue", nil)
		return w.StatusCode == 200 && strings.Contains(text, "log out")
	}

	c := webClient(t, "")
	w, _ := answer(t, c, "GET", page+"/queue?user=me", nil, "Accept", "text/html")
	if to := w.Header.Get("Location"); w.StatusCode != 303 || to != "/login?to=%2Fqueue%3Fuser%3Dme" {
		t.Errorf("StatusPage=login: %d to %s", w.StatusCode, to)
	}
	if w, _ := answer(t, c, "GET", page+"/metrics", nil); w.StatusCode != 403 {
		t.Errorf("StatusPage=login: metrics %d", w.StatusCode)
	}
	for _, path := range []string{"/", "/queue", "/map", "/plan", "/live", "/accounts.csv", "/usage.csv", "/v1/events",
		"/metrics/jobs", "/metrics/compat", "/metrics/hardware", "/jobs/1", "/jobs/1/log/more", "/find?q=1",
		"/submit", "/nope"} {
		w, text := answer(t, c, "GET", page+path, nil)
		if w.StatusCode != 403 || strings.Contains(text, "node-001") {
			t.Errorf("StatusPage=login: %s %d", path, w.StatusCode)
		}
	}
	for _, path := range []string{"/livez", "/login", "/static/page.css"} {
		if w, _ := answer(t, c, "GET", page+path, nil); w.StatusCode != 200 {
			t.Errorf("StatusPage=login: %s %d", path, w.StatusCode)
		}
	}
	token := "Bearer " + tokenOf(t, d, daemonUID)
	if w, _ := answer(t, c, "GET", page+"/metrics", nil, "Authorization", token); w.StatusCode != 200 {
		t.Errorf("a scraper with a token: %d", w.StatusCode)
	}
	if _, text := answer(t, c, "GET", page+"/login?to=/plan", nil); !strings.Contains(text, "/login/oidc?to=%2Fplan") ||
		strings.Contains(text, `type="password"`) {
		t.Errorf("the form: %s", text)
	}
	back := begin(c)
	w, text := answer(t, c, "GET", back, nil)
	if w.StatusCode != 200 || w.Header.Get("Refresh") != "0; url=/queue?user=me" || !inside(c) {
		t.Errorf("login: %d, %q\n%s", w.StatusCode, w.Header.Get("Refresh"), text)
	}
	if w, text := answer(t, c, "GET", back, nil); w.StatusCode != 403 ||
		!strings.Contains(text, "has not started a login, or the login has expired") {
		t.Errorf("the same answer again: %d %s", w.StatusCode, text)
	}

	leaves(t, c, page, page+"/")
	if inside(c) {
		t.Error("the session goes on")
	}

	other := webClient(t, "")
	begin(other)
	says := func(name, value string) func(jwt.MapClaims) {
		return func(c jwt.MapClaims) { c[name] = value }
	}
	late := func(claims jwt.MapClaims) { claims["exp"] = time.Now().Add(-time.Minute).Unix() }
	for name, x := range map[string]struct {
		says  string
		twist func(jwt.MapClaims)
		sign  func(*jwt.Token) string
		back  func(string) string
	}{
		"wrong state":             {says: "(state)", back: func(at string) string { return at + "x" }},
		"another browser's state": {says: "(state)", back: func(string) string { return begin(other) }},
		"wrong nonce":             {says: "(nonce)", twist: says("nonce", "n")},
		"no nonce":                {says: "(nonce)", twist: says("nonce", "")},
		"expired":                 {says: "has expired", twist: late},
		"wrong audience":          {says: "(audience)", twist: says("aud", "mail")},
		"wrong issuer":            {says: "(issuer)", twist: says("iss", "http://elsewhere")},
		"alg=none": {says: "(algorithm)", sign: func(t *jwt.Token) string {
			text, _ := jwt.NewWithClaims(jwt.SigningMethodNone, t.Claims).SignedString(jwt.UnsafeAllowNoneSignatureType)
			return text
		}},
		"alg=HS256": {says: "(algorithm)", sign: func(t *jwt.Token) string {
			text, _ := jwt.NewWithClaims(jwt.SigningMethodHS256, t.Claims).SignedString([]byte("muster-page"))
			return text
		}},
		"another key": {says: "(signature)", sign: func(t *jwt.Token) string {
			text, err := t.SignedString(otherKey)
			if err != nil {
				panic(err)
			}
			return text
		}},
		"replayed code": {says: "does not take the code", back: func(at string) string {
			return strings.Replace(at, regexp.MustCompile(`code-\d+`).FindString(at), "code-0", 1)
		}},
		"refused": {says: "access_denied", back: func(at string) string {
			return strings.Replace(at, "code=", "error=access_denied&x=", 1)
		}},
		"no user":      {says: "does not say preferred_username", twist: says("preferred_username", "")},
		"no such user": {says: "user nosuch does not exist", twist: says("preferred_username", "nosuch")},
		"root":         {says: "root logs in by a link alone", twist: says("preferred_username", "root")},
	} {
		c := webClient(t, "")
		at := begin(c)
		if x.back != nil {
			at = x.back(at)
		}
		i.mu.Lock()
		i.twist, i.sign = x.twist, x.sign
		i.mu.Unlock()
		w, text := answer(t, c, "GET", at, nil)
		told := strings.Contains(text, "Not logged in: ") && strings.Contains(text, x.says)
		if w.StatusCode != 403 || !told || inside(c) {
			t.Errorf("%s: %d\n%s", name, w.StatusCode, text)
		}
		i.mu.Lock()
		i.twist, i.sign = nil, nil
		i.mu.Unlock()
	}

	level := func() string { return d.must("sacctmgr", "-nP", "show", "user", "daemon", "format=admin") }
	apart := func(c jwt.MapClaims) { delete(c, "groups") } // told beside the token
	for _, x := range []struct {
		groups []string
		want   string
		twist  func(jwt.MapClaims)
	}{{[]string{"all", "hpc-ops"}, "Operator", nil}, {[]string{"all"}, "None", nil},
		{[]string{"hpc-ops"}, "Operator", apart}, {nil, "None", apart}} {
		i.mu.Lock()
		i.groups, i.twist = x.groups, x.twist
		i.mu.Unlock()
		c := webClient(t, "")
		if w, text := answer(t, c, "GET", begin(c), nil); w.StatusCode != 200 || level() != x.want {
			t.Errorf("%v: %d, level %q\n%s", x.groups, w.StatusCode, level(), text)
		}
	}
	i.mu.Lock()
	i.about = "2"
	i.mu.Unlock()
	c = webClient(t, "")
	if w, text := answer(t, c, "GET", begin(c), nil); w.StatusCode != 403 || !strings.Contains(text,
		"two users at once") {
		t.Errorf("told of another: %d %s", w.StatusCode, text)
	}
}

// leaves logs a visitor out, here and at the provider, which sends the browser back to an address.
func leaves(t *testing.T, c *http.Client, page, back string) {
	t.Helper()
	_, text := answer(t, c, "GET", page+"/queue", nil)
	m := csrfField.FindStringSubmatch(text)
	if m == nil {
		t.Fatalf("no form to log out: %s", text)
	}
	w, text := answer(t, c, "POST", page+"/logout", url.Values{"csrf": {m[1]}})
	to, ok := strings.CutPrefix(w.Header.Get("Refresh"), "0; url=")
	if w.StatusCode != 200 || !ok || strings.Contains(text, "log out") {
		t.Fatalf("log out: %d, on to %q\n%s", w.StatusCode, to, text)
	}
	if w, text := answer(t, c, "GET", to, nil); w.StatusCode != 302 || w.Header.Get("Location") != back {
		t.Errorf("the provider: %d to %s %s", w.StatusCode, w.Header.Get("Location"), text)
	}
}

// otherKey is one that no provider has published.
var otherKey, _ = rsa.GenerateKey(rand.Reader, 2048)

// TestPagePassword: visitors log in by name and password; who guesses waits; root does not come in so.
func TestPagePassword(t *testing.T) {
	t.Parallel()
	addr, dir := freeAddr(t), t.TempDir()
	page := "http://" + addr
	program := writeProgram(t, dir, "check", "#!/bin/sh\nread -r p\n[ \"$p\" = \"secret of $1\" ]\n")
	d := startDev(t, "--hollow", "1x8c16g", "--http", addr, "--conf", confWith(t, dir, "PagePassword="+program+"\n"))
	try := func(user, password string, header ...string) (*http.Response, string, *http.Client) {
		c := webClient(t, "")
		w, text := answer(t, c, "POST", page+"/login/password", url.Values{"user": {user}, "password": {password},
			"to": {"/plan?hours=2"}}, header...)
		return w, text, c
	}
	w, text, c := try("daemon", "secret of daemon")
	if w.StatusCode != 303 || w.Header.Get("Location") != "/plan?hours=2" {
		t.Errorf("login: %d to %s\n%s", w.StatusCode, w.Header.Get("Location"), text)
	}
	if _, text := answer(t, c, "GET", page+"/queue", nil); !strings.Contains(text, "<span>daemon</span>") {
		t.Errorf("after it: %s", text)
	}
	for name, x := range map[string]struct {
		user, password, says string
		header               []string
	}{
		"wrong":         {"bin", "x", "the name or the password is not right", nil},
		"root":          {"root", "secret of root", "the name or the password is not right", nil},
		"a file's path": {"../bin", "secret of ../bin", "is not right", nil},
		"by a network":  {"bin", "secret of bin", "requires TLS", []string{"X-Forwarded-For", "10.0.0.1"}},
		"another site":  {"bin", "secret of bin", "cross-origin", []string{"Sec-Fetch-Site", "cross-site"}},
	} {
		if w, text, c := try(x.user, x.password, x.header...); w.StatusCode != 403 || !strings.Contains(text, x.says) ||
			len(c.Jar.Cookies(w.Request.URL)) > 0 {
			t.Errorf("%s: %d\n%s", name, w.StatusCode, text)
		}
	}
	if _, text := answer(t, webClient(t, ""), "GET", page+"/login", nil, "X-Forwarded-For",
		"10.0.0.1"); strings.Contains(
		text, `type="password"`) || !strings.Contains(text, "Password login requires TLS") {
		t.Errorf("the form without TLS: %s", text)
	}
	waits := false
	for range 8 {
		_, text, _ := try("games", "guess")
		waits = waits || strings.Contains(text, "too many attempts: try again in")
	}
	if _, text, _ := try("games", "secret of games"); !waits || !strings.Contains(text, "too many attempts") {
		t.Errorf("who guesses does not wait: %s", text)
	}
	if log := d.soFar("log"); strings.Contains(log, "secret of") || !strings.Contains(log, "login refused") {
		t.Error("the log has a password, or nothing of refusals")
	}
}

// TestPagePAM: pam_unix's own program checks passwords of the shadow database, and whether the account has expired.
func TestPagePAM(t *testing.T) {
	t.Parallel()
	if os.Getuid() != 0 || exec.Command("unshare", "-m", "true").Run() != nil {
		t.Skip("needs root, and folders of a process's own")
	}
	if _, err := os.Stat("/usr/sbin/unix_chkpwd"); err != nil {
		t.Skip("no unix_chkpwd")
	}
	hash, err := exec.Command("openssl", "passwd", "-6", "correct horse").Output()
	if err != nil {
		t.Skip("no openssl")
	}
	addr, dir := freeAddr(t), t.TempDir()
	old, err := os.ReadFile("/etc/shadow")
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	for line := range strings.Lines(string(old)) {
		switch name, _, _ := strings.Cut(line, ":"); name {
		case "daemon":
			line = "daemon:" + strings.TrimSpace(string(hash)) + ":19000:0:99999:7:::\n"
		case "bin":
			line = "bin:" + strings.TrimSpace(string(hash)) + ":19000:0:99999:7::1:\n"
		}
		lines = append(lines, line)
	}
	shadow := writeFile(t, "shadow", strings.Join(lines, ""))
	base, err := os.MkdirTemp("", "m")
	if err != nil {
		t.Fatal(err)
	}
	d := newDev(t, base, "dev", []string{"--hollow", "1x8c16g", "--http", addr, "--conf",
		confWith(t, dir, "PagePassword=pam\n")})
	d.inside = []string{"unshare", "-m", "sh", "-c", "mount --bind " + shadow + " /etc/shadow && exec \"$@\"", "sh"}
	t.Cleanup(d.cleanup)
	d.start()
	d.wait("idle nodes", func() bool {
		out, _, code := d.run("sinfo", "-h", "-N", "-t", "idle")
		return code == 0 && out != ""
	})
	for _, x := range []struct{ user, password, says string }{
		{"daemon", "correct horse", ""}, {"daemon", "battery staple", "is not right"},
		{"daemon", "", "is not right"}, {"bin", "correct horse", "the account has expired"},
		{"nosuch", "correct horse", "is not right"},
	} {
		w, text := answer(t, webClient(t, ""), "POST", "http://"+addr+"/login/password",
			url.Values{"user": {x.user}, "password": {x.password}})
		if in := w.StatusCode == 303; in != (x.says == "") || !strings.Contains(text, x.says) {
			t.Errorf("%s, %q: %d\n%s", x.user, x.password, w.StatusCode, text)
		}
	}
}

// shotName is the end of a picture's name.
func shotName(scheme string, width int) string {
	return map[string]string{"dark": "-dark"}[scheme] + map[bool]string{true: "-phone"}[width < 600]
}

// TestPageLoginBrowser: in a browser one comes from what one asked for to the provider, on another site, and back
// with a session; the forms are fit for narrow screens and for those who do not see well.
func TestPageLoginBrowser(t *testing.T) {
	t.Parallel()
	addr, dir := freeAddr(t), t.TempDir()
	i := startIssuer(t, "daemon")
	i.url = strings.Replace(i.url, "127.0.0.1", "localhost", 1)
	program := writeProgram(t, dir, "check", "#!/bin/sh\nread -r p\n[ \"$p\" = \"secret of $1\" ]\n")
	d := startDev(t, "--hollow", "1x8c16g", "--http", addr, "--conf", confWith(t, dir,
		"StatusPage=login\nPageURL=http://"+
			addr+"\nOIDCIssuer="+i.url+"\nOIDCClientID="+issuerClient+"\nPagePassword="+program+"\n"))
	b := startBrowser(t, d.dir)
	if b == nil {
		return
	}
	base := "http://" + addr
	for _, width := range []int{1440, 390} {
		for _, scheme := range []string{"light", "dark"} {
			b.look(base, "/queue?state=pending", width, scheme)
			b.judge("login, " + scheme)
			b.keep("login" + shotName(scheme, width))
		}
	}
	at := func() string { return b.seen(`location.pathname + location.search`) }
	b.run(`(document.querySelector("a.do").click(), [])`)
	who := `document.querySelector(".who span")?.textContent ?? ""`
	d.wait("the way back", func() bool { return at() == "/queue?state=pending" && b.seen(who) == "daemon" })
	b.run(`(document.querySelector(".who button").click(), [])`)
	d.wait("the end of the session", func() bool { return strings.HasPrefix(at(), "/login") })
	b.open(base+"/login?to=/map", 390, "light")
	d.wait("the form", func() bool { return b.seen(`document.querySelector("[name=user]")?.name ?? ""`) != "" })
	b.run(`(document.querySelector("[name=user]").value = "daemon", document.querySelector("[name=password]").value = "x",
		document.querySelector("form[action='/login/password'] button").click(), [])`)
	d.wait("the refusal",
		func() bool { return b.seen(`document.querySelector("[role=alert]")?.textContent ?? ""`) != "" })
	b.judge("a login that is refused")
	b.keep("login-refused")
	b.run(`(document.querySelector("[name=password]").value = "secret of daemon",
		document.querySelector("form[action='/login/password'] button").click(), [])`)
	d.wait("the map", func() bool { return at() == "/map" })
}

// TestPageGroup: with several servers each has a certificate of the cluster's authority; a login that one has sent
// to the provider is ended by another, the session is good on all, and followers take jobs and change levels
// through the leader.
func TestPageGroup(t *testing.T) {
	t.Parallel()
	i := startIssuer(t, "daemon")
	i.groups = []string{"hpc-ops"}
	g := fullGroup(t, 1, "--conf", confWith(t, t.TempDir(), "PageCertificate=cluster\nPageURL=https://muster.example\n"+
		"OIDCIssuer="+i.url+"\nOIDCClientID="+issuerClient+"\nOIDCGroupClaim=groups\nOIDCOperators=hpc-ops\n"))
	page := func(server string) string { return "https://" + g.pageAt(g.host(server)) }
	_, ca := answer(t, webClient(t, ""), "GET", strings.Replace(page("s3"), "https", "http", 1)+"/authority.pem", nil)
	if own, err := os.ReadFile(g.at["s1"].dir + "/d/trust/ca.pem"); err != nil || string(own) != ca {
		t.Errorf("%v: the authority is not the cluster's:\n%s%s", err, own, ca)
	}
	c := webClient(t, ca)
	c.Jar = nil // each server has another address here
	lead := g.leader("s1")
	others := g.others(lead)
	w, _ := answer(t, c, "GET", page(lead)+"/login/oidc?to=/map", nil)
	flow := w.Header.Get("Set-Cookie")
	w, _ = answer(t, c, "GET", w.Header.Get("Location"), nil)
	back := w.Header.Get("Location")
	if !strings.HasPrefix(back, "https://muster.example/login/oidc/done?") || !strings.Contains(flow,
		"; Secure; SameSite=Lax") {
		t.Fatalf("back to %s, with %s", back, flow)
	}
	cookie := func(set string) string { text, _, _ := strings.Cut(set, ";"); return text }
	w, text := answer(t, c, "GET", strings.Replace(back, "https://muster.example", page(others[0]), 1), nil,
		"Cookie", cookie(flow))
	session := ""
	for _, set := range w.Header.Values("Set-Cookie") {
		if strings.HasPrefix(set, "__Host-muster=") {
			session = cookie(set)
		}
	}
	if w.StatusCode != 200 || session == "" || !strings.HasSuffix(w.Header.Get("Refresh"), "url=/map") {
		t.Fatalf("another server ends the login: %d %s", w.StatusCode, text)
	}
	if out := g.must("s1", "sacctmgr", "-nP", "show", "user", "daemon", "format=admin"); out != "Operator" {
		t.Errorf("the level is %q", out)
	}
	if os.Getuid() != 0 {
		return
	}
	for _, server := range others {
		_, text := answer(t, c, "GET", page(server)+"/submit", nil, "Cookie", session)
		m := csrfField.FindStringSubmatch(text)
		if m == nil {
			t.Fatalf("%s takes no session of another: %s", server, text)
		}
		form := url.Values{"csrf": {m[1]}, "script": {"#!/bin/sh\n#SBATCH -o /dev/null\ntrue\n"}, "folder": {"/tmp"}}
		w, text := answer(t, c, "POST", page(server)+"/submit", form, "Cookie", session)
		to := w.Header.Get("Location")
		if w.StatusCode != 303 {
			t.Fatalf("%s: %d %s", server, w.StatusCode, text)
		}
		if w, text := answer(t, c, "GET", page(server)+to, nil, "Cookie", session); w.StatusCode != 200 ||
			!strings.Contains(text, "was submitted") {
			t.Errorf("%s%s: %d %s", server, to, w.StatusCode, text)
		}
	}
}
