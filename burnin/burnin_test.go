package burnin

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"dev.muster/cluster"
	"dev.muster/gpu"
)

func quiet(string, ...any) {}

// TestMachine: CPUs, memory and disk of a machine that is well pass, with figures.
func TestMachine(t *testing.T) {
	parts := Run(context.Background(), Options{Node: "n1", Load: 50 * time.Millisecond, MemMB: 8, DiskMB: 2,
		Dir:   t.TempDir(),
		Watch: []string{"/bin/false"}, Find: func(string) (string, error) { return "", errors.New("none") },
		Say: quiet})
	figure := map[string]string{"n1/cpu": "slowest CPU", "n1/memory": "memory tested", "n1/disk": "read"}
	for _, p := range parts[:3] {
		one := p.Tests[0]
		i := slices.IndexFunc(one.Figures, func(f cluster.Figure) bool { return f.Name == figure[p.ID] })
		if one.Verdict != cluster.BurninPassed || one.Text != "" || i < 0 || one.Figures[i].Value <= 0 {
			t.Errorf("%s: %+v", p.ID, one)
		}
	}
}

// TestPatterns: one bit that changes is found, and where.
func TestPatterns(t *testing.T) {
	b := make([]byte, 4096)
	pattern(b, 1<<40)
	if k := differs(b, 1<<40); k != -1 {
		t.Errorf("untouched: word at %d", k)
	}
	if k := differs(b, 1<<41); k != 0 {
		t.Errorf("another seed: word at %d", k)
	}
	b[1001] ^= 4
	if k := differs(b, 1<<40); k != 1000 {
		t.Errorf("one bit: word at %d", k)
	}
}

func TestEDAC(t *testing.T) {
	dir := t.TempDir()
	if _, _, counted := edac(dir); counted {
		t.Error("counted without a driver")
	}
	for i := range 2 {
		mc := fmt.Sprintf("%s/mc%d", dir, i)
		if err := os.Mkdir(mc, 0o755); err != nil {
			t.Fatal(err)
		}
		for name, n := range map[string]int{"ce_count": 10 + i, "ue_count": i} {
			if err := os.WriteFile(mc+"/"+name, fmt.Appendln(nil, n), 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	if c, u, counted := edac(dir); c != 21 || u != 1 || !counted {
		t.Errorf("got %d %d %v", c, u, counted)
	}
}

// TestDiskFull: a disk without room is not tested, and that is said.
func TestDiskFull(t *testing.T) {
	o := &test{Options: Options{Node: "n1", DiskMB: 1 << 40, Dir: t.TempDir()}}
	if one := o.disk(context.Background()).Tests[0]; one.Verdict != cluster.BurninUntested || !strings.Contains(one.Text, "MB free, the test wants") {
		t.Errorf("got %+v", one)
	}
}

// TestTools: what the programs print is read, by samples of it.
func TestTools(t *testing.T) {
	for _, c := range []struct {
		name, out     string
		err           error
		wrong, blamed string
		figures       string
	}{
		{
			"gpu_burn",
			"100.0%  proc'd: 120 (9000 Gflop/s)\nTested 2 GPUs:\n\tGPU 0: OK\n\tGPU 1: FAULTY\n", nil, "[]",
			"[1]", "[]",
		},
		{
			"gpu_burn", "Couldn't init CUDA\n", errors.New("exit status 1"),
			"[gpu_burn: exit status 1: Couldn't init CUDA]", "[]", "[]",
		},
		{
			"nvbandwidth",
			"SUM host_to_device_memcpy_ce 441.5\nSUM device_to_device_memcpy_read_ce 2700.25\n", nil, "[]",
			"[]", "[{host_to_device_memcpy_ce 441.5 GB/s} {device_to_device_memcpy_read_ce 2700.25 GB/s}]",
		},
		{
			"all_reduce_perf", "# Out of bounds values : 0 OK\n# Avg bus bandwidth    : 361.2\n", nil, "[]",
			"[]", "[{all-reduce bus bandwidth 361.2 GB/s}]",
		},
		{
			"all_reduce_perf", "# Out of bounds values : 12 FAILED\n# Avg bus bandwidth    : 3.5\n",
			errors.New("exit status 1"), "[all_reduce_perf: Out of bounds values : 12 FAILED]", "[]",
			"[{all-reduce bus bandwidth 3.5 GB/s}]",
		},
		{
			"dcgmi",
			"| Memory                    | Pass - All                                     |\n| Memory Bandwidth          | Fail - GPU: 2                                  |\n",
			errors.New("exit status 226"), "[dcgmi: Fail - GPU: 2]", "[]", "[]",
		},
	} {
		i := slices.IndexFunc(tools, func(k tool) bool { return slices.Contains(k.names, c.name) })
		r := result{name: c.name}
		tools[i].read(&r, c.out, c.err)
		if got := fmt.Sprint(r.wrong, r.blamed, r.figures); got != c.wrong+" "+c.blamed+" "+c.figures {
			t.Errorf("%s: %s", c.name, got)
		}
	}
}

// TestToolRuns: a program is called in its own folder, and its exit code counts.
func TestToolRuns(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "gpu_burn")
	if err := os.WriteFile(path, []byte("#!/bin/sh\necho $PWD $CUDA_DEVICE_ORDER $1\nexit 3\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	r := tools[1].run(context.Background(), path, 2*time.Second, 1)
	if want := "[gpu_burn: exit status 3: " + dir + " PCI_BUS_ID 2]"; fmt.Sprint(r.wrong) != want {
		t.Errorf("got %v, want %s", r.wrong, want)
	}
}

// TestGPUs: what changes under load, what is less than of others, and what a program says of a GPU fails it.
func TestGPUs(t *testing.T) {
	one := func(i int) gpu.Reading {
		return gpu.Reading{
			GPU:    cluster.GPU{UUID: fmt.Sprintf("GPU-%d", i), Minor: i, Model: "NVIDIA H100", MemMB: 80000},
			Serial: fmt.Sprint(100 + i),
		}
	}
	before, after := &gpu.Scan{}, &gpu.Scan{}
	for i := range 5 {
		before.Readings, after.Readings = append(before.Readings, one(i)), append(after.Readings, one(i))
	}
	after.Readings[0].ECCCorrected = 4
	after.Readings[1].RemappedBad = 2
	before.Readings[2].GPU.MemMB = 70000
	after.Readings = after.Readings[:4] // the last one has gone
	w := &watch{
		first:  before,
		faults: []cluster.Fault{{Part: "GPU-0", Cause: "throttle", Text: "GPU 0 (GPU-0): slowed by heat"}},
		peaks:  map[string]*peak{"GPU-0": {tempC: 91}},
	}
	parts := (&test{Options: Options{Node: "n1"}}).judgeGPUs(w, after, []result{{name: "gpu_burn", blamed: []int{3}}})
	want := []string{"GPU-0 100 failed GPU 0 (GPU-0): slowed by heat",
		"GPU-1 101 failed GPU 1 (GPU-1): 2 rows of memory were remapped during the test",
		"GPU-2 102 failed GPU 2 (GPU-2): 70000 MB of memory, others of its make have 80000",
		"GPU-3 103 failed GPU 3 (GPU-3): gpu_burn: it computes wrong",
		"GPU-4 104 failed GPU 4 (GPU-4): it is lost", "n1/load  passed "}
	for i, p := range parts {
		if got := fmt.Sprintf("%s %s %s %s", p.ID, p.Serial, p.Tests[0].Verdict, p.Tests[0].Text); i >= len(want) || got != want[i] {
			t.Errorf("part %d: %s", i, got)
		}
	}
	if f := fmt.Sprint(parts[0].Tests[0].Figures); !strings.Contains(f, "{corrected errors 4 }") || !strings.Contains(f, "{highest temperature 91 C}") {
		t.Errorf("figures: %s", f)
	}
	parts = (&test{Options: Options{Node: "n1"}}).judgeGPUs(&watch{
		first: &gpu.Scan{Readings: before.Readings[3:4]},
	}, before, nil)
	if len(parts) != 2 || parts[0].Tests[0].Text != "at rest: its counters alone" || parts[1].Tests[0].Verdict != cluster.BurninUntested {
		t.Errorf("without programs: %+v", parts)
	}
}
