package e2e

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// byToken runs a command with a token, as whom it says and not as the caller; with urls it asks over the network, and
// no daemon is beside it.
func byToken(d *dev, token, urls string, name string, args ...string) (out, errs string, code int) {
	d.t.Helper()
	old := d.env
	defer func() { d.env = old }()
	d.env = append(append([]string{}, old...), "SLURM_JWT="+token)
	if urls != "" {
		d.env = append(d.env, "MUSTER_URL="+urls, "MUSTER_SOCKET=/nowhere")
	}
	return d.run(name, args...)
}

// TestTokenCommands: with SLURM_JWT the commands act as the token's user, through the daemon and over the network;
// what is refused is refused in Slurm's words, and the token is none of the job's.
func TestTokenCommands(t *testing.T) {
	addr := freeAddr(t)
	d := startDev(t, "--hollow", "2x8c16g", "--hollow-exec", "--http", addr)
	token := tokenOf(t, d, daemonUID)
	for at, urls := range map[string]string{"daemon": "", "network": "http://127.0.0.1:1,http://" + addr} {
		file := filepath.Join("/tmp", filepath.Base(d.dir)+"-"+at)
		t.Cleanup(func() { os.Remove(file) })
		out, errs, code := byToken(d, token, urls, "sbatch", "--parsable", "-D", "/tmp", "-o", file, "--wrap",
			"id -un; env | grep JWT; true")
		id := strings.TrimSpace(out)
		if code != 0 || id == "" {
			t.Fatalf("%s: sbatch: %q %q", at, out, errs)
		}
		d.wait("the job's end",
			func() bool { return d.must("squeue", "-h", "-t", "CD", "-j", id, "-o", "%u") == "daemon" })
		if text, _ := os.ReadFile(file); string(text) != "daemon\n" {
			t.Errorf("%s: the job prints %q", at, text)
		}
		mine, _, _ := byToken(d, token, urls, "squeue", "--me", "-t", "all", "-h", "-o", "%i")
		if !strings.Contains("\n"+mine, "\n"+id+"\n") {
			t.Errorf("%s: squeue --me: %q", at, mine)
		}
		if out, errs, _ := byToken(d, token, urls, "scontrol", "update", "nodename=node-001", "state=drain",
			"reason=x"); !strings.Contains(errs, "slurm_update error") {
			t.Errorf("%s: a user drains a node: %q %q", at, out, errs)
		}
		if out, errs, _ := byToken(d, token, urls, "salloc", "-Q", "hostname"); out == "" {
			t.Errorf("%s: salloc: %q", at, errs)
		}
		if _, errs, code := byToken(d, "a.b.c", urls, "squeue"); code != 1 || errs !=
			"slurm_load_jobs error: Protocol authentication error\n" {
			t.Errorf("%s: no token: %q", at, errs)
		}
	}
	if _, errs, code := byToken(d, token, "", "srun", "hostname"); code != 1 || errs !=
		"srun: fatal: auth/jwt is not supported for use with srun.\n" {
		t.Errorf("srun: %d %q", code, errs)
	}
	if _, errs, _ := byToken(d, token, "http://127.0.0.1:1", "squeue"); !strings.Contains(errs,
		"no server answers at http://127.0.0.1:1 (MUSTER_URL)") {
		t.Errorf("nobody there: %q", errs)
	}
	root := tokenOf(t, d, 0)
	status, _ := (&restUser{t, "http://" + addr, root, http.DefaultClient}).ask("GET", "/v1/snapshot", "")
	if status != http.StatusNotFound {
		t.Errorf("calls of the cluster's own are on the page's port: %d", status)
	}
}

// TestTokenEnds: every server takes every token; keys are rotated, and tokens end: one, a user's, all.
func TestTokenEnds(t *testing.T) {
	addr := freeAddr(t)
	d := startDev(t, "--hollow", "1x8c16g", "--http", addr)
	good := func(token string) bool {
		status, _ := (&restUser{t, "http://" + addr, token, http.DefaultClient}).ask("GET", "/slurm/v0.0.44/ping", "")
		return status == http.StatusOK
	}
	state := func(when string, want string, tokens ...string) {
		t.Helper()
		got := ""
		for _, k := range tokens {
			got += map[bool]string{true: "y", false: "n"}[good(k)]
		}
		if got != want {
			t.Errorf("%s: tokens are good: %s, want %s", when, got, want)
		}
	}
	one, two, other := tokenOf(t, d, daemonUID), tokenOf(t, d, daemonUID), tokenOf(t, d, binUID)
	state("at first", "yyy", one, two, other)
	if _, errs, code := d.as(binUID, "muster", "jwt", "revoke", "--user", "daemon"); code == 0 {
		t.Errorf("a user ends another's: %q", errs)
	}
	if _, errs, code := d.as(binUID, "muster", "jwt", "rotate"); code == 0 {
		t.Errorf("a user rotates the key: %q", errs)
	}
	if _, errs, code := d.as(daemonUID, "muster", "jwt", "revoke", one); code != 0 {
		t.Errorf("the user's own token: %s", errs)
	}
	state("one ended", "nyy", one, two, other)
	d.must("muster", "jwt", "rotate")
	state("rotated", "nyy", one, two, other)
	if keys := strings.Count(d.must("muster", "jwt", "list"), "2"); keys < 2 {
		t.Errorf("jwt list:\n%s", d.must("muster", "jwt", "list"))
	}
	d.must("muster", "jwt", "revoke", "--user", "daemon")
	three := tokenOf(t, d, daemonUID) // in the same second
	state("a user's ended", "nnyy", one, two, other, three)
	d.stop()
	d.start()
	d.wait("an answer", func() bool { _, _, code := d.run("sinfo"); return code == 0 })
	state("started again", "nnyy", one, two, other, three)
	d.must("muster", "jwt", "rotate", "--cut")
	state("cut", "nnnn", one, two, other, three)
	state("made anew", "y", tokenOf(t, d, daemonUID))
	for _, args := range [][]string{{"muster", "jwt", "list"}, {"muster", "sql", "SELECT name FROM sqlite_master"}} {
		if out, _, _ := d.run(args[0], args[1:]...); strings.Contains(out, "secret") {
			t.Errorf("%v tells of secrets: %s", args, out)
		}
	}
}

// tokensEverywhere: the key of tokens is the group's. One made at a follower is taken by every server, and on a compute
// node where its user has no job and would not be vouched for; it does not let anybody be root there.
func tokensEverywhere(t *testing.T, g *group) {
	out, errs, code := g.at["s2"].as(binUID, "scontrol", "token")
	token, ok := strings.CutPrefix(strings.TrimSpace(out), "SLURM_JWT=")
	if code != 0 || !ok {
		t.Fatalf("scontrol token at a follower: %q %q", out, errs)
	}
	for k, name := range []string{"s1", "s2", "c1", "l1"} {
		d := g.at[name]
		urls := ""
		if strings.HasPrefix(name, "s") {
			urls = "http://" + g.pageAt(k+1)
		}
		out, errs, code := byToken(d, token, urls, "sbatch", "-H", "-o", "/dev/null", "--wrap", "true")
		if code != 0 || !strings.HasPrefix(out, "Submitted batch job") {
			t.Errorf("%s: sbatch: %q %q", name, out, errs)
		}
		if _, errs, code = byToken(d, "a.b.c", urls, "sinfo"); code != 1 || !strings.Contains(errs, "Protocol authentication error") {
			t.Errorf("%s: a token that is none: %q", name, errs)
		}
	}
	if out := g.must("s1", "squeue", "-h", "-t", "PD", "-u", "bin", "-o", "%u"); strings.Count(out, "bin") != 4 {
		t.Errorf("jobs of bin:\n%s", out)
	}
	g.must("s1", "scancel", "-t", "PD", "-u", "bin")
}
