// Package guests runs programs as users on a server, outside of any job: the front-ends of the page, and programs of
// triggers. Their processes and memory are bounded for each user and for all of them, so that none exhausts the server,
// and nothing of them stays. It does not know what the programs are for. Start with House.
package guests

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"dev.muster/agent/cgroup"
	"dev.muster/agent/step"
	"dev.muster/cluster"
)

// Bounds of guests.
const (
	userMemory = 2 << 10         // MiB, of all guests of one user
	userPIDs   = 256             // processes and threads of them
	allPIDs    = 4 << 10         // of all users
	jobPIDs    = 4 << 10         // processes of a user with those of jobs, where no group counts the guests alone
	files      = 4 << 10         // descriptors of a process, where no group bounds it
	locked     = 64 << 10        // bytes of it that stay in memory, there
	niceness   = 10              // the server's own threads go before
	stuckTime  = 5 * time.Second // for one that was killed to end
	closeTime  = 2 * time.Second // for all to end with their server
	graceLook  = time.Second     // between two looks at what an ended one has left behind
	firstTry   = 10 * time.Millisecond
	longestTry = time.Minute // between two attempts to remove a group whose processes the kernel keeps
)

// House has the guests of one server. A nil House has no groups for them.
type House struct {
	dir    string
	once   sync.Once
	groups *cgroup.Groups // nil: none can be made
	next   atomic.Uint64
	closed chan struct{} // once the server ends
	all    sync.WaitGroup
	each   cgroup.Fence // of each user
}

// New returns the house of the server that has a folder. Guests that an earlier server has left there are ended.
func New(dir string) *House {
	h := &House{dir: dir + "/guests", closed: make(chan struct{})}
	h.each = cgroup.Fence{MemMB: userMemory, PIDs: userPIDs}
	if os.Geteuid() == 0 && len(cgroup.Dirs(h.dir)) > 0 {
		h.open()
	}
	return h
}

// open returns the groups, which it makes for the first guest.
func (h *House) open() *cgroup.Groups {
	if h == nil {
		return nil
	}
	h.once.Do(func() {
		c := cgroup.Open(h.dir)
		if c == nil {
			return
		}
		c.Sweep(nil)
		if err := c.Bound(&cgroup.Fence{MemMB: half(), PIDs: allPIDs}); err != nil {
			c.Close()
			return
		}
		h.groups = c
	})
	return h.groups
}

// Close ends the guests of a server that ends, and removes their groups. It waits for them no longer than closeTime;
// the next server ends the others.
func (h *House) Close() {
	h.once.Do(func() {}) // no groups from now on
	close(h.closed)
	gone := make(chan struct{})
	go func() {
		h.all.Wait()
		close(gone)
	}()
	select {
	case <-gone:
	case <-time.After(closeTime):
	}
	if h.groups != nil {
		h.groups.Close()
	}
}

// half is half of the machine's memory.
func half() cluster.MemMB {
	var s unix.Sysinfo_t
	if unix.Sysinfo(&s) != nil {
		return userMemory
	}
	return cluster.MemMB(max(s.Totalram*uint64(s.Unit)>>21, 1))
}

// Guest is a program that runs.
type Guest struct {
	cmd   *exec.Cmd
	house *House
	group *cgroup.Group // nil: none
	grace time.Duration // for what it has started, after its end
	over  chan struct{} // closed when the process has ended
	err   error         // how, then
}

// gate is a shell that becomes a program once it has been told to. No other program of the server starts before the
// kernel has read what is executed, which may lie on a file system that does not answer: so the shell executes it.
const gate = `read -r _ <&3 && exec 3<&- && exec "$@"`

// limited is the gate where no group bounds what is behind it: the shell limits itself to so many processes, KiB of
// data and of locked memory, and descriptors. The option for processes has two names.
const limited = `p=$1 d=$2 l=$3 n=$4 && shift 4 && { ulimit -p "$p" || ulimit -u "$p"; } 2>/dev/null &&
ulimit -d "$d" && ulimit -l "$l" && ulimit -n "$n" && ` + gate

// Start starts a command of a context as the user of its credential; without one, or as root, it is no guest, and
// nothing bounds it. It is killed, with all that it has started, when the context ends. Processes that it
// leaves behind have grace to end.
func (h *House) Start(cmd *exec.Cmd, grace time.Duration) (*Guest, error) {
	g := &Guest{cmd: cmd, grace: grace, over: make(chan struct{})}
	cmd.Cancel = g.Kill
	var err error
	if as := cmd.SysProcAttr.Credential; as == nil || as.Uid == 0 {
		err = cmd.Start()
	} else {
		err = g.enter(h, as.Uid)
	}
	if err != nil {
		return nil, err
	}
	go g.await()
	return g, nil
}

// enter starts the process of a guest, which waits at the gate until it is bounded.
func (g *Guest) enter(h *House, uid uint32) error {
	if err := g.join(h, uid); err != nil {
		return fmt.Errorf("cannot make a control group for the program: %w", err)
	}
	r, w, err := os.Pipe()
	if err != nil {
		g.leave(time.Now(), firstTry)
		return err
	}
	defer w.Close()
	cmd := g.cmd
	cmd.ExtraFiles = []*os.File{r}
	cmd.Args = slices.Concat(g.shell(), []string{cmd.Path}, cmd.Args[1:])
	cmd.Path = "/bin/sh"
	step.Alone(cmd.SysProcAttr) // the machine may have jobs of the user, too
	err = cmd.Start()
	_ = r.Close()
	if err != nil {
		g.leave(time.Now(), firstTry)
		return err
	}
	err = g.bound(cmd.Process.Pid)
	if err == nil {
		_, err = w.WriteString("\n")
	}
	if err != nil {
		_ = g.Kill()
		_ = cmd.Wait()
		g.leave(time.Now(), firstTry)
		return fmt.Errorf("cannot bound the program: %w", err)
	}
	return nil
}

// join makes a group for a guest below that of its user.
func (g *Guest) join(h *House, uid uint32) (err error) {
	groups := h.open()
	if groups == nil {
		return nil
	}
	select {
	case <-h.closed:
		return errors.New("the server ends")
	default:
	}
	h.all.Add(1)
	g.house = h
	user := "job_" + strconv.FormatUint(uint64(uid), 10)
	name := "step_" + strconv.FormatUint(h.next.Add(1), 10)
	if g.group, err = groups.Create(user, name, &h.each); err != nil {
		h.all.Done()
	}
	return err
}

// shell is the gate.
func (g *Guest) shell() []string {
	if g.group != nil && g.group.Bounds(cgroup.PIDs) && g.group.Bounds(cgroup.Memory) {
		return []string{"sh", "-c", gate, "sh"}
	}
	return []string{"sh", "-c", limited, "sh", atMost(unix.RLIMIT_NPROC, jobPIDs, 1),
		atMost(unix.RLIMIT_DATA, userMemory<<20, 1<<10), atMost(unix.RLIMIT_MEMLOCK, locked, 1<<10),
		atMost(unix.RLIMIT_NOFILE, files, 1)}
}

// atMost is a limit in units, which this process may have lower already.
func atMost(what int, most, unit uint64) string {
	var own unix.Rlimit
	if unix.Getrlimit(what, &own) == nil {
		most = min(most, own.Max)
	}
	return strconv.FormatUint(most/unit, 10)
}

// bound puts the process of a guest into its group, and takes from it what the server has and users shall not.
func (g *Guest) bound(pid int) error {
	step.Plain(pid)
	_ = unix.Setpriority(unix.PRIO_PROCESS, pid, niceness) // it may have ended
	if g.group == nil {
		return nil
	}
	g.group.CloseFD()
	return g.group.Take(pid, &g.house.each)
}

// Kill kills a guest and all that it has started; without a group, what is still in its process group.
func (g *Guest) Kill() error {
	if g.group != nil {
		return g.group.Kill()
	}
	return syscall.Kill(-g.cmd.Process.Pid, syscall.SIGKILL)
}

// await waits for the process to end.
func (g *Guest) await() {
	if g.group == nil && g.grace == 0 && g.cmd.SysProcAttr.Setpgid {
		g.killRest()
	}
	g.err = g.cmd.Wait()
	close(g.over)
	g.leave(time.Now().Add(g.grace), firstTry)
}

// killRest waits until the process has ended and kills the rest of its process group, whose number is nobody else's
// while the process has not been waited for.
func (g *Guest) killRest() {
	for {
		err := unix.Waitid(unix.P_PID, g.cmd.Process.Pid, nil, unix.WEXITED|unix.WNOWAIT, nil)
		if err != unix.EINTR {
			break
		}
	}
	_ = g.Kill()
}

// leave removes the group of a guest that has ended, and kills what it has left behind if that is there at a time. It
// tries again after a while, which grows.
func (g *Guest) leave(until time.Time, after time.Duration) {
	if g.group == nil {
		return
	}
	g.group.CloseFD()
	if g.group.Remove() {
		g.house.all.Done()
		return
	}
	if grace := time.Until(until); grace > 0 {
		go g.wait(min(grace, graceLook), until)
		return
	}
	_ = g.group.Kill()
	time.AfterFunc(after, func() { g.leave(until, min(2*after, longestTry)) })
}

// wait looks again at what a guest has left behind after a while, and ends it if the server ends.
func (g *Guest) wait(while time.Duration, until time.Time) {
	select {
	case <-time.After(while):
	case <-g.house.closed:
		until = time.Now()
	}
	g.leave(until, firstTry)
}

// Pid is the number of the process.
func (g *Guest) Pid() int { return g.cmd.Process.Pid }

// Over is closed when the process has ended. A process that was killed ends only when the kernel lets it: it may wait
// for a file system.
func (g *Guest) Over() <-chan struct{} { return g.over }

// Wait returns how the process has ended. Of one that does not end although its context has ended, it says so.
func (g *Guest) Wait(ctx context.Context) error {
	select {
	case <-g.over:
		return g.err
	case <-ctx.Done():
	}
	select {
	case <-g.over:
		return g.err
	case <-time.After(stuckTime):
		return fmt.Errorf("it does not end though it was killed: %w", ctx.Err())
	}
}
