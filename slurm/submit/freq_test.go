package submit

import (
	"strings"
	"testing"

	"dev.muster/slurm/opt"
	"dev.muster/slurm/slurmtest"
)

// TestFrequenciesNoted: a frequency on the line is recorded, and a note says that nothing sets it.
func TestFrequenciesNoted(t *testing.T) {
	for _, c := range []struct {
		argv, env []string
		want      int
	}{
		{[]string{"--cpu-freq=low", "true"}, nil, 1},
		{[]string{"--gpu-freq=low", "--cpu-freq=high", "true"}, nil, 2},
		{[]string{"true"}, []string{"SLURM_CPU_FREQ_REQ=low"}, 0},
	} {
		sys := slurmtest.Sys(opt.Srun.Name(), "/")
		sys.Environ = c.env
		r, err := ParseSrun(c.argv, sys)
		if err != nil {
			t.Fatalf("%v: %v", c.argv, err)
		}
		if n := strings.Count(strings.Join(r.Notes, "\n"), "has no effect yet"); n != c.want {
			t.Errorf("%v with %v: notes %q, want %d", c.argv, c.env, r.Notes, c.want)
		}
	}
}

// TestJoinedLines: a line of --multi-prog that ends in a backslash goes on with the next one, as in Slurm.
func TestJoinedLines(t *testing.T) {
	for text, want := range map[string]string{
		"0 echo a\\\nb c \\\n  d\n": "0 echo ab c   d\n",
		"0 a\n1 b \\\n":             "0 a\n1 b ",
		"0 a\\b\n":                  "0 a\\b\n",
	} {
		if got := joinedLines(text); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}
