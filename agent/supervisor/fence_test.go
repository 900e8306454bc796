package supervisor

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"dev.muster/agent/cgroup"
	"dev.muster/agent/step"
	"dev.muster/cluster"
	"golang.org/x/sys/unix"
)

// needControl skips a test where this machine does not let us have a controller.
func needControl(t testing.TB, names ...string) {
	t.Helper()
	needRoot(t)
	c := cgroup.Open(t.TempDir())
	if c == nil {
		t.Skip("this machine has no cgroups for us")
	}
	defer c.Release()
	defer c.Leave()
	for _, n := range names {
		if !c.Has(n) {
			t.Skipf("this machine has no controller %s for us: %s", n, c.Kind())
		}
	}
}

// eats is a process with more than 100 MB.
const eats = `dd if=/dev/zero of=/dev/null bs=100000000 count=1 2>/dev/null`

// TestMemoryFence: what a job uses beyond its memory is killed, and told of; its other steps go on.
func TestMemoryFence(t *testing.T) {
	needControl(t, cgroup.Memory)
	g := newRig(t)
	greedy := g.spec("echo begin; " + eats + "; echo end; exit 9")
	greedy.Fence, greedy.OOMText = cgroup.Fence{MemMB: 64}, "killed %d for memory\n"
	modest := g.spec("echo begin; head -c 1000000 /dev/zero | tail -c 1000000 >/dev/null; echo end")
	modest.Fence, modest.ID.Job = greedy.Fence, greedy.ID.Job
	modest.ID.Step = greedy.ID.Step + 1
	g.start(modest, greedy)
	st := g.await(greedy.ID, isEnded)
	if st.OOMKills != 1 || !st.Tasks[0].OOM {
		t.Errorf("status %+v", st)
	}
	if st := g.await(modest.ID, isEnded); st.OOMKills != 0 || st.Tasks[0].OOM || st.Tasks[0].Exit.Code != 0 {
		t.Errorf("the other step: %+v", st)
	}
	if text := g.text(greedy.ID); !strings.Contains(text, "killed 1 for memory\n") {
		t.Errorf("output %q", text)
	}
	if st := g.run(g.spec(eats)); st.OOMKills != 0 || st.Tasks[0].Exit.Code != 0 {
		t.Errorf("a job without a limit: %+v", st)
	}
}

// TestStepMemory: a step that names its own memory is held to that, within its job's; the next one is not.
func TestStepMemory(t *testing.T) {
	needControl(t, cgroup.Memory)
	g := newRig(t)
	greedy := g.spec(eats)
	greedy.Fence = cgroup.Fence{MemMB: 400, StepMemMB: 64}
	next := g.spec(eats)
	next.Fence, next.ID.Job, next.ID.Step = cgroup.Fence{MemMB: 400}, greedy.ID.Job, greedy.ID.Step+1
	g.start(greedy, next)
	if st := g.await(greedy.ID, isEnded); st.OOMKills != 1 || !st.Tasks[0].OOM {
		t.Errorf("with 64 MB: %+v", st)
	}
	if st := g.await(next.ID, isEnded); st.OOMKills != 0 || st.Tasks[0].Exit.Code != 0 {
		t.Errorf("with its job's: %+v", st)
	}
}

// TestCPUFence: a job cannot leave its CPUs.
func TestCPUFence(t *testing.T) {
	needControl(t, cgroup.Cpuset)
	g := newRig(t)
	sp := g.spec("grep Cpus_allowed_list /proc/self/status; taskset -c 0-1 grep Cpus_allowed_list /proc/self/status")
	sp.Fence = cgroup.Fence{CPUs: cluster.NewIDSet(1)}
	sp.Tasks[0].CPUs = cluster.NewIDSet(1)
	g.run(sp)
	if want := "Cpus_allowed_list:\t1\nCpus_allowed_list:\t1\n"; g.text(sp.ID) != want {
		t.Errorf("output %q, want %q", g.text(sp.ID), want)
	}
	free := g.spec("grep Cpus_allowed_list /proc/self/status")
	if g.run(free); strings.HasSuffix(strings.TrimSpace(g.text(free.ID)), "\t1") {
		t.Errorf("the fence of one job holds for the next: %q", g.text(free.ID))
	}
}

// TestPIDFence: a job has no more processes than it may.
func TestPIDFence(t *testing.T) {
	needControl(t, cgroup.PIDs)
	g := newRig(t)
	sp := g.spec("for i in 1 2 3 4 5 6 7 8 9; do sleep 5 & done 2>/dev/null; jobs -p | wc -l")
	sp.Fence = cgroup.Fence{PIDs: 4}
	g.run(sp)
	if strings.TrimSpace(g.text(sp.ID)) == "9" {
		t.Errorf("it made them all: %q", g.text(sp.ID))
	}
}

// TestDeviceFence: a job cannot open devices that are not its own: the kernel refuses (EPERM), where without a
// fence it would look for a driver and find none (ENXIO). With both kinds of fence.
func TestDeviceFence(t *testing.T) {
	for name, without := range map[string]string{"as the machine has it": "", "by a program": "1"} {
		t.Run(name, func(t *testing.T) {
			t.Setenv(cgroup.NoDevicesEnv, without)
			needControl(t, cgroup.Devices)
			g := newRig(t)
			var nodes []string
			for i := range 3 {
				p := filepath.Join(g.own, fmt.Sprintf("gpu%d", i))
				if err := unix.Mknod(p, unix.S_IFCHR|0o666, int(unix.Mkdev(195, uint32(200+i)))); err != nil {
					t.Skip(err)
				}
				os.Chmod(p, 0o666)
				nodes = append(nodes, p)
			}
			d0, _ := cgroup.DeviceAt(nodes[0])
			d2, ok := cgroup.DeviceAt(nodes[2])
			if !ok || d2 != (cgroup.Device{Major: 195, Minor: 202}) {
				t.Fatalf("device %+v", d2)
			}
			script := "for i in 0 1 2; do (: <" + g.own + "/gpu$i) 2>&1 | " +
				"grep -o 'Operation not permitted\\|No such device or address'; done; : </dev/null && echo null"
			sp := g.spec(script)
			sp.UID, sp.GID = 65534, 65534
			sp.Fence.Denied = []cgroup.Device{d0, d2}
			g.run(sp)
			want := "Operation not permitted\nNo such device or address\nOperation not permitted\nnull\n"
			if g.text(sp.ID) != want {
				t.Errorf("output %q, want %q", g.text(sp.ID), want)
			}
			free := g.spec(script)
			g.run(free)
			if want := strings.Repeat("No such device or address\n", 3) + "null\n"; g.text(free.ID) != want {
				t.Errorf("without a fence %q, want %q", g.text(free.ID), want)
			}
		})
	}
}

// noGroupsLeft looks for groups of a job below those of the rig's own supervisor: others on this machine have theirs.
func noGroupsLeft(t *testing.T, g *rig, job string) {
	t.Helper()
	dirs := cgroup.Dirs(g.dir)
	if len(dirs) == 0 {
		t.Errorf("the groups of the supervisor of %s are nowhere", g.dir)
	}
	for _, dir := range dirs {
		if _, err := os.Stat(dir + "/" + job); err == nil {
			t.Errorf("left: %s/%s", dir, job)
		}
	}
}

// TestFenceFromTheStart: a task's first instruction runs inside, and nothing of the groups is left when the job is
// over.
func TestFenceFromTheStart(t *testing.T) {
	needControl(t, cgroup.Memory, cgroup.Devices)
	g := newRig(t)
	sp := g.spec("")
	sp.Tasks[0].Argv = []string{"/bin/cat", "/proc/self/cgroup"}
	sp.Fence = cgroup.Fence{MemMB: 64, PIDs: 100, CPUs: cluster.NewIDSet(0),
		Denied: []cgroup.Device{{Major: 195, Minor: 200}}}
	g.run(sp)
	text := g.text(sp.ID)
	job, _ := sp.ID.GroupPath()
	for line := range strings.Lines(text) {
		f := strings.SplitN(line, ":", 3)
		for _, name := range []string{cgroup.Memory, cgroup.Cpuset, cgroup.PIDs, cgroup.Devices, ""} {
			if f[1] == name && !strings.Contains(line, job) {
				t.Errorf("outside the job's group: %s", line)
			}
		}
	}
	g.r.Forget(sp.ID)
	noGroupsLeft(t, g, job)
	after := g.spec("")
	after.Tasks[0].Argv = []string{"/bin/cat", "/proc/self/cgroup"}
	if g.run(after); strings.Contains(g.text(after.ID), job) {
		t.Errorf("the next job is in it: %s", g.text(after.ID))
	}
}

// BenchmarkFence measures a launch with and without a fence.
func BenchmarkFence(b *testing.B) {
	for name, f := range map[string]cgroup.Fence{
		"none": {},
		"all": {MemMB: 1000, PIDs: 1000, CPUs: cluster.NewIDSet(0, 1),
			Denied: []cgroup.Device{{Major: 195, Minor: 200}, {Major: 195, Minor: 201}}},
	} {
		b.Run(name, func(b *testing.B) {
			g := newRig(b)
			for b.Loop() {
				sp := g.spec("")
				sp.Tasks[0].Argv, sp.Tasks[0].Stdout, sp.Fence = []string{"/bin/true"}, step.IO{}, f
				g.run(sp)
				g.r.Forget(sp.ID)
			}
		})
	}
}

// TestNoFenceNoLaunch: where a job's fence cannot be made nothing of it runs, it is told as the node's fault, and
// nothing of the groups is left.
func TestNoFenceNoLaunch(t *testing.T) {
	needControl(t, cgroup.Cpuset)
	g := newRig(t)
	mark := filepath.Join(g.own, "ran")
	sp := g.spec("touch " + mark)
	sp.Fence = cgroup.Fence{MemMB: 64, CPUs: cluster.NewIDSet(4000)}
	st := g.run(sp)
	if !st.Tasks[0].Fault || !strings.Contains(st.Tasks[0].Error, "cgroup") {
		t.Errorf("status %+v", st)
	}
	if _, err := os.Stat(mark); err == nil {
		t.Error("it ran without its fence")
	}
	job, _ := sp.ID.GroupPath()
	noGroupsLeft(t, g, job)
}

// TestIsolation tells what the machine has, for whoever reads the test's output, and that groups are there where it
// says so.
func TestIsolation(t *testing.T) {
	needRoot(t)
	kind := cgroup.Isolation()
	fmt.Printf("isolation: %s\n", kind)
	c := cgroup.Open(t.TempDir())
	if c == nil {
		if kind != "none" {
			t.Errorf("no groups, and yet %s", kind)
		}
		return
	}
	c.Leave()
	c.Release()
	if c.Kind() != kind {
		t.Errorf("the groups have %s, and the node says %s", c.Kind(), kind)
	}
}
