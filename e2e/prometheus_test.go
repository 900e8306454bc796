package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// prometheus is a real one that asks a group's servers.
type prometheus struct {
	t    *testing.T
	addr string
}

// startPrometheus runs Prometheus with the configuration and rules that muster ships, in quick time.
func startPrometheus(t *testing.T, targets ...string) *prometheus {
	t.Helper()
	program, err := exec.LookPath("prometheus")
	if err != nil {
		t.Skip("no prometheus here: apt install prometheus")
	}
	dir := t.TempDir()
	ship := func(name string, change func(string) string) {
		text, err := os.ReadFile("../packaging/monitoring/" + name)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(change(string(text))), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	ship("prometheus.yml", func(s string) string {
		s = strings.ReplaceAll(s, "15s", "500ms")
		s = strings.ReplaceAll(s, `"server1:7480", "server2:7480", "server3:7480"`, `"`+strings.Join(targets,
			`", "`)+`"`)
		return strings.ReplaceAll(s, "server1:7480", targets[0])
	})
	ship("alerts.yml", func(s string) string { return regexp.MustCompile(`for: \w+`).ReplaceAllString(s, "for: 1s") })
	p := &prometheus{t, freeAddr(t)}
	log, err := os.Create(dir + "/log")
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(program, "--config.file="+dir+"/prometheus.yml", "--storage.tsdb.path="+dir+"/data",
		"--web.listen-address="+p.addr)
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		if text, _ := os.ReadFile(dir + "/log"); t.Failed() {
			t.Logf("log of prometheus (end):\n%s", text[max(0, len(text)-3000):])
		}
	})
	return p
}

// get asks the API of Prometheus; false until it answers.
func (p *prometheus) get(path string, into any) bool {
	r, err := http.Get("http://" + p.addr + path)
	if err != nil {
		return false
	}
	defer r.Body.Close()
	return json.NewDecoder(r.Body).Decode(into) == nil
}

// query evaluates an expression and counts its values.
func (p *prometheus) query(expr string) int {
	var out struct {
		Status string
		Error  string
		Data   struct{ Result []json.RawMessage }
	}
	if p.get("/api/v1/query?query="+url.QueryEscape(expr), &out) && out.Status == "error" {
		p.t.Fatalf("%s: %s", expr, out.Error)
	}
	return len(out.Data.Result)
}

// firing are the names of the alerts that fire.
func (p *prometheus) firing() map[string]bool {
	var out struct {
		Data struct {
			Alerts []struct {
				Labels map[string]string
				State  string
			}
		}
	}
	names := map[string]bool{}
	if p.get("/api/v1/alerts", &out) {
		for _, a := range out.Data.Alerts {
			if a.State == "firing" {
				names[a.Labels["alertname"]] = true
			}
		}
	}
	return names
}

// TestPrometheus: a real Prometheus asks three servers by the files that are shipped; every panel of the dashboards
// has data, and the alerts come when nodes and servers go, and not before.
func TestPrometheus(t *testing.T) {
	t.Parallel()
	g := newGroup(t)
	g.join("s2", "s1")
	g.join("s3", "s2")
	g.join("c1", "s1", "--hollow", "2x8c16g8gpu:h100", "--hollow-prefix", "c1-", "--hollow-time", "100h")
	g.wait("three voters", func() bool { return g.voters("s1") == 3 })
	g.wait("two nodes", func() bool { return g.must("s1", "sinfo", "-h", "-t", "idle", "-o", "%D") == "2" })
	g.must("s1", "sbatch", "-N1", "--gpus=8", "-o", "/dev/null", "--wrap", "true")
	g.must("s1", "sbatch", "-N2", "--gpus-per-node=8", "-o", "/dev/null", "--wrap", "true")
	var targets []string
	for _, s := range []string{"s1", "s2", "s3"} {
		targets = append(targets, g.pageAt(g.host(s)))
	}
	p := startPrometheus(t, targets...)
	g.wait("three servers that are asked", func() bool { return p.query(`up{job="muster"} == 1`) == 3 })
	g.wait("the waiting job", func() bool { return p.query(`muster_jobs_waiting{reason="Resources"} == 1`) > 0 })
	for _, file := range []string{"overview", "users", "scheduler"} {
		for _, expr := range boardOf(t, file) {
			g.wait(fmt.Sprintf("data of %q in %s", expr, file), func() bool { return p.query(expr) > 0 })
		}
	}
	g.wait("no alert while all is well", func() bool { return len(p.firing()) == 0 }) // those of its own beginning pass
	leader := g.awaitLeader("s1")
	g.at[g.others(leader)[0]].kill()
	g.wait("the alert of a lost server", func() bool { return p.firing()["MusterServerDown"] })
	g.at["c1"].kill()
	g.wait("the alerts of lost nodes", func() bool {
		f := p.firing()
		return f["MusterNodesDown"] && f["MusterManyNodesOut"] && f["MusterGPUsOut"]
	})
	if p.firing()["MusterNoLeader"] {
		t.Error("no leader is said to lead while one does")
	}
	g.at[leader].kill()
	g.wait("the alert that nobody leads", func() bool { return p.firing()["MusterNoLeader"] })
}

// boardOf are the expressions of a dashboard.
func boardOf(t *testing.T, file string) (exprs []string) {
	t.Helper()
	text, err := os.ReadFile("../packaging/monitoring/grafana-" + file + ".json")
	if err != nil {
		t.Fatal(err)
	}
	var board struct {
		Panels []struct {
			Targets []struct{ Expr string }
		}
	}
	if err := json.Unmarshal(text, &board); err != nil || len(board.Panels) == 0 {
		t.Fatalf("%s: %d panels, %v", file, len(board.Panels), err)
	}
	for _, panel := range board.Panels {
		for _, q := range panel.Targets {
			exprs = append(exprs, q.Expr)
		}
	}
	return exprs
}
