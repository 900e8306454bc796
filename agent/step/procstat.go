package step

import (
	"os"
	"strconv"
	"strings"
)

// Process is what this package needs of /proc/PID/stat.
type Process struct {
	Pid, Ppid, Pgrp, Session int
	State                    byte
	Start                    uint64 // clock ticks since boot
}

func ReadProcess(pid int) (st Process, ok bool) {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return st, false
	}
	return parseProcess(pid, string(b))
}

func parseProcess(pid int, s string) (st Process, ok bool) {
	i := strings.LastIndexByte(s, ')')
	if i < 0 {
		return st, false
	}
	f := strings.Fields(s[i+1:])
	if len(f) < 20 || len(f[0]) != 1 {
		return st, false
	}
	st = Process{Pid: pid, State: f[0][0]}
	st.Ppid, _ = strconv.Atoi(f[1])
	st.Pgrp, _ = strconv.Atoi(f[2])
	st.Session, _ = strconv.Atoi(f[3])
	st.Start, _ = strconv.ParseUint(f[19], 10, 64)
	return st, true
}

// Alive reports whether the process runs, or may.
func (st Process) Alive() bool { return st.State != 'Z' && st.State != 'X' }
