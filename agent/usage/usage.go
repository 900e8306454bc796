// Package usage measures what the processes of steps use: one pass over /proc for all of them.
package usage

import (
	"bytes"
	"os"
	"strconv"
	"time"

	"dev.muster/agent/cgroup"
	"dev.muster/agent/step"
	"golang.org/x/sys/unix"
)

// Target is the part of a step whose processes are to be measured.
type Target struct {
	ID    step.ID
	Tasks []int // process ids of its living tasks, at least one
}

// Sample is what the processes of one task consume at one moment: counters since they began, their ended and
// reaped children included, and what of memory they hold. Sizes are in bytes.
type Sample struct {
	User, System time.Duration
	RSS, VM      int64
	Pages        int64 // major faults
	Read         int64 // by all calls, from the page cache too
	Written      int64
	Traced       int   // processes that a debugger has stopped
	CPUFreq      int64 // kHz, of the CPU that the task was on; 0: the machine does not tell
}

// Sampled is what one pass found of a target: of each of its tasks, and which processes belong to them. Both are
// valid until the next pass.
type Sampled struct {
	Tasks []Sample
	Procs []SampledProc
}

// SampledProc is a process of a target's task.
type SampledProc struct{ PID, Task int }

// Sampler reads what the processes of steps consume. The processes of a step are those of its cgroup; where there is
// none, the descendants of its tasks and those in their sessions, found by one walk of /proc for all steps. It keeps
// its buffers from pass to pass; one pass at a time.
type Sampler struct {
	dir  string // of the supervisor
	base string // of its cgroups, once found
	proc string // /proc
	cpus string // /sys/devices/system/cpu
	page int64

	text  [4096]byte
	path  []byte
	rows  []sampleRow
	index map[int]int // process id → place in rows
	leads map[int]lead
	out   []Sampled
	freqs map[int]int64 // kHz by CPU, of one pass
	fixed map[int]int64 // the same of a machine that does not tell them one by one; nil: not read yet
}

// lead is a task: which target's, and its place there.
type lead struct{ target, task int }

// sampleRow is a process that was read.
type sampleRow struct {
	procTimes
	pid   int
	of    lead
	known bool // of is settled
	ours  bool
}

// procTimes is what a sample needs of /proc/PID/stat.
type procTimes struct {
	ppid, session, pgrp  int
	faults, user, system int64 // with those of children that were waited for; times in ticks
	vsize, rss           int64 // bytes; pages
	traced               int   // 1: a debugger has stopped it
	cpu                  int   // where it ran last; -1: a kernel before 2.2.8
}

// tick is the unit of times in /proc: USER_HZ is 100 on every Linux that muster runs on.
const tick = 10 * time.Millisecond

// maxDepth bounds the walk from a process to its task.
const maxDepth = 256

// NewSampler measures the steps that the supervisor of dir runs.
func NewSampler(dir string) *Sampler {
	return &Sampler{dir: dir, proc: "/proc", cpus: "/sys/devices/system/cpu", page: int64(os.Getpagesize()),
		index: map[int]int{},
		leads: map[int]lead{}, freqs: map[int]int64{}}
}

// Pass measures targets once, in their order.
func (s *Sampler) Pass(targets []Target) []Sampled {
	clear(s.leads)
	clear(s.freqs)
	for len(s.out) < len(targets) {
		s.out = append(s.out, Sampled{})
	}
	var walk []int // those without a group
	for i := range targets {
		o := &s.out[i]
		o.Procs, o.Tasks = o.Procs[:0], o.Tasks[:0]
		for k, pid := range targets[i].Tasks {
			s.leads[pid] = lead{i, k}
			o.Tasks = append(o.Tasks, Sample{})
		}
	}
	for i := range targets {
		if !s.group(i, &targets[i]) {
			walk = append(walk, i)
		}
	}
	if len(walk) > 0 {
		s.walk(walk)
	}
	return s.out[:len(targets)]
}

// group measures a target by its cgroup; it reports whether there is one with all its tasks.
func (s *Sampler) group(i int, t *Target) bool {
	if s.base == "" {
		dirs := cgroup.Dirs(s.dir)
		if len(dirs) == 0 {
			return false
		}
		s.base = dirs[0]
	}
	list, err := os.ReadFile(s.base + "/" + t.ID.Group() + "/cgroup.procs")
	if err != nil {
		return false
	}
	s.begin()
	found := 0
	for len(list) > 0 {
		var line []byte
		line, list, _ = bytes.Cut(list, []byte("\n"))
		if pid, _ := decimal(line); pid > 0 {
			s.read(int(pid))
			if of, task := s.leads[int(pid)]; task && of.target == i {
				found++
			}
		}
	}
	if found == 0 {
		return false
	}
	for k := range s.rows {
		r := &s.rows[k]
		if of, ours := s.owner(k, 0); ours && of.target == i {
			s.add(r, of)
		} else { // an orphan: the group knows its step, and nothing its task
			s.add(r, lead{i, 0})
		}
	}
	return true
}

// walk measures targets by one look at every process of the machine.
func (s *Sampler) walk(targets []int) {
	dir, err := os.Open(s.proc)
	if err != nil {
		return
	}
	names, _ := dir.Readdirnames(-1)
	dir.Close()
	s.begin()
	for _, n := range names {
		if pid, err := strconv.Atoi(n); err == nil {
			s.read(pid)
		}
	}
	wanted := make(map[int]bool, len(targets))
	for _, i := range targets {
		wanted[i] = true
	}
	for k := range s.rows {
		if of, ours := s.owner(k, 0); ours && wanted[of.target] {
			s.add(&s.rows[k], of)
		}
	}
}

func (s *Sampler) begin() {
	s.rows = s.rows[:0]
	clear(s.index)
}

// owner finds the task that a process belongs to: itself one, in the session or group of one, or descended from one.
func (s *Sampler) owner(k, depth int) (lead, bool) {
	r := &s.rows[k]
	if r.known || depth > maxDepth {
		return r.of, r.ours
	}
	r.known = true
	for _, id := range [...]int{r.pid, r.session, r.pgrp} {
		if r.of, r.ours = s.leads[id]; r.ours {
			return r.of, true
		}
	}
	if up, ok := s.index[r.ppid]; ok {
		r.of, r.ours = s.owner(up, depth+1)
	}
	return r.of, r.ours
}

// read reads a process; one that has ended meanwhile is none.
func (s *Sampler) read(pid int) {
	text := s.file(pid, "/stat")
	i := bytes.LastIndexByte(text, ')')
	if i < 0 {
		return
	}
	if t, ok := parseTimes(text[i+1:]); ok {
		s.index[pid] = len(s.rows)
		s.rows = append(s.rows, sampleRow{pid: pid, procTimes: t})
	}
}

// add counts a process for its task. Bytes read and written are known only of processes that this one may trace.
func (s *Sampler) add(r *sampleRow, of lead) {
	o := &s.out[of.target]
	t := &o.Tasks[of.task]
	t.User += time.Duration(r.user) * tick
	t.System += time.Duration(r.system) * tick
	t.RSS += r.rss * s.page
	t.VM += r.vsize
	t.Pages += r.faults
	read, written := parseIO(s.file(r.pid, "/io"))
	t.Read += read
	t.Written += written
	t.Traced += r.traced
	if _, own := s.leads[r.pid]; own {
		t.CPUFreq = s.frequency(r.cpu)
	}
	o.Procs = append(o.Procs, SampledProc{r.pid, of.task})
}

// frequency is that of a CPU now, in kHz, as its driver tells it (cpufreq). On a machine without one it stays as
// /proc/cpuinfo tells: that file makes the kernel ask all CPUs, and is read once.
func (s *Sampler) frequency(cpu int) int64 {
	if cpu < 0 {
		return 0
	}
	if f, ok := s.freqs[cpu]; ok {
		return f
	}
	text, err := os.ReadFile(s.cpus + "/cpu" + strconv.Itoa(cpu) + "/cpufreq/scaling_cur_freq")
	f, ok := decimal(bytes.TrimSpace(text))
	if err != nil || !ok {
		if s.fixed == nil {
			text, _ := os.ReadFile(s.proc + "/cpuinfo")
			s.fixed = parseFrequencies(text)
		}
		f = s.fixed[cpu]
	}
	s.freqs[cpu] = f
	return f
}

// parseFrequencies reads /proc/cpuinfo: kHz by CPU. Not all architectures tell.
func parseFrequencies(text []byte) map[int]int64 {
	out, cpu := map[int]int64{}, 0
	for line := range bytes.Lines(text) {
		name, value, _ := bytes.Cut(line, []byte(":"))
		value = bytes.TrimSpace(value)
		switch string(bytes.TrimSpace(name)) {
		case "processor":
			n, _ := decimal(value)
			cpu = int(n)
		case "cpu MHz":
			if mhz, err := strconv.ParseFloat(string(value), 64); err == nil {
				out[cpu] = int64(mhz * 1000)
			}
		}
	}
	return out
}

// file is what one read of a process's file gives, valid until the next; nil if it cannot be read.
func (s *Sampler) file(pid int, name string) []byte {
	s.path = append(strconv.AppendInt(append(append(s.path[:0], s.proc...), '/'), int64(pid), 10), name...)
	fd, err := unix.Open(string(s.path), unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil
	}
	defer unix.Close(fd)
	n, err := unix.Read(fd, s.text[:])
	if err != nil {
		return nil
	}
	return s.text[:n]
}

// Fields of /proc/PID/stat behind the name (proc(5)): how many are needed, and which one is the CPU.
const (
	timesFields  = 22
	lastCPUField = 36
)

// parseTimes reads the fields of /proc/PID/stat behind the name; the first is the state.
func parseTimes(text []byte) (t procTimes, ok bool) {
	var f [lastCPUField + 1]int64
	n := 0
	for word := range bytes.FieldsSeq(text) {
		if n == len(f) {
			break
		}
		f[n], _ = decimal(word)
		n++
	}
	if n < timesFields {
		return t, false
	}
	cpu := -1
	if n == len(f) {
		cpu = int(f[lastCPUField])
	}
	traced := bytes.Count(text[:3], []byte(" t ")) // the state
	return procTimes{traced: traced, cpu: cpu, ppid: int(f[1]), pgrp: int(f[2]), session: int(f[3]),
		faults: f[9] + f[10], user: f[11] + f[13], system: f[12] + f[14], vsize: f[20], rss: f[21]}, true
}

// parseIO reads /proc/PID/io: bytes that calls read and wrote.
func parseIO(text []byte) (read, written int64) {
	for len(text) > 0 {
		var line []byte
		line, text, _ = bytes.Cut(text, []byte("\n"))
		name, value, _ := bytes.Cut(line, []byte(": "))
		switch string(name) {
		case "rchar":
			read, _ = decimal(value)
		case "wchar":
			written, _ = decimal(value)
		}
	}
	return read, written
}

// decimal reads decimal digits without making a string of them.
func decimal(text []byte) (n int64, ok bool) {
	for _, c := range text {
		if c < '0' || c > '9' {
			return n, false
		}
		n = n*10 + int64(c-'0')
	}
	return n, len(text) > 0
}
