package cluster

import (
	"slices"
	"strings"
)

// WCKey is a workload characterization key that a user has: a word for what work is for, across accounts.
type WCKey struct {
	ID   uint32 `json:"id"` // only Apply sets it
	Name string `json:"name"`
}

// WCKeyDefault before a job's key says that the job did not name it: it is its user's default one.
const WCKeyDefault = "*"

// TracksWCKey reports whether jobs have one of their user's keys, or any word.
func (c *Config) TracksWCKey() bool {
	return c.TrackWCKey || c.Enforce.WCKeys
}

// HasWCKey reports whether the user has a key.
func (u *User) HasWCKey(name string) bool {
	return u != nil && slices.ContainsFunc(u.WCKeys, func(k WCKey) bool { return k.Name == name })
}

// numberWCKeys puts the keys of a user to be in order and numbers those that are new.
func (t *tx) numberWCKeys(u *User) error {
	next := uint32(0) // not known: one command may change a user very often, so only a new key has all users looked at
	old, _ := t.users.Get(u.Name)
	u.WCKeys = slices.Clone(u.WCKeys)
	slices.SortFunc(u.WCKeys, func(a, b WCKey) int { return strings.Compare(a.Name, b.Name) })
	u.WCKeys = slices.CompactFunc(u.WCKeys, func(a, b WCKey) bool { return a.Name == b.Name })
	for i := range u.WCKeys {
		k := &u.WCKeys[i]
		if err := named("a wckey", k.Name); err != nil {
			return err
		}
		if strings.HasPrefix(k.Name, WCKeyDefault) {
			return Errorf(Invalid, ErrWCKey,
				"wckey %q of user %s: %s at the beginning stands for a default one, give another name",
				k.Name, u.Name, WCKeyDefault)
		}
		if old.HasWCKey(k.Name) {
			k.ID = old.WCKeys[slices.IndexFunc(old.WCKeys, func(o WCKey) bool { return o.Name == k.Name })].ID
		} else {
			if next == 0 {
				next = nextWCKey(t.tables)
			}
			k.ID = next
			next = next + 1
		}
	}
	if u.DefaultWCKey != "" && !u.HasWCKey(u.DefaultWCKey) {
		return Errorf(NotFound, ErrWCKey, "user %s has no wckey %q to be the default one: add it first",
			u.Name, u.DefaultWCKey)
	}
	return nil
}

// nextWCKey is the first number that no key of a user has had, but for those that are gone.
func nextWCKey(t *tables) uint32 {
	next := uint32(1)
	for o := range t.Users() {
		for _, k := range o.WCKeys {
			next = max(next, k.ID+1)
		}
	}
	return next
}

// admitWCKey gives a job that names no key its user's default one, and refuses a key that the user does not have if
// that is enforced. Without TrackWCKey a key is any word.
func admitWCKey(s *Snapshot, spec *JobSpec) error {
	if !s.config.TracksWCKey() {
		return nil
	}
	u, _ := s.users.Get(spec.User)
	if spec.WCKey == "" || strings.HasPrefix(spec.WCKey, WCKeyDefault) {
		spec.WCKey = WCKeyDefault
		if u != nil {
			spec.WCKey += u.DefaultWCKey
		}
		if spec.WCKey == WCKeyDefault && s.config.Enforce.WCKeys && spec.UID != 0 {
			return Errorf(Invalid, ErrWCKey, "user %s has no default wckey, and the job names none", spec.User)
		}
		return nil
	}
	spec.WCKey = strings.ToLower(spec.WCKey) // as sacctmgr keeps them
	if s.config.Enforce.WCKeys && !u.HasWCKey(spec.WCKey) {
		return Errorf(Invalid, ErrWCKey, "user %s has no wckey %q", spec.User, spec.WCKey)
	}
	return nil
}
