package step

import (
	"os"
	"strconv"
	"strings"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// Credential is how a child of root becomes a user. Where groups cannot be set, it keeps those that it has: so it
// is in a user namespace that an ordinary user has made (user_namespaces(7)).
func Credential(uid, gid uint32, groups []uint32) *syscall.Credential {
	return &syscall.Credential{Uid: uid, Gid: gid, Groups: groups, NoSetGroups: groupsFixed()}
}

// Alone keeps a process of a user, which runs beside that user's jobs, from what else the user runs: a process that may
// be traced (ptrace(2)) is a way out of the fence of a job. It has a capability that gives it nothing, since a process
// that lacks one of another's capabilities may not trace that one. attr has a Credential.
func Alone(attr *syscall.SysProcAttr) {
	if mayGuard() {
		attr.AmbientCaps = append(attr.AmbientCaps, unix.CAP_BLOCK_SUSPEND)
	}
}

// Plain takes from a process what this one has and users shall not: where memory is short the kernel ends daemons last.
func Plain(pid int) {
	// It may have ended already; a daemon that is not root has nothing to take.
	_ = os.WriteFile("/proc/"+strconv.Itoa(pid)+"/oom_score_adj", []byte("0"), 0)
}

// mayGuard reports whether this process has that capability to give.
var mayGuard = sync.OnceValue(func() bool {
	const low, bit = 32, unix.CAP_BLOCK_SUSPEND
	var have [2]unix.CapUserData // zero if it cannot be read
	_ = unix.Capget(&unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}, &have[0])
	bound, _ := unix.PrctlRetInt(unix.PR_CAPBSET_READ, bit, 0, 0, 0)
	return have[bit/low].Permitted>>(bit%low)&uint32(bound)&1 == 1
})

var groupsFixed = sync.OnceValue(func() bool {
	text, _ := os.ReadFile("/proc/self/setgroups")
	return strings.TrimSpace(string(text)) == "deny"
})
