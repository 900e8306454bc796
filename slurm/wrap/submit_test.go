package wrap

import (
	"strings"
	"testing"

	"dev.muster/slurm/front"
)

// TestQsubRows: what qsub's words are for sbatch.
func TestQsubRows(t *testing.T) {
	for line, want := range map[string]string{
		"-l nodes=2:ppn=4,walltime=1:00:00,mem=4gb": "--ntasks-per-node=4 --nodes=2 --time=1:00:00 --mem=4G",
		"-l nodes=n1:ppn=2+n2:ppn=2":                "--ntasks-per-node=2 --nodes=2 --nodelist=n1,n2",
		"-l nodes=1:gpus=2:ppn=8:fast -l pmem=1kb":  "--gpus-per-node=2 --ntasks-per-node=8 --constraint=fast --nodes=1 --mem-per-cpu=1K",
		"-l select=2:ncpus=8:mpiprocs=2:ngpus=1":    "--gpus-per-node=1 --nodes=2 --ntasks-per-node=2 --cpus-per-task=4",
		"-l walltime=90 -q long@srv -A acc -h":      "--time=1:30 --partition=long --account=acc --hold",
		"-W depend=afterok:12.srv:13,afterany:14":   "--dependency=afterok:12:13,afterany:14",
		"-t 0-9%2 -m abe -M a@b -r n":               "--array=0-9%2 --mail-type=FAIL,BEGIN,END --mail-user=a@b --no-requeue",
		"-a 202612241830.15 -p -10":                 "--begin=2026-12-24T18:30:15 --nice=10",
		"-lmem=1gb -hn":                             "--mem=1G --hold --exclusive",
	} {
		var j pbsJob
		rest, err := parse(&j, pbsRows(), strings.Fields(line))
		if got := strings.Join(j.argv, " "); err != nil || len(rest) > 0 || got != want {
			t.Errorf("qsub %s: %q %v %v, want %q", line, got, rest, err, want)
		}
	}
	for line, want := range map[string]string{"-l foo=1": "no counterpart", "-W depend=before:3": "want one of",
		"-k oe": "no counterpart", "-Z": "invalid option",
		"-l": "requires an argument", "-l nodes=1:ppn=2+2:ppn=4": "heterogeneous", "-l cput=3": "walltime"} {
		var j pbsJob
		if _, err := parse(&j, pbsRows(), strings.Fields(line)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("qsub %s: %v, want %q", line, err, want)
		}
	}
}

// TestBsubRows: what bsub's words are for sbatch.
func TestBsubRows(t *testing.T) {
	for line, want := range map[string]string{
		`-n 8 -R "span[ptile=4]" -W 1:30 -q long`:        "--ntasks=8 --ntasks-per-node=4 --time=90 --partition=long",
		`-n 2 -M 2G -R "rusage[mem=4000] span[hosts=1]"`: "--ntasks=2 --mem-per-cpu=2G --mem=4000M --nodes=1",
		`-J "a[1-10]%3" -w "done(12) && ended(13)" -K`:   "--array=1-10%3 --dependency=afterok:12,afterany:13 --wait",
		`-gpu "num=2:gmodel=H100" -m "n1 n2" -x`:         "--gpus-per-node=h100:2 --nodelist=n1,n2 --exclusive",
	} {
		words, _ := front.SplitQuoted(line)
		var j lsfJob
		rest, err := parse(&j, lsfRows(), words)
		if got := strings.Join(j.argv, " "); err != nil || len(rest) > 0 || got != want {
			t.Errorf("bsub %s: %q %v %v, want %q", line, got, rest, err, want)
		}
	}
	var j lsfJob
	if _, err := parse(&j, lsfRows(), []string{"-R", "select[mem>5]"}); err == nil || !strings.Contains(err.Error(),
		"--constraint") {
		t.Errorf("select is taken: %v", err)
	}
}

// TestPrologue: variables stand behind the directives of a shell's script, and never in another one's.
func TestPrologue(t *testing.T) {
	for script, want := range map[string]string{
		"#!/bin/bash\n#PBS -N x\n\necho hi\n": "#!/bin/bash\n#PBS -N x\n\nexport A=1\necho hi\n",
		"echo hi\n":                           "#!/bin/bash\nexport A=1\necho hi\n",
		"#!/usr/bin/env python3\nprint()\n":   "#!/usr/bin/env python3\nprint()\n",
		"#!/bin/sh":                           "#!/bin/sh\nexport A=1\n",
	} {
		if got := withPrologue(script, "", "export A=1\n"); got != want {
			t.Errorf("%q: %q", script, got)
		}
	}
}
