package cgroup

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"dev.muster/cluster"
	"golang.org/x/sys/unix"
)

// Fence is what the processes of a job may use on this node. All steps of the job there have the same, but for what
// a step has named as its own memory.
type Fence struct {
	MemMB  cluster.MemMB `json:"mem_mb,omitempty"` // memory, without swap; 0: no limit
	CPUs   cluster.IDSet `json:"cpus,omitzero"`    // by real number; empty: all
	PIDs   int           `json:"pids,omitempty"`   // processes and threads; 0: no limit
	Denied []Device      `json:"denied,omitempty"` // that they may not open, read, write or make
	// StepMemMB is the memory of this step alone; 0: that of the job.
	StepMemMB cluster.MemMB `json:"step_mem_mb,omitempty"`
}

// The controllers that make a fence.
const (
	Memory  = "memory"
	Cpuset  = "cpuset"
	PIDs    = "pids"
	Devices = "devices"
)

// controllers are those that the groups of this supervisor have.
type controllers struct {
	unified map[string]bool   // of memory, cpuset and pids: in the unified hierarchy
	old     map[string]string // or our directory in a hierarchy of cgroup v1; devices, too
	filter  bool              // devices by a program of the kernel (eBPF) on groups of the unified hierarchy
}

// mount is a mounted hierarchy of cgroup v1 and its controllers.
type mount struct {
	at      string
	root    string // of the hierarchy, what is mounted there
	options []string
}

// oldMounts lists the hierarchies of cgroup v1.
func oldMounts() (out []mount) {
	text, _ := os.ReadFile("/proc/self/mountinfo")
	for line := range strings.Lines(string(text)) {
		front, back, ok := strings.Cut(line, " - ")
		f, b := strings.Fields(front), strings.Fields(back)
		if ok && len(f) > 4 && len(b) > 2 && b[0] == "cgroup" {
			out = append(out, mount{at: f[4], root: f[3], options: strings.Split(b[2], ",")})
		}
	}
	return out
}

// openControllers takes the controllers that there are for groups below base.
func openControllers(base string) controllers {
	c := controllers{unified: map[string]bool{}, old: map[string]string{}}
	if os.Geteuid() != 0 || os.Getenv(noControllersEnv) != "" {
		return c
	}
	mounts := oldMounts()
	for _, name := range []string{Memory, Cpuset, PIDs, Devices} {
		if name != Devices && delegate(filepath.Dir(base), name) && delegate(base, name) {
			c.unified[name] = true
			continue
		}
		for _, m := range mounts {
			if !slices.Contains(m.options, name) || name == Devices && os.Getenv(NoDevicesEnv) != "" {
				continue
			}
			dir := filepath.Join(m.at, filepath.Base(base))
			if err := makeOld(name, dir); err == nil {
				c.old[name] = dir
				break
			}
		}
	}
	if c.old[Devices] == "" {
		c.filter = canFilter()
	}
	return c
}

// noControllersEnv, when set, makes a supervisor do without controllers; noDevicesEnv without that of devices.
const (
	noControllersEnv = "MUSTER_NO_CONTROLLERS"
	NoDevicesEnv     = "MUSTER_NO_DEVICES_CONTROLLER"
)

// delegate lets the groups below a directory of the unified hierarchy have a controller.
func delegate(dir, name string) bool {
	have, err := os.ReadFile(dir + "/cgroup.controllers")
	if err != nil || !slices.Contains(strings.Fields(string(have)), name) {
		return false
	}
	return Write(dir+"/cgroup.subtree_control", "+"+name) == nil
}

// makeOld makes a directory of cgroup v1. One of cpuset begins with all its parent has.
func makeOld(name, dir string) error {
	if err := os.Mkdir(dir, 0o755); err != nil && !errors.Is(err, os.ErrExist) {
		return err
	}
	if name != Cpuset {
		return nil
	}
	for _, file := range []string{"cpuset.mems", "cpuset.cpus"} {
		all, err := os.ReadFile(filepath.Dir(dir) + "/" + file)
		if err == nil {
			err = Write(dir+"/"+file, strings.TrimSpace(string(all)))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// rmdir removes our directories of cgroup v1 that are empty.
func (c *controllers) rmdir() {
	for _, dir := range c.old {
		unix.Rmdir(dir)
	}
}

// Has reports whether a controller limits jobs.
func (c *controllers) Has(name string) bool {
	return c.unified[name] || c.old[name] != "" || name == Devices && c.filter
}

// Kind names what fences jobs: cgroup2 or cgroup1, with the controllers that there are.
func (c *controllers) Kind() string {
	how := "cgroup2"
	var names []string
	for _, name := range []string{Memory, Cpuset, PIDs, Devices} {
		switch {
		case c.unified[name] || name == Devices && c.filter:
			names = append(names, name)
		case c.old[name] != "":
			how, names = "cgroup2+cgroup1", append(names, name)
		}
	}
	return how + "(" + strings.Join(names, ",") + ")"
}

// raiseOld makes a job's group of one controller of cgroup v1, with its limits.
func (f *Fence) raiseOld(dir, name string) error {
	if err := makeOld(name, dir); err != nil {
		return err
	}
	if err := f.limit(dir, name, false); err != nil || name != Devices {
		return err
	}
	for _, d := range f.Denied {
		if err := Write(dir+"/devices.deny", fmt.Sprintf("c %d:%d rwm", d.Major, d.Minor)); err != nil {
			return err
		}
	}
	return nil
}

// limit writes the limits of a controller.
func (f *Fence) limit(dir, name string, unified bool) error {
	for file, value := range f.settings(name, unified) {
		err := Write(dir+"/"+file, value)
		if errors.Is(err, os.ErrNotExist) && optional[file] {
			continue
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// wants reports whether the fence needs a controller.
func (f *Fence) wants(name string) bool {
	switch name {
	case Memory:
		return f.MemMB > 0
	case Cpuset:
		return !f.CPUs.Empty()
	case PIDs:
		return f.PIDs > 0
	}
	return len(f.Denied) > 0
}

// optional are files that a kernel without accounting of swap does not have.
var optional = map[string]bool{"memory.swap.max": true, "memory.memsw.limit_in_bytes": true}

// settings yields what to write where, in turn.
func (f *Fence) settings(name string, unified bool) func(yield func(file, value string) bool) {
	var list [][2]string
	bytes := strconv.FormatInt(int64(f.MemMB)<<20, 10)
	switch {
	case !f.wants(name):
	case name == Memory && unified:
		list = [][2]string{{"memory.max", bytes}, {"memory.swap.max", "0"}}
	case name == Memory:
		list = [][2]string{{"memory.limit_in_bytes", bytes}, {"memory.memsw.limit_in_bytes", bytes}}
	case name == Cpuset:
		list = [][2]string{{"cpuset.cpus", f.CPUs.String()}}
	case name == PIDs:
		list = [][2]string{{"pids.max", strconv.Itoa(f.PIDs)}}
	}
	return func(yield func(file, value string) bool) {
		for _, s := range list {
			if !yield(s[0], s[1]) {
				return
			}
		}
	}
}

// boundStep limits the memory of one step, in the group of its own that counts it.
func (f *Fence) boundStep(dir string, unified bool) error {
	if f.StepMemMB == 0 {
		return nil
	}
	own := Fence{MemMB: f.StepMemMB}
	return own.limit(dir, Memory, unified)
}

// within finds a group, by its path in the hierarchy, below where that is mounted; "" if it is not there.
func within(mounts []mount, at, group string) string {
	for _, m := range mounts {
		below, err := filepath.Rel(m.root, group)
		if m.at == at && err == nil && !strings.HasPrefix(below, "..") {
			return filepath.Join(m.at, below)
		}
	}
	return ""
}

// EnterOld moves this thread, and with it what it starts from now on, into groups of cgroup v1. A thread that moves
// itself does not wait for the kernel's lock of all forks.
func EnterOld(dirs []string) error {
	for _, d := range dirs {
		if err := Write(d+"/tasks", "0"); err != nil {
			return err
		}
	}
	return nil
}

// Write writes a control file in one call.
func Write(path, v string) error {
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
