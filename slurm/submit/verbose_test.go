package submit

import (
	"bytes"
	"strings"
	"testing"

	"dev.muster/slurm/front"
	"dev.muster/slurm/slurmtest"
)

// TestOptionsInForce: -v tells the options in Slurm's layout and forms, and -vv where each came from.
func TestOptionsInForce(t *testing.T) {
	var errs bytes.Buffer
	sys := &front.Sys{Prog: "sbatch", Stderr: &errs,
		Stdin:   strings.NewReader("#!/bin/sh\n#SBATCH -t 5 -p debug\n#SBATCH --gres=gpu:a100:1\n"),
		Environ: []string{"SBATCH_ACCOUNT=root", "SBATCH_DEBUG=1"}, Getwd: func() (string, error) { return "/", nil }}
	r, err := ParseSbatch([]string{"-v", "--requeue", "-H", "--mem=1G"}, sys)
	if err != nil {
		t.Fatal(err)
	}
	SayNotes(sys, r)
	const want = `sbatch: defined options
sbatch: -------------------- --------------------
sbatch: account             : root
sbatch: gres                : gres:gpu:a100:1
sbatch: hold                : set
sbatch: mem                 : 1G
sbatch: partition           : debug
sbatch: requeue             : requeue
sbatch: time                : 00:05:00
sbatch: verbose             : 2
sbatch: -------------------- --------------------
sbatch: end of defined options
sbatch: debug:  --account is from the environment
sbatch: debug:  --gres is from the script
sbatch: debug:  --hold is from the command line
`
	if got := errs.String(); !strings.HasPrefix(got, want) {
		t.Errorf("told:\n%s", got)
	}
	quiet := &front.Sys{Prog: "sbatch", Stderr: &errs, Getwd: func() (string, error) { return "/", nil }}
	_, err = ParseSbatch([]string{"-v", "-Q", "--wrap=x"}, quiet)
	if err == nil || err.Error() != "sbatch: error: don't specify both --verbose (-v) and --quiet (-Q)" {
		t.Errorf("-v -Q: %v", err)
	}
}

// TestQuiet: -Q keeps what is no error from being told.
func TestQuiet(t *testing.T) {
	for option, told := range map[string]bool{"-Q": false, "-v": true, "-n1": true} {
		sys := slurmtest.Sys("srun", t.TempDir())
		sys.Stderr = new(bytes.Buffer)
		r, err := ParseSrun([]string{option, "true"}, sys)
		if err != nil {
			t.Fatal(err)
		}
		if SayNotes(sys, r); sys.Tells(front.Info) != told {
			t.Errorf("srun %s: told %v", option, !told)
		}
	}
}
