package migrate

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestSlurmHost: --via takes a host by ssh, in one word or two, and nothing that ssh would read as an option.
func TestSlurmHost(t *testing.T) {
	for _, c := range []struct{ what, via, words, host, refusal string }{
		{"this host", "", "", "", ""},
		{"two words", "ssh", "login1", "login1", ""},
		{"one word", "ssh ann@login1", "", "ann@login1", ""},
		{"no host", "ssh", "", "", "use --via ssh HOST"},
		{"another way", "rsh", "login1", "", "use --via ssh HOST"},
		{"too many", "ssh", "a b", "", "use --via ssh HOST"},
		{"option as host", "ssh", "-oProxyCommand=x", "", "is not a host"},
		{"option behind", "ssh", "login1 --bin /x", "", "is not a host"},
		{"a stray word", "", "http://h:1", "", "unexpected argument: http://h:1"},
	} {
		t.Run(c.what, func(t *testing.T) {
			host, err := slurmHost(c.via, strings.Fields(c.words))
			if c.refusal == "" && (err != nil || host != c.host) {
				t.Errorf("%q, %v", host, err)
			}
			if c.refusal != "" && (err == nil || !strings.Contains(err.Error(), c.refusal)) {
				t.Errorf("%q, %v", host, err)
			}
		})
	}
}

// TestFindSlurm: a link to muster is not taken for Slurm's command.
func TestFindSlurm(t *testing.T) {
	own, other := t.TempDir(), t.TempDir()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(exe, filepath.Join(own, "scontrol")); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(other, "scontrol"), []byte("#!/bin/sh\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	if dir := findSlurm([]string{"", "/nosuch", own, other}); dir != other {
		t.Errorf("found %q, want %q", dir, other)
	}
}
