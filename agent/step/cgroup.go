package step

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"dev.muster/cluster"
	"golang.org/x/sys/unix"
)

// cgroups is the unified hierarchy below one directory of our own:
// muster.HASH/job_J.A@NODE/step_S.
type cgroups struct {
	base string
	held *os.File // base, locked: whoever removes what the dead left passes it by
	controllers

	mu   sync.Mutex
	jobs map[string]int // step directories in each job directory
}

// group is one step's cgroup.
type group struct {
	cg  *cgroups
	job string
	dir string
	fd  int      // for CLONE_INTO_CGROUP; -1 after the launch
	old []string // of cgroup v1, for the launch
}

// noGroupsEnv, when set, makes a supervisor do without cgroups.
const noGroupsEnv = "MUSTER_NO_CGROUPS"

// unifiedRoots lists directories that may take our groups, best first.
func unifiedRoots() (roots []string) {
	if os.Getenv(noGroupsEnv) != "" {
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
	if err := unix.Mount("cgroup2", unifiedDir, "cgroup2", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, ""); err != nil {
		unix.Rmdir(unifiedDir)
		return nil
	}
	return []string{unifiedDir}
}

func cgroupName(dir string) string {
	if abs, err := filepath.Abs(dir); err == nil {
		dir = abs
	}
	var st unix.Stat_t
	unix.Stat(dir, &st) // a directory removed and made again is another
	sum := sha256.Sum256(fmt.Appendf(nil, "%s %d %d", dir, st.Dev, st.Ino))
	return "muster." + hex.EncodeToString(sum[:6])
}

// openCgroups finds a writable unified hierarchy; nil if there is none. What it returns is held until release.
func openCgroups(dir string) *cgroups {
	for _, r := range unifiedRoots() {
		base := filepath.Join(r, cgroupName(dir))
		if err := os.Mkdir(base, 0o755); err != nil && !errors.Is(err, os.ErrExist) {
			continue
		}
		// Writable: a group can be made, and has the files this package needs.
		probe := filepath.Join(base, "probe")
		err := os.Mkdir(probe, 0o755)
		if err != nil && !errors.Is(err, os.ErrExist) {
			continue
		}
		ok := unix.Access(probe+"/cgroup.kill", unix.W_OK) == nil && unix.Access(probe+"/cgroup.freeze", unix.W_OK) == nil &&
			unix.Access(base+"/cgroup.procs", unix.W_OK) == nil
		unix.Rmdir(probe)
		c := &cgroups{base: base, jobs: map[string]int{}}
		if ok && c.hold() == nil {
			c.controllers = openControllers(base)
			return c
		}
		unix.Rmdir(base)
	}
	return nil
}

// Isolation tells how the steps of a supervisor on this machine are fenced: cgroup2, with or without cgroup1 beside it,
// and the controllers that limit jobs, or none.
func Isolation() string {
	for _, r := range unifiedRoots() {
		d := filepath.Join(r, "muster.probe."+strconv.Itoa(os.Getpid()))
		if os.Mkdir(d, 0o755) != nil {
			continue
		}
		ok := unix.Access(d+"/cgroup.kill", unix.W_OK) == nil && unix.Access(r+"/cgroup.procs", unix.W_OK) == nil
		if ok {
			c := openControllers(d)
			for _, dir := range c.old {
				unix.Rmdir(dir)
			}
			unix.Rmdir(d)
			return c.kind()
		}
		unix.Rmdir(d)
	}
	return "none"
}

func (id ID) groupPath() (job, stepName string) {
	node := strings.Map(func(r rune) rune {
		if r <= ' ' || r == '/' {
			return '_'
		}
		return r
	}, string(id.Node))
	switch id.Step {
	case cluster.BatchStep:
		stepName = "step_batch"
	case cluster.ExternStep:
		stepName = "step_extern"
	case cluster.InteractiveStep:
		stepName = "step_interactive"
	default:
		stepName = "step_" + strconv.Itoa(id.Step)
	}
	return fmt.Sprintf("job_%d.%d@%s", id.Job, id.Attempt, node), stepName
}

// create makes the group for a step, and with the first one of a job the job's fence.
func (c *cgroups) create(id ID, f *Fence) (*group, error) {
	job, name := id.groupPath()
	g := &group{cg: c, job: job, dir: c.base + "/" + job + "/" + name, fd: -1}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.jobs[job] == 0 {
		if err := os.Mkdir(c.base+"/"+job, 0o755); err != nil && !errors.Is(err, os.ErrExist) {
			return nil, err
		}
		if err := c.raise(job, f); err != nil {
			c.lower(job)
			unix.Rmdir(c.base + "/" + job)
			return nil, err
		}
	}
	var err error
	if g.old, err = g.oldDirs(f); err != nil {
		return nil, err
	}
	if err := os.Mkdir(g.dir, 0o755); err != nil && !errors.Is(err, os.ErrExist) {
		return nil, err
	}
	if c.unified[memoryControl] {
		if err := f.boundStep(g.dir, true); err != nil {
			return nil, err
		}
	}
	if err := g.openFD(); err != nil {
		return nil, err
	}
	c.jobs[job]++
	return g, nil
}

// openFD opens the group for processes that begin in it.
func (g *group) openFD() error {
	fd, err := unix.Open(g.dir, unix.O_DIRECTORY|unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return &os.PathError{Op: "open", Path: g.dir, Err: err}
	}
	g.fd = fd
	return nil
}

// adopt takes over a group left by an earlier supervisor; nil if it is gone.
func (c *cgroups) adopt(id ID) *group {
	job, name := id.groupPath()
	g := &group{cg: c, job: job, dir: c.base + "/" + job + "/" + name, fd: -1}
	if unix.Access(g.dir, unix.F_OK) != nil {
		return nil
	}
	c.mu.Lock()
	c.jobs[job]++
	c.mu.Unlock()
	return g
}

// sweep kills and removes step groups that are not of the given steps: what a supervisor
// without a journal left.
func (c *cgroups) sweep(known map[ID]*run) {
	keep := map[string]bool{}
	for id := range known {
		job, name := id.groupPath()
		keep[job+"/"+name] = true
	}
	jobs, _ := filepath.Glob(c.base + "/job_*")
	for _, j := range jobs {
		steps, _ := filepath.Glob(j + "/step_*")
		for _, d := range steps {
			job := filepath.Base(j)
			if keep[job+"/"+filepath.Base(d)] {
				continue
			}
			g := &group{cg: c, job: job, dir: d, fd: -1}
			for range 100 {
				g.kill()
				g.rmdirBelow()
				if unix.Rmdir(d) == nil {
					break
				}
				g.awaitEmpty(20 * time.Millisecond)
			}
		}
		unix.Rmdir(j)
		c.lower(filepath.Base(j))
	}
}

func (g *group) closeFD() {
	if g.fd >= 0 {
		unix.Close(g.fd)
		g.fd = -1
	}
}

// remove takes the group away and reports true, unless processes are left in it.
func (g *group) remove() bool {
	if err := unix.Rmdir(g.dir); err == unix.EBUSY || err == unix.ENOTEMPTY {
		g.rmdirBelow()
		if err = unix.Rmdir(g.dir); err != nil && err != unix.ENOENT {
			return false
		}
	}
	if base := g.cg.old[memoryControl]; base != "" {
		unix.Rmdir(base + "/" + g.job + "/" + filepath.Base(g.dir))
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
func (g *group) rmdirBelow() {
	for _, d := range g.tree()[1:] {
		defer unix.Rmdir(d) // deepest first
	}
}

// tree lists the group's directory and all below it, parents first.
func (g *group) tree() []string {
	dirs := []string{g.dir}
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

func (g *group) kill() error { return writeControl(g.dir+"/cgroup.kill", "1") }

func (g *group) freeze(stop bool) error {
	v := "0"
	if stop {
		v = "1"
	}
	return writeControl(g.dir+"/cgroup.freeze", v)
}

func writeControl(path, v string) error {
	fd, err := unix.Open(path, unix.O_WRONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return &os.PathError{Op: "open", Path: path, Err: err}
	}
	defer unix.Close(fd)
	if _, err := unix.Write(fd, []byte(v)); err != nil {
		return &os.PathError{Op: "write", Path: path, Err: err}
	}
	return nil
}

// pids lists every process in the group.
func (g *group) pids() (pids []int) {
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

// awaitEmpty waits for cgroup.events to change, at most for d.
func (g *group) awaitEmpty(d time.Duration) {
	fd, err := unix.Open(g.dir+"/cgroup.events", unix.O_RDONLY|unix.O_CLOEXEC, 0)
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
