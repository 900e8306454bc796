package e2e

import (
	"bytes"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// snakefile is a workflow of rules that depend on each other, one that fails and one that does not end.
const snakefile = `rule report:
    input: "a.count", "b.count", "gpus.txt"
    output: "report.txt"
    resources: mem_mb=600, runtime=5
    shell: "cat {input} > {output}"

rule split:
    output: "a.txt", "b.txt"
    resources: mem_mb=600, runtime=5
    shell: "echo one > a.txt; echo twenty > b.txt"

rule count:
    input: "{part}.txt"
    output: "{part}.count"
    threads: 2
    resources: mem_mb=700, runtime=10
    shell: "wc -c < {input} > {output}"

rule train:
    input: "a.count"
    output: "gpus.txt"
    resources: mem_mb=800, runtime=90, slurm_extra="--gres=gpu:h100:2", gpus=2
    shell: "echo GPUs $CUDA_VISIBLE_DEVICES > {output}"

rule broken:
    output: "never.txt"
    resources: mem_mb=600, runtime=5
    shell: "echo this one fails >&2; exit 3"

rule endless:
    output: "late.txt"
    resources: mem_mb=600, runtime=5
    shell: "sleep 600"
`

// snakemake is Debian's Snakemake, unmodified, in the folder of a cluster whose default account is lab.
type snakemake struct {
	*dev
	program string
	args    []string
}

// startSnakemake starts a cluster and writes the workflow, or skips the test.
func startSnakemake(t *testing.T) snakemake {
	t.Helper()
	program, err := exec.LookPath("snakemake")
	if err != nil {
		t.Skip("snakemake is not installed: apt-get install snakemake, or make workflows")
	}
	me, err := user.Current()
	if err != nil {
		t.Fatal(err)
	}
	d := startDev(t, "--hollow", "2x8c16g4gpu:h100", "--hollow-exec")
	d.env = append(d.env, "USER="+me.Username, "HOME="+d.dir, "XDG_CACHE_HOME="+d.dir,
		"CI=true") // Snakemake then polls without pauses of 10 s
	d.must("sacctmgr", "-i", "add", "account", "lab")
	d.must("sacctmgr", "-i", "add", "user", me.Username, "account=lab")
	d.write("Snakefile", snakefile)
	return snakemake{d, program, nil}
}

// start starts Snakemake and returns its process and what it prints.
func (s snakemake) start(args ...string) (*exec.Cmd, *bytes.Buffer) {
	s.t.Helper()
	var out bytes.Buffer
	cmd := exec.Command(s.program, append(args, s.args...)...)
	cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = s.dir, s.env, &out, &out
	if err := cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	return cmd, &out
}

// states are the states of all jobs by the rules that they run.
func (s snakemake) states(ruleOf string) map[string]string {
	s.t.Helper()
	states := map[string]string{}
	for _, row := range rowsOf(s.must("sacct", "-nXP", "-o", "JobName,State")+"\n", 2) {
		m := regexp.MustCompile(ruleOf).FindStringSubmatch(row[0])
		if m == nil {
			s.t.Errorf("a job's name: %q", row[0])
			continue
		}
		states[m[1]] += row[1] + " "
	}
	return states
}

// check wants the workflow's results, the states of its jobs and what they asked for.
func (s snakemake) check(ruleOf string) {
	s.t.Helper()
	matches(s.t, "the report", s.read("report.txt"), `4\n7\nGPUs \d,\d\n`)
	want := map[string]string{"split": "COMPLETED ", "count": "COMPLETED COMPLETED ", "train": "COMPLETED ",
		"report": "COMPLETED ", "broken": "FAILED "}
	got := s.states(ruleOf)
	for rule, states := range want {
		if got[rule] != states {
			s.t.Errorf("the jobs of rule %s: %q, want %q", rule, got[rule], states)
		}
	}
	all := s.must("sacct", "-nXP", "-o", "JobName,Account,Partition,ReqTRES,TimelimitRaw")
	for _, pattern := range []string{
		`[a-z._]*count[^|]*\|lab\|main\|.*cpu=2,mem=700M.*\|10`,
		`[a-z._]*train[^|]*\|lab\|main\|.*gres/gpu:h100=2,.*mem=800M.*\|90`,
	} {
		if !regexp.MustCompile(`(?m)^` + pattern + `$`).MatchString(all) {
			s.t.Errorf("no job like %s:\n%s", pattern, all)
		}
	}
}

// interrupt starts a rule that does not end and interrupts Snakemake, which cancels the job.
func (s snakemake) interrupt(ruleOf string) {
	s.t.Helper()
	cmd, out := s.start("late.txt")
	defer func() { _ = cmd.Process.Kill() }() // it has ended if all is well
	s.wait("the job to run", func() bool { return s.must("squeue", "-h", "-t", "R") != "" })
	_ = cmd.Process.Signal(os.Interrupt)
	if err := cmd.Wait(); err == nil || !strings.Contains(out.String(), "Terminating processes on user request") {
		s.t.Errorf("Snakemake after an interrupt: %v\n%s", err, out)
	}
	s.wait("the job to be cancelled", func() bool {
		return strings.HasPrefix(s.states(ruleOf)["endless"], "CANCELLED by ")
	})
}

// TestSnakemake: Debian's Snakemake runs a workflow by its own executor for Slurm, which submits by sbatch, starts each
// rule by srun, and follows jobs by sacct.
func TestSnakemake(t *testing.T) {
	t.Parallel()
	s := startSnakemake(t)
	// More than one check per second would be replaced by one per 33 s.
	s.args = []string{"--slurm", "--jobs", "4", "--max-status-checks-per-second", "1", "--keep-going",
		"--default-resources", "slurm_account=lab"}
	cmd, out := s.start("report.txt", "never.txt")
	err := cmd.Wait()
	text := out.String()
	if err == nil || !regexp.MustCompile(`SLURM-job '\d+' failed, SLURM status is: 'FAILED'`).MatchString(text) {
		t.Errorf("Snakemake: %v\n%s", err, text)
	}
	const ruleOf = `^snakejob_([a-z]+)_\d+$`
	s.check(ruleOf)
	if logs, _ := filepath.Glob(s.dir + "/.snakemake/slurm_logs/rule_broken/*.log"); len(logs) != 1 ||
		!strings.Contains(s.read(strings.TrimPrefix(logs[0], s.dir+"/")), "this one fails") {
		t.Errorf("the log of the rule that fails: %q", logs)
	}
	if strings.Contains(text, "Error getting status") || strings.Contains(text, "Unable to") {
		t.Errorf("Snakemake complains:\n%s", text)
	}
	s.interrupt(ruleOf)
}

// TestSnakemakeCluster: Snakemake's executor for any cluster, with the submit command, the status script and the cancel
// command that its documentation gives for Slurm.
func TestSnakemakeCluster(t *testing.T) {
	t.Parallel()
	s := startSnakemake(t)
	s.write("status.sh", `#!/bin/sh
case $(sacct -j "$1" --format State --noheader | head -1 | awk '{print $1}') in
COMPLETED) echo success ;;
PENDING | CONFIGURING | COMPLETING | RUNNING | SUSPENDED) echo running ;;
*) echo failed ;;
esac
`)
	s.args = []string{"--jobs", "4", "--keep-going", "--cluster-status", "./status.sh", "--cluster-cancel", "scancel",
		"--default-resources", "gpus=0", "--cluster", "sbatch --parsable --account=lab " +
			"--cpus-per-task={threads} --mem={resources.mem_mb} --time={resources.runtime} --gres=gpu:h100:{resources.gpus}"}
	cmd, out := s.start("report.txt", "never.txt")
	if err := cmd.Wait(); err == nil || !strings.Contains(out.String(), "Error in rule broken") {
		t.Errorf("Snakemake: %v\n%s", err, out)
	}
	const ruleOf = `^snakejob\.([a-z]+)\.\d+\.sh$`
	s.check(ruleOf)
	s.interrupt(ruleOf)
}
