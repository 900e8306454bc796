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

var drillFailover = flag.Int("drill-failover", 0, "how often TestDrillFailover kills the leader")

// failoverRound is a round of the drill.
type failoverRound struct {
	*group
	t    *testing.T
	n    int
	rnd  *rand.Rand
	lead string // is killed
	at   string // takes the commands, and follows
	id   string // the job
}

// failoverActions are what is interrupted: each begins a job, and returns its records in history when all is well.
var failoverActions = []struct {
	name string
	do   func(r *failoverRound) (states []string)
}{
	{"a spare replaces a node that fails", (*failoverRound).loseSpared},
	{"muster swap", (*failoverRound).swap},
	{"a job that hangs is requeued", (*failoverRound).hang},
	{"a preemption waits for a checkpoint", (*failoverRound).checkpoint},
}

// TestDrillFailover kills the server that leads in the middle of what muster does for jobs with faults, at a random
// moment. Afterwards it was done exactly once: the job has the records that it should have, and each start of its script
// has left one line.
func TestDrillFailover(t *testing.T) {
	if *drillFailover == 0 {
		t.Skip("takes half a minute for each leader: make drill")
	}
	conf := t.TempDir() + "/slurm.conf"
	rewrite(t, conf, "ClusterName=c", "SlurmdTimeout=3", "PreemptType=preempt/partition_prio", "PreemptMode=REQUEUE",
		"PreemptParameters=checkpoint_grace=600", "PartitionName=p Nodes=ALL Default=YES",
		"PartitionName=high Nodes=ALL PriorityTier=2")
	g := newGroup(t, "--conf", conf)
	g.join("s2", "s1", "--conf", conf)
	g.join("s3", "s1", "--conf", conf)
	for i := range 4 {
		c := fmt.Sprintf("c%d", i+1)
		g.join(c, "s1", "--hollow", "1x8c16g1gpu:h100", "--hollow-prefix", c+"-", "--hollow-exec")
		g.wait(c+" to be idle", func() bool { return idleAt(g, "s1", c+"-001") })
	}
	writeProgram(t, g.dir, "ras.py", rasServer)
	rnd := rand.New(rand.NewPCG(*drillSeed, 1))
	for n := range *drillFailover {
		action := failoverActions[n%len(failoverActions)]
		g.wait("three voters", func() bool { return g.voters("s1") == 3 })
		r := &failoverRound{group: g, t: t, n: n, rnd: rnd, lead: g.awaitLeader("s1")}
		r.at = g.others(r.lead)[rnd.IntN(2)]
		want := action.do(r)
		r.settled(action.name, want)
	}
}

// settled waits until the job is over, compares what came of it, and brings back what was killed.
func (r *failoverRound) settled(name string, want []string) {
	states := func() []string {
		out, _, _ := r.run(r.at, "sacct", "-nXPD", "-j", r.id, "-o", "state")
		return strings.Fields(out)
	}
	r.wait("the job to be over", func() bool { return slices.Contains(states(), "COMPLETED") })
	if got := states(); !slices.Equal(got, want) {
		r.t.Errorf("round %d, %s: job %s has the records %v, want %v", r.n, name, r.id, got, want)
	}
	began := strings.Split(strings.TrimSpace(r.soFar(r.file("began"))), "\n")
	starts := 1 + strings.Count(strings.Join(want, " "), "REQUEUED") + strings.Count(strings.Join(want, " "), "PREEMPTED")
	if len(began) != starts {
		r.t.Errorf("round %d, %s: the script began as %q, want %d starts", r.n, name, began, starts)
	}
	r.start(r.lead)
	for i := range 4 {
		c := fmt.Sprintf("c%d", i+1)
		if r.member(c).ended() {
			r.start(c)
		}
		r.wait(c+" to be idle", func() bool {
			_, _, _ = r.run(r.at, "scontrol", "update", "node="+c+"-001", "state=resume") // an error if it is up already
			return idleAt(r.group, r.at, c+"-001")
		})
	}
	r.t.Logf("round %d: %s, %s was killed: %v", r.n, name, r.lead, want)
}

// idleAt reports whether a node is idle in all partitions, as a member says.
func idleAt(g *group, at, node string) bool {
	out, _, _ := g.run(at, "sinfo", "-h", "-N", "-n", node, "-o", "%t")
	return slices.Equal(slices.Compact(strings.Fields(out)), []string{"idle"})
}

// member is one by its name.
func (r *failoverRound) member(name string) *dev { return r.group.at[name] }

// file is a file of the round.
func (r *failoverRound) file(name string) string { return fmt.Sprintf("%s.%d", name, r.n) }

// killLeader kills the server that leads, up to so much later.
func (r *failoverRound) killLeader(most time.Duration) {
	time.Sleep(time.Duration(r.rnd.Int64N(int64(most)))) // the moment is the drill's own choice
	r.member(r.lead).kill()
}

// submit submits a script, which notes each of its starts.
func (r *failoverRound) submit(options, script string) {
	path := writeProgram(r.t, r.dir, "job", fmt.Sprintf("#!/bin/bash\n#SBATCH --open-mode=append -o %s/%s %s\n"+
		"echo start $SLURM_RESTART_COUNT >>%s\n%s\n", r.dir, r.file("out"), options, r.file("began"), script))
	r.id = r.must(r.at, "sbatch", "--parsable", path)
}

// spared runs a job on two nodes with a spare, whose ranks run until a file is there.
func (r *failoverRound) spared() (second string) {
	r.submit("-N2 --ntasks-per-node=1 --spare=1", fmt.Sprintf(
		"srun -l sh -c 'echo up on $SLURMD_NODENAME; until [ -e %s ]; do sleep .1; done'\necho code $?", r.file("end")))
	r.wait("the ranks", func() bool { return r.ups() == 2 })
	nodes := r.must(r.at, "squeue", "-h", "-o", "%N", "-j", r.id)
	return strings.Fields(r.must(r.at, "scontrol", "show", "hostnames", nodes))[1]
}

// ups counts the starts of ranks.
func (r *failoverRound) ups() int { return strings.Count(r.soFar(r.file("out")), ": up on ") }

// goesOn waits until the step runs again on other nodes, and has it end.
func (r *failoverRound) goesOn() []string {
	r.wait("the ranks again", func() bool { return r.ups() >= 4 })
	writeProgram(r.t, r.dir, r.file("end"), "")
	r.wait("the step to end", func() bool { return strings.Contains(r.soFar(r.file("out")), "code 0\n") })
	return []string{"RESIZING", "COMPLETED"}
}

// loseSpared loses a node of a job that has a spare.
func (r *failoverRound) loseSpared() []string {
	client := r.member(strings.TrimSuffix(r.spared(), "-001"))
	client.killSupervisor()
	client.kill()
	r.killLeader(5 * time.Second) // the servers notice after three
	return r.goesOn()
}

// swap has a spare take the place of a node by request. A call whose answer was lost is made again only if it had no
// effect.
func (r *failoverRound) swap() []string {
	node := r.spared()
	called := make(chan struct{})
	go func() {
		defer close(called)
		_, _, _ = r.run(r.at, "muster", "swap", r.id, node)
	}()
	r.killLeader(60 * time.Millisecond)
	<-called
	r.wait("the node to be replaced", func() bool {
		out, _, code := r.run(r.at, "scontrol", "show", "job", r.id)
		if code == 0 && !strings.Contains(out, "LostNodes="+node) {
			_, _, _ = r.run(r.at, "muster", "swap", r.id, node)
		}
		return strings.Contains(out, "LostNodes="+node+" ReplacedBy=")
	})
	return r.goesOn()
}

// hang runs a job of which NCCL's RAS says that a rank is missing, once.
func (r *failoverRound) hang() []string {
	r.submit("-N1 --gpus=1 --hang=requeue --requeue", `[ "$SLURM_RESTART_COUNT" = 1 ] && exit; exec python3 ras.py`)
	r.wait("the job", func() bool { return r.soFar(r.file("began")) != "" })
	hung := func() bool {
		out, _, _ := r.run(r.at, "scontrol", "show", "job", r.id)
		return strings.Contains(out, "HANG: ") || strings.Contains(out, "Restarts=1")
	}
	if r.n%8 < 4 { // in the middle of what follows, or at any time before
		r.wait("the hang", hung)
		r.killLeader(300 * time.Millisecond)
	} else {
		r.killLeader(20 * time.Second)
	}
	return []string{"REQUEUED", "COMPLETED"}
}

// checkpoint has a job make room that saves a checkpoint first.
func (r *failoverRound) checkpoint() []string {
	r.submit("-N4 --exclusive --requeue --checkpoint-signal=B:USR1@500 --checkpoint-file="+r.file("latest"), fmt.Sprintf(
		`[ "$SLURM_RESTART_COUNT" = 1 ] && exit
trap 'echo signal; until [ -e %[1]s ]; do sleep .1; done; while true; do date >%[2]s; sleep 2; done' USR1
echo ready; while true; do sleep .2; done`, r.file("save"), r.file("latest")))
	r.wait("the job", func() bool { return strings.Contains(r.soFar(r.file("out")), "ready\n") })
	high := r.must(r.at, "sbatch", "--parsable", "-p", "high", "-N4", "--exclusive", "-o", "/dev/null", "--wrap", "true")
	if r.n%8 < 4 {
		r.wait("the signal", func() bool { return strings.Contains(r.soFar(r.file("out")), "signal\n") })
	}
	r.killLeader(time.Second)
	writeProgram(r.t, r.dir, r.file("save"), "")
	r.wait("the other job", func() bool {
		out, _, _ := r.run(r.at, "sacct", "-nXPD", "-j", high, "-o", "state")
		return out == "COMPLETED\n"
	})
	if got := strings.Count(r.soFar(r.file("out")), "signal\n"); got != 1 {
		r.t.Errorf("round %d: the job got %d signals", r.n, got)
	}
	return []string{"PREEMPTED", "COMPLETED"}
}
