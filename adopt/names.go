package adopt

import (
	"bufio"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// Names are names of users and groups by their numbers, as getent passwd and getent group print them.
type Names struct {
	users, groups map[uint32]string
}

// ReadNames reads lines of getent passwd, NAME:x:UID:GID:…, and of getent group, NAME:x:GID:….
func ReadNames(users, groups io.Reader) (*Names, error) {
	n := &Names{users: map[uint32]string{}, groups: map[uint32]string{}}
	if err := readNames(users, n.users); err != nil {
		return nil, fmt.Errorf("users: %w", err)
	}
	if err := readNames(groups, n.groups); err != nil {
		return nil, fmt.Errorf("groups: %w", err)
	}
	return n, nil
}

// maxNames bounds the names of users, and those of groups.
const maxNames = 1 << 20

func readNames(in io.Reader, to map[uint32]string) error {
	lines := bufio.NewScanner(in)
	for k := 1; lines.Scan(); k++ {
		parts := strings.Split(lines.Text(), ":")
		if len(parts) < 3 || len(to) == maxNames {
			return fmt.Errorf("line %d: %.64q is not NAME:x:NUMBER", k, lines.Text())
		}
		id, err := strconv.ParseUint(parts[2], 10, 32)
		if err != nil {
			return fmt.Errorf("line %d: %.64q is not NAME:x:NUMBER", k, lines.Text())
		}
		if to[uint32(id)] == "" {
			to[uint32(id)] = parts[0]
		}
	}
	return lines.Err()
}

// user returns the name of a user, or its number as text.
func (n *Names) user(uid uint32) string {
	if n == nil || n.users[uid] == "" {
		return text(uid)
	}
	return n.users[uid]
}

// group returns the name of a group, "" if it is not known.
func (n *Names) group(gid uint32) string {
	if n == nil {
		return ""
	}
	return n.groups[gid]
}
