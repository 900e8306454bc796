package e2e

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/rsa"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
)

// restUser is somebody who speaks to the REST interface.
type restUser struct {
	t      *testing.T
	base   string
	token  string
	client *http.Client
}

func (u *restUser) ask(method, path, body string) (status int, got map[string]any) {
	u.t.Helper()
	r, err := http.NewRequest(method, u.base+path, strings.NewReader(body))
	if err != nil {
		u.t.Fatal(err)
	}
	if u.token != "" {
		r.Header.Set("X-SLURM-USER-TOKEN", u.token)
	}
	resp, err := u.client.Do(r)
	if err != nil {
		u.t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		u.t.Fatal(err)
	}
	_ = json.Unmarshal(text, &got)
	return resp.StatusCode, got
}

// job is a record of a list of jobs, "" of what is not there.
func (u *restUser) job(id float64, member string) string {
	_, got := u.ask("GET", fmt.Sprintf("/slurm/v0.0.44/job/%.0f", id), "")
	jobs, _ := got["jobs"].([]any)
	if len(jobs) != 1 {
		return ""
	}
	return fmt.Sprint(jobs[0].(map[string]any)[member])
}

func tokenOf(t *testing.T, d *dev, uid uint32, args ...string) string {
	t.Helper()
	out, errs, code := d.as(uid, "scontrol", append([]string{"token"}, args...)...)
	token, ok := strings.CutPrefix(strings.TrimSpace(out), "SLURM_JWT=")
	if code != 0 || !ok {
		t.Fatalf("scontrol token: %d, %q, %q", code, out, errs)
	}
	return token
}

// TestREST: a job's round trip by tokens and by the socket; who may not, and with what.
func TestREST(t *testing.T) {
	addr := freeAddr(t)
	sock := filepath.Join(t.TempDir(), "rest.sock")
	d := startDev(t, "--hollow", "2x8c16g", "--hollow-exec", "--http", addr, "--rest-socket", sock)
	root := &restUser{t, "http://" + addr, tokenOf(t, d, 0), http.DefaultClient}
	user := &restUser{t, "http://" + addr, tokenOf(t, d, daemonUID), http.DefaultClient}
	other := &restUser{t, "http://" + addr, tokenOf(t, d, binUID, "lifespan=60"), http.DefaultClient}

	const job = `{"script":"#!/bin/sh\n#SBATCH -n 77\necho $GREETING; sleep 300","job":{"name":"rest","tasks":2,"current_working_directory":"/tmp",
		"standard_output":"/dev/null","environment":["PATH=/usr/bin:/bin","GREETING=hello"],"time_limit":{"set":true,"infinite":false,"number":10}}}`
	status, got := user.ask("POST", "/slurm/v0.0.44/job/submit", job)
	id, _ := got["job_id"].(float64)
	if status != 200 || id == 0 {
		t.Fatalf("submit: %d %v", status, got)
	}
	d.wait("the job's start", func() bool { return user.job(id, "job_state") == "[RUNNING]" })
	if who, tasks := user.job(id, "user_name"), user.job(id, "tasks"); who != "daemon" || !strings.Contains(tasks,
		"number:2") {
		t.Errorf("the job is %s's, with %s tasks", who, tasks)
	}
	path := fmt.Sprintf("/slurm/v0.0.44/job/%.0f", id)
	if status, got := other.ask("DELETE", path, ""); status != 403 || user.job(id, "job_state") != "[RUNNING]" {
		t.Errorf("another user's cancel: %d %v", status, got)
	}
	if status, got := user.ask("POST", path, `{"comment":"seen"}`); status != 200 || user.job(id,
		"comment") != "seen" {
		t.Errorf("update: %d %v", status, got)
	}
	if status, got := user.ask("POST", "/slurm/v0.0.44/node/node-001",
		`{"state":["DRAIN"],"reason":"x"}`); status != 422 { // as Slurm's
		t.Errorf("a user's drain: %d %v", status, got)
	}
	if status, got := root.ask("POST", "/slurm/v0.0.44/node/node-001",
		`{"state":["DRAIN"],"reason":"bad fan"}`); status != 200 || !strings.Contains(d.must("sinfo",
		"-R"), "bad fan") {
		t.Errorf("drain: %d %v", status, got)
	}
	if status, got := user.ask("DELETE", path, ""); status != 200 {
		t.Errorf("cancel: %d %v", status, got)
	}
	d.wait("the job's end", func() bool { return user.job(id, "job_state") == "[CANCELLED]" })
	if status, got := user.ask("GET", "/slurmdb/v0.0.45/job/"+fmt.Sprintf("%.0f", id),
		""); status != 200 || !strings.Contains(fmt.Sprint(got), "CANCELLED") {
		t.Errorf("history: %d %v", status, got)
	}

	local := &restUser{t, "http://local", "",
		&http.Client{Transport: &http.Transport{DialContext: func(context.Context, string, string) (net.Conn, error) {
			return net.Dial("unix", sock)
		}}}}
	if status, got := local.ask("GET", "/slurm/v0.0.44/ping", ""); status != 200 || got["pings"] == nil {
		t.Errorf("by the socket: %d %v", status, got)
	}

	far := jwt.NewNumericDate(time.Now().Add(time.Hour))
	sign := func(m jwt.SigningMethod, key any, claims jwt.MapClaims) string {
		text, err := jwt.NewWithClaims(m, claims).SignedString(key)
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	for name, token := range map[string]string{
		"none":     "",
		"nonsense": "a.b.c",
		"alg none": sign(jwt.SigningMethodNone, jwt.UnsafeAllowNoneSignatureType, jwt.MapClaims{"sun": "root",
			"exp": far}),
		"another key": sign(jwt.SigningMethodHS256, []byte("0123456789abcdef0123456789abcdef"),
			jwt.MapClaims{"sun": "root", "exp": far}),
		"another body": strings.Join([]string{strings.Split(user.token, ".")[0], strings.Split(root.token, ".")[1],
			strings.Split(user.token, ".")[2]}, "."),
		"long": strings.Repeat("x", 1<<15),
	} {
		if status, _ := (&restUser{t, user.base, token, http.DefaultClient}).ask("GET", "/slurm/v0.0.44/jobs",
			""); status != 401 {
			t.Errorf("%s: %d, want 401", name, status)
		}
	}
	if _, errs, code := d.as(daemonUID, "scontrol", "token", "username=root"); code != 1 || !strings.Contains(errs,
		"denied") {
		t.Errorf("a user makes a token for root: %d, %q", code, errs)
	}
	d.must("sacctmgr", "-i", "add", "account", "a")
	d.must("sacctmgr", "-i", "add", "user", "daemon", "account=a", "adminlevel=operator")
	if _, errs, code := d.as(daemonUID, "scontrol", "token", "username=bin"); code != 1 || !strings.Contains(errs,
		"denied") {
		t.Errorf("an operator of the books makes a token for a user: %d, %q", code, errs)
	}
	if _, errs, code := d.as(daemonUID, "scontrol", "token", "username=root"); code != 1 || !strings.Contains(errs,
		"denied") {
		t.Errorf("an operator of the books makes a token for root: %d, %q", code, errs)
	}
	if status, _ := root.ask("POST", "/slurm/v0.0.44/job/submit", `{"script":"`+strings.Repeat("x",
		17<<20)+`"}`); status != 413 {
		t.Errorf("a huge body: %d", status)
	}
}

// TestRESTKeys: tokens are checked by the keys that the configuration names: a shared one, or those of an issuer.
func TestRESTKeys(t *testing.T) {
	dir, addr := t.TempDir(), freeAddr(t)
	shared := bytes.Repeat([]byte("k"), 32)
	pair, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	enc := base64.RawURLEncoding.EncodeToString
	keys := fmt.Sprintf(`{"keys":[{"kty":"RSA","kid":"one","use":"sig","alg":"RS256","n":"%s","e":"%s"}]}`,
		enc(pair.N.Bytes()), enc(big.NewInt(int64(pair.E)).Bytes()))
	for name, text := range map[string][]byte{"hs256.key": shared, "jwks.json": []byte(keys),
		"slurm.conf": []byte("ClusterName=c\nAuthAltTypes=auth/jwt\nAuthAltParameters=jwt_key=" + dir + "/hs256.key,jwks=" + dir + "/jwks.json\nPartitionName=p Nodes=ALL Default=YES\n")} {
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	d := startDev(t, "--hollow", "1x8c16g", "--http", addr, "--conf", filepath.Join(dir, "slurm.conf"))
	d.must("sinfo")
	claims := func(life time.Duration) jwt.MapClaims {
		return jwt.MapClaims{"sun": "daemon", "iat": time.Now().Add(-time.Minute).Unix(),
			"exp": time.Now().Add(life).Unix()}
	}
	noUser, noEnd := claims(time.Hour), claims(time.Hour)
	delete(noUser, "sun")
	delete(noEnd, "exp")
	rs := func(c jwt.MapClaims, kid string) string {
		tok := jwt.NewWithClaims(jwt.SigningMethodRS256, c)
		tok.Header["kid"] = kid
		text, err := tok.SignedString(pair)
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	hs := func(c jwt.MapClaims) string {
		text, err := jwt.NewWithClaims(jwt.SigningMethodHS256, c).SignedString(shared)
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	for name, c := range map[string]struct {
		token string
		want  int
	}{
		"shared key": {hs(claims(time.Hour)), 200}, "issuer's key": {rs(claims(time.Hour), "one"), 200},
		"expired": {hs(claims(-time.Second)), 401}, "issuer's, expired": {rs(claims(-time.Second), "one"), 401},
		"no user": {hs(noUser), 401}, "no end": {hs(noEnd), 401}, "another kid": {rs(claims(time.Hour), "two"), 401},
		"scontrol's": {tokenOf(t, d, daemonUID), 200},
	} {
		if status, got := (&restUser{t, "http://" + addr, c.token, http.DefaultClient}).ask("GET",
			"/slurm/v0.0.44/jobs", ""); status != c.want {
			t.Errorf("%s: %d %v, want %d", name, status, got, c.want)
		}
	}
}

// TestRESTDocs: the examples of docs/rest.md work as they stand.
func TestRESTDocs(t *testing.T) {
	text, err := os.ReadFile("../docs/rest.md")
	if err != nil {
		t.Fatal(err)
	}
	addr := freeAddr(t)
	d := startDev(t, "--hollow", "1x8c16g", "--http", addr)
	d.must("sinfo")
	environ := append(os.Environ(), "URL=http://"+addr, "SLURM_JWT="+tokenOf(t, d, 0))
	for _, c := range []struct {
		kind, want string
		argv       []string
	}{{"sh", `"job_id":1,`, []string{"sh", "-c"}}, {"python", " root\n", []string{"python3", "-c"}},
		{"go", " root\n", []string{"go", "run"}}} {
		if _, err := exec.LookPath(c.argv[0]); err != nil {
			t.Log(err)
			continue
		}
		_, code, found := strings.Cut(string(text), "```"+c.kind+"\n")
		code, _, _ = strings.Cut(code, "```")
		if !found {
			t.Fatalf("no example in %s", c.kind)
		}
		if c.kind == "sh" {
			if _, err := exec.LookPath("curl"); err != nil {
				t.Log(err)
				continue
			}
		}
		if c.kind == "go" {
			file := filepath.Join(t.TempDir(), "main.go")
			if err := os.WriteFile(file, []byte(code), 0o644); err != nil {
				t.Fatal(err)
			}
			code = file
		}
		cmd := exec.Command(c.argv[0], c.argv[1], code)
		cmd.Env = environ
		if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), c.want) {
			t.Errorf("%s: %v, %s", c.kind, err, out)
		}
	}
}

// TestRESTUnchanged: who asks again with the tag of an answer is told that nothing has changed, until something has.
func TestRESTUnchanged(t *testing.T) {
	addr := freeAddr(t)
	d := startDev(t, "--hollow", "1x8c16g", "--http", addr)
	token := tokenOf(t, d, 0)
	ask := func(path, tag string) (int, string) {
		r, err := http.NewRequest("GET", "http://"+addr+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("X-SLURM-USER-TOKEN", token)
		r.Header.Set("If-None-Match", tag)
		resp, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		return resp.StatusCode, resp.Header.Get("ETag")
	}
	const jobs = "/slurm/v0.0.44/jobs"
	d.wait("an answer that stays", func() bool {
		status, tag := ask(jobs, "")
		again, _ := ask(jobs, tag)
		return status == http.StatusOK && tag != "" && again == http.StatusNotModified
	})
	_, tag := ask(jobs, "")
	d.must("sbatch", "--wrap", "sleep 100")
	if status, now := ask(jobs, tag); status != http.StatusOK || now == tag {
		t.Errorf("after a submission: %d, tag %s", status, now)
	}
	for _, path := range []string{"/slurm/v0.0.44/nodes", "/slurm/v0.0.44/diag"} {
		if _, tag := ask(path, ""); tag != "" {
			t.Errorf("%s has loads and counters, and the tag %s", path, tag)
		}
	}
}

// TestRESTAmend: jobs of history are told apart and commented several at once; who may not, changes nothing.
func TestRESTAmend(t *testing.T) {
	addr := freeAddr(t)
	d := startDev(t, "--hollow", "2x8c16g", "--hollow-exec", "--http", addr)
	root := &restUser{t, "http://" + addr, tokenOf(t, d, 0), http.DefaultClient}
	other := &restUser{t, "http://" + addr, tokenOf(t, d, binUID), http.DefaultClient}
	var ids []string
	for range 2 {
		ids = append(ids, strings.TrimSpace(d.must("sbatch", "--parsable", "-W", "-o", "/dev/null", "--wrap", "true")))
	}
	past := func(id string) string {
		_, got := root.ask("GET", "/slurmdb/v0.0.45/job/"+id, "")
		return fmt.Sprint(got)
	}
	body := `{"job_id_list":["` + strings.Join(ids, `","`) + `"],"job_rec":{"comment":{"administrator":"%s"}}}`
	if status, got := other.ask("POST", "/slurmdb/v0.0.45/jobs", fmt.Sprintf(body, "theirs")); status == 200 {
		t.Errorf("another user's: %d %v", status, got)
	}
	status, got := root.ask("POST", "/slurmdb/v0.0.45/jobs", fmt.Sprintf(body, "seen"))
	if list, _ := got["results"].([]any); status != 200 || len(list) != 2 {
		t.Errorf("%d %v", status, got)
	}
	for _, id := range ids {
		d.wait("the comment of "+id, func() bool { return strings.Contains(past(id), "administrator:seen") })
	}
	if status, got := root.ask("POST", "/slurmdb/v0.0.45/jobs",
		`{"job_id_list":["4711"],"job_rec":{"comment":{"job":"x"}}}`); status == 200 {
		t.Errorf("no such job: %d %v", status, got)
	}
	if status, got := root.ask("GET", "/slurmdb/v0.0.45/config", ""); status != 200 || got["associations"] == nil {
		t.Errorf("config: %d %v", status, got)
	}
	const far = "?update_time=4000000000"
	if status, got := root.ask("GET", "/slurm/v0.0.45/jobs"+far, ""); status != 200 || fmt.Sprint(got["jobs"]) != "[]" {
		t.Errorf("jobs since: %d %v", status, got)
	}
	if _, got := root.ask("GET", "/slurm/v0.0.45/jobs?update_time=1", ""); len(fmt.Sprint(got["jobs"])) < 9 {
		t.Errorf("jobs since 1970: %v", got)
	}
}
