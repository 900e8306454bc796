package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// federated are two clusters that are a federation, each with some nodes of eight CPUs.
func federated(t *testing.T, nodes int) (a, b *dev) {
	t.Helper()
	addrA, addrB := freeAddr(t), freeAddr(t)
	hollow := fmt.Sprintf("%dx8c16g", nodes)
	a, b = startCluster(t, "alpha", addrA, hollow), startCluster(t, "beta", addrB, hollow)
	token := strings.TrimSpace(b.must("muster", "peer", "invite", "alpha", "--root"))
	a.must("muster", "peer", "add", "--root", "--token", token, "http://"+addrB)
	a.must("sacctmgr", "-i", "add", "federation", "fed", "clusters=alpha,beta")
	return a, b
}

// states are the states of the job at the clusters of the federation, as squeue --sibling has them with those that are
// revoked.
func states(d *dev, id string) string {
	lines := strings.Split(d.must("squeue", "--sibling", "-h", "-t", "all", "-j", id, "-O", "cluster:6,statecompact:4"),
		"\n")
	slices.Sort(lines)
	return strings.Join(strings.Fields(strings.Join(lines, " ")), " ")
}

// queued is a field of a job as squeue has it.
func queued(d *dev, id, field string) string { return d.must("squeue", "-h", "-j", id, "-o", field) }

// TestFederation: jobs go to the cluster that can start them first, are ended, held and changed at any, and run once.
func TestFederation(t *testing.T) {
	t.Parallel()
	a, b := federated(t, 1)
	shown := a.must("scontrol", "show", "federation")
	own, other := "Federation: fed\nSelf:       alpha:", "\nSibling:    beta:127.0.0.1:"
	if !strings.HasPrefix(shown, own) || !strings.Contains(shown, other) {
		t.Errorf("scontrol show federation:\n%s", shown)
	}
	if out := b.must("sacctmgr", "-nP", "show", "federation"); out != "fed|alpha|1||ACTIVE\nfed|beta|2||ACTIVE" {
		t.Errorf("sacctmgr show federation at beta: %q", out)
	}
	if _, errs, code := a.run("sacctmgr", "-i", "modify", "federation", "fed", "set", "clusters+=gamma"); code != 1 ||
		!strings.HasPrefix(errs, " The cluster gamma doesn't exist. Please add first.") {
		t.Errorf("a stranger: %d %q", code, errs)
	}
	starts := filepath.Join(a.dir, "starts")
	job := func(seconds int) string { return fmt.Sprintf("echo $SLURM_JOB_ID >> %s; sleep %d", starts, seconds) }
	if err := os.WriteFile(starts, nil, 0o666); err != nil {
		t.Fatal(err)
	}
	first := a.must("sbatch", "--parsable", "--exclusive", "--wrap", job(600))
	if first != "67108865" {
		t.Errorf("the first job of cluster 1 is %s", first)
	}
	second := a.must("sbatch", "--parsable", "--exclusive", "--wrap", job(600))
	a.wait("the second job to run at beta", func() bool { return states(a, second) == "alpha RV beta R" })
	third := a.must("sbatch", "--parsable", "--exclusive", "--wrap", job(0))
	b.wait("a sibling of the third job", func() bool { return states(b, third) == "alpha PD beta PD" })
	all := first + " R\n" + second + " R\n" + third + " PD"
	if out := b.must("squeue", "-h", "--federation", "-S", "i", "-o", "%i %t"); out != all {
		t.Errorf("squeue --federation:\n%s", out)
	}
	b.wait("the fields of a sibling", func() bool {
		out := b.must("squeue", "-h", "-j", third, "-O", "origin:.8,originraw:.4,siblingsviable:.12,siblingsactive:.12")
		return strings.Join(strings.Fields(out), " ") == "alpha 1 alpha,beta alpha,beta"
	})

	b.must("scontrol", "hold", third)
	a.wait("both to be held", func() bool {
		return queued(a, third, "%r") == "JobHeldAdmin" && queued(b, third, "%r") == "JobHeldAdmin"
	})
	b.must("scontrol", "release", third)
	b.must("scontrol", "update", "jobid="+third, "name=other")
	b.wait("the other name", func() bool {
		return queued(b, third, "%j") == "other" && queued(b, third, "%r") != "JobHeldAdmin"
	})

	places(t, a, b, third)
	a.must("scancel", second)
	b.wait("the third job to run and end",
		func() bool { return strings.HasPrefix(states(b, third), "alpha RV beta C") })
	past := second + "|beta|CANCELLED by 0\n" + third + "|beta|COMPLETED"
	if out := a.must("sacct", "--federation", "-nXPo", "jobid,cluster,state", "-j", second+","+third); out != past {
		t.Errorf("sacct --federation:\n%s", out)
	}
	if out := a.must("sacct", "-nXDPo", "jobid,state", "-j", third); out != third+"|REVOKED" {
		t.Errorf("sacct -D at alpha: %q", out)
	}
	after := a.must("sbatch", "--parsable", "-d", "afterok:"+third, "--exclusive", "--wrap", job(0))
	b.wait("a job that depends on one that beta has run",
		func() bool { return strings.HasPrefix(states(b, after), "alpha RV beta C") })
	otherOrigin(t, a, b, job(0))

	features(t, a, b, job(0))
	for _, id := range []string{first, second, third, after} {
		if n := strings.Count(a.soFar("starts"), id+"\n"); n != 1 {
			t.Errorf("job %s started %d times:\n%s", id, n, a.soFar("starts"))
		}
	}
}

// otherOrigin: at alpha a job is submitted that depends on one of beta's.
func otherOrigin(t *testing.T, a, b *dev, script string) {
	t.Helper()
	parent := heldAt(b)
	child := a.must("sbatch", "--parsable", "-d", "afterok:"+parent, "--exclusive", "--wrap", script)
	if of := queued(a, child, "%E"); of != "afterok:"+parent+"(unfulfilled)" {
		t.Errorf("job %s waits at alpha for %q", child, of)
	}
	b.must("scontrol", "release", parent)
	b.wait("the job that depends on it to end",
		func() bool {
			return strings.Contains(states(a, child), " C") && strings.Contains(states(b, parent), " C")
		})
	if out := a.must("srun", "-M", "beta", "printenv", "SLURM_CLUSTER_NAME"); out != "beta" {
		t.Errorf("srun -M beta ran at %q", out)
	}
}

// heldAt submits a job that is held, and stays at the cluster where it is submitted.
func heldAt(d *dev, args ...string) string {
	args = append([]string{"--parsable", "-H", "--wrap", "true"}, args...)
	id, _, _ := strings.Cut(d.must("sbatch", args...), ";")
	return id
}

// TestFederationParents: jobs wait for jobs that several clusters have made, also for those that are forgotten there
// by now.
func TestFederationParents(t *testing.T) {
	t.Parallel()
	a, b := federated(t, 2)
	own, other, third := heldAt(a), heldAt(b), heldAt(b, "-a", "1-2")
	child := func(args ...string) string {
		return a.must("sbatch", append([]string{"--parsable", "--wrap", "true"}, args...)...)
	}
	all := child("-d", "afterok:"+own+":"+other)
	any := child("-d", "afterok:"+own+"?afterany:"+other)
	array := child("-a", "1-2", "-d", "afterany:"+third)
	task := child("-d", "afterok:"+third+"_2")
	cut := child("-d", "afternotok:"+other)
	pair := a.must("sbatch", "--parsable", "-n1", "-d", "afterok:"+other, "--wrap", "true", ":", "-n1")
	reason := func(id string) string { return queued(a, id, "%T %r") }
	if why := a.must("muster", "why", all); !strings.Contains(why, "job "+other+" was submitted at cluster beta") {
		t.Errorf("muster why %s:\n%s", all, why)
	}
	refused(t, a, "Job dependency problem", "sbatch", "-a", "1-2", "-d", "aftercorr:"+third, "--wrap", "true")
	refused(t, a, "Job dependency problem", "sbatch", "-d", "afterok:"+strings.Repeat("9", 9), "--wrap", "true")
	refused(t, a, "Job dependency problem", "scontrol", "update", "jobid="+cut, "dependency=expand:"+other)
	for _, id := range []string{all, any, array, task, cut, pair} {
		if got := reason(id); !strings.HasPrefix(got, "PENDING Dependency") {
			t.Errorf("job %s: %q", id, got)
		}
	}
	b.must("scontrol", "release", other)
	ended := func(id string) func() bool { return func() bool { return reason(id) == "" } }
	a.wait("what waits for either", ended(any))
	a.wait("what waits with two components", ended(pair))
	a.wait("what waits for it to fail", func() bool { return reason(cut) == "PENDING DependencyNeverSatisfied" })
	if got := reason(all); got != "PENDING Dependency" {
		t.Errorf("job %s: %q", all, got)
	}
	a.must("scontrol", "release", own)
	a.wait("what waits for both", ended(all))
	b.must("scontrol", "release", third)
	a.wait("the array", ended(array))
	a.wait("what waits for a task", ended(task))

	conf := filepath.Join(b.dir, "slurm.conf")
	text, err := os.ReadFile(conf)
	if err == nil {
		err = os.WriteFile(conf, append(text, "MinJobAge=2\n"...), 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
	b.must("scontrol", "reconfigure")
	bad := b.must("sbatch", "--parsable", "-M", "beta", "--wrap", "exit 3")
	bad, _, _ = strings.Cut(bad, ";")
	b.wait("a job to be forgotten", func() bool {
		_, errs, code := b.run("scontrol", "show", "job", bad)
		return code != 0 && strings.Contains(errs, "Invalid job id")
	})
	vain := child("-d", "afterok:"+bad)
	well := child("-d", "afternotok:"+bad)
	a.wait("what waits for one that failed and is forgotten", ended(well))
	a.wait("what can never start", func() bool { return reason(vain) == "PENDING DependencyNeverSatisfied" })
}

// places: where a job of alpha may run changes while it waits, and its sibling at beta with that.
func places(t *testing.T, a, b *dev, id string) {
	refused(t, b, "Invalid cluster name for job "+id, "scontrol", "update", "jobid="+id, "clusters=gamma")
	b.must("scontrol", "update", "jobid="+id, "clusters=alpha")
	b.wait("beta to drop the job", func() bool { return states(b, id) == "alpha PD beta RV" })
	b.must("scontrol", "update", "jobid="+id, "clusters=all")
	b.wait("beta to have the job again", func() bool { return states(b, id) == "alpha PD beta PD" })
	viable := `"federation_siblings_viable": "alpha,beta"`
	if out := b.must("squeue", "--json", "-j", id); !strings.Contains(out, viable) {
		t.Errorf("squeue --json:\n%s", out)
	}
	for _, line := range [][]string{
		{"scontrol", "--json", "show", "federation"},
		{"sacctmgr", "--json", "show", "federation"},
		{"sreport", "--federation", "cluster", "utilization"},
	} {
		if out, errs, code := a.run(line[0], line[1:]...); code != 1 || out != "" || errs == "" {
			t.Errorf("%v: %d %q %q", line, code, out, errs)
		}
	}
}

// refused: a command ends with 1, and its reason is among what it says.
func refused(t *testing.T, d *dev, reason, program string, args ...string) {
	t.Helper()
	if _, errs, code := d.run(program, args...); code != 1 || !strings.Contains(errs, reason) {
		t.Errorf("%s %v: %d %q", program, args, code, errs)
	}
}

// features: jobs go where their features are, and not where no new jobs are taken; a member leaves when its jobs are
// over.
func features(t *testing.T, a, b *dev, script string) {
	a.must("sacctmgr", "-i", "modify", "cluster", "beta", "set", "features=gpu")
	const fields = "format=cluster,federation,id,features,fedstate"
	out := b.must("sacctmgr", "-nP", "show", "cluster", "withfed", fields)
	if !strings.Contains(out, "beta|fed|2|gpu|ACTIVE") {
		t.Errorf("sacctmgr show cluster withfed:\n%s", out)
	}
	id := a.must("sbatch", "--parsable", "--cluster-constraint=gpu", "--wrap", script)
	a.wait("a job for beta alone", func() bool { return strings.HasPrefix(states(a, id), "alpha RV beta C") })
	refused(t, a, "Invalid cluster feature specification",
		"sbatch", "--cluster-constraint=none", "--wrap", script)
	refused(t, a, "Requested operation not supported",
		"sbatch", "--array=1-2", "--cluster-constraint=gpu", "--wrap", script)
	a.must("sacctmgr", "-i", "modify", "cluster", "beta", "set", "fedstate=drain+remove")
	b.wait("beta to have left",
		func() bool { return a.must("sacctmgr", "-nP", "show", "federation") == "fed|alpha|1||ACTIVE" })
	b.wait("beta to know that too", // alpha tells it
		func() bool { return b.must("scontrol", "show", "federation") == "" })
	if id := b.must("sbatch", "--parsable", "--wrap", "true"); len(id) > 5 {
		t.Errorf("a job of beta, after it has left, is %s", id)
	}
}

// TestFederationCut: one of two clusters is cut off in the middle of each operation, and no job runs twice.
func TestFederationCut(t *testing.T) {
	t.Parallel()
	a, b := federated(t, 2)
	starts := filepath.Join(a.dir, "starts")
	if err := os.WriteFile(starts, nil, 0o666); err != nil {
		t.Fatal(err)
	}
	var ids []string
	submit := func(d *dev) string {
		id := d.must("sbatch", "--parsable", "--exclusive", "--wrap",
			fmt.Sprintf("echo $SLURM_JOB_ID >> %s; sleep 0.3", starts))
		ids = append(ids, id)
		return id
	}
	for round := range 4 {
		stopped, other := a, b
		if round%2 == 1 {
			stopped, other = b, a
		}
		for range 6 { // submissions, grants and ends are under way
			submit(a)
			submit(b)
		}
		time.Sleep(time.Duration(round) * 70 * time.Millisecond)
		stopped.kill()
		_ = stopped.cmd.Wait()
		own := submit(other)
		other.wait("a job of the other cluster's own", func() bool {
			return strings.Contains(other.must("sacct", "-nXPo", "state", "-j", own), "COMPLETED")
		})
		cancelled := ids[len(ids)-2]
		_, _, _ = other.run("scancel", cancelled)
		stopped.start()
		stopped.wait("the answer of the cluster that was stopped",
			func() bool { _, _, code := stopped.run("squeue"); return code == 0 })
	}
	for _, d := range []*dev{a, b} {
		d.wait("all jobs to be over",
			func() bool { return d.must("squeue", "-h", "-t", "pending,running,completing", "-o", "%i %T") == "" })
	}
	onlyOnce(t, a, ids, starts)
}

// TestFederationGroups: two clusters of three servers each. Leaders are killed and a whole cluster is cut off while jobs
// are submitted, granted, ended and cancelled, and no job runs twice.
func TestFederationGroups(t *testing.T) {
	t.Parallel()
	clusters := map[string]*group{}
	for _, name := range []string{"alpha", "beta"} {
		conf := filepath.Join(t.TempDir(), "slurm.conf")
		text := "ClusterName=" + name + "\nPartitionName=batch Nodes=ALL Default=YES MaxTime=INFINITE\n"
		if err := os.WriteFile(conf, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		clusters[name] = fullGroup(t, 1, "--conf", conf)
	}
	a, b := clusters["alpha"], clusters["beta"]
	pages := func(g *group) string {
		return "http://" + g.pageAt(1) + ",http://" + g.pageAt(2) + ",http://" + g.pageAt(3)
	}
	token := strings.TrimSpace(b.must("s1", "muster", "peer", "invite", "alpha", "--root"))
	a.must("s2", "muster", "peer", "add", "--root", "--own", pages(a), "--token", token, pages(b))
	a.wait("s3 to know the peer", func() bool { return strings.Contains(a.must("s3", "muster", "peer", "ls"), "beta") })
	a.must("s3", "sacctmgr", "-i", "add", "federation", "fed", "clusters=alpha,beta")
	starts := filepath.Join(a.dir, "starts")
	if err := os.WriteFile(starts, nil, 0o666); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(a.dir, 0o777); err != nil {
		t.Fatal(err)
	}
	var ids []string
	submit := func(g *group, n int) {
		for range n {
			id, _ := g.submitUntil("s1", "--exclusive", "--wrap",
				fmt.Sprintf("echo $SLURM_JOB_ID >> %s; sleep 0.3", starts))
			ids = append(ids, id)
		}
	}
	for round := range 3 {
		cut, other := a, b
		if round%2 == 1 {
			cut, other = b, a
		}
		submit(a, 5)
		submit(b, 5)
		leader := cut.awaitLeader("s1")
		cut.at[leader].kill()
		_ = cut.at[leader].cmd.Wait()
		submit(other, 3)
		cut.start(leader)
		_ = cut.awaitLeader("s1")
		for _, s := range []string{"s1", "s2", "s3"} {
			cut.at[s].pause()
		}
		submit(other, 3)
		_, _, _ = other.run("s1", "scancel", ids[len(ids)-1])
		other.wait("jobs of its own to go on", func() bool {
			return strings.Contains(other.must("s1", "sacct", "-nXPo", "state", "-j", ids[len(ids)-3]), "COMPLETED")
		})
		for _, s := range []string{"s1", "s2", "s3"} {
			if err := cut.at[s].cmd.Process.Signal(syscall.SIGCONT); err != nil {
				t.Fatal(err)
			}
		}
		cut.wait("an answer again", func() bool { _, _, code := cut.run("s1", "squeue"); return code == 0 })
	}
	for _, g := range clusters {
		g.wait("all jobs to be over", func() bool {
			out, _, code := g.run("s1", "squeue", "-h", "-t", "pending,running,completing")
			return code == 0 && out == ""
		})
	}
	onlyOnce(t, a.at["s1"], ids, starts)
}

// onlyOnce: each job has one line in the file where it starts, or none if it was cancelled.
func onlyOnce(t *testing.T, d *dev, ids []string, file string) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for _, id := range ids {
		n := strings.Count("\n"+string(text), "\n"+id+"\n")
		cancelled := strings.Contains(d.must("sacct", "--federation", "-nXPo", "state", "-j", id), "CANCELLED")
		if n > 1 || n == 0 && !cancelled {
			t.Errorf("job %s started %d times: %s", id, n, states(d, id))
		}
	}
}
