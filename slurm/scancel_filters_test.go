package slurm

import (
	"strconv"
	"strings"
	"testing"

	"dev.muster/cluster"
	"dev.muster/slurm/slurmtest"
)

// TestScancelFilters: each filter of the line and of variables keeps scancel from all jobs but those it names.
func TestScancelFilters(t *testing.T) {
	for line, want := range map[string]int{
		"scancel --wckey=mine":             1,
		"scancel --wckey=none":             0,
		"scancel -R held":                  1,
		"scancel -R none":                  0,
		"scancel -R held --wckey=mine":     0,
		"SCANCEL_WCKEY=mine scancel":       1,
		"SCANCEL_WCKEY=none scancel 1":     0,
		"SCANCEL_NAME=one scancel":         1,
		"SCANCEL_NAME=none scancel 1":      0,
		"SCANCEL_PARTITION=none scancel 1": 0,
		"SCANCEL_STATE=RUNNING scancel 1":  0,
		"SCANCEL_STATE=PENDING scancel 1":  1,
		"SCANCEL_BATCH=false scancel 1":    1,
		"SCANCEL_FULL=nonsense scancel 1":  1,
		"scancel -t":                       0,
		"scancel -t ,":                     0,
		"scancel -n ,":                     0,
		"scancel --jobname=,,":             0,
		"scancel -p ,":                     0,
		"scancel -n one,":                  1,
	} {
		f := slurmtest.New()
		f.Jobs = nil
		for id, spec := range []cluster.JobSpec{{Name: "one", WCKey: "mine"}, {Name: "two", Reservation: "held"}} {
			spec.Layout = &cluster.Layout{}
			spec.Partitions = []string{"train"}
			f.Jobs = append(f.Jobs, &cluster.Job{ID: cluster.JobID(id + 1), Task: cluster.TaskAny, Spec: &spec})
		}
		words := strings.Fields(line)
		var env []string
		if strings.Contains(words[0], "=") {
			env = words[:1]
			words = words[1:]
		}
		text := runLine(f, t, 0, env, words...)
		if len(f.Log) != want {
			t.Errorf("%s: %d cancelled, want %d; it said:\n%s\n%s", line, len(f.Log), want, text, strings.Join(f.Log, "\n"))
		}
	}
}

// TestScancelOthers: filters select jobs of all users, and the servers decide who may cancel them; --me does not.
func TestScancelOthers(t *testing.T) {
	for line, want := range map[string]int{"scancel -A team-a": 2, "scancel -n one": 1, "scancel -A team-a --me": 1} {
		f := slurmtest.New()
		f.Jobs = nil
		for id, name := range []string{"one", "two"} {
			spec := cluster.JobSpec{Name: name, Account: "team-a", UID: uint32(1000 + id), Layout: &cluster.Layout{}}
			f.Jobs = append(f.Jobs, &cluster.Job{ID: cluster.JobID(id + 1), Task: cluster.TaskAny, Spec: &spec})
		}
		if text := runLine(f, t, 1001, nil, strings.Fields(line)...); len(f.Log) != want {
			t.Errorf("%s: %d cancelled, want %d; it said:\n%s", line, len(f.Log), want, text)
		}
	}
}

// TestSqueueFormatsExclude: the formats of a line exclude each other; those of variables give way.
func TestSqueueFormatsExclude(t *testing.T) {
	f := slurmtest.New()
	const wide = "TIME_LIMI"
	for line, want := range map[string]string{
		"squeue -l -o %i":                 "fatal: Options -o(--format) and -l(--long) are mutually exclusive",
		"squeue -o %i -O jobid":           "error: -O (--Format) is incompatible with -o (--format)",
		"squeue -O jobid -o %i":           "error: -o (--format) is incompatible with -O (--Format)",
		"SQUEUE_FORMAT=%i squeue -l":      wide,
		"SQUEUE_FORMAT=%i squeue -O name": "NAME",
		"SQUEUE_FORMAT=%i squeue --start": "START_TIME",
		"squeue -t PD,all":                "Invalid job state specified: all",
		"squeue -u 99999":                 "Invalid user: 99999",
		"sinfo -l -O partition":           "fatal: Options -o(--format) and -l(--long) are mutually exclusive",
		"SINFO_STATES=junk sinfo":         "PARTITION",
		"sinfo -R -N":                     "NODELIST",
	} {
		words := strings.Fields(line)
		var env []string
		if strings.Contains(words[0], "=") {
			env = words[:1]
			words = words[1:]
		}
		text := runLine(f, t, 0, env, words...)
		if !strings.Contains(text, want) {
			t.Errorf("%s said:\n%s\nnot %s", line, text, strconv.Quote(want))
		}
	}
}

// TestTimeFormat: SLURM_TIME_FORMAT is how scontrol and sinfo write times, too.
func TestTimeFormat(t *testing.T) {
	f := slurmtest.New()
	env := []string{"SLURM_TIME_FORMAT=at %H"}
	if text := runLine(f, t, 0, env, "scontrol", "show", "job", "735"); !strings.Contains(text, "SubmitTime=at ") {
		t.Errorf("scontrol show job:\n%s", text)
	}
	if text := runLine(f, t, 0, env, "scontrol", "show", "node"); !strings.Contains(text, "LastBusyTime=at ") {
		t.Errorf("scontrol show node:\n%s", text)
	}
}

// TestScancelSignalOfNone: a signal for jobs that are not there is an error, in Slurm 22.05's words; their end is not.
func TestScancelSignalOfNone(t *testing.T) {
	said := func(ids ...string) string {
		out := "--- stderr\n"
		for _, id := range ids {
			out += "scancel: error: Kill job error on job id " + id + ": Invalid job id specified\n"
		}
		return out + "--- rc 1\n"
	}
	for line, want := range map[string]string{
		"scancel 99999":                  "",
		"scancel -f 99999":               "",
		"scancel -b 99999":               said("99999"),
		"scancel -s USR1 99999":          said("99999"),
		"scancel -s KILL 99999":          said("99999"),
		"scancel -s USR1 99999_[1-2]":    said("99999_1", "99999_2"),
		"scancel -Q --signal=TERM 99999": "--- rc 1\n",
	} {
		if got := runLine(slurmtest.New(), t, 0, nil, strings.Fields(line)...); got != want {
			t.Errorf("%s: %q, want %q", line, got, want)
		}
	}
}
