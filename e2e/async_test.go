package e2e

import (
	"strings"
	"testing"
)

// TestAsync: srun --async leaves a step to its nodes, which write its files; swait waits for all steps of the job. Words
// and exit codes are those of Slurm 26.05.
func TestAsync(t *testing.T) {
	t.Parallel()
	d := startDev(t, "--hollow", "2x2c4g", "--hollow-exec")
	d.write("job.sh", `#!/bin/sh
srun --async -N2 -n2 -l sh -c 'sleep 1; hostname'
srun --async --parsable --overlap -N1 -n1 -o named -e errs sh -c 'echo out; echo err >&2; exit 3'
srun --async -Q --overlap -N1 -n1 -o named.%t --input=job.sh sh -c 'read x; echo $x'
srun --async --overlap -N1 -n1 -o story sh -c 'echo fresh'
swait
echo swait $?
cat slurm-$SLURM_JOB_ID.0.out | sort
srun --async --overlap -N1 -n1 sleep 100
swait --timeout=1
echo late $?
srun --overlap -N1 -n1 sh -c 'scancel $SLURM_JOB_ID.4; swait -Q; echo inside $?'
`)
	d.write("story", "of yesterday, and longer than what comes\n")
	job := d.must("sbatch", "--parsable", "-N2", "-o", "out", "job.sh")
	d.wait("the job's end", func() bool { return d.must("squeue", "-h") == "" })
	expect(t, "the script", d.read("out"), "Submitted step "+job+".0\n"+job+".1\nSubmitted step "+job+".3\nswait 0\n"+
		"0: node-001\n1: node-002\nSubmitted step "+job+".4\nswait: error: timed out after 1 seconds\nlate 1\n"+
		"inside 0\n")
	for name, want := range map[string]string{
		"named": "out\n", "errs": "err\n", "named.0": "#!/bin/sh\n", "story": "fresh\n",
	} {
		expect(t, name, d.read(name), want)
	}
	past := d.must("sacct", "-nP", "-j", job, "-o", "jobid,state,exitcode")
	for _, want := range []string{".0|COMPLETED|0:0", ".1|FAILED|3:0", ".4|CANCELLED"} {
		if !strings.Contains(past, job+want) {
			t.Errorf("no %s in\n%s", want, past)
		}
	}
}

// TestAsyncRefused: what cannot be done is told.
func TestAsyncRefused(t *testing.T) {
	t.Parallel()
	d := startDev(t, "--hollow", "1x2c4g", "--hollow-exec")
	const way = "\nsrun: error: the way out: leave --async out, and put srun into the background\n"
	for line, want := range map[string]string{
		"srun --async true": "srun: error: --async is only valid for steps submitted " +
			"within an existing job allocation.\n",
		"srun --parsable true":                    "srun: error: --parsable requires --async.\n",
		"salloc -Q srun --async --pty true":       "srun: error: --async and --pty are mutually exclusive.\n",
		"salloc -Q srun --async --immediate true": "srun: error: --immediate and --async are mutually exclusive.\n",
		"salloc -Q srun --async --mpi=pmi2 true": "srun: error: --async with --mpi=pmi2 cannot be done " +
			"yet: that is srun's work, which does not stay" + way,
		"salloc -Q srun --async --input=all true": "srun: error: --async with --input=all cannot be done " +
			"yet: that is srun's work, which does not stay" + way,
		"salloc -Q srun --async -o /none/there true": "srun: error: could not open stdout file: No such file or " +
			"directory\n",
		"swait":            "swait: error: no job id given and SLURM_JOB_SLUID/SLURM_JOB_ID are not set\n",
		"swait 1 2":        "swait: error: too many positional arguments (expected at most one job id)\n",
		"swait x":          "swait: error: x: cannot parse job id\n",
		"swait -Q -v 1":    "swait: error: --verbose (-v) and --quiet (-Q) are mutually exclusive\n",
		"swait --timeout=": "swait: error: --timeout: invalid value '' (must be a non-negative integer)\n",
		"swait 99999":      "swait: error: cannot load JobId=99999: Invalid job id specified\n",
	} {
		words := strings.Fields(line)
		code := 1
		if words[0] == "swait" {
			code = 2
		}
		if _, errs, rc := d.run(words[0], words[1:]...); rc != code || errs != want {
			t.Errorf("%s: %d %q, want %d %q", line, rc, errs, code, want)
		}
	}
}
