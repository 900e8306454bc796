package cluster

import (
	"fmt"
	"runtime"
	"testing"
	"time"
	"unsafe"
)

// BenchmarkMemory measures what a state takes for pending jobs beside the texts that it stores for them, and for an
// array of a million tasks of which some run. Specs come from the log, so no two share a string.
func BenchmarkMemory(b *testing.B) {
	var limits []Rlimit // as a shell gives them
	for _, name := range []string{"CPU", "FSIZE", "DATA", "STACK", "CORE", "RSS", "NPROC", "NOFILE", "MEMLOCK", "AS"} {
		limits = append(limits, Rlimit{name, 1 << 63})
	}
	spec := func(i int) *JobSpec {
		return &JobSpec{Name: fmt.Sprintf("train-%d", i), UID: 1000 + uint32(i%50),
			User: fmt.Sprint("user", i%50), Partitions: []string{"main"},
			Account: "physics", Kind: Batch, WorkDir: fmt.Sprintf("/home/user%d/run/%d", i%50, i),
			Stdout: "/home/user/logs/%x-%j.out", Limit: time.Hour,
			SubmitLine: fmt.Sprintf("sbatch --gpus=2 run-%d.sh", i), SubmitHost: "login1", Group: "physics",
			Groups:      []uint32{1000, 1001 + uint32(i%50)},
			ShellLimits: ShellLimits{Rlimits: limits},
			Layout: &Layout{
				PerJob: []GRES{{Name: "gpu", Count: 2}}, CPUsPerTask: 1 + i%16,
				Mem: Mem{Per: MemPerNode, MB: MemMB(1000 * (i % 40))},
			}}
	}
	b.Run("pending", func(b *testing.B) {
		const jobs = 20_000
		for b.Loop() {
			before := inUse()
			s := NewState()
			for i := range jobs {
				fromLog(b, s, &Submit{Spec: spec(i)})
			}
			b.ReportMetric((inUse()-before)/jobs, "bytes/job")
			runtime.KeepAlive(s)
		}
	})
	b.Run("array", func(b *testing.B) {
		for b.Loop() {
			before := inUse()
			s, array := NewState(), spec(0)
			fromLog(b, s, &NodeUp{
				Name:      "n0",
				Inventory: Inventory{Sockets: 2, CoresPerSocket: 500, ThreadsPerCore: 1, CPUs: 1000, MemMB: 1 << 30},
			})
			array.Array, array.Layout = &ArraySpec{Tasks: RangeIDSet(0, 999_999)}, &Layout{}
			id := fromLog(b, s, &Submit{Spec: array}).(JobID)
			b.ReportMetric((inUse()-before)/(1<<20), "MiB-pending")
			for k := range 1000 {
				fromLog(b, s, &Decide{
					Decisions: []Decision{
						{
							Job: id, Task: k,
							Start: &Alloc{
								Partition: "main",
								Shares:    []Share{{Node: "n0", CPUs: NewIDSet(k), Tasks: 1}},
							},
						},
					},
				})
			}
			b.ReportMetric((inUse()-before)/(1<<20), "MiB-1000-run")
			runtime.KeepAlive(s)
		}
	})
}

// fromLog applies a command as it comes out of the log.
func fromLog(b *testing.B, s *State, c Command) any {
	b.Helper()
	text, err := EncodeEntry(Entry{Index: s.Index + 1, At: epoch, By: Identity{System: true}, Cmd: c})
	if err != nil {
		b.Fatal(err)
	}
	e, err := DecodeEntry(text)
	if err != nil {
		b.Fatal(err)
	}
	out := s.Apply(e)
	if out.Err != nil {
		b.Fatal(out.Err)
	}
	return out.Result
}

// inUse is the memory that the program uses.
func inUse() float64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return float64(m.HeapAlloc)
}

// TestJobSize holds the records of a pending job to what is allocated for them: blocks of 768 bytes, of which eight
// are the allocator's. The next larger ones are of 896.
func TestJobSize(t *testing.T) {
	const most = 768 - 8
	if job, spec := unsafe.Sizeof(Job{}), unsafe.Sizeof(JobSpec{}); job > most || spec > most {
		t.Errorf("a Job has %d bytes, a JobSpec %d: want %d at most; put small fields side by side", job, spec, most)
	}
}
