// Package users looks up users and groups in the system's database, and believes for a minute what it said.
package users

import (
	"fmt"
	"os"
	"os/user"
	"strconv"
	"sync"
	"syscall"
	"time"

	"dev.muster/api"
	"dev.muster/cluster"
)

// userAge is how long a looked-up user is believed.
const userAge = time.Minute

// Account is what the system's database knows of a user.
type Account struct {
	Name   string
	GID    uint32
	Groups []uint32
}

// Memory keeps what was found in the system's database for userAge; what was not found is looked for again.
type Memory[K comparable, V any] struct {
	mu     sync.Mutex
	kept   map[K]kept[V]
	asking map[K]*lookup[V]
	look   func(K) (V, error)
}

// lookup is one under way, for all who ask for the same.
type lookup[V any] struct {
	done  chan struct{}
	value V
	err   error
}

type kept[V any] struct {
	value V
	at    time.Time
}

// Get finds what is kept of a key, or looks for it. The database may be slow of one key, and others do not wait for it.
func (m *Memory[K, V]) Get(key K) (V, error) {
	m.mu.Lock()
	if k, ok := m.kept[key]; ok && time.Since(k.at) < userAge {
		m.mu.Unlock()
		return k.value, nil
	}
	if l := m.asking[key]; l != nil {
		m.mu.Unlock()
		<-l.done
		return l.value, l.err
	}
	l := &lookup[V]{done: make(chan struct{})}
	if m.asking == nil {
		m.asking, m.kept = map[K]*lookup[V]{}, map[K]kept[V]{}
	}
	m.asking[key] = l
	m.mu.Unlock()
	l.value, l.err = m.look(key)
	m.mu.Lock()
	defer m.mu.Unlock()
	if l.err == nil {
		m.kept[key] = kept[V]{l.value, time.Now()}
	}
	delete(m.asking, key)
	close(l.done)
	return l.value, l.err
}

// Kinds of lookups, and their keys.
var (
	ByID     = Memory[uint32, Account]{look: findUser}
	IDByName = Memory[string, uint32]{look: func(name string) (uint32, error) {
		u, err := user.Lookup(name)
		if err != nil {
			return 0, err
		}
		return number(u.Uid)
	}}
	groupNames = Memory[uint32, string]{look: func(gid uint32) (string, error) {
		g, err := user.LookupGroupId(strconv.FormatUint(uint64(gid), 10))
		if err != nil {
			return "", err
		}
		return g.Name, nil
	}}
	groupIDs = Memory[string, uint32]{look: func(name string) (uint32, error) {
		g, err := user.LookupGroup(name)
		if err != nil {
			return 0, err
		}
		return number(g.Gid)
	}}
)

// Lookup finds a user's name, group and groups in the system's database.
func Lookup(uid uint32) (name string, gid uint32, groups []uint32, err error) {
	a, err := ByID.Get(uid)
	return a.Name, a.GID, a.Groups, err
}

func findUser(uid uint32) (Account, error) {
	u, err := user.LookupId(strconv.FormatUint(uint64(uid), 10))
	if err != nil {
		return Account{}, cluster.Errorf(cluster.Invalid, cluster.ErrUser,
			"user %d does not exist on this machine", uid)
	}
	a := Account{Name: u.Username}
	if a.GID, err = number(u.Gid); err != nil {
		return Account{}, err
	}
	ids, err := u.GroupIds()
	if err != nil {
		return a, nil
	}
	for _, g := range ids {
		gid, err := number(g)
		if err != nil {
			return Account{}, err
		}
		a.Groups = append(a.Groups, gid)
	}
	return a, nil
}

// number reads the number of a user or group. A text that is not a number must not become root's.
func number(s string) (uint32, error) {
	n, err := strconv.ParseUint(s, 10, 32)
	if err != nil {
		return 0, fmt.Errorf("the system's database has %q instead of the number of a user or group: "+
			"correct the entry", s)
	}
	return uint32(n), nil
}

// GroupName is a group's name; of one that is not known the number.
func GroupName(gid uint32) string {
	name, err := groupNames.Get(gid)
	if err != nil {
		return strconv.FormatUint(uint64(gid), 10)
	}
	return name
}

// GroupID finds a group by name in the system's database; a number stands for itself.
func GroupID(name string) (uint32, bool) {
	if n, err := strconv.ParseUint(name, 10, 32); err == nil {
		return uint32(n), true
	}
	gid, err := groupIDs.Get(name)
	return gid, err == nil
}

// Caller is a user of this server as a caller.
func Caller(name string) (api.Caller, error) {
	uid, err := IDByName.Get(name)
	if err != nil {
		return api.Caller{}, cluster.Errorf(cluster.Denied, cluster.ErrUser,
			"user %s does not exist on this server", name)
	}
	a, err := ByID.Get(uid)
	return api.Caller{Groups: a.Groups, Identity: cluster.Identity{UID: uid, GID: a.GID, User: a.Name,
		Admin: uid == uint32(os.Getuid())}}, err
}

// RunAs makes a process of this daemon run as SlurmUser, "" for whom it is already; an error if there is no such user.
func RunAs(attr *syscall.SysProcAttr, name string) error {
	if name == "" || os.Getuid() != 0 || name == "root" {
		return nil
	}
	u, err := user.Lookup(name)
	if err != nil {
		return fmt.Errorf("SlurmUser=%s: there is no such user on this server", name)
	}
	uid, err := number(u.Uid)
	if err != nil {
		return fmt.Errorf("SlurmUser=%s: %w", name, err)
	}
	gid, err := number(u.Gid)
	if err != nil {
		return fmt.Errorf("SlurmUser=%s: %w", name, err)
	}
	attr.Credential = &syscall.Credential{Uid: uid, Gid: gid}
	return nil
}
