package burnin

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"dev.muster/cluster"
	"golang.org/x/sys/unix"
)

// Sizes of the loads.
const (
	matrix   = 48       // rows and columns of the matrices that CPUs multiply
	products = 20       // matrix products in a round
	chunk    = 64 << 20 // bytes of memory that are filled at once
	block    = 1 << 20  // bytes that are written to the disk at once
	diskRoom = 4        // the disk must have so many times what is written
)

// cpus has every CPU that this process may use compute the same over and over: a CPU that is broken gives another
// result.
func (t *test) cpus(ctx context.Context) cluster.TestedPart {
	p := t.part("cpu", cpuModel())
	var set unix.CPUSet
	if err := unix.SchedGetaffinity(0, &set); err != nil {
		return untested(p, "the CPUs of this process are not known: %v", err)
	}
	var ids []int
	for id := range len(set) * 64 {
		if set.IsSet(id) {
			ids = append(ids, id)
		}
	}
	want := round()
	rounds, wrong := make([]int, len(ids)), make([]string, len(ids))
	var all sync.WaitGroup
	end := time.Now().Add(t.Load)
	for i, id := range ids {
		all.Go(func() {
			runtime.LockOSThread() // never unlocked: the thread, bound to one CPU, ends with the goroutine
			var one unix.CPUSet
			one.Set(id)
			if err := unix.SchedSetaffinity(0, &one); err != nil {
				wrong[i] = fmt.Sprintf("CPU %d cannot be used: %v", id, err)
				return
			}
			for again := true; again; again = ctx.Err() == nil && time.Now().Before(end) {
				if got := round(); got != want {
					wrong[i] = fmt.Sprintf("CPU %d computes wrong: %x and not %x in round %d", id, got, want, rounds[i])
					return
				}
				rounds[i]++
			}
		})
	}
	all.Wait()
	wrong = slices.DeleteFunc(wrong, func(s string) bool { return s == "" })
	gflops := func(n int) float64 {
		return float64(n) * 2 * products * matrix * matrix * matrix / t.Load.Seconds() / 1e9
	}
	slices.Sort(rounds)
	return judge(p, wrong, cluster.Figure{Name: "CPUs", Value: float64(len(ids))}, cluster.Figure{
		Name: "slowest CPU", Value: gflops(rounds[0]), Unit: "Gflop/s",
	},
		cluster.Figure{Name: "median CPU", Value: gflops(rounds[len(rounds)/2]), Unit: "Gflop/s"})
}

// round multiplies matrices and sums up the bits of the result.
func round() (sum uint64) {
	var a, b, c [matrix * matrix]float64
	for i := range a {
		a[i], b[i] = 1+1/float64(i+1), 1-1/float64(i+2)
	}
	for range products {
		for i := range matrix {
			for k := range matrix {
				x := a[i*matrix+k]
				for j := range matrix {
					c[i*matrix+j] += x * b[k*matrix+j]
				}
			}
		}
		for i := range a {
			sum = sum*31 + uint64(c[i])
			a[i], c[i] = 1+c[i]/(1+c[0]), 0
		}
	}
	return sum
}

// cpuModel is what the kernel calls the first CPU.
func cpuModel() string {
	text, _ := os.ReadFile("/proc/cpuinfo")
	for line := range strings.Lines(string(text)) {
		if name, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(name) == "model name" {
			return strings.TrimSpace(value)
		}
	}
	return runtime.GOARCH
}

// memory writes a pattern to as much memory as is free, or as fits into the time, and reads it again; and it
// compares the kernel's counts of memory errors before and after (EDAC).
func (t *test) memory(ctx context.Context) cluster.TestedPart {
	p := t.part("memory", "")
	size := int64(t.MemMB) << 20
	if size == 0 {
		size = freeMemory() / 2
	}
	corrected, uncorrected, counted := edac("/sys/devices/system/edac/mc")
	began := time.Now()
	workers := runtime.GOMAXPROCS(0)
	wrong, sizes := make([]string, workers), make([]int64, workers)
	var all sync.WaitGroup
	for i := range workers {
		all.Go(func() {
			sizes[i], wrong[i] = fill(ctx, size/int64(workers), began.Add(t.Load), uint64(i)<<56)
		})
	}
	all.Wait()
	took := time.Since(began)
	var tested int64
	for _, n := range sizes {
		tested += n
	}
	wrong = slices.DeleteFunc(wrong, func(s string) bool { return s == "" })
	figures := []cluster.Figure{
		{Name: "memory tested", Value: float64(tested >> 20), Unit: "MB"},
		{Name: "written and read", Value: 2 * float64(tested) / took.Seconds() / 1e9, Unit: "GB/s"},
	}
	if counted {
		c, u, _ := edac("/sys/devices/system/edac/mc")
		figures = append(figures, cluster.Figure{Name: "corrected errors", Value: float64(c - corrected)})
		if u > uncorrected {
			wrong = append(wrong, fmt.Sprintf("%d uncorrected memory errors during the test", u-uncorrected))
		}
	}
	if tested == 0 && len(wrong) == 0 {
		return untested(p, "no memory is free")
	}
	return judge(p, wrong, figures...)
}

// fill writes memory, up to a size or a time, and reads it again.
func fill(ctx context.Context, size int64, until time.Time, seed uint64) (tested int64, wrong string) {
	var chunks [][]byte
	defer func() {
		for _, c := range chunks {
			_ = unix.Munmap(c)
		}
	}()
	for tested < size && ctx.Err() == nil && (tested == 0 || time.Now().Before(until)) {
		c, err := unix.Mmap(-1, 0, int(min(chunk, size-tested)), unix.PROT_READ|unix.PROT_WRITE,
			unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
		if err != nil {
			break // there is no more
		}
		pattern(c, seed+uint64(tested))
		chunks, tested = append(chunks, c), tested+int64(len(c))
	}
	at := seed
	for _, c := range chunks {
		if k := differs(c, at); k >= 0 {
			return tested, fmt.Sprintf("memory does not hold what was written: a word at %#x", k)
		}
		at += uint64(len(c))
	}
	return tested, ""
}

// pattern fills a buffer with words that no other place has.
func pattern(b []byte, seed uint64) {
	for i := 0; i+8 <= len(b); i += 8 {
		binary.LittleEndian.PutUint64(b[i:], mixed(seed+uint64(i)))
	}
}

// differs is the first place where a buffer does not hold its pattern, -1 if it does.
func differs(b []byte, seed uint64) int {
	for i := 0; i+8 <= len(b); i += 8 {
		if binary.LittleEndian.Uint64(b[i:]) != mixed(seed+uint64(i)) {
			return i
		}
	}
	return -1
}

// mixed spreads the bits of a number, with half of them set (the constant is 2^64 by the golden ratio).
func mixed(x uint64) uint64 { return (x ^ x>>31) * 0x9e3779b97f4a7c15 }

// freeMemory is what this process may still use, in bytes: of the machine, and of the job's own limit.
func freeMemory() int64 {
	free := int64(0)
	text, _ := os.ReadFile("/proc/meminfo")
	for line := range strings.Lines(string(text)) {
		if f := strings.Fields(line); len(f) > 1 && f[0] == "MemAvailable:" {
			kb, _ := strconv.ParseInt(f[1], 10, 64)
			free = kb << 10
		}
	}
	if mb, err := strconv.ParseInt(os.Getenv("SLURM_MEM_PER_NODE"), 10, 64); err == nil && mb > 0 {
		free = min(free, mb<<20)
	}
	return free
}

// edac sums up the kernel's counts of memory errors; not counted where it has no driver for the memory controllers.
func edac(dir string) (corrected, uncorrected int64, counted bool) {
	sum := func(name string) (n int64) {
		files, _ := filepath.Glob(dir + "/mc[0-9]*/" + name)
		for _, f := range files {
			text, _ := os.ReadFile(f)
			k, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
			counted = counted || err == nil
			n += k
		}
		return n
	}
	return sum("ce_count"), sum("ue_count"), counted
}

// disk writes a file and reads it again, past the kernel's cache of it.
func (t *test) disk(ctx context.Context) cluster.TestedPart {
	p := t.part("disk", t.Dir)
	var fs unix.Statfs_t
	if err := unix.Statfs(t.Dir, &fs); err != nil {
		return untested(p, "%s: %v", t.Dir, err)
	}
	if free := int64(fs.Bavail) * fs.Bsize >> 20; free < diskRoom*int64(t.DiskMB) {
		return untested(p, "%s has %d MB free, the test wants %d", t.Dir, free, diskRoom*t.DiskMB)
	}
	f, err := os.CreateTemp(t.Dir, "muster-burnin-")
	if err != nil {
		return untested(p, "%v", err)
	}
	defer os.Remove(f.Name())
	defer f.Close()
	buf := make([]byte, block)
	began := time.Now()
	for i := range t.DiskMB {
		pattern(buf, uint64(i)*block)
		if _, err := f.Write(buf); err != nil {
			return judge(p, []string{fmt.Sprintf("write to %s: %v", t.Dir, err)})
		}
		if ctx.Err() != nil {
			return untested(p, "it was ended")
		}
	}
	if err := f.Sync(); err != nil {
		return judge(p, []string{fmt.Sprintf("write to %s: %v", t.Dir, err)})
	}
	wrote := time.Since(began)
	_ = unix.Fadvise(int(f.Fd()), 0, 0, unix.FADV_DONTNEED) // file systems in memory have nothing else to read
	began = time.Now()
	for i := range t.DiskMB {
		if _, err := f.ReadAt(buf, int64(i)*block); err != nil && err != io.EOF {
			return judge(p, []string{fmt.Sprintf("read from %s: %v", t.Dir, err)})
		}
		if k := differs(buf, uint64(i)*block); k >= 0 {
			return judge(p, []string{fmt.Sprintf("%s does not hold what was written: a word at %d", t.Dir, i*block+k)})
		}
	}
	rate := func(d time.Duration) float64 { return float64(t.DiskMB) / max(d.Seconds(), 1e-6) }
	return judge(p, nil, cluster.Figure{Name: "written", Value: rate(wrote), Unit: "MB/s"}, cluster.Figure{
		Name: "read", Value: rate(time.Since(began)), Unit: "MB/s",
	})
}
