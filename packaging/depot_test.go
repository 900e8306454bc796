package packaging

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"
)

var quiet = slog.New(slog.DiscardHandler)

// other is an architecture that is not this machine's.
func other() string {
	if runtime.GOARCH == "arm64" {
		return "amd64"
	}
	return "arm64"
}

func startDepot(t *testing.T) (*httptest.Server, *Depot) {
	t.Helper()
	d := NewDepot(t.TempDir(), quiet)
	if err := os.WriteFile(filepath.Join(d.dir, programName+other()), []byte("other program"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(d.dir, "secret"), []byte("secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	s := httptest.NewServer(d)
	t.Cleanup(s.Close)
	return s, d
}

// raw sends a request line as it is, which net/http's client would clean.
func raw(t *testing.T, s *httptest.Server, method, target, host string) (*http.Response, string) {
	t.Helper()
	c, err := net.Dial("tcp", s.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	fmt.Fprintf(c, "%s %s HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n\r\n", method, target, host)
	r, err := http.ReadResponse(bufio.NewReader(c), &http.Request{Method: method})
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	return r, string(body)
}

// TestDepotOnly serves these paths and no others, however they are written.
func TestDepotOnly(t *testing.T) {
	s, _ := startDepot(t)
	for _, target := range []string{
		"/install.sh", "/install.sh?x=/etc/passwd", "/download/muster-linux-amd64",
		"/download/muster-linux-arm64",
	} {
		if r, _ := raw(t, s, "GET", target, "s1:7440"); r.StatusCode != 200 {
			t.Errorf("%s: %s", target, r.Status)
		}
	}
	for _, target := range []string{"/", "/download", "/download/", "/download/secret",
		"/download/../secret", "/download/muster-linux-",
		"/download/muster-linux-arm64/", "/download/muster-linux-arm64/../secret",
		"/download/muster-linux-../secret", "/download/muster-linux-..%2fsecret",
		"/download/%2e%2e/%2e%2e/etc/passwd", "/download/..%2f..%2fetc%2fpasswd",
		"//download/muster-linux-amd64", "/download//muster-linux-amd64",
		"/./install.sh", "/install.sh/", "/install.sh/..", "/../../etc/passwd", "/%69nstall.sh%00",
		"/download/muster-linux-arm64%00", "/install%2esh/",
		"/download/muster-linux-amd64%2f..%2fsecret", "/v1/jobs", "/v1/members/join", "/v1/tokens",
		"/debug/pprof/", "/metrics",
		"http://elsewhere/install.sh", "*", "/download/muster-linux-AMD64", "/INSTALL.SH",
		"/download/muster-linux-riscv64"} {
		r, body := raw(t, s, "GET", target, "s1:7440")
		if r.StatusCode != 404 && r.StatusCode != 400 || strings.Contains(body, "secret") || r.Header.Get("Location") != "" {
			t.Errorf("%s: %s %q", target, r.Status, body)
		}
	}
	for _, method := range []string{
		"POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "CONNECT", "PRI", "get", "X",
	} {
		r, _ := raw(t, s, method, "/install.sh", "s1:7440")
		if r.StatusCode != 405 && r.StatusCode != 400 {
			t.Errorf("%s: %s", method, r.Status)
		}
	}
}

// TestDepotHost: what the caller says goes into a script that a shell runs.
func TestDepotHost(t *testing.T) {
	s, _ := startDepot(t)
	for host, want := range map[string]string{
		"s1:7440": "s1:7440", "10.0.0.1:7440": "10.0.0.1:7440", "[fd00::1]:7440": "[fd00::1]:7440",
		"s1": "s1:80", "[fd00::1]": "[fd00::1]:80",
	} {
		if r, body := raw(t, s, "GET", "/install.sh", host); r.StatusCode != 200 || !strings.Contains(body, "\nserver='"+want+"'\n") {
			t.Errorf("%s: %s", host, r.Status)
		}
	}
	for _, host := range []string{"", "'", "s1'$(id)'", "s1:7440'", "s1;id", "s1 id", "$(id)", "`id`", "-x:1", ":7440", "s1:", "s1\\", "s1/../x", strings.Repeat("x", 300)} {
		if r, body := raw(t, s, "GET", "/install.sh", host); r.StatusCode != 400 {
			t.Errorf("%q: %s\n%s", host, r.Status, body[:min(len(body), 300)])
		}
	}
}

// TestDepotHead answers HEAD and parts of a file, as curl -C - asks for them.
func TestDepotHead(t *testing.T) {
	s, _ := startDepot(t)
	self, err := os.ReadFile(self)
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(self)
	r, body := raw(t, s, "HEAD", "/download/muster-linux-"+runtime.GOARCH, "s1")
	if r.StatusCode != 200 || body != "" || r.ContentLength != int64(len(self)) || r.Header.Get("ETag") != `"`+hex.EncodeToString(sum[:])+`"` {
		t.Errorf("HEAD: %s, %d bytes of %d, %d body, %s", r.Status, r.ContentLength, len(self), len(body),
			r.Header.Get("ETag"))
	}
	for span, want := range map[string]struct {
		code int
		body string
	}{
		"bytes=0-4": {206, "other"}, "bytes=6-": {206, "program"}, "bytes=-7": {206, "program"},
		"bytes=50-60": {416, ""}, "bytes=9-1": {416, ""}, "lines=1": {416, ""},
	} {
		q, err := http.NewRequest("GET", s.URL+"/download/muster-linux-"+other(), nil)
		if err != nil {
			t.Fatal(err)
		}
		q.Header.Set("Range", span)
		r, err := http.DefaultClient.Do(q)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(r.Body)
		r.Body.Close()
		if err != nil || r.StatusCode != want.code || want.body != "" && string(body) != want.body {
			t.Errorf("%s: %s %q %v", span, r.Status, body, err)
		}
	}
}

// TestDepotLinks: a link in the folder does not lead out of it, and only plain files are served.
func TestDepotLinks(t *testing.T) {
	s, d := startDepot(t)
	name := filepath.Join(d.dir, programName+other())
	for _, make := range []func() error{func() error { return os.Symlink("/etc/passwd", name) },
		func() error { return os.Symlink("../../../../etc/passwd", name) },
		func() error { return os.Mkdir(name, 0o755) }} {
		if err := os.Remove(name); err != nil {
			t.Fatal(err)
		}
		if err := make(); err != nil {
			t.Fatal(err)
		}
		if r, body := raw(t, s, "GET", "/download/"+programName+other(), "s1"); r.StatusCode != 500 || strings.Contains(body, "root") {
			t.Errorf("%s %q", r.Status, body)
		}
	}
}

// TestDepotBusy: when as many download as may, the next are told to try again.
func TestDepotBusy(t *testing.T) {
	s, d := startDepot(t)
	d.wait = 50 * time.Millisecond
	for range maxDownloads {
		d.room <- struct{}{}
	}
	if r, _ := raw(t, s, "GET", "/download/"+programName+other(), "s1"); r.StatusCode != 503 || r.Header.Get("Retry-After") == "" {
		t.Errorf("got %s", r.Status)
	}
	<-d.room
	if r, _ := raw(t, s, "GET", "/download/"+programName+other(), "s1"); r.StatusCode != 200 {
		t.Errorf("got %s", r.Status)
	}
}

// TestScript runs the script as served: it refuses a program that is not the one it was made for, and a processor for
// which there is none; it runs nothing when only a part of it has come.
func TestScript(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("the script wants root")
	}
	s, d := startDepot(t)
	host := s.Listener.Addr().String()
	shell := func(text string, args ...string) (string, error) {
		cmd := exec.Command("sh", append([]string{"-s", "--"}, args...)...)
		cmd.Stdin = strings.NewReader(text)
		cmd.Env = append(os.Environ(), "TMPDIR="+t.TempDir())
		var out bytes.Buffer
		cmd.Stdout, cmd.Stderr = &out, &out
		err := cmd.Run()
		return out.String(), err
	}
	text, err := d.Script(host)
	if err != nil {
		t.Fatal(err)
	}
	echo := "#!/bin/sh\necho ran \"$@\" from $MUSTER_FROM\n"
	name := filepath.Join(d.dir, programName+other())
	if err := os.WriteFile(name, []byte(echo), 0o755); err != nil {
		t.Fatal(err)
	}
	right, err := d.Script(host)
	if err != nil {
		t.Fatal(err)
	}
	pretend := func(text string) string { return strings.Replace(text, "cpu=$(arch)", "cpu="+other(), 1) }
	if out, err := shell(pretend(right), "client", "--token", "a b"); err != nil || out != "ran install client --token a b from "+host+"\n" {
		t.Errorf("the script: %q, %v", out, err)
	}
	if out, err := shell(pretend(text), "client"); err == nil || !strings.Contains(out, "not the right one") || strings.Contains(out, "ran") {
		t.Errorf("with another program: %q, %v", out, err)
	}
	if out, err := shell(strings.Replace(right, "cpu=$(arch)", "cpu=riscv64", 1), "client"); err == nil || !strings.Contains(out, "has no muster for riscv64") {
		t.Errorf("with another processor: %q, %v", out, err)
	}
	if out, err := shell(right); err == nil || !strings.Contains(out, "say what this machine becomes") {
		t.Errorf("without arguments: %q, %v", out, err)
	}
	for _, n := range []int{len(right) / 4, len(right) / 2, len(right) - len("main \"$@\"\n")} {
		if out, _ := shell(pretend(right)[:n], "client"); strings.Contains(out, "ran") {
			t.Errorf("%d of %d bytes of the script: %q", n, len(right), out)
		}
	}
}
