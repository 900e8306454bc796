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
}

// memory keeps what was found in the system's database for userAge; what was not found is looked for again.
type memory[K comparable, V any] struct {
	mu   sync.Mutex
	kept map[K]kept[V]
	look func(K) (V, error)
}

type kept[V any] struct {
	value V
	at    time.Time
}

func (m *memory[K, V]) get(key K) (V, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if k, ok := m.kept[key]; ok && time.Since(k.at) < userAge {
		return k.value, nil
	}
	v, err := m.look(key)
	if err != nil {
		return v, err
	}
	if m.kept == nil {
		m.kept = map[K]kept[V]{}
	}
	m.kept[key] = kept[V]{v, time.Now()}
	return v, nil
}

var (
	users   = memory[uint32, account]{look: findUser}
	userIDs = memory[string, uint32]{look: func(name string) (uint32, error) {
		u, err := user.Lookup(name)
		if err != nil {
			return 0, err
		}
		return number(u.Uid), nil
	}}
	groupNames = memory[uint32, string]{look: func(gid uint32) (string, error) {
		g, err := user.LookupGroupId(strconv.FormatUint(uint64(gid), 10))
		if err != nil {
			return "", err
		}
		return g.Name, nil
	}}
	groupIDs = memory[string, uint32]{look: func(name string) (uint32, error) {
		g, err := user.LookupGroup(name)
		if err != nil {
			return 0, err
		}
		return number(g.Gid), nil
	}}
)

// LookupUser finds a user's name, group and groups in the system's database.
func LookupUser(uid uint32) (name string, gid uint32, groups []uint32, err error) {
	a, err := users.get(uid)
	return a.name, a.gid, a.groups, err
}

func findUser(uid uint32) (account, error) {
	u, err := user.LookupId(strconv.FormatUint(uint64(uid), 10))
	if err != nil {
		return account{}, cluster.Errorf(cluster.Invalid, cluster.ErrUser, "user %d does not exist on this machine", uid)
	}
	a := account{name: u.Username, gid: number(u.Gid)}
	ids, err := u.GroupIds()
	if err == nil {
		for _, g := range ids {
			a.groups = append(a.groups, number(g))
		}
	}
	return a, nil
}

func number(s string) uint32 {
	n, _ := strconv.ParseUint(s, 10, 32)
	return uint32(n)
}

func groupName(gid uint32) string {
	name, err := groupNames.get(gid)
	if err != nil {
		return strconv.FormatUint(uint64(gid), 10)
	}
	return name
}

// groupID finds a group by name in the system's database; a number stands for itself.
func groupID(name string) (uint32, bool) {
	if n, err := strconv.ParseUint(name, 10, 32); err == nil {
		return uint32(n), true
	}
	gid, err := groupIDs.get(name)
	return gid, err == nil
}
