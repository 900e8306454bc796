package step

import (
	"os"
	"strings"
	"sync"
	"syscall"
)

// Credential is how a child of root becomes a user. Where groups can not be set, it keeps those that it has: so it
// is in a user namespace that an ordinary user has made (user_namespaces(7)).
func Credential(uid, gid uint32, groups []uint32) *syscall.Credential {
	return &syscall.Credential{Uid: uid, Gid: gid, Groups: groups, NoSetGroups: groupsFixed()}
}

var groupsFixed = sync.OnceValue(func() bool {
	text, _ := os.ReadFile("/proc/self/setgroups")
	return strings.TrimSpace(string(text)) == "deny"
})
