package step

import (
	"bytes"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// markerEnv names the variable that marks a step's processes where there are no cgroups.
const markerEnv = "MUSTER_STEP"

// owner names a supervisor by its folder, so that two of them on one machine, whose steps may have the
// same numbers, do not take each other's processes for their own. A restart and an upgrade keep it.
func owner(dir string) string {
	var st unix.Stat_t
	if err := unix.Stat(dir, &st); err != nil {
		return dir
	}
	return strconv.FormatUint(st.Dev, 36) + "-" + strconv.FormatUint(st.Ino, 36)
}

// marker is the value that marks the processes of one of the owner's steps.
func (id ID) marker(owner string) string {
	return owner + ":" + strconv.FormatUint(uint64(id.Job), 10) + "." + strconv.Itoa(id.Attempt) + "." +
		strconv.Itoa(id.Step) + "@" + string(id.Node)
}

// procStat is what this package needs of /proc/PID/stat.
type procStat struct {
	pid, ppid, pgrp, session int
	state                    byte
	start                    uint64 // clock ticks since boot
}

func readStat(pid int) (st procStat, ok bool) {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return st, false
	}
	return parseStat(pid, string(b))
}

func parseStat(pid int, s string) (st procStat, ok bool) {
	i := strings.LastIndexByte(s, ')')
	if i < 0 {
		return st, false
	}
	f := strings.Fields(s[i+1:])
	if len(f) < 20 || len(f[0]) != 1 {
		return st, false
	}
	st = procStat{pid: pid, state: f[0][0]}
	st.ppid, _ = strconv.Atoi(f[1])
	st.pgrp, _ = strconv.Atoi(f[2])
	st.session, _ = strconv.Atoi(f[3])
	st.start, _ = strconv.ParseUint(f[19], 10, 64)
	return st, true
}

// stepProcs lists the living processes of a step without a cgroup: those in the sessions its
// tasks led (leaders tells which still live), those that carry its marker, and all
// descendants of either.
func stepProcs(leaders map[int]bool, marker string) (pids []int) {
	dir, err := os.Open("/proc")
	if err != nil {
		return nil
	}
	names, _ := dir.Readdirnames(-1)
	dir.Close()
	var all []procStat
	recycled := map[int]bool{} // a number is not used anew while it names a session or group
	for _, n := range names {
		pid, err := strconv.Atoi(n)
		if err != nil || pid == os.Getpid() {
			continue
		}
		if st, ok := readStat(pid); ok {
			all = append(all, st)
			if live, ours := leaders[pid]; ours && !live && st.state != 'Z' {
				recycled[pid] = true
			}
		}
	}
	lead := func(pid int) bool { _, ok := leaders[pid]; return ok && !recycled[pid] }
	want := []byte("\x00" + markerEnv + "=" + marker + "\x00")
	children := map[int][]procStat{}
	in := map[int]bool{}
	var todo []procStat
	for _, st := range all {
		children[st.ppid] = append(children[st.ppid], st)
		mine := lead(st.pid) || lead(st.session) || lead(st.pgrp)
		if !mine && st.alive() {
			env, _ := os.ReadFile("/proc/" + strconv.Itoa(st.pid) + "/environ")
			mine = bytes.Contains(append([]byte{0}, env...), want)
		}
		if mine {
			in[st.pid] = true
			todo = append(todo, st)
		}
	}
	for len(todo) > 0 {
		st := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		if st.alive() {
			pids = append(pids, st.pid)
		}
		for _, c := range children[st.pid] {
			if !in[c.pid] {
				in[c.pid] = true
				todo = append(todo, c)
			}
		}
	}
	return pids
}

func (st procStat) alive() bool { return st.state != 'Z' && st.state != 'X' }
