package slurm

import (
	"os"
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
	line, ok := account("passwd", key)
	f := strings.Split(line, ":")
	if !ok || len(f) < 7 {
		return User{}, false
	}
	uid, err1 := strconv.ParseUint(f[2], 10, 32)
	gid, err2 := strconv.ParseUint(f[3], 10, 32)
	return User{Name: f[0], UID: uint32(uid), GID: uint32(gid), Full: strings.Split(f[4], ",")[0], Home: f[5], Shell: f[6]}, err1 == nil && err2 == nil
}

// userByID finds a user by number.
func userByID(uid uint32) (User, bool) { return LookupUser(strconv.FormatUint(uint64(uid), 10)) }

// LookupGroup finds a group's number by name or number.
func LookupGroup(key string) (uint32, bool) {
	line, ok := account("group", key)
	f := strings.Split(line, ":")
	if !ok || len(f) < 3 {
		return 0, false
	}
	gid, err := strconv.ParseUint(f[2], 10, 32)
	return uint32(gid), err == nil
}

// account returns the line of a database whose name or number is key.
func account(database, key string) (string, bool) {
	if key == "" || strings.ContainsAny(key, ":\n\x00") || key[0] == '-' {
		return "", false
	}
	text, err := os.ReadFile("/etc/" + database)
	if err == nil {
		byID := ""
		for line := range strings.SplitSeq(string(text), "\n") {
			f := strings.SplitN(line, ":", 4)
			if len(f) < 3 {
				continue
			}
			if f[0] == key {
				return line, true
			}
			if f[2] == key && byID == "" {
				byID = line
			}
		}
		if byID != "" {
			return byID, true
		}
	}
	out := output("getent", database, key)
	line, _, _ := strings.Cut(out, "\n")
	return line, line != ""
}
