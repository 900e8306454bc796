package e2e

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"
)

var drillSpares = flag.Int("drill-spares", 0, "how many nodes TestDrillSpares takes from jobs")

// TestDrillSpares takes a node from a job with two spares again and again: it dies, its daemon stops without a word, or
// the node is the first one of the job. The step of all ranks runs again on other nodes, and no job fails. The log has
// the time from when the servers know of the fault until all ranks run again.
func TestDrillSpares(t *testing.T) {
	if *drillSpares == 0 {
		t.Skip("takes half a minute for each node: make drill")
	}
	h, err := newHosts(t, 7)
	if err != nil {
		t.Skipf("no network namespaces here: %v", err)
	}
	conf := t.TempDir() + "/slurm.conf"
	rewrite(t, conf, "ClusterName=c", "SlurmdTimeout=3", "PartitionName=p Nodes=ALL Default=YES")
	g := newGroupOn(t, h, "--conf", conf, "--log-level", "debug")
	for i := range 6 {
		c := fmt.Sprintf("c%d", i+1)
		g.join(c, "s1", "--hollow", "1x8c16g", "--hollow-prefix", c+"-", "--hollow-exec")
		g.at["s1"].tells("(host reached). member=" + c + " ")
		g.wait(c+" to be idle", func() bool { return g.state(c+"-001") == "idle" })
	}
	rnd := rand.New(rand.NewPCG(*drillSeed, 0))
	var times []time.Duration
	last := ""
	for round := range *drillSpares {
		var took time.Duration
		took, last = g.loseNode(t, round, rnd, last)
		times = append(times, took)
	}
	slices.Sort(times)
	t.Logf("%d rounds: median %v, longest %v", len(times), times[len(times)/2], times[len(times)-1])
}

// loseNode has a job lose a node, and returns how long its ranks did not run after the servers knew, and the client that
// was lost. The one that was lost last is spared: gossip may not know yet that it is back.
func (g *group) loseNode(t *testing.T, round int, rnd *rand.Rand, last string) (time.Duration, string) {
	t.Helper()
	out := fmt.Sprintf("out.%d", round)
	script := writeProgram(t, g.dir, "job", fmt.Sprintf(`#!/bin/bash
#SBATCH -N4 --ntasks-per-node=1 --spare=2 --open-mode=append -o %s/%s
srun -l sh -c 'echo up on $SLURMD_NODENAME; until [ -e %[2]s.end ]; do sleep .1; done; echo over'
echo code $?
`, g.dir, out))
	id := g.must("s1", "sbatch", "--parsable", script)
	ups := func() int { return strings.Count(g.soFar(out), ": up on ") }
	g.wait("the ranks", func() bool { return ups() == 4 })
	nodes := strings.Fields(g.must("s1", "scontrol", "show", "hostnames", g.must("s1", "squeue", "-h", "-o", "%N", "-j", id)))
	at := 0
	how := round % 3
	if how > 0 {
		at = 1 + rnd.IntN(3)
	}
	if nodes[at] == last+"-001" {
		at = 1 + at%3
	}
	name := strings.TrimSuffix(nodes[at], "-001")
	client := g.at[name]
	client.killSupervisor()
	if how == 2 {
		paused := client.pause()
		defer func() { _ = paused.Kill() }()
	} else {
		client.kill()
	}
	isDown := func() bool { return strings.HasPrefix(g.state(nodes[at]), "down") }
	for end := time.Now().Add(time.Minute); how == 2 && !isDown() && time.Now().Before(end); { // its call for work stays open
		time.Sleep(100 * time.Millisecond)
	}
	g.wait("the node to be down", isDown)
	began := time.Now()
	g.wait("the ranks again", func() bool { return ups() >= 8 })
	took := time.Since(began)
	t.Logf("round %d: %s (rank %d, fault %d) lost, all ranks again after %v", round, nodes[at], at, how, took)
	writeProgram(t, g.dir, out+".end", "")
	g.wait("the job to be over", func() bool {
		states := strings.Fields(g.must("s1", "sacct", "-nXPD", "-j", id, "-o", "state"))
		return len(states) > 0 && (states[len(states)-1] == "COMPLETED" || states[len(states)-1] == "FAILED")
	})
	if text := g.soFar(out); !strings.HasSuffix(text, "code 0\n") {
		t.Errorf("round %d:\n%s", round, text)
	}
	if how == 2 {
		client.kill()
	}
	g.start(name)
	g.wait(nodes[at]+" to be idle", func() bool {
		_, _, _ = g.run("s1", "scontrol", "update", "node="+nodes[at], "state=resume") // an error if it is up already
		return g.state(nodes[at]) == "idle"
	})
	return took, name
}
