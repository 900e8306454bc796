package e2e

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

var setClocks = flag.Bool("clocks", false,
	"build the binary with wall clocks that tests can set (the whole standard library is compiled anew)")

// clockOverlay writes an overlay for go build by which time.Now is ahead by what a file says. The product's
// own code is compiled as it is.
func clockOverlay(dir string) (string, error) {
	root, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		return "", fmt.Errorf("go env GOROOT: %w", err)
	}
	path := filepath.Join(strings.TrimSpace(string(root)), "src/time/time.go")
	source, err := os.ReadFile(path)
	if err != nil {
		return "", err
	}
	const now = "func Now() Time {\n\tsec, nsec, mono := runtimeNow()\n"
	if strings.Count(string(source), now) != 1 {
		return "", fmt.Errorf("%s: time.Now does not begin with %q any more: tell this test how it does", path, now)
	}
	changed := strings.Replace(string(source), now,
		"// Ahead is by how many seconds the clock is wrong.\nvar Ahead = func() int64 { return 0 }\n\n"+now+"\tsec += Ahead()\n", 1)
	copied := filepath.Join(dir, "time.go")
	if err := os.WriteFile(copied, []byte(changed), 0o644); err != nil {
		return "", err
	}
	added, err1 := filepath.Abs("../clock_overlay.go")
	with, err2 := filepath.Abs("testdata/clock.go")
	if err1 != nil || err2 != nil {
		return "", fmt.Errorf("%w, %w", err1, err2)
	}
	text, err := json.Marshal(map[string]any{"Replace": map[string]string{path: copied, added: with}})
	if err != nil {
		return "", err
	}
	overlay := filepath.Join(dir, "overlay.json")
	return overlay, os.WriteFile(overlay, text, 0o644)
}

// setClock makes the wall clock of a daemon wrong by so many seconds.
func (d *dev) setClock(seconds int) {
	if err := os.WriteFile(d.dir+"/clock", fmt.Appendf(nil, "%d\n", seconds), 0o644); err != nil {
		d.t.Error(err)
	}
}
