package slurm

import (
	"strings"
	"testing"

	"dev.muster/cluster"
	"dev.muster/slurm/slurmtest"
)

// TestNewerOptions: what options that came after 22.05 print, and why some are refused.
func TestNewerOptions(t *testing.T) {
	for line, want := range map[string]string{
		"squeue --helpFormat":                       "AccrueTime",
		"squeue --helpformat":                       "%A    %B    %C",
		"squeue --helpstate":                        "pending\nrunning\nsuspended",
		"sinfo --helpFormat":                        "nodeaiot",
		"sinfo --helpformat":                        "%A    %B    %C",
		"sinfo --helpstate":                         "allocated\nidle\nmixed",
		"sinfo --future":                            "PARTITION",
		"sprio --helpformat":                        "%A    %B",
		"sacct --helpreason":                        "JobHeldAdmin",
		"sacct --helpstate":                         "PENDING             RUNNING",
		"sdiag --no-trunc":                          "slurm_get_statistics",
		"squeue --expand-patterns -h -O stdout:30":  "/",
		"squeue --autocomplete=--runn":              "--running-over=\n--running-under=",
		"scontrol --autocomplete=--onel":            "--oneliner",
		"srun --autocomplete=--mem-p":               "--mem-per-cpu=\n--mem-per-gpu=",
		"squeue --only-job-state -j 735":            "             JOBID ST\n               735  R",
		"squeue --only-job-state -u root":           "fatal: Option --only-job-state only works alone",
		"squeue --only-job-state --json":            "leave it out",
		"squeue --running-over=x":                   "squeue: fatal: Invalid time limit specification",
		"squeue --running-under=0":                  "squeue: fatal: Invalid time limit specification",
		"squeue -h --running-over=1000-0 -o %i":     "",
		"squeue -h --running-under=1000-0 -t R":     "734",
		"squeue -h --running-under=unlimited -t PD": "",
		"srun --wait-for-children true":             "a task ends with its first process",
		"srun --treewidth=70000 true":               "srun: error: Invalid --treewidth value: 70000",
		"sbatch --resv-ports=2 --wrap true":         "use srun --resv-ports in the job",
		"salloc --resv-ports=x true":                `Invalid numeric value "x" for --resv-port.`,
		"sbatch --external --wrap true":             "--wrap option not permitted with --external option",
		"sbatch --external x.sh":                    "Script arguments not permitted with --external option",
		"sbatch --mem-update=20 --wrap true":        "--mem-update requires MARGIN@DELAY format",
		"sbatch --mem-update=20@1 --wrap true":      "use scontrol update jobid=JOB minmemorynode=MB",
		"srun --ignore-signals=FOO true":            "Invalid signal name or number: FOO",
		"srun --ignore-signals=KILL true":           "Signal KILL cannot be ignored",
		"srun --ignore-signals= true":               "--ignore-signals requires at least one signal",
		"sbcast --nodelist=x a /b":                  "allocate the nodes, and name the job with -j",
		"scontrol getaddrs gpu-node-001":            "gpu-node-001: 127.0.0.1:26811",
		"scontrol getent gpu-node-001":              "muster has no nss_slurm",
		"scontrol power down":                       "Missing node list",
		"scontrol update jobid=734 userid=1":        "why: the user of a job cannot be changed",
		"squeue -h -t expediting":                   "",
		"sbatch --help":                             "--container-type=type   accepted, no effect",
	} {
		text := runLine(slurmtest.New(), t, 0, nil, strings.Fields(line)...)
		if !strings.Contains(strings.ToLower(text), strings.ToLower(want)) || want == "" && text != "" {
			t.Errorf("%s printed\n%s\nwithout %q", line, text, want)
		}
	}
}

// TestSinfoAllOrSome: --all and --partition exclude each other where both are on the line, or both are variables.
func TestSinfoAllOrSome(t *testing.T) {
	const conflict = "--- stderr\nsinfo: error: Conflicting options, %, specified. Please choose one or the other.\n--- rc 1\n"
	both := []string{"SINFO_ALL=1", "SINFO_PARTITION=debug"}
	for _, c := range []struct {
		env  []string
		args string
		want string
	}{
		{nil, "-a -p debug", strings.Replace(conflict, "%", "-a and -p", 1)},
		{both, "", strings.Replace(conflict, "%", "SINFO_ALL and SINFO_PARTITION", 1)},
		{both, "-p debug", "debug\n"},
		{both[1:], "", "debug\n"},
		{both[1:], "-a", "debug\ntrain*\npriority\n"},
	} {
		line := append([]string{"sinfo", "-h", "-o", "%P"}, strings.Fields(c.args)...)
		if got := runLine(slurmtest.New(), t, 0, c.env, line...); got != c.want {
			t.Errorf("%v sinfo %s: %q, want %q", c.env, c.args, got, c.want)
		}
	}
}

// TestNotMe: --notme leaves one's own jobs out, and --me all others.
func TestNotMe(t *testing.T) {
	f := slurmtest.New()
	f.Jobs = nil
	for _, uid := range []uint32{7, 8} {
		f.Jobs = append(f.Jobs, &cluster.Job{ID: cluster.JobID(uid), Task: cluster.TaskAny,
			Spec: &cluster.JobSpec{Layout: &cluster.Layout{}, UID: uid, Partitions: []string{"train"}}})
	}
	for args, want := range map[string]string{"--notme": "8\n", "--me": "7\n", "--me --notme": ""} {
		if got := runLine(f, t, 7, nil, append([]string{"squeue", "-h", "-o", "%i"}, strings.Fields(args)...)...); got != want {
			t.Errorf("squeue %s: %q, want %q", args, got, want)
		}
	}
}

// TestCancelWithComment: the comment is written before the job is cancelled.
func TestCancelWithComment(t *testing.T) {
	f := slurmtest.New()
	runLine(f, t, 0, nil, "scancel", "--admin-comment=bad node", "734")
	if got := strings.Join(f.Log, "\n"); strings.Count(got, "734") != 2 || !strings.Contains(got, "bad node") {
		t.Errorf("scancel --admin-comment asked for %s", got)
	}
}
