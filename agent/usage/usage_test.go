package usage

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"dev.muster/agent/cgroup"
	"dev.muster/agent/step"
)

func TestParseTimes(t *testing.T) {
	const line = " S 11 10 9 0 -1 4194560 500 600 7 8 1001 1002 1003 1004 20 -5 3 0 123456 " +
		"104857600 2560 18446744073709551615 1 1 0 0 0 0 0 0 0 0 0 0 17 3 0\n"
	got, ok := parseTimes([]byte(line))
	want := procTimes{
		ppid: 11, pgrp: 10, session: 9, faults: 15, user: 2004, system: 2006, vsize: 104857600, rss: 2560,
		cpu: 3,
	}
	if !ok || got != want {
		t.Errorf("%v %+v", ok, got)
	}
	if got, _ := parseTimes([]byte(strings.Replace(line, "S", "t", 1))); got.traced != 1 {
		t.Error("a process that a debugger has stopped is not told")
	}
	if _, ok := parseTimes([]byte(" S 1 2")); ok {
		t.Error("a line that is cut off was taken")
	}
}

// TestFrequency: a CPU's driver tells how fast it is now; without one it is as /proc/cpuinfo tells.
func TestFrequency(t *testing.T) {
	s := fakeSampler(t.TempDir())
	s.cpus = t.TempDir()
	dir := s.cpus + "/cpu1/cpufreq"
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	for file, text := range map[string]string{dir + "/scaling_cur_freq": "3400000\n",
		s.proc + "/cpuinfo": "processor\t: 0\nmodel name\t: x\ncpu MHz\t\t: 2300.125\n\n" +
			"processor\t: 1\ncpu MHz\t\t: 800.000\n"} {
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for cpu, want := range map[int]int64{0: 2300125, 1: 3400000, 2: 0, -1: 0} {
		if got := s.frequency(cpu); got != want {
			t.Errorf("CPU %d: %d kHz, want %d", cpu, got, want)
		}
	}
}

func TestParseIO(t *testing.T) {
	read, written := parseIO([]byte("rchar: 323934931\nwchar: 323929600\nsyscr: 632687\n" +
		"syscw: 632675\nread_bytes: 0\nwrite_bytes: 323932160\ncancelled_write_bytes: 0\n"))
	if read != 323934931 || written != 323929600 {
		t.Error(read, written)
	}
	if read, written = parseIO(nil); read != 0 || written != 0 {
		t.Error("a file that cannot be read counts nothing")
	}
}

// proc writes a process below a stand-in of /proc.
func proc(t testing.TB, root string, pid, ppid, session, ticks, pages, read int) {
	t.Helper()
	dir := filepath.Join(root, strconv.Itoa(pid))
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	stat := fmt.Sprintf("%d (a (b) c) R %d %d %d 0 -1 0 0 0 1 1 %d 0 0 %d 20 0 1 0 5 %d %d 0\n", pid, ppid,
		session, session, ticks, ticks, pages*8192, pages)
	for name, text := range map[string]string{"stat": stat, "io": fmt.Sprintf("rchar: %d\nwchar: 1\n", read)} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

func fakeSampler(root string) *Sampler {
	s := NewSampler(filepath.Join(root, "nobody"))
	s.proc, s.page = root, 4096
	return s
}

// TestSampleTrees: processes count for the task they descend from, or whose session they are in; all others for none.
func TestSampleTrees(t *testing.T) {
	root := t.TempDir()
	proc(t, root, 1, 0, 1, 1000, 1000, 1000)  // init
	proc(t, root, 50, 1, 50, 1000, 1000, 500) // the supervisor
	proc(t, root, 100, 50, 100, 10, 100, 7)   // task 0
	proc(t, root, 101, 100, 100, 20, 10, 1)   // its child
	proc(t, root, 102, 101, 102, 5, 1, 1)     // its grandchild, in a session of its own
	proc(t, root, 103, 1, 100, 3, 2, 0)       // its orphan
	proc(t, root, 200, 50, 200, 7, 50, 2)     // task 1 of the other step
	proc(t, root, 300, 50, 300, 9, 9, 9)      // nobody's
	s := fakeSampler(root)
	for range 2 { // the second pass finds nothing of the first
		out := s.Pass([]Target{{Tasks: []int{100}}, {Tasks: []int{999, 200}}})
		want := Sample{
			User: 380 * time.Millisecond, System: 380 * time.Millisecond, RSS: 113 * 4096, VM: 113 * 8192,
			Pages: 8, Read: 9, Written: 4,
		}
		if got := out[0].Tasks[0]; got != want {
			t.Errorf("the tree of a task:\n got %+v\nwant %+v", got, want)
		}
		if got := out[1].Tasks; got[0] != (Sample{}) || got[1].RSS != 50*4096 {
			t.Errorf("a task that is gone, and one: %+v", got)
		}
		var pids []int
		for _, p := range out[0].Procs {
			pids = append(pids, p.PID)
		}
		if slices.Sort(pids); !slices.Equal(pids, []int{100, 101, 102, 103}) {
			t.Errorf("its processes: %v", pids)
		}
	}
}

// TestSampleStep measures real processes of a step, by its group where the machine has them: two tasks, one with a
// child that is busy.
func TestSampleStep(t *testing.T) {
	dir, id := t.TempDir(), step.ID{Job: 7, Attempt: 1, Node: "n1"}
	ways := map[string]*cgroup.Group{"by a walk": nil}
	if groups := cgroup.Open(dir); groups != nil {
		job, name, _ := strings.Cut(id.Group(), "/")
		g, err := groups.Create(job, name, &cgroup.Fence{})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { removeGroup(groups, g) })
		ways["by a group"] = g
	}
	for name, g := range ways {
		t.Run(name, func(t *testing.T) {
			busy := shell(t, g, "sh -c 'while :; do :; done' & wait")
			reader := shell(t, g, "head -c 1000000 /dev/zero >/dev/null; exec sleep 1000")
			s := NewSampler(dir)
			targets := []Target{{ID: id, Tasks: []int{busy, reader}}}
			deadline := time.Now().Add(20 * time.Second)
			for out := s.Pass(targets)[0]; !worked(out); out = s.Pass(targets)[0] {
				if time.Now().After(deadline) {
					t.Fatalf("%+v", out)
				}
				time.Sleep(10 * time.Millisecond)
			}
		})
	}
}

// worked reports whether the first of two tasks has used the CPU, and the second has read and written.
func worked(out Sampled) bool {
	a, b := out.Tasks[0], out.Tasks[1]
	return a.User+a.System >= 100*time.Millisecond && a.RSS > 0 && a.VM > a.RSS &&
		b.Read >= 1000000 && b.Written >= 1000000 && len(out.Procs) == 3
}

// shell runs a script in a session, and a group, of its own, until the test is over.
func shell(t *testing.T, g *cgroup.Group, script string) (pid int) {
	t.Helper()
	cmd := exec.Command("sh", "-c", script)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if g != nil {
		cmd.SysProcAttr.UseCgroupFD, cmd.SysProcAttr.CgroupFD = true, g.FD
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		_ = cmd.Wait()
	})
	return cmd.Process.Pid
}

// removeGroup kills what is in a group and removes it.
func removeGroup(groups *cgroup.Groups, g *cgroup.Group) {
	for _ = g.Kill(); !g.Remove(); {
		g.AwaitEmpty(time.Second)
	}
	g.CloseFD()
	groups.Leave()
	groups.Release()
}

// BenchmarkSample is a pass over 128 tasks of two processes each on a machine with 1000 more; without groups, the
// dear way.
func BenchmarkSample(b *testing.B) {
	root := b.TempDir()
	for i := range 1000 {
		proc(b, root, 10000+i, 1, 10000+i, 1, 1, 1)
	}
	target := Target{}
	for i := range 128 {
		proc(b, root, 100+i, 50, 100+i, 1, 1, 1)
		proc(b, root, 1100+i, 100+i, 100+i, 1, 1, 1)
		target.Tasks = append(target.Tasks, 100+i)
	}
	s := fakeSampler(root)
	b.ReportAllocs()
	for b.Loop() {
		if out := s.Pass([]Target{target}); len(out[0].Procs) != 256 {
			b.Fatal(len(out[0].Procs))
		}
	}
}
