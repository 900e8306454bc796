package credhelper

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestGet(t *testing.T) {
	dir, limit, dirs := t.TempDir(), Limit, Dirs
	t.Cleanup(func() { Limit, Dirs = limit, dirs })
	Limit, Dirs = 2*time.Second, []string{dir, "/usr/bin", "/bin"}
	for name, script := range map[string]string{
		"good":    `read r; echo "{\"ServerURL\":\"$r\",\"Username\":\"me@$HOME\",\"Secret\":\"$1 $r $X\"}"`,
		"none":    `echo "credentials not found in native keychain"; exit 1`,
		"bad":     `echo "no keyring"; exit 3`,
		"garbage": `echo secret`,
		"slow":    `sleep 100 & sleep 100`,
		"loud":    `while :; do echo xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx; done`,
	} {
		if err := os.WriteFile(filepath.Join(dir, "docker-credential-"+name), []byte("#!/bin/sh\n"+script+"\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	a := &Asker{Home: "/h", Env: []string{"X=y"}}
	for name, want := range map[string]string{
		"good": "me@/h get reg.io y", "none": " ", "bad": "no keyring (exit status 3)",
		"garbage": "its answer cannot be read",
		"slow":    "has not answered within 2s", "loud": "docker-credential-loud: ",
		"../x":   "names no credential helper",
		"absent": "docker-credential-absent is not on this node in " + dir,
	} {
		user, secret, err := a.Get(name, "reg.io")
		got := user + " " + secret
		if err != nil {
			got = err.Error()
		}
		if got != want && (err == nil || !strings.Contains(got, want)) || strings.Contains(got, "secret") {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
}
