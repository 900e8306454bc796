package front

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestLookupUsers: users of /etc/passwd and of the name service are found by name and number, the latter in one call.
func TestLookupUsers(t *testing.T) {
	dir := t.TempDir()
	calls := filepath.Join(dir, "calls")
	script := "#!/bin/sh\necho \"$*\" >>" + calls + "\necho 'ldap-ann:x:70001:70001:Ann A,room 1:/home/ann:/bin/sh'\necho '70002:x:70009:1::/:'\necho 'ldap-bob:x:70002:70002:Bob:/home/bob:/bin/sh'\nexit 2\n"
	if err := os.WriteFile(filepath.Join(dir, "getent"), []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	got := LookupUsers([]string{"root", "ldap-ann", "70001", "70002", "nobody-at-all", "-x", "", "a:b", "root"})
	if len(got) != 4 || got["root"].Name != "root" || got["ldap-ann"].Full != "Ann A" || got["70001"].Name != "ldap-ann" || got["70002"].UID != 70009 {
		t.Errorf("found %+v", got)
	}
	text, err := os.ReadFile(calls)
	if want := "passwd 70001 70002 ldap-ann nobody-at-all\n"; err != nil || string(text) != want {
		t.Errorf("getent was called with %q, want %q, %v", text, want, err)
	}
	if u, ok := LookupUser("ldap-bob"); !ok || u.UID != 70002 {
		t.Errorf("one user alone: %+v, %v", u, ok)
	}
	var many []string
	for range maxGetent + 1 {
		many = append(many,
			strings.Repeat("u", len(many)%7+1)+"-"+string(rune('a'+len(many)%26))+strings.Repeat("v", len(many)/100)+strings.Repeat("w", len(many)%100))
	}
	LookupUsers(many)
	if text, _ := os.ReadFile(calls); strings.Count(string(text), "\n") > 4 {
		t.Errorf("many users are asked for in %d calls", strings.Count(string(text), "\n")-2)
	}
}
