package supervisor

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"dev.muster/agent/step"
	"dev.muster/cluster"
	"golang.org/x/sys/unix"
)

// BenchmarkTrue runs `true` as a batch step, from Start to Forget, in batches of 50. cpu-µs is the CPU time of the
// supervisor and of the processes that open files for each (fork included), test-µs this process's.
func BenchmarkTrue(b *testing.B) {
	out := b.TempDir()
	for _, c := range []struct {
		name string
		mod  func(*step.Spec)
	}{
		{"plain", func(*step.Spec) {}},
		{"pid", func(sp *step.Spec) { sp.PIDEnv = "TASK_PID" }},
		{"pid+limits", func(sp *step.Spec) {
			sp.PIDEnv = "TASK_PID"
			sp.Rlimits = []cluster.Rlimit{{Name: "NOFILE", Soft: 1024}, {Name: "CORE", Soft: 0}}
		}},
		{"output", func(sp *step.Spec) {
			sp.Tasks[0].Stdout = step.IO{Kind: step.File, Path: fmt.Sprintf("%s/out-%d", out, sp.ID.Job%50)}
			sp.Tasks[0].Stderr = step.IO{Kind: step.Same}
		}},
		{"user", func(sp *step.Spec) { // the files of an ordinary user, which another process opens
			sp.UID, sp.GID, sp.Dir = bob, bob, "/tmp"
			sp.Tasks[0].Stdout = step.IO{Kind: step.File, Path: fmt.Sprintf("/tmp/muster-bench-%d", sp.ID.Job%50)}
			sp.Tasks[0].Stderr = step.IO{Kind: step.Same}
		}},
		{"stream", func(sp *step.Spec) {
			sp.Tasks[0].Stdin = step.IO{Kind: step.Stream}
			sp.Tasks[0].Stdout = step.IO{Kind: step.Stream}
			sp.Tasks[0].Stderr = step.IO{Kind: step.Stream}
		}},
	} {
		b.Run(c.name, func(b *testing.B) { benchTrue(b, c.mod) })
	}
}

func benchTrue(b *testing.B, mod func(*step.Spec)) {
	g := newRig(b)
	pid := g.supervisorPID()
	env := cluster.BlobText(strings.Repeat("SOME_VARIABLE=some value of it\x00", 1) + strings.Join(os.Environ(), "\x00"))
	var self0, self1 unix.Rusage
	unix.Getrusage(unix.RUSAGE_SELF, &self0)
	cpu0 := cpuNanos(b, pid)
	openers := func() (sum int64) {
		for _, p := range openersOf(b, pid, bob) {
			sum += cpuNanos(b, p)
		}
		return sum
	}
	b.Cleanup(func() {
		for i := range 50 {
			os.Remove(fmt.Sprintf("/tmp/muster-bench-%d", i))
		}
	})
	b.ResetTimer()
	for left := b.N; left > 0; {
		n := min(left, 50)
		left -= n
		var specs []step.Spec
		var ids []step.ID
		for range n {
			sp := g.spec("")
			sp.Env = env
			sp.Tasks[0].Argv = []string{"/bin/true"}
			sp.Tasks[0].Stdout, sp.Tasks[0].Stderr = step.IO{}, step.IO{}
			mod(&sp)
			specs, ids = append(specs, sp), append(ids, sp.ID)
		}
		g.start(specs...)
		for _, id := range ids {
			if st := g.await(id, isEnded); st.Tasks[0].Exit.Code != 0 || st.Tasks[0].Error != "" {
				b.Fatalf("%+v", st)
			}
			delete(g.st, id)
		}
		g.r.Forget(ids...)
	}
	b.StopTimer()
	unix.Getrusage(unix.RUSAGE_SELF, &self1)
	n := float64(b.N) * 1000
	b.ReportMetric(float64(cpuNanos(b, pid)-cpu0+openers())/n, "sup-cpu-µs/op")
	b.ReportMetric(float64(self1.Utime.Nano()+self1.Stime.Nano()-self0.Utime.Nano()-self0.Stime.Nano())/n,
		"test-cpu-µs/op")
	status, _ := os.ReadFile("/proc/" + itoa(pid) + "/status")
	for line := range strings.Lines(string(status)) {
		if f := strings.Fields(line); len(f) > 1 && (f[0] == "VmHWM:" || f[0] == "RssAnon:") {
			b.ReportMetric(float64(atoi(b, f[1]))/1024, strings.TrimSuffix(f[0], ":")+"-MiB")
		}
	}
}

func cpuNanos(t testing.TB, pid int) (sum int64) {
	tasks, err := os.ReadDir("/proc/" + itoa(pid) + "/task")
	if err != nil {
		t.Fatal(err)
	}
	for _, k := range tasks {
		b, _ := os.ReadFile("/proc/" + itoa(pid) + "/task/" + k.Name() + "/schedstat")
		var n int64
		fmt.Sscan(string(b), &n)
		sum += n
	}
	return sum
}

// BenchmarkForkExec is the yardstick: fork, exec and wait of `true` by the standard library.
func BenchmarkForkExec(b *testing.B) {
	var a, z unix.Rusage
	unix.Getrusage(unix.RUSAGE_SELF, &a)
	for b.Loop() {
		if err := exec.Command("/bin/true").Run(); err != nil {
			b.Fatal(err)
		}
	}
	unix.Getrusage(unix.RUSAGE_SELF, &z)
	b.ReportMetric(float64(z.Utime.Nano()+z.Stime.Nano()-a.Utime.Nano()-a.Stime.Nano())/1000/float64(b.N),
		"self-cpu-µs/op")
}
