package cgroup

import (
	"bytes"
	"errors"
	"os"
	"slices"
	"strconv"

	"dev.muster/cluster"
	"golang.org/x/sys/unix"
)

// SetMemory changes the limit on the memory of a job's processes, now and in groups that are made for the job later; 0
// forgets the job. With cgroup v2 the kernel frees or kills until the limit holds; with v1 it returns EBUSY if more is
// in use than it can free.
func (c *Groups) SetMemory(job string, mb cluster.MemMB) error {
	c.mu.Lock()
	if c.bounds == nil {
		c.bounds = map[string]cluster.MemMB{}
	}
	c.bounds[job] = mb
	if mb == 0 {
		delete(c.bounds, job)
	}
	made := mb > 0 && c.jobs[job] > 0
	c.mu.Unlock()
	if !made {
		return nil
	}
	f := Fence{MemMB: mb}
	var err error
	if c.unified[Memory] {
		err = f.limit(c.base+"/"+job, Memory, true)
	} else if base := c.old[Memory]; base != "" {
		err = f.limitOld(base + "/" + job)
	}
	if errors.Is(err, os.ErrNotExist) {
		return nil // its last step has ended
	}
	return err
}

// limitOld sets the memory of a group of cgroup v1 whose limit may be lower or higher so far: the limit without swap
// may at no time be above that with swap.
func (f *Fence) limitOld(dir string) error {
	err := f.limit(dir, Memory, false)
	if !errors.Is(err, unix.EINVAL) {
		return err
	}
	for _, file := range []string{"memory.memsw.limit_in_bytes", "memory.limit_in_bytes"} {
		err = Write(dir+"/"+file, strconv.FormatInt(int64(f.MemMB)<<20, 10))
		if err != nil && !(optional[file] && errors.Is(err, os.ErrNotExist)) {
			return err
		}
	}
	return nil
}

// bounded is the fence with the memory that its job was given since it was made.
func (f *Fence) bounded(mb cluster.MemMB) *Fence {
	if mb == 0 || f.MemMB == 0 {
		return f
	}
	out := *f
	out.MemMB = mb
	return &out
}

// Largest is the process of the group that has the most memory, and how much in pages; 0: there is none.
func (g *Group) Largest() (pid int, pages int64) {
	for _, p := range g.PIDs() {
		text, _ := os.ReadFile("/proc/" + strconv.Itoa(p) + "/statm")
		fields := bytes.Fields(text)
		if len(fields) < 2 {
			continue
		}
		if n, _ := strconv.ParseInt(string(fields[1]), 10, 64); n > pages {
			pid, pages = p, n
		}
	}
	return pid, pages
}

// Starve kills a process of the group for want of memory, as the kernel does, and waits for its end, for some
// milliseconds at most.
func (g *Group) Starve(pid, milliseconds int) error {
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return os.NewSyscallError("pidfd_open", err)
	}
	defer unix.Close(fd)
	if !slices.Contains(g.PIDs(), pid) {
		return nil // it has ended, and the number may be another's
	}
	g.starved.Add(1) // before its end is looked at
	if err := unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0); err != nil {
		return os.NewSyscallError("pidfd_send_signal", err)
	}
	_, err = unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, milliseconds)
	return os.NewSyscallError("poll", err)
}
