package e2e

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
)

// busy are the two GPUs of a node, of which the first is at work.
func busy(util int) string {
	return h100(2) + fmt.Sprintf("gpu 0 util %d\ngpu 0 power 612\ngpu 0 temp 61\ngpu 0 throttle 4\nproc 0 1 61000 90\ngpu 1 power 70\n",
		util)
}

// TestSamples: what the GPUs of a job do is measured on its node and kept by the servers, without the log:
// SQL has it by node, GPU and job.
func TestSamples(t *testing.T) {
	t.Parallel()
	g := startGPUs(t, busy(93), "--sample-span", "2s")
	job := g.must("sbatch", "--parsable", "--gpus=1", "-o", "/dev/null", "--wrap", "while :; do :; done")
	ask := func(q string) string {
		return strings.TrimSpace(g.must("muster", "sql", "--csv", q))
	}
	g.wait("samples of the job", func() bool {
		out := ask("SELECT count(*) > 1 AS n FROM job_samples WHERE cpus > 0 AND job = " + job)
		return strings.HasSuffix(out, "\n1")
	})
	for _, c := range []struct{ query, want string }{
		{"SELECT DISTINCT gpu, util, mem_mb, power_w, temp_c, throttle FROM job_gpu_samples WHERE job = " + job,
			"gpu,util,mem_mb,power_w,temp_c,throttle\n0,93,61000,612,61,4"},
		{
			"SELECT DISTINCT node, gpu, util, power_w FROM gpu_samples ORDER BY gpu",
			"node,gpu,util,power_w\nn1,0,93,612\nn1,1,0,70",
		},
		{
			"SELECT count(*) > 0 AS n FROM node_samples WHERE cpu >= 0 AND mem_mb > 0 AND load >= 0 AND seconds = 2",
			"n\n1",
		},
	} {
		expect(t, c.query, ask(c.query), c.want)
	}
	text := g.must("muster", "samples", "--csv", job)
	if !strings.HasPrefix(text, "time,seconds,node,cpus,") || !strings.Contains(text, ",n1,") || !strings.Contains(text, ",0,93,93,61000,61000,612,612,61,61,4") {
		t.Errorf("muster samples:\n%s", text)
	}
	if text = g.must("muster", "samples", "n1"); !strings.Contains(text, "gpu_util") || strings.Contains(text, "port_in") {
		t.Errorf("muster samples of a node:\n%s", text)
	}
	before := ask("SELECT max(at) AS at FROM node_samples")
	g.set(busy(7) + "gpu 0 link_in 500000\n")
	g.wait("what changed", func() bool {
		return strings.HasSuffix(ask("SELECT min(util) < 8 AND max(nvlink_in_kbs) > 0 AS n FROM job_gpu_samples WHERE job = "+job),
			"\n1")
	})
	if after := ask("SELECT max(at) AS at FROM node_samples"); after == before {
		t.Errorf("no sample after %s", before)
	}
	g.must("scancel", job)
}

// TestIdleGPU: the rule of a partition ends a job whose GPUs do nothing, requeues one, tells another, and
// leaves alone what works; why is in its output and its record.
func TestIdleGPU(t *testing.T) {
	t.Parallel()
	conf := t.TempDir() + "/slurm.conf"
	write := func(rule string) {
		t.Helper()
		text := "ClusterName=c\nGresTypes=gpu\nNodeName=n1 Gres=gpu:h100:2\nPartitionName=p Nodes=n1 Default=YES IdleGPU=" + rule + " IdleGPUTime=0:04\n"
		if err := os.WriteFile(conf, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write("cancel")
	g := startGPUs(t, busy(93), "--sample-span", "1s", "--conf", conf)
	works := g.must("sbatch", "--parsable", "--gpus=1", "-c1", "--mem=10", "-o", "works", "--wrap", "sleep 600")
	submit := func(name string) string {
		id := g.must("sbatch", "--parsable", "--requeue", "--gpus=1", "-c1", "--mem=10", "-o", name,
			"--wrap", "sleep 600")
		g.wait("its output", func() bool {
			_, err := os.Stat(g.dir + "/" + name)
			return err == nil
		})
		return id
	}
	idle := submit("idle")
	out := ""
	g.wait("its end", func() bool {
		out = g.must("scontrol", "show", "job", idle)
		return strings.Contains(out, "JobState=CANCELLED")
	})
	want := "IdleGPU=cancel of partition p: 1 of 1 GPUs below 5 % since "
	if !strings.Contains(out, "SystemComment="+want) {
		t.Error(out)
	}
	g.wait("why", func() bool {
		return strings.Contains(g.read("idle"), "muster: "+want) && strings.Contains(g.read("idle"), "CANCELLED AT")
	})
	expect(t, "the job that works", g.must("squeue", "-h", "-j", works, "-o", "%t"), "R")
	if text := g.must("scontrol", "show", "partition", "p"); !strings.Contains(text, "IdleGPU=cancel IdleGPUTime=00:00:04") {
		t.Error(text)
	}

	write("notify")
	g.must("scontrol", "reconfigure")
	idle = submit("told")
	g.wait("the notice",
		func() bool { return strings.Contains(g.read("told"), "leave them to others if it needs them no more") })
	expect(t, "the job that was told", g.must("squeue", "-h", "-j", idle, "-o", "%t"), "R")
	if list := g.must("muster", "idle"); !strings.Contains(list, "\n"+idle+" ") || !strings.Contains(list, "notify") || strings.Contains(list, "\n"+works+" ") {
		t.Errorf("muster idle:\n%s", list)
	}

	write("requeue")
	g.must("scontrol", "reconfigure")
	g.must("scancel", idle)
	idle = submit("again")
	g.wait("the requeue",
		func() bool { return strings.Contains(g.must("scontrol", "show", "job", idle), "Restarts=1") })
	g.must("scancel", idle, works)
}

// TestHardwareDashboards: a real Prometheus has data for every panel of the dashboards of one job and one node.
func TestHardwareDashboards(t *testing.T) {
	t.Parallel()
	page := freeAddr(t)
	g := startGPUs(t, busy(93), "--sample-span", "1s", "--http", page)
	job := g.must("sbatch", "--parsable", "--gpus=1", "-o", "/dev/null", "--wrap", "sleep 600")
	p := startPrometheus(t, page)
	for _, file := range []string{"job", "node"} {
		for _, expr := range boardOf(t, file) {
			expr = strings.NewReplacer("$jobid", job, "$node", "n1").Replace(expr)
			g.wait(fmt.Sprintf("data of %q in %s", expr, file), func() bool { return p.query(expr) > 0 })
		}
	}
	g.must("scancel", job)
}

// TestSamplesGroup: each server of a group has the samples, and when the one that leads is lost there is
// no hole in them.
func TestSamplesGroup(t *testing.T) {
	t.Parallel()
	g := newGroup(t)
	g.join("s2", "s1")
	g.join("s3", "s2")
	g.join("c1", "s1", "--hollow", "1x2c4g", "--hollow-exec", "--sample-span", "2s")
	g.wait("three voters", func() bool { return g.voters("s1") == 3 })
	g.wait("the node", func() bool { return g.must("s1", "sinfo", "-h", "-t", "idle", "-o", "%D") == "1" })
	job := g.must("s1", "sbatch", "--parsable", "-o", "/dev/null", "--wrap", "while :; do :; done")
	ask := func(s, q string) string {
		return strings.TrimSpace(g.must(s, "muster", "sql", "--csv", "--noheader", q))
	}
	count := "SELECT count(*) > 3 FROM job_samples WHERE cpus > 0 AND job = " + job
	for _, s := range []string{"s1", "s2", "s3"} {
		g.wait("samples at "+s, func() bool { return ask(s, count) == "1" })
	}
	leader := g.awaitLeader("s1")
	others := g.others(leader)
	last := ask(others[0], "SELECT max(at) FROM job_samples")
	g.at[leader].kill()
	for _, s := range others {
		g.wait("samples at "+s+" after the leader's end",
			func() bool { return ask(s, "SELECT max(at) > 10 + "+last+" FROM job_samples") == "1" })
		gap := ask(s, "SELECT max(d) FROM (SELECT at - lag(at) OVER (ORDER BY at) AS d FROM job_samples)")
		if n := secondsOf(gap); n > 6 {
			t.Errorf("%s: a hole of %s seconds", s, gap)
		}
	}
}

// secondsOf is a number, or much.
func secondsOf(text string) int {
	n, err := strconv.Atoi(text)
	if err != nil {
		return 1 << 20
	}
	return n
}
