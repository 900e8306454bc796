package e2e

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// eats is a process with more than 100 MB.
const eats = `x=$(head -c 100000000 /dev/zero | tr "\0" a); echo ${#x}`

// startMemoryDev starts a cluster that limits the memory of jobs, or skips the test.
func startMemoryDev(t *testing.T) *dev {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("limits on memory need root")
	}
	d := startDev(t)
	node := ""
	d.wait("a node", func() bool {
		node, _, _ = strings.Cut(d.must("sinfo", "-h", "-N", "-o", "%N"), "\n")
		return node != ""
	})
	if !strings.Contains(d.must("muster", "why", node), "memory") {
		t.Skip("this machine has no memory controller for us")
	}
	return d
}

// TestFence: each component of a heterogeneous job has a fence of its own; what needs more memory than the job has
// is killed, and all commands say so.
func TestFence(t *testing.T) {
	t.Parallel()
	d := startMemoryDev(t)
	f := &fences{dev: d, scripts: d.dir, controls: []string{"memory"}}
	f.must("srun", "--mem=100", f.probe("first"), ":", "--mem=100", f.probe("second"))
	for _, component := range []string{"first", "second"} {
		if len(f.notes(component)) != 1 {
			t.Errorf("the %s component ran %d times", component, len(f.notes(component)))
		}
		for _, n := range f.notes(component) {
			if wrong := f.inside(n); wrong != "" {
				t.Errorf("the %s component's task: %s:\n%s", component, wrong, n)
			}
		}
	}

	_, errs, code := d.run("srun", "--mem=50", "sh", "-c", eats)
	if code != 1 || !strings.Contains(errs, "task 0: Out Of Memory") || !strings.Contains(errs, "oom-kill event(s) in StepId=") {
		t.Errorf("srun ends with %d: %s", code, errs)
	}
	_, errs, code = d.run("srun", "--oom-kill-step", "-N1", "-n2", "--mem=50", "sh", "-c",
		"[ $SLURM_PROCID = 0 ] || exec sleep 1000; "+eats)
	if code == 0 || !strings.Contains(errs, "Terminating StepId=") {
		t.Errorf("srun --oom-kill-step ends with %d: %s", code, errs)
	}
	id := d.must("sbatch", "--parsable", "--mem=50", "-o", d.dir+"/out3", "--wrap", "(sleep 0; "+eats+"); echo last")
	d.wait("the job to end", func() bool {
		return d.must("squeue", "-h", "-j", id) == "" || strings.Contains(d.must("sacct", "-nXP", "-j", id, "-o", "End"),
			"-")
	})
	expect(t, "its end", d.must("sacct", "-nP", "-j", id, "-o", "JobID,State,ExitCode"),
		id+"|OUT_OF_MEMORY|0:125\n"+id+".batch|OUT_OF_MEMORY|0:125")
	if out := d.read("out3"); !strings.Contains(out, "StepId="+id+".batch. Some of your processes may have been killed by the cgroup out-of-memory handler.") {
		t.Errorf("its output:\n%s", out)
	}
}

// fences is a daemon on this machine. Where the stand-in for NVIDIA's library can be built it has two GPUs, whose
// device files have no driver.
type fences struct {
	*dev
	scripts  string   // the folder of programs and what they note
	gpus     []string // the files
	controls []string // the controllers that this machine has for us
}

// probe is a program that notes where it is and what it may open. It is the task's own process, so that its first
// instruction runs where the note says.
const probe = `#!/bin/sh
note=$(cat /proc/self/cgroup; grep Cpus_allowed_list /proc/self/status
for at in $(sed -n 's|^[0-9]*:memory:|/sys/fs/cgroup/memory|p; s|^0::|/sys/fs/cgroup|p' /proc/self/cgroup); do cat ${at%%/*}/memory.limit_in_bytes ${at%%/*}/memory.max 2>/dev/null; done
for gpu in %s; do (: <$gpu) 2>&1; done)
printf '%%s\nend\n' "$note" >>%s
`

// startFences starts the daemon; its GPUs have numbers that no real one has.
func startFences(t *testing.T, conf string) *fences {
	t.Helper()
	dir := t.TempDir()
	text := "ClusterName=c\nSelectType=select/cons_tres\nSelectTypeParameters=CR_CPU_Memory\nNodeName=n1\nPartitionName=p Nodes=ALL Default=YES\n"
	file := writeProgram(t, dir, "slurm.conf", text+strings.ReplaceAll(conf, "DIR", dir))
	f := &fences{scripts: dir}
	if product, err := gpuProduct(); product == "" {
		t.Log("without GPUs: ", err)
		f.dev = startDev(t, "--node", "n1", "--conf", file)
	} else {
		lines := h100(2)
		for i := range 2 {
			minor := 1000 + 2*(os.Getpid()%10000) + i
			f.gpus = append(f.gpus, fmt.Sprintf("/dev/nvidia%d", minor))
			if err := unix.Mknod(f.gpus[i], unix.S_IFCHR|0o666, int(unix.Mkdev(195, uint32(minor)))); err != nil {
				t.Skipf("make %s: %v", f.gpus[i], err)
			}
			t.Cleanup(func() { _ = os.Remove(f.gpus[i]) })
			lines = strings.Replace(lines, fmt.Sprintf("gpu %d minor %d\n", i, i),
				fmt.Sprintf("gpu %d minor %d\n", i, minor), 1)
		}
		f.dev = startGPUs(t, lines, "--conf", file).dev
	}
	t.Cleanup(func() {
		f.wait("the last epilog", func() bool { out, _, _ := f.run("squeue", "-h"); return out == "" })
	}) // it writes into the folder
	for _, parent := range []string{dir, filepath.Dir(dir)} { // a user of its own runs programs there
		if err := os.Chmod(parent, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"prolog", "epilog"} {
		f.probe(name)
	}
	f.wait("an idle node", func() bool { out, _, _ := f.run("sinfo", "-h", "-t", "idle"); return out != "" })
	held := row(f.must("muster", "why", "n1"), "jobs held by")
	for _, name := range []string{"memory", "cpuset", "pids", "devices"} {
		if strings.Contains(held, name) {
			f.controls = append(f.controls, name)
		}
	}
	return f
}

// probe makes a program that notes where it runs.
func (f *fences) probe(name string) string {
	f.t.Helper()
	notes := f.scripts + "/seen." + name
	if err := os.WriteFile(notes, nil, 0o666); err != nil {
		f.t.Fatal(err)
	}
	if err := os.Chmod(notes, 0o666); err != nil {
		f.t.Fatal(err)
	}
	return writeProgram(f.t, f.scripts, name, fmt.Sprintf(probe, strings.Join(f.gpus, " "), notes))
}

// notes are what a probe has noted, one for each time it ran.
func (f *fences) notes(name string) []string {
	f.t.Helper()
	text, err := os.ReadFile(f.scripts + "/seen." + name)
	if err != nil {
		f.t.Fatal(err)
	}
	all := strings.SplitAfter(string(text), "end\n")
	return all[:len(all)-1]
}

// inside tells what is wrong with a note of a process that belongs in the fence of a job with a CPU, 100 MB and one
// of the GPUs: "" if nothing.
func (f *fences) inside(note string) string {
	if !strings.Contains(note, "/job_") {
		return "in no job's group"
	}
	for line := range strings.Lines(note) {
		v := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(v) == 3 && slices.Contains(f.controls, v[1]) && !strings.Contains(v[2], "/job_") {
			return "not in the job's group of controller " + v[1]
		}
	}
	has := map[string]bool{
		"memory":  strings.Contains(note, "\n104857600\n"),
		"cpuset":  !strings.ContainsAny(row(note, "Cpus_allowed_list:"), "-,"),
		"devices": len(f.gpus) == 0 || strings.Count(note, "Operation not permitted") == 1 && strings.Count(note, "No such device") == 1}
	for _, name := range f.controls {
		if ok, known := has[name]; known && !ok {
			return "without the limits of controller " + name
		}
	}
	return ""
}

// bounded runs a line of shell for half a minute at most.
func (f *fences) bounded(line string) (string, error) {
	ctx, cancel := context.WithTimeout(f.t.Context(), patience(30*time.Second))
	defer cancel()
	cmd := exec.CommandContext(ctx, "sh", "-c", line)
	cmd.Dir, cmd.Env, cmd.WaitDelay = f.work, f.env, time.Second
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// TestFenceOfEveryPath: whichever way a process of a user is started, it is in its job's fence from the first
// instruction, with the job's limits and none of the others' GPUs. A process where the user is, is in no job's;
// one of root's has its own group and no limits.
func TestFenceOfEveryPath(t *testing.T) {
	t.Parallel()
	if os.Getuid() != 0 {
		t.Skip("fences need root")
	}
	f := startFences(t, "LaunchParameters=use_interactive_step\nProlog=DIR/prolog\nEpilog=DIR/epilog\n")
	if len(f.controls) == 0 {
		t.Skip("this machine has no controllers for us")
	}
	t.Logf("controllers: %v, GPUs: %v", f.controls, f.gpus)
	asks := "-c1 --mem=100"
	if len(f.gpus) > 0 {
		asks += " --gres=gpu:1"
	}
	for i, c := range []struct {
		what, line string // PROBE is the program that notes where it is; in a line of shell
		times      int
		outside    bool
	}{
		{what: "sbatch", line: "sbatch -W -o out ASKS PROBE"},
		{what: "sbatch --wrap", line: "sbatch -W -o out ASKS --wrap PROBE"},
		{what: "an array's task", line: "sbatch -W -o out -a 1-2 ASKS --wrap PROBE", times: 2},
		{what: "srun alone", line: "srun ASKS PROBE"},
		{
			what: "a numbered step of a batch job",
			line: "sbatch -W -o out ASKS --wrap 'srun PROBE; srun PROBE'", times: 2,
		},
		{what: "srun in an allocation", line: "salloc -Q ASKS srun PROBE"},
		{
			what: "srun for the job of another shell",
			line: "id=$(salloc --no-shell ASKS 2>&1 | sed -n 's/.*Granted job allocation //p'); srun --jobid=$id PROBE; r=$?; scancel $id; exit $r",
		},
		{what: "srun --overlap", line: "salloc -Q ASKS srun --overlap PROBE"},
		{what: "srun --overlap in a step", line: "sbatch -W -o out ASKS --wrap \"srun sh -c 'srun --overlap PROBE'\""},
		{what: "srun --pty", line: "srun --pty ASKS PROBE"},
		{what: "the interactive step of salloc", line: "echo exec PROBE | salloc -Q ASKS"},
		{what: "a command of salloc, on the submit host", line: "salloc -Q ASKS PROBE", outside: true},
		{what: "srun --multi-prog", line: "echo '* PROBE' >programs; srun ASKS --multi-prog programs"},
		{what: "a task's prolog", line: "srun ASKS --task-prolog=PROBE true"},
		{what: "a task's epilog", line: "srun ASKS --task-epilog=PROBE true"},
		{what: "a step's prolog, on the submit host", line: "srun ASKS --prolog=PROBE true", outside: true},
		{what: "a step's epilog, on the submit host", line: "srun ASKS --epilog=PROBE true", outside: true},
		{
			what: "a script in its user's login environment",
			line: "sbatch -W -o out --export=NONE ASKS --wrap '[ -n \"$LOGNAME\" ] && PROBE'",
		},
		{what: "a process that is detached", line: "srun ASKS sh -c 'setsid PROBE & wait'"},
		{
			what: "a login",
			line: "srun ASKS --uid=1 -D / sleep 60 & sh -c 'until PAM_TYPE=account PAM_USER=daemon muster pam-adopt socket=$MUSTER_SOCKET >/dev/null; do :; done; PROBE'; scancel -u daemon; wait",
		},
	} {
		t.Run(c.what, func(t *testing.T) {
			name := fmt.Sprintf("way%d", i)
			line := strings.NewReplacer("PROBE", f.probe(name), "ASKS", asks, "DIR", f.dir).Replace(c.line)
			if out, err := f.bounded(line); err != nil {
				t.Fatalf("%s: %v\n%s\n%s", line, err, out, f.state())
			}
			notes := f.notes(name)
			if len(notes) != max(c.times, 1) {
				t.Errorf("it ran %d times, want %d", len(notes), max(c.times, 1))
			}
			for _, n := range notes {
				if wrong := f.inside(n); c.outside && strings.Contains(n, "/job_") || !c.outside && wrong != "" {
					t.Errorf("%s:\n%s", wrong, n)
				}
			}
		})
	}
	for _, name := range []string{"prolog", "epilog"} {
		for _, n := range f.notes(name) {
			if !strings.Contains(n, "0::") || !strings.Contains(row(n, "0::"), "/job_") || strings.Contains(n, "Operation not permitted") || strings.Contains(n, "\n104857600\n") {
				t.Errorf("the %s, which is root's:\n%s", name, n)
			}
		}
	}
}
