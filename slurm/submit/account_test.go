package submit

import (
	"bytes"
	"testing"

	"dev.muster/slurm/slurmtest"
)

// TestSayAccount: a job whose account does not exist is taken with a note that names the one that was meant.
func TestSayAccount(t *testing.T) {
	for _, c := range []struct {
		account string
		known   []string
		want    string
	}{
		{"vizion", []string{"nlp", "vision"}, "sbatch: why: no account vizion; did you mean vision?\n"},
		{"zzz", []string{"nlp"}, "sbatch: why: no account zzz\n"},
		{"nlp", nil, ""},
	} {
		sys := slurmtest.Sys("sbatch", t.TempDir())
		sayAccount(sys, c.account, c.known)
		if got := sys.Stderr.(*bytes.Buffer).String(); got != c.want {
			t.Errorf("%s: %q, want %q", c.account, got, c.want)
		}
	}
}
