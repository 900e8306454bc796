package front

import (
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
)

// User is an account of the system.
type User struct {
	Name     string
	UID, GID uint32
	Full     string // the full name, or what stands in its place
	Home     string
	Shell    string
}

// LookupUser finds a user by name or number. It reads /etc/passwd and asks getent, which
// knows LDAP and the like, for what is not there.
func LookupUser(key string) (User, bool) {
	line, ok := Record("passwd", key)
	if !ok {
		return User{}, false
	}
	return parseUser(line)
}

// parseUser reads a line of the database of users.
func parseUser(line string) (User, bool) {
	f := strings.Split(line, ":")
	if len(f) < 7 {
		return User{}, false
	}
	uid, err1 := strconv.ParseUint(f[2], 10, 32)
	gid, err2 := strconv.ParseUint(f[3], 10, 32)
	return User{
		Name: f[0], UID: uint32(uid), GID: uint32(gid), Full: strings.Split(f[4], ",")[0], Home: f[5],
		Shell: f[6],
	}, err1 == nil && err2 == nil
}

// UserByID finds a user by number.
func UserByID(uid uint32) (User, bool) { return LookupUser(strconv.FormatUint(uint64(uid), 10)) }

// LookupGroup finds a group's number by name or number.
func LookupGroup(key string) (uint32, bool) {
	line, ok := Record("group", key)
	f := strings.Split(line, ":")
	if !ok || len(f) < 3 {
		return 0, false
	}
	gid, err := strconv.ParseUint(f[2], 10, 32)
	return uint32(gid), err == nil
}

// GroupByID is the name of a group.
func GroupByID(gid uint32) (string, bool) {
	line, ok := Record("group", strconv.FormatUint(uint64(gid), 10))
	name, _, _ := strings.Cut(line, ":")
	return name, ok
}

// LookupUsers finds users by name or number, as LookupUser does, in one go: a name service may be slow, and so is
// starting a program for each.
func LookupUsers(keys []string) map[string]User {
	out := map[string]User{}
	for key, line := range accounts("passwd", keys) {
		if u, ok := parseUser(line); ok {
			out[key] = u
		}
	}
	return out
}

// Record returns the line of a database whose name or number is key.
func Record(database, key string) (string, bool) {
	line, ok := accounts(database, []string{key})[key]
	return line, ok
}

// maxGetent bounds the names that one call of getent is given.
const maxGetent = 1000

// NameOf is a user's name, "" if there is none.
func (s *Sys) NameOf(uid uint32) string {
	if s.User != "" && uid == s.UID {
		return s.User
	}
	u, _ := UserByID(uid)
	return u.Name
}

// accounts returns the lines of a database whose names or numbers are keys, by key. A name counts before a number.
func accounts(database string, keys []string) map[string]string {
	found, wanted := map[string]string{}, map[string]bool{}
	for _, key := range keys {
		if key != "" && !strings.ContainsAny(key, ":\n\x00") && key[0] != '-' {
			wanted[key] = true
		}
	}
	take := func(text string) {
		byID := map[string]string{}
		for line := range strings.SplitSeq(text, "\n") {
			f := strings.SplitN(line, ":", 4)
			if len(f) < 3 {
				continue
			}
			if _, twice := found[f[0]]; wanted[f[0]] && !twice {
				found[f[0]] = line
			}
			if _, twice := byID[f[2]]; wanted[f[2]] && !twice {
				byID[f[2]] = line
			}
		}
		for key, line := range byID {
			if _, named := found[key]; !named {
				found[key] = line
			}
		}
	}
	if text, err := os.ReadFile("/etc/" + database); err == nil {
		take(string(text))
	}
	var rest []string
	for _, key := range slices.Sorted(maps.Keys(wanted)) {
		if _, ok := found[key]; !ok {
			rest = append(rest, key)
		}
	}
	for part := range slices.Chunk(rest, maxGetent) {
		text, _ := Output("getent", append([]string{database}, part...)...) // it fails if one is not known, and tells the others
		take(text)
	}
	return found
}
