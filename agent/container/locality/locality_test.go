package locality

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"dev.muster/cluster"
)

// TestKeyOf: words for one image have one key, others have others.
func TestKeyOf(t *testing.T) {
	same := [][]string{
		{"ubuntu", "ubuntu:latest", "docker://ubuntu", "library/ubuntu", "docker.io#library/ubuntu", "me@ubuntu",
			"index.docker.io/library/ubuntu:latest", "docker.io/ubuntu"},
		{"ubuntu:24.04", "docker.io#ubuntu:24.04"},
		{"nvcr.io#nvidia/pytorch:24.10-py3", "nvcr.io/nvidia/pytorch:24.10-py3", "$oauthtoken@nvcr.io#nvidia/pytorch:24.10-py3"},
		{"lab/tiny", "lab/tiny:latest"},
		{"10.0.0.1:5000#lab/tiny", "10.0.0.1:5000/lab/tiny:latest"},
		{"localhost/tiny", "localhost#tiny:latest"},
		{"ubuntu@sha256:00ff"},
		{"/tmp/a.sqsh"}, {"./a.sqsh"}, {"oci:/tmp/a:1"}, {""},
	}
	seen := map[string]string{}
	for _, words := range same {
		for _, w := range words {
			if got, want := KeyOf(w), KeyOf(words[0]); got != want || !isKey(got) {
				t.Errorf("%q is %s, %q %s", w, got, words[0], want)
			}
		}
		key := KeyOf(words[0])
		if other, ok := seen[key]; ok {
			t.Errorf("%q and %q have one key", other, words[0])
		}
		seen[key] = words[0]
	}
}

// TestStore: images are listed by what they were asked for as, the last used first, and no more than so many.
func TestStore(t *testing.T) {
	dir, now := t.TempDir(), time.Now()
	put := func(name string, used time.Time, refs ...string) {
		t.Helper()
		at := filepath.Join(dir, "images", name)
		if err := os.MkdirAll(at, 0o700); err != nil {
			t.Fatal(err)
		}
		for file, text := range map[string]string{"config": "{}", "refs": strings.Join(refs, "\n")} {
			if err := os.WriteFile(filepath.Join(at, file), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.Chtimes(filepath.Join(at, "config"), used, used); err != nil {
			t.Fatal(err)
		}
	}
	s := NewStore(dir)
	if got := s.Keys(now); got != nil {
		t.Error("an empty store has", got)
	}
	put("sha256-1", now.Add(-time.Hour), "ubuntu:24.04")
	put("sha256-2", now.Add(-time.Minute), "10.0.0.1:5000/lab/tiny:1", "10.0.0.1:5000/lab/tiny:2")
	put(".sha256-3.beef", now, "alpine")
	want := []string{KeyOf("10.0.0.1:5000#lab/tiny:1"), KeyOf("10.0.0.1:5000#lab/tiny:2"), KeyOf("ubuntu:24.04")}
	if got := s.Keys(now); !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	put("sha256-2", now, "10.0.0.1:5000/lab/tiny:1", "alpine")
	want[1] = KeyOf("alpine")
	if got := s.Keys(now.Add(readEvery)); !slices.Equal(got, want) {
		t.Errorf("with another name %v, want %v", got, want)
	}
	for i := range 2 * Most {
		put(fmt.Sprint("sha256-many", i), now.Add(time.Duration(i)*time.Second), fmt.Sprint("many:", i))
	}
	got := s.Keys(now.Add(2 * readEvery))
	if len(got) != Most || got[0] != KeyOf(fmt.Sprint("many:", 2*Most-1)) {
		t.Errorf("%d are listed, first %s", len(got), got[0])
	}
	if got := NewStore("").Keys(now); got != nil {
		t.Error("no store has", got)
	}
}

// TestTable: the last that a node said holds, within bounds, until there is no such node any more.
func TestTable(t *testing.T) {
	table := NewTable()
	nodes := func(image string) string {
		list := table.Nodes(image)
		slices.Sort(list)
		return fmt.Sprint(list)
	}
	a, b := KeyOf("a"), KeyOf("b")
	table.Set("n1", []string{a, b})
	table.Set("n2", []string{b, "no key", strings.Repeat("f", 1000)})
	if nodes("a") != "[n1]" || nodes("b") != "[n1 n2]" || nodes("c") != "[]" {
		t.Error(nodes("a"), nodes("b"), nodes("c"))
	}
	table.Set("n1", []string{a})
	if nodes("a") != "[n1]" || nodes("b") != "[n2]" {
		t.Error(nodes("a"), nodes("b"))
	}
	var many []string
	for i := range 2 * Most {
		many = append(many, KeyOf(fmt.Sprint(i)))
	}
	table.Set("n3", many)
	if len(table.byNode["n3"]) != Most {
		t.Errorf("%d are kept of a node", len(table.byNode["n3"]))
	}
	table.Set("n2", nil)
	table.Keep(func(n cluster.NodeName) bool { return n == "n1" })
	if len(table.byNode) != 1 || len(table.byKey) != 1 || nodes("a") != "[n1]" {
		t.Errorf("left are %v", table.byNode)
	}
}
