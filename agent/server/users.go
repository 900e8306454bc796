package server

import (
	"os/user"
	"strconv"
	"sync"
	"time"

	"dev.muster/cluster"
)

// userAge is how long a looked-up user is believed.
const userAge = time.Minute

type account struct {
	name   string
	gid    uint32
	groups []uint32
	at     time.Time
}

var users struct {
	sync.Mutex
	byUID map[uint32]account
}

// LookupUser finds a user's name, group and groups in the system's database.
func LookupUser(uid uint32) (name string, gid uint32, groups []uint32, err error) {
	a, err := lookupUser(uid)
	return a.name, a.gid, a.groups, err
}

// lookupUser finds a user's name and groups in the system's database.
func lookupUser(uid uint32) (account, error) {
	users.Lock()
	defer users.Unlock()
	if a, ok := users.byUID[uid]; ok && time.Since(a.at) < userAge {
		return a, nil
	}
	u, err := user.LookupId(strconv.FormatUint(uint64(uid), 10))
	if err != nil {
		return account{}, cluster.Errorf(cluster.Invalid, cluster.ErrUser, "user %d does not exist on this machine", uid)
	}
	a := account{name: u.Username, gid: number(u.Gid), at: time.Now()}
	ids, err := u.GroupIds()
	if err == nil {
		for _, g := range ids {
			a.groups = append(a.groups, number(g))
		}
	}
	if users.byUID == nil {
		users.byUID = map[uint32]account{}
	}
	users.byUID[uid] = a
	return a, nil
}

func number(s string) uint32 {
	n, _ := strconv.ParseUint(s, 10, 32)
	return uint32(n)
}

func groupName(gid uint32) string {
	g, err := user.LookupGroupId(strconv.FormatUint(uint64(gid), 10))
	if err != nil {
		return strconv.FormatUint(uint64(gid), 10)
	}
	return g.Name
}

// groupID finds a group by name in the system's database; a number stands for itself.
func groupID(name string) (uint32, bool) {
	if n, err := strconv.ParseUint(name, 10, 32); err == nil {
		return uint32(n), true
	}
	g, err := user.LookupGroup(name)
	if err != nil {
		return 0, false
	}
	return number(g.Gid), true
}
