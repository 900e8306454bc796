package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// portsConf gives steps eight ports of each node.
const portsConf = "ClusterName=ports\nMpiParams=ports=12000-12007\n"

// confOfPorts is a file with that.
func confOfPorts(t *testing.T) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "slurm.conf")
	if err := os.WriteFile(file, []byte(portsConf), 0o644); err != nil {
		t.Fatal(err)
	}
	return file
}

// showPorts prints the ports of a step.
const showPorts = `echo ports:$SLURM_STEP_RESV_PORTS`

// keepsPorts has a job on a node whose step has ports, and waits until it does.
func (d *dev) keepsPorts(t *testing.T, node, count string) (id string) {
	t.Helper()
	id = d.must("sbatch", "--parsable", "-w", node, "-o", d.dir+"/keeps-%j", "--wrap",
		"srun --resv-ports="+count+" sh -c '"+showPorts+"; exec sleep 600'")
	d.wait("a step with ports", func() bool { return strings.HasPrefix(d.soFar("keeps-"+id), "ports:") })
	return id
}

// TestStepPorts: steps have ports of their nodes for themselves, in numbers and words as Slurm 22.05.
func TestStepPorts(t *testing.T) {
	t.Parallel()
	d := startDev(t, "--hollow", "4x8c16g", "--hollow-exec", "--conf", confOfPorts(t))
	tooMany := "srun: error: Unable to create step for job ID: Requires more ports than can be reserved\n"
	for _, c := range []struct {
		args, ports, errs string
		code              int
	}{
		{"-N2 --resv-ports=4", "12001-12004", "", 0},
		{"-N2 --resv-ports", "", "", 0},
		{"-N2 --resv-ports=0", "", "", 0},
		{"-N2", "12005-12006", "", 0},
		{"-N2 --mpi=openmpi", "12000,12007", "", 0},
		{"-N2 -n5", "12001-12005", "", 0}, // four on one node
		{"-N2 --resv-ports=8", "12000-12007", "", 0},
		{"-N2 --resv-ports=9", "", tooMany, 1},
		{"-N1 -n8", "", tooMany, 1},
	} {
		out, errs, code := d.run("srun", append(strings.Fields(c.args), "sh", "-c", showPorts)...)
		want := ""
		if c.code == 0 {
			want = strings.Repeat("ports:"+c.ports+"\n", strings.Count(out, "\n"))
		}
		errs = slurmWords(errs)
		_, rest, _ := strings.Cut(errs, "for job ")
		if id, _, ok := strings.Cut(rest, ":"); ok {
			errs = strings.ReplaceAll(errs, id, "ID")
		}
		if out != want || errs != c.errs || code != c.code {
			t.Errorf("srun %s: %d %q %q, want %d %q %q", c.args, code, out, errs, c.code, want, c.errs)
		}
	}
	d.keptPorts(t)
}

// keptPorts: what a step has others do not get, until it has ended; a daemon that is restarted remembers.
func (d *dev) keptPorts(t *testing.T) {
	const node = "node-001"
	keeps := d.keepsPorts(t, node, "6")
	has := strings.TrimPrefix(strings.TrimSpace(d.soFar("keeps-"+keeps)), "ports:")
	if show := d.must("scontrol", "show", "step", keeps+".0"); !strings.Contains(show, "ResvPorts="+has+"\n") {
		t.Errorf("no ports %s are shown:\n%s", has, show)
	}
	shown := d.must("squeue", "-h", "-s", "-O", "stepname:8,resvports:30")
	if !strings.Contains(shown, "sh      "+has+" ") || !strings.Contains(shown, "batch   (null)") {
		t.Errorf("squeue shows no ports %s:\n%s", has, shown)
	}
	ask := func() (string, string, int) {
		return d.run("srun", "--immediate=1", "-w", node, "--resv-ports=3", "true")
	}
	for _, what := range []string{"while it runs", "after a restart"} {
		if _, errs, code := ask(); code != 1 || !strings.Contains(errs, ": Required ports are in use\n") {
			t.Errorf("%s: three ports of two that are free: %d %q", what, code, errs)
		}
		out := d.must("srun", "-w", node, "--resv-ports=2", "sh", "-c", showPorts)
		if first := strings.TrimPrefix(out, "ports:"); strings.Contains(has, first) || first == "" {
			t.Errorf("%s: %s are given twice, of %s", what, first, has)
		}
		expect(t, "on another node", d.must("srun", "-w", "node-002", "--resv-ports=8", "sh", "-c", showPorts),
			"ports:12000-12007")
		if what == "while it runs" {
			d.kill()
			d.start()
			d.wait("the node", func() bool {
				out, _, _ := d.run("sinfo", "-hn", node, "-o", "%t")
				return strings.HasPrefix(out, "mix")
			})
		}
	}
	type result struct {
		out, errs string
		code      int
	}
	waits := make(chan result)
	go func() {
		out, errs, code := d.run("srun", "-w", node, "--resv-ports=8", "sh", "-c", showPorts)
		waits <- result{out, errs, code}
	}()
	d.wait("a job that waits for ports", func() bool {
		return strings.Count(d.must("squeue", "-h", "-t", "R"), "\n") == 1 // of two lines
	})
	d.must("scancel", keeps)
	r := <-waits
	if r.out != "ports:12000-12007\n" || r.code != 0 || strings.Contains(r.errs, "nodes are busy") {
		t.Errorf("one that has waited: %d %q %q", r.code, r.out, r.errs)
	}
	d.wait("nothing to run", func() bool { return d.must("squeue", "-h") == "" })
}

// TestStepPortsOfClients: a step has the same ports on nodes of several clients, none of which another step
// has on any of them, whoever leads it.
func TestStepPortsOfClients(t *testing.T) {
	t.Parallel()
	g := newGroup(t, "--conf", confOfPorts(t))
	for _, c := range []string{"c1", "c2"} {
		g.join(c, "s1", "--hollow", "2x8c16g", "--hollow-prefix", c+"-", "--hollow-exec")
	}
	g.wait("the nodes", func() bool { return g.must("s1", "sinfo", "-h", "-t", "idle", "-o", "%D") == "4" })
	s1 := g.at["s1"]
	keeps := s1.keepsPorts(t, "c2-001", "6")
	expect(t, "of a single node", s1.soFar("keeps-"+keeps), "ports:12001-12006\n")
	both := func(count string, more ...string) (string, string, int) {
		args := append(more, "-N2", "-w", "c1-001,c2-001", "--resv-ports="+count, "sh", "-c", showPorts)
		return g.run("s1", "srun", args...)
	}
	free := strings.Repeat("ports:12000,12007\n", 2)
	asks := func(when string) {
		t.Helper()
		if out, errs, code := both("2"); out != free || code != 0 {
			t.Errorf("%s: two of two that are free: %d %q %q", when, code, out, errs)
		}
		_, errs, code := both("3", "--immediate=1")
		if code != 1 || !strings.Contains(errs, ": Required ports are in use\n") {
			t.Errorf("%s: three of two that are free: %d %q", when, code, errs)
		}
	}
	asks("at first")
	for _, c := range []string{"c2", "c1"} {
		g.at[c].kill()
		g.start(c)
		g.wait("its nodes", func() bool {
			return g.must("s1", "sinfo", "-h", "-N", "-t", "idle,mix", "-o", "%N") == "c1-001\nc1-002\nc2-001\nc2-002"
		})
		asks("after " + c + " was killed")
	}
	g.must("s1", "scancel", keeps)
	g.wait("nothing to run", func() bool { return g.must("s1", "squeue", "-h") == "" })
	if out, errs, code := both("8"); out != strings.Repeat("ports:12000-12007\n", 2) || code != 0 {
		t.Errorf("all ports: %d %q %q", code, out, errs)
	}
	g.wantPorts(t, 12)
}

// wantPorts has many steps want ports of the same nodes at once: all get some in the end, none those of another.
func (g *group) wantPorts(t *testing.T, steps int) {
	each := func(do string) string {
		return `for w in $(echo $SLURM_STEP_RESV_PORTS | tr , ' '); do for p in $(seq ${w%-*} ${w#*-}); do ` +
			do + ` ` + g.dir + `/port-$SLURMD_NODENAME-$p || echo clash $p; done; done; `
	}
	var wg sync.WaitGroup
	for i := range steps {
		size := []string{"-N1", "-N2", "-N3"}[i%3]
		wg.Go(func() {
			out, errs, code := g.run("s1", "srun", "-Q", size, "--resv-ports=3", "sh", "-c",
				each("mkdir")+"sleep 0.2; "+each("rmdir"))
			if out != "" || code != 0 {
				t.Errorf("one of many: %d %q %q", code, out, errs)
			}
		})
	}
	wg.Wait()
}
