// Package cgroup keeps the processes of steps together and within what their job may use: groups of the unified
// hierarchy (cgroup v2), with the controllers of v1 where those of v2 are not to be had, and a program of the kernel
// that denies devices. It knows directories, processes and limits, no jobs: whoever makes a group names it. Start with
// Groups in groups.go, then Fence.
package cgroup

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"dev.muster/cluster"
	"golang.org/x/sys/unix"
)

// Groups are those of one supervisor, below one directory of the unified hierarchy:
// muster.HASH/job_J.A@NODE/step_S.
type Groups struct {
	base string
	held *os.File // base, locked: whoever removes what the dead left passes it by
	controllers

	mu     sync.Mutex
	jobs   map[string]int           // step directories in each job directory
	bounds map[string]cluster.MemMB // memory of jobs that got another amount (SetMemory)
}

// Group is one step's.
type Group struct {
	Dir string   // of the unified hierarchy
	FD  int      // for CLONE_INTO_CGROUP; -1 after the launch
	Old []string // of cgroup v1, for the launch: EnterOld

	cg      *Groups
	job     string
	starved atomic.Int32 // its processes that were killed by Starve
}

// homeGroup is the supervisor's own, so that it does not die with the daemon's.
const homeGroup = "supervisor"

// NoGroupsEnv, when set, makes a supervisor do without cgroups.
const NoGroupsEnv = "MUSTER_NO_CGROUPS"

// Roots lists directories that may take our groups, best first.
func Roots() (roots []string) {
	if os.Getenv(NoGroupsEnv) != "" {
		return nil
	}
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return nil
	}
	for line := range strings.Lines(string(mounts)) {
		front, back, ok := strings.Cut(line, " - ")
		f := strings.Fields(front)
		if ok && strings.HasPrefix(back, "cgroup2 ") && len(f) > 4 {
			roots = append(roots, f[4])
		}
	}
	if len(roots) == 0 {
		return mountUnified()
	}
	own, _ := os.ReadFile("/proc/self/cgroup")
	for line := range strings.Lines(string(own)) {
		if p, ok := strings.CutPrefix(strings.TrimSpace(line), "0::/"); ok && p != "" {
			for _, r := range roots[:len(roots):len(roots)] {
				roots = append(roots, filepath.Join(r, p))
			}
		}
	}
	return roots
}

// unifiedDir is where the unified hierarchy is mounted on a machine that has those of cgroup v1 alone: by it
// processes are kept together and killed, while the others' controllers limit them.
const unifiedDir = "/run/muster-cgroup"

// mountUnified mounts the unified hierarchy; without the right to do so, or before Linux 4.5, there is none.
func mountUnified() []string {
	if os.Geteuid() != 0 || len(oldMounts()) == 0 {
		return nil
	}
	if err := os.Mkdir(unifiedDir, 0o755); err != nil && !errors.Is(err, os.ErrExist) {
		return nil
	}
	const flags = unix.MS_NOSUID | unix.MS_NODEV | unix.MS_NOEXEC
	if err := unix.Mount("cgroup2", unifiedDir, "cgroup2", flags, ""); err != nil {
		unix.Rmdir(unifiedDir)
		return nil
	}
	return []string{unifiedDir}
}

// nameOf names the groups of a supervisor by its folder.
func nameOf(dir string) string {
	if abs, err := filepath.Abs(dir); err == nil {
		dir = abs
	}
	var st unix.Stat_t
	unix.Stat(dir, &st) // a directory removed and made again is another
	sum := sha256.Sum256(fmt.Appendf(nil, "%s %d %d", dir, st.Dev, st.Ino))
	return "muster." + hex.EncodeToString(sum[:6])
}

// Open makes the groups of a supervisor's folder in a unified hierarchy that lets us; nil if there is none. They are
// held until Release.
func Open(dir string) *Groups {
	for _, root := range Roots() {
		base := filepath.Join(root, nameOf(dir))
		if err := os.Mkdir(base, 0o755); err != nil && !errors.Is(err, os.ErrExist) {
			continue
		}
		c := &Groups{base: base, jobs: map[string]int{}}
		if serves(base) && c.hold() == nil {
			c.controllers = openControllers(base)
			return c
		}
		unix.Rmdir(base)
	}
	return nil
}

// serves reports whether groups can be made below a directory, with the files that this package needs.
func serves(base string) bool {
	probe := filepath.Join(base, "probe")
	if err := os.Mkdir(probe, 0o755); err != nil && !errors.Is(err, os.ErrExist) {
		return false
	}
	defer unix.Rmdir(probe)
	for _, file := range []string{probe + "/cgroup.kill", probe + "/cgroup.freeze", base + "/cgroup.procs"} {
		if unix.Access(file, unix.W_OK) != nil {
			return false
		}
	}
	return true
}

// Dirs are the directories, in all hierarchies, of the groups that a supervisor's folder has; the unified one is
// first.
func Dirs(dir string) (out []string) {
	name, roots := nameOf(dir), Roots()
	for _, m := range oldMounts() {
		roots = append(roots, m.at)
	}
	for _, root := range roots {
		if at := filepath.Join(root, name); unix.Access(at, unix.X_OK) == nil {
			out = append(out, at)
		}
	}
	return out
}

// Isolation tells how the steps of a supervisor on this machine are fenced: cgroup2, with or without cgroup1 beside it,
// and the controllers that limit jobs, or none.
func Isolation() string {
	for _, root := range Roots() {
		d := filepath.Join(root, "muster.probe."+strconv.Itoa(os.Getpid()))
		if os.Mkdir(d, 0o755) != nil {
			continue
		}
		ok := unix.Access(d+"/cgroup.kill", unix.W_OK) == nil && unix.Access(root+"/cgroup.procs", unix.W_OK) == nil
		if ok {
			c := openControllers(d)
			c.rmdir()
			unix.Rmdir(d)
			return c.Kind()
		}
		unix.Rmdir(d)
	}
	return "none"
}

// Bound limits all jobs together, and has them wait for the CPUs rather than others.
func (c *Groups) Bound(f *Fence) error {
	_ = Write(c.base+"/cpu.weight", "10") // where the hierarchy has that controller
	for _, name := range []string{Memory, PIDs} {
		dir := c.old[name]
		if c.unified[name] {
			dir = c.base
		}
		if dir == "" {
			continue
		}
		if err := f.limit(dir, name, c.unified[name]); err != nil {
			return err
		}
	}
	return nil
}

// Close removes the groups if no step is left in them, and holds them no longer. It may be called again.
func (c *Groups) Close() {
	c.rmdir()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.held != nil {
		c.Release()
	}
}

// OpenHome opens the supervisor's own group for its start.
func (c *Groups) OpenHome() (fd int, err error) {
	home := c.base + "/" + homeGroup
	_ = os.Mkdir(home, 0o755) // it may be there
	return unix.Open(home, unix.O_DIRECTORY|unix.O_RDONLY|unix.O_CLOEXEC, 0)
}

// Leave takes this process out of its groups, and removes them if no step is left in them.
func (c *Groups) Leave() {
	_ = Write(filepath.Dir(c.base)+"/cgroup.procs", "0")
	unix.Rmdir(c.base + "/" + homeGroup)
	c.rmdir()
}

// rmdir removes the directories of a supervisor that are empty.
func (c *Groups) rmdir() {
	unix.Rmdir(c.base)
	c.controllers.rmdir()
}

// Create makes the group of a step, and with the first one of a job the job's fence.
func (c *Groups) Create(job, name string, f *Fence) (*Group, error) {
	g := &Group{cg: c, job: job, Dir: c.base + "/" + job + "/" + name, FD: -1}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.jobs[job] == 0 {
		if err := os.Mkdir(c.base+"/"+job, 0o755); err != nil && !errors.Is(err, os.ErrExist) {
			return nil, err
		}
		if err := c.raise(job, f.bounded(c.bounds[job])); err != nil {
			c.lower(job)
			unix.Rmdir(c.base + "/" + job)
			return nil, err
		}
	}
	var err error
	if g.Old, err = g.oldDirs(f); err != nil {
		return nil, err
	}
	if err := os.Mkdir(g.Dir, 0o755); err != nil && !errors.Is(err, os.ErrExist) {
		return nil, err
	}
	if c.unified[Memory] {
		if err := f.boundStep(g.Dir, true); err != nil {
			return nil, err
		}
	}
	if err := g.OpenFD(); err != nil {
		return nil, err
	}
	c.jobs[job]++
	return g, nil
}

// OpenFD opens the group for processes that begin in it.
func (g *Group) OpenFD() error {
	fd, err := unix.Open(g.Dir, unix.O_DIRECTORY|unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return &os.PathError{Op: "open", Path: g.Dir, Err: err}
	}
	g.FD = fd
	return nil
}

// Adopt takes over a group left by an earlier supervisor; nil if it is gone.
func (c *Groups) Adopt(job, name string) *Group {
	g := &Group{cg: c, job: job, Dir: c.base + "/" + job + "/" + name, FD: -1}
	if unix.Access(g.Dir, unix.F_OK) != nil {
		return nil
	}
	c.mu.Lock()
	c.jobs[job]++
	c.mu.Unlock()
	return g
}

// Sweep kills and removes the groups of steps but those to keep, JOB/STEP: what a supervisor
// without a journal left.
func (c *Groups) Sweep(keep map[string]bool) {
	jobs, _ := filepath.Glob(c.base + "/job_*")
	for _, j := range jobs {
		steps, _ := filepath.Glob(j + "/step_*")
		for _, d := range steps {
			job := filepath.Base(j)
			if keep[job+"/"+filepath.Base(d)] {
				continue
			}
			g := &Group{cg: c, job: job, Dir: d, FD: -1}
			for range 100 {
				g.Kill()
				g.rmdirBelow()
				if unix.Rmdir(d) == nil {
					break
				}
				g.AwaitEmpty(20 * time.Millisecond)
			}
		}
		unix.Rmdir(j)
		c.lower(filepath.Base(j))
	}
}

// CloseFD closes what OpenFD has opened.
func (g *Group) CloseFD() {
	if g.FD >= 0 {
		unix.Close(g.FD)
		g.FD = -1
	}
}

// Remove takes the group away and reports true, unless processes are left in it.
func (g *Group) Remove() bool {
	if err := unix.Rmdir(g.Dir); err == unix.EBUSY || err == unix.ENOTEMPTY {
		g.rmdirBelow()
		if err = unix.Rmdir(g.Dir); err != nil && err != unix.ENOENT {
			return false
		}
	}
	if base := g.cg.old[Memory]; base != "" {
		unix.Rmdir(base + "/" + g.job + "/" + filepath.Base(g.Dir))
	}
	g.cg.mu.Lock()
	defer g.cg.mu.Unlock()
	if g.cg.jobs[g.job]--; g.cg.jobs[g.job] <= 0 {
		delete(g.cg.jobs, g.job)
		unix.Rmdir(g.cg.base + "/" + g.job)
		g.cg.lower(g.job)
	}
	return true
}

// rmdirBelow removes empty groups a job made inside its own.
func (g *Group) rmdirBelow() {
	for _, d := range g.tree()[1:] {
		defer unix.Rmdir(d) // deepest first
	}
}

// tree lists the group's directory and all below it, parents first.
func (g *Group) tree() []string {
	dirs := []string{g.Dir}
	for i := 0; i < len(dirs); i++ {
		es, _ := os.ReadDir(dirs[i])
		for _, e := range es {
			if e.IsDir() {
				dirs = append(dirs, dirs[i]+"/"+e.Name())
			}
		}
	}
	return dirs
}

// Take moves a process, and so what it starts from then on, into the group and those of a fence.
func (g *Group) Take(pid int, f *Fence) error {
	old, err := g.oldDirs(f)
	if err != nil {
		return err
	}
	for _, dir := range append(old, g.Dir) {
		if err := Write(dir+"/cgroup.procs", strconv.Itoa(pid)); err != nil {
			return err
		}
	}
	return nil
}

// Bounds reports whether a controller limits the group.
func (g *Group) Bounds(name string) bool { return g.cg.Has(name) }

// Kill ends all processes of the group.
func (g *Group) Kill() error { return Write(g.Dir+"/cgroup.kill", "1") }

// Freeze stops all processes of the group, or lets them go on.
func (g *Group) Freeze(stop bool) error {
	v := "0"
	if stop {
		v = "1"
	}
	return Write(g.Dir+"/cgroup.freeze", v)
}

// PIDs lists every process in the group.
func (g *Group) PIDs() (pids []int) {
	for _, d := range g.tree() {
		b, _ := os.ReadFile(d + "/cgroup.procs")
		for f := range strings.FieldsSeq(string(b)) {
			if p, err := strconv.Atoi(f); err == nil && p > 0 {
				pids = append(pids, p)
			}
		}
	}
	return pids
}

// AwaitEmpty waits for cgroup.events to change, at most for d.
func (g *Group) AwaitEmpty(d time.Duration) {
	fd, err := unix.Open(g.Dir+"/cgroup.events", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return
	}
	defer unix.Close(fd)
	var b [256]byte
	if n, err := unix.Read(fd, b[:]); err != nil || strings.Contains(string(b[:n]), "populated 0") {
		return
	}
	unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLPRI}}, int(d/time.Millisecond))
}

// raise makes a job's groups and their limits; what of the fence no controller is there for stays undone, as Isolation
// tells.
func (c *Groups) raise(job string, f *Fence) error {
	dir := c.base + "/" + job
	for _, name := range []string{Memory, Cpuset, PIDs} {
		if !c.unified[name] {
			continue
		}
		if err := f.limit(dir, name, true); err != nil {
			return err
		}
	}
	if c.unified[Memory] && !delegate(dir, Memory) { // so that each step counts its own
		return fmt.Errorf("delegate memory to %s", dir)
	}
	for name, base := range c.old {
		if !f.wants(name) {
			continue
		}
		if err := f.raiseOld(base+"/"+job, name); err != nil {
			return err
		}
	}
	if c.filter && len(f.Denied) > 0 {
		return filterDevices(dir, f.Denied)
	}
	return nil
}

// lower takes a job's groups of cgroup v1 away. They are empty: the unified one was.
func (c *Groups) lower(job string) {
	for _, base := range c.old {
		steps, _ := filepath.Glob(base + "/" + job + "/step_*")
		for _, d := range append(steps, base+"/"+job) {
			unix.Rmdir(d)
		}
	}
}

// Home is where this thread is in each hierarchy of cgroup v1 that fences jobs.
func (c *Groups) Home() map[string]string {
	out := map[string]string{}
	text, _ := os.ReadFile("/proc/thread-self/cgroup")
	mounts := oldMounts()
	for name, base := range c.old {
		at := filepath.Dir(base)
		out[name] = at
		for line := range strings.Lines(string(text)) {
			f := strings.SplitN(strings.TrimSpace(line), ":", 3)
			if len(f) < 3 || !slices.Contains(strings.Split(f[1], ","), name) {
				continue
			}
			out[name] = cmp.Or(within(mounts, at, f[2]), out[name])
		}
	}
	return out
}

// oldDirs lists the groups of cgroup v1 in which a step's processes belong. Those of memory are the step's own, as each
// counts only the processes in it that were killed.
func (g *Group) oldDirs(f *Fence) (dirs []string, err error) {
	for _, name := range []string{Memory, Cpuset, PIDs, Devices} {
		base := g.cg.old[name]
		if base == "" || !f.wants(name) {
			continue
		}
		dir := base + "/" + g.job
		if name == Memory {
			dir += "/" + path.Base(g.Dir)
			if err := os.Mkdir(dir, 0o755); err != nil && !errors.Is(err, os.ErrExist) {
				return nil, err
			}
			if err := f.boundStep(dir, false); err != nil {
				return nil, err
			}
		}
		dirs = append(dirs, dir)
	}
	return dirs, nil
}

// memoryDir is where the step's memory is counted; "" if nowhere.
func (g *Group) memoryDir() string {
	if g.cg.unified[Memory] {
		return g.Dir
	}
	if base := g.cg.old[Memory]; base != "" {
		return base + "/" + g.job + "/" + path.Base(g.Dir)
	}
	return ""
}

// OOMKills is how many processes of the step the kernel has killed because the job's memory was used up.
func (g *Group) OOMKills() int {
	dir, own := g.memoryDir(), int(g.starved.Load())
	if dir == "" {
		return own
	}
	file := "/memory.oom_control"
	if g.cg.unified[Memory] {
		file = "/memory.events"
	}
	text, _ := os.ReadFile(dir + file)
	for line := range strings.Lines(string(text)) {
		if n, ok := strings.CutPrefix(line, "oom_kill "); ok {
			k, _ := strconv.Atoi(strings.TrimSpace(n))
			return own + k
		}
	}
	return own
}

// hold marks the groups as those of a process that lives, until release or its end.
func (c *Groups) hold() error {
	f, err := lockGroup(c.base, unix.LOCK_SH)
	c.held = f
	return err
}

func (c *Groups) Release() {
	c.held.Close()
	c.held = nil
}

// lockGroup locks the directory of a supervisor's groups; it fails where another process has a lock
// that excludes this one.
func lockGroup(dir string, how int) (*os.File, error) {
	f, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(f.Fd()), how|unix.LOCK_NB); err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}
