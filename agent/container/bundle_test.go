package container

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestBundle(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "config.json")
	for _, c := range []struct{ text, want string }{
		{`{"ociVersion":"1.0.2","process":{"args":["sh"],"env":["A=1"],"cwd":"/w","user":{"uid":5}},"root":{"path":"rootfs","readonly":true},
		"mounts":[{"destination":"/proc","type":"proc","source":"proc"},{"destination":"/dev/shm","type":"tmpfs","source":"shm"},
		{"destination":"/data","type":"none","source":"/srv","options":["rbind","ro"]},{"destination":"/etc/x","type":"bind","source":"x"},
		{"destination":"/fast","type":"tmpfs","source":"tmpfs","options":["size=1m"]}]}`,
			"DIR/rootfs true [A=1] /w [{/srv /data none [rbind ro] config.json: mounts[2]} {DIR/x /etc/x none [] config.json: mounts[3]} " +
				"{DIR/tmpfs /fast tmpfs [size=1m] config.json: mounts[4]}] false"},
		{`{"root":{"path":"/r"},"hooks":{"prestart":[]}}`, "/r false []  [] true"},
		{`{"process":{}}`, "names no root"},
		{`{`, "config.json: want a string"},
		{`{"root":{"path":"/r"},"process":{"cwd":"w"}}`, "does not begin with /"},
		{`{"root":{"path":"/r"},"mounts":[{"destination":"/x","type":"nfs"}]}`, `mounts[0]: a mount of type "nfs" at "/x": only folders`},
		{`{"root":{"path":"/r"},"mounts":[{"destination":"x","type":"bind"}]}`, `mounts[0]: a mount of type "bind" at "x"`},
	} {
		if err := os.WriteFile(file, []byte(c.text), 0o644); err != nil {
			t.Fatal(err)
		}
		b, err := readBundle(dir)
		got := ""
		if err != nil {
			got = err.Error()
		} else {
			got = fmt.Sprint(b.Root, " ", b.ReadOnly, " ", b.Env, " ", b.Dir, " ", b.Mounts, " ", b.Hooks)
		}
		if want := strings.ReplaceAll(c.want, "DIR", dir); got != want && (err == nil || !strings.Contains(got, want)) {
			t.Errorf("%s\n%s\nwant %s", c.text, got, want)
		}
	}
}
