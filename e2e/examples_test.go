package e2e

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"
)

var examplesDir = flag.String("examples", "",
	"folder with the users' example scripts: TestExamples runs them all (minutes)")

// TestExamples runs the scripts that users bring, unchanged, on eight hollow nodes of their own
// slurm.conf, and looks for what each of them promises. `make examples` calls it.
func TestExamples(t *testing.T) {
	if *examplesDir == "" {
		t.Skip("no -examples folder given; see make examples")
	}
	dir, err := os.MkdirTemp("", "m")
	if err != nil {
		t.Fatal(err)
	}
	copyExamples(t, dir)
	runExamples(t, startDevAt(t, dir, "--conf", filepath.Join(dir, examplesConf), "--hollow", "conf", "--hollow-exec"))
}

// TestExamplesGroup runs them on three servers and four clients, called on a server that follows.
func TestExamplesGroup(t *testing.T) {
	if *examplesDir == "" {
		t.Skip("no -examples folder given; see make examples")
	}
	folder, err := os.MkdirTemp("", "m")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(folder)
	copyExamples(t, folder)
	conf := filepath.Join(folder, examplesConf)
	g := newGroup(t, "--conf", conf)
	g.join("s2", "s1")
	g.join("s3", "s2")
	for i := range 4 {
		name := fmt.Sprintf("c%d", i+1)
		part := filepath.Join(g.dir, name+".conf") // the nodes that this client is
		nodes := fmt.Sprintf("ClusterName=dev\nGresTypes=gpu\nNodeName=gpu-node-[%03d-%03d] Gres=gpu:a100:8 CPUs=128 RealMemory=1024000\n",
			2*i+1, 2*i+2)
		if err := os.WriteFile(part, []byte(nodes), 0o644); err != nil {
			t.Fatal(err)
		}
		g.add(name, "client", "--join", g.bind("s1"), "--token", g.joins["node"], "--conf", part,
			"--hollow", "conf", "--hollow-exec")
	}
	g.wait("three voters", func() bool { return g.voters("s1") == 3 })
	d := g.at[g.others(g.awaitLeader("s1"))[1]]
	g.wait("eight nodes", func() bool {
		out, _, _ := d.run("sinfo", "-h", "-p", "train", "-t", "idle", "-o", "%D")
		return out == "8\n"
	})
	copyExamples(t, d.dir)
	runExamples(t, d)
}

const examplesConf = "ex/conf/dev/slurm.conf"

func copyExamples(t *testing.T, dir string) {
	t.Helper()
	if err := os.CopyFS(filepath.Join(dir, "ex"), os.DirFS(*examplesDir)); err != nil {
		t.Fatal(err)
	}
}

func runExamples(t *testing.T, d *dev) {
	x := examples{d, filepath.Join(d.dir, "ex")}
	t.Run("batch", x.batch)
	t.Run("array", x.array)
	t.Run("requeue", x.requeue)
	t.Run("chains", x.chains)
	t.Run("drivers", x.drivers)
	t.Run("gang", x.gang)
}

type examples struct {
	d   *dev
	dir string
}

// sh runs a command line in the folder of the scripts.
func (x examples) sh(t *testing.T, limit time.Duration, line string) (out string, code int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	cmd := exec.CommandContext(ctx, "bash", "-c", line)
	cmd.Dir, cmd.Env, cmd.WaitDelay = x.dir, x.d.env, time.Second
	b, err := cmd.CombinedOutput()
	if ctx.Err() != nil {
		t.Fatalf("%s: not done in %v\n%s", line, limit, b)
	}
	if err != nil && cmd.ProcessState == nil {
		t.Fatal(err)
	}
	return string(b), cmd.ProcessState.ExitCode()
}

// job submits, waits and returns the job's id and its output file.
func (x examples) job(t *testing.T, args string) (id, log string) {
	t.Helper()
	out, code := x.sh(t, 3*time.Minute, "sbatch --parsable --wait --output=log_%A_%a "+args+" 2>sbatch.err")
	id = strings.TrimSpace(out)
	if _, err := strconv.Atoi(id); err != nil {
		t.Fatalf("sbatch %s: exit code %d\n%s", args, code, out)
	}
	found, _ := filepath.Glob(filepath.Join(x.dir, "log_"+id+"_*"))
	for _, f := range found {
		b, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		log += string(b)
	}
	if code != 0 {
		t.Fatalf("%s: job %s ended with %d\n%s", args, id, code, log)
	}
	return id, log
}

// image is a folder with what the examples need inside a container: a shell and the machine's Python.
func (x examples) image(t *testing.T) string {
	t.Helper()
	const make = `set -e
root=$PWD/image
mkdir -p $root/bin $root/usr/bin $root/usr/lib $root/etc
cp /bin/busybox $root/bin
for t in sh cat ls dirname readlink hostname sleep; do ln -s busybox $root/bin/$t; done
python=$(readlink -f /usr/bin/python3)
for p in /bin/bash $python; do
	for f in $p $(ldd $p | grep -o '/[^ ]*'); do mkdir -p $root${f%/*} && cp -L $f $root$f; done
done
ln -s ${python##*/} $root/usr/bin/python3
cp -r /usr/lib/${python##*/} $root/usr/lib/
echo ID=example >$root/etc/os-release`
	if out, code := x.sh(t, time.Minute, make); code != 0 {
		t.Fatalf("%d %s", code, out)
	}
	return filepath.Join(x.dir, "image")
}

// result wants the script's own verdict, in all tasks.
func result(t *testing.T, log string, tasks int) {
	t.Helper()
	if n := strings.Count(log, "RESULT ok\n"); n != tasks || strings.Contains(log, "FAIL") {
		t.Errorf("%d of %d say RESULT ok:\n%s", n, tasks, log[:min(len(log), 4000)])
	}
}

func (x examples) batch(t *testing.T) {
	for _, script := range []string{"finetune.sbatch", "sanity.sbatch", "fsdp-train.sbatch", "fsdp-endpoint.sbatch",
		"deepspeed-srun.sbatch", "deepspeed-hostfile.sbatch", "ray.sbatch"} {
		t.Run(script, func(t *testing.T) {
			_, log := x.job(t, script)
			result(t, log, 1)
		})
	}
	t.Run("train64-noshebang.sbatch", func(t *testing.T) { x.job(t, "train64-noshebang.sbatch") })
	t.Run("container.sbatch", func(t *testing.T) {
		needsContainers(t)
		x.sh(t, time.Minute, "mkdir -p data scratch && echo 1 >data/one")
		id, log := x.job(t, "--export=ALL,IMAGE="+x.image(t)+",EXAMPLES="+x.dir+" container.sbatch")
		result(t, log, 1)
		for _, want := range []string{"ID=example", "one\n", "rank=31"} {
			if !strings.Contains(log, want) {
				t.Errorf("job %s without %q:\n%s", id, want, log)
			}
		}
	})
}

func (x examples) array(t *testing.T) {
	_, log := x.job(t, "--array=0-15 --gres=gpu:1 sweep.sbatch")
	result(t, log, 16)
	_, log = x.job(t, "array-embed.sbatch")
	result(t, log, 1000)
}

// requeue sends the job back once it has written a checkpoint; it goes on from there.
func (x examples) requeue(t *testing.T) {
	id := strings.TrimSpace(x.d.must("sbatch", "--parsable", "--chdir="+x.dir,
		"--export=ALL,STEPS=6,STEP_SECONDS=0.5,EXAMPLES="+x.dir, x.dir+"/spot-requeue.sbatch"))
	x.d.wait("a checkpoint", func() bool { _, err := os.Stat(filepath.Join(x.dir, "ckpt_"+id)); return err == nil })
	x.d.must("scontrol", "requeue", id)
	x.ended(t, id, "COMPLETED")
	b, err := os.ReadFile(filepath.Join(x.dir, "spot_"+id+".log"))
	if err != nil {
		t.Fatal(err)
	}
	result(t, string(b), 1)
	if !strings.Contains(string(b), "attempt 1") || !regexp.MustCompile(`start at step [1-9]`).Match(b) {
		t.Errorf("no second attempt from a checkpoint:\n%s", b)
	}
}

func (x examples) ended(t *testing.T, id, state string) {
	t.Helper()
	var got string
	x.d.wait("job "+id+" to end", func() bool {
		out, _, _ := x.d.run("sacct", "-X", "-n", "-P", "-j", id, "-o", "state")
		got = strings.TrimSpace(out)
		return got != "" && !strings.Contains(got, "PENDING") && !strings.Contains(got, "RUNNING")
	})
	for line := range strings.Lines(got) {
		if strings.TrimSpace(line) != state {
			t.Errorf("job %s is %q, want %s", id, got, state)
			return
		}
	}
}

// chains runs the pipelines: each job ends as its dependencies say.
func (x examples) chains(t *testing.T) {
	out, code := x.sh(t, time.Minute, "./pipeline.sh")
	ids := map[string]string{}
	for _, m := range regexp.MustCompile(`(\w+)=(\d+)`).FindAllStringSubmatch(out, -1) {
		ids[m[1]] = m[2]
	}
	if code != 0 || len(ids) != 7 {
		t.Fatalf("pipeline.sh: exit code %d\n%s", code, out)
	}
	for _, name := range []string{"train", "eval", "restart", "array", "last"} {
		x.ended(t, ids[name], "COMPLETED")
	}
	x.ended(t, ids["failing"], "FAILED")
	if why := strings.TrimSpace(x.d.must("squeue", "-h", "-j", ids["never"], "-o", "%r")); why != "DependencyNeverSatisfied" {
		t.Errorf("the job behind the failed one waits for %q", why)
	}
	x.d.must("scancel", ids["never"])
	out, code = x.sh(t, time.Minute, "./rlhf-pipeline.sh")
	rounds := regexp.MustCompile(`round \d: (\d+) (\d+) (\d+)`).FindAllStringSubmatch(out, -1)
	if code != 0 || len(rounds) != 3 {
		t.Fatalf("rlhf-pipeline.sh: exit code %d\n%s", code, out)
	}
	for _, r := range rounds {
		for _, id := range r[1:] {
			x.ended(t, id, "COMPLETED")
		}
	}
}

// drivers runs the scripts of daily commands.
func (x examples) drivers(t *testing.T) {
	out, code := x.sh(t, time.Minute, "./monitor.sh")
	if code != 0 {
		t.Errorf("monitor.sh: exit code %d", code)
	}
	result(t, out, 1)
	out, _ = x.sh(t, time.Minute, "./gpu-options.sh")
	for _, want := range []string{
		"rank 0 local 0 sees 0,1\n", "rank 3 local 3 sees 0,1,2,3\n", "rank 3 local 3 sees 3\n", "no gpu:",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("gpu-options.sh does not show %q:\n%s", want, out)
		}
	}
	out, _ = x.sh(t, time.Minute, "./interactive.sh")
	if !strings.Contains(out, "/dev/pts/") || !regexp.MustCompile(`job \d+`).MatchString(out) || !strings.Contains(out, "GPU 0:") {
		t.Errorf("interactive.sh:\n%s", out)
	}
}

func (x examples) gang(t *testing.T) {
	out, code := x.sh(t, 5*time.Minute, "./gang-test.sh")
	if code != 0 {
		t.Errorf("gang-test.sh: exit code %d", code)
	}
	result(t, out, 1)
	t.Log(regexp.MustCompile(`start skew.*`).FindString(out))
}
