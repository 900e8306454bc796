package supervisor

import (
	"bytes"
	"os"
	"strconv"

	"dev.muster/agent/step"
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
func marker(id step.ID, owner string) string {
	return owner + ":" + strconv.FormatUint(uint64(id.Job), 10) + "." + strconv.Itoa(id.Attempt) + "." +
		strconv.Itoa(id.Step) + "@" + string(id.Node)
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
	var all []step.Process
	recycled := map[int]bool{} // a number is not used again while it names a session or group
	for _, n := range names {
		pid, err := strconv.Atoi(n)
		if err != nil || pid == os.Getpid() {
			continue
		}
		if st, ok := step.ReadProcess(pid); ok {
			all = append(all, st)
			if live, ours := leaders[pid]; ours && !live && st.State != 'Z' {
				recycled[pid] = true
			}
		}
	}
	lead := func(pid int) bool { _, ok := leaders[pid]; return ok && !recycled[pid] }
	want := []byte("\x00" + markerEnv + "=" + marker + "\x00")
	children := map[int][]step.Process{}
	in := map[int]bool{}
	var todo []step.Process
	for _, st := range all {
		children[st.Ppid] = append(children[st.Ppid], st)
		mine := lead(st.Pid) || lead(st.Session) || lead(st.Pgrp)
		if !mine && st.Alive() {
			env, _ := os.ReadFile("/proc/" + strconv.Itoa(st.Pid) + "/environ")
			mine = bytes.Contains(append([]byte{0}, env...), want)
		}
		if mine {
			in[st.Pid] = true
			todo = append(todo, st)
		}
	}
	for len(todo) > 0 {
		st := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		if st.Alive() {
			pids = append(pids, st.Pid)
		}
		for _, c := range children[st.Pid] {
			if !in[c.Pid] {
				in[c.Pid] = true
				todo = append(todo, c)
			}
		}
	}
	return pids
}
