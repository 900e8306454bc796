package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestBar: work that takes long has a line, which goes away; short work has none.
func TestBar(t *testing.T) {
	f, err := os.Create(filepath.Join(t.TempDir(), "terminal"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	b := &bar{name: "restoring", began: time.Now(), out: f}
	b.move(1<<20, 2<<20)
	b.end()
	if fi, err := f.Stat(); err != nil || fi.Size() != 0 {
		t.Errorf("short work has written %d bytes, %v", fi.Size(), err)
	}
	b.began = time.Now().Add(-time.Minute)
	b.move(1<<20, 2<<20)
	if line := b.line(); !strings.HasPrefix(line, "restoring "+strings.Repeat("█", 20)+"·") ||
		!strings.HasSuffix(line, "50%, 1.0 MB") {
		t.Errorf("%q", line)
	}
	b.end()
	text, err := os.ReadFile(f.Name())
	if err != nil || !strings.HasSuffix(string(text), "\r\033[K") || !strings.Contains(string(text), "50%") {
		t.Errorf("%q, %v", text, err)
	}
	b.all = 0
	if _, err := b.Write(make([]byte, 1e6)); err != nil || b.line() != "restoring: 2.0 MB" {
		t.Errorf("%q, %v", b.line(), err)
	}
}
