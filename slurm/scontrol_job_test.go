package slurm

import (
	"context"
	"os"
	"strings"
	"testing"

	"dev.muster/api"
	"dev.muster/cluster"
	"dev.muster/slurm/slurmtest"
)

// updating is a server that refuses to change running jobs other than in size.
func updating() *slurmtest.Server {
	f := slurmtest.New()
	f.Own = api.NewMux()
	api.Handle(f.Own, api.ListJobs, f.ListJobs)
	api.Handle(f.Own, api.UpdateJob, func(_ context.Context, _ api.Caller, c cluster.UpdateJob) (api.WriteResponse, error) {
		jobs, _ := f.ListJobs(context.Background(), api.Caller{}, api.JobQuery{Refs: []cluster.Ref{c.Ref}})
		if len(jobs.Jobs) == 1 && jobs.Jobs[0].Phase != cluster.Pending && c.Patch.Account != nil {
			return api.WriteResponse{}, cluster.Errorf(cluster.Conflict, cluster.ErrNotPending, "it runs")
		}
		return api.WriteResponse{}, nil
	})
	return f
}

// TestUpdateTasks has what a Slurm 22.05 says of the tasks of an array that it does not change, and of the others.
func TestUpdateTasks(t *testing.T) {
	f := updating()
	for _, c := range []struct{ line, want string }{
		{"jobid=737 comment=x", ""},
		{"jobid=737_[1,3] comment=x", ""},
		{"jobid=737 account=a", "737_1: Job is no longer pending execution\n737_3-9: No error\n"},
		{"jobid=737_1 account=a", "737_1: Job is no longer pending execution\n"},
		{"jobid=737_[3-4] account=a", ""},
		{"jobid=737_[8-11] comment=x", "737_8-9: No error\n737_10-11: Invalid job id specified\n"},
		{"jobid=737_30 comment=x", "737_30: Invalid job id specified\n"},
		{"jobid=735 account=a", "Job is no longer pending execution for job 735\n"},
		{"jobid=735,736 numnodes=1", "scontrol: error: Invalid job ID 735,736\n"},
		{"jobid=737_1-3 numnodes=1", "scontrol: error: Invalid job ID 737_1-3\n"},
		{"jobid=735+1 numnodes=1", "scontrol: error: Invalid job ID 735+1\n"},
		{"jobid=737 numnodes=1", "scontrol: error: Job resizing not supported for job arrays\n"},
		{
			"jobid=99 numnodes=1",
			"scontrol: error: Could not load state information for job 99: Invalid job id specified\n",
		},
	} {
		want := c.want
		if want != "" {
			want = "--- stderr\n" + want + "--- rc 1\n"
		}
		if got := runLine(f, t, 0, nil, append([]string{"scontrol", "update"}, strings.Fields(c.line)...)...); got != want {
			t.Errorf("%s: %q, want %q", c.line, got, want)
		}
	}
}

// TestResizeScripts: inside of a job, what sets the variables again that are set.
func TestResizeScripts(t *testing.T) {
	t.Chdir(t.TempDir())
	f := updating()
	run := func(env ...string) string {
		return runLine(f, t, 0, env, "scontrol", "update", "jobid=735", "numnodes=1")
	}
	if got := run("SLURM_JOB_ID=735"); got != "" {
		t.Errorf("outside of a job: %q", got)
	}
	want := "To reset Slurm environment variables, execute\n  For bash or sh shells:  . ./slurm_job_735_resize.sh\n  For csh shells:         source ./slurm_job_735_resize.csh\n"
	if got := run("SLURM_JOBID=735", "SLURM_NODELIST=x", "SLURM_JOB_NUM_NODES=9", "SLURM_TASKS_PER_NODE=3"); got != want {
		t.Errorf("inside of one: %q", got)
	}
	nodes := strings.Join([]string{"SLURM_NODELIST", `"gpu-node-[002-003]"`}, "=")
	for name, want := range map[string]string{
		"slurm_job_735_resize.sh":  "export " + nodes + "\nexport SLURM_JOB_NUM_NODES=2\nunset SLURM_NPROCS\nunset SLURM_NTASKS\nunset SLURM_TASKS_PER_NODE\n",
		"slurm_job_735_resize.csh": "setenv " + strings.Replace(nodes, "=", " ", 1) + "\nsetenv SLURM_JOB_NUM_NODES 2\nunsetenv SLURM_NPROCS\nunsetenv SLURM_NTASKS\nunsetenv SLURM_TASKS_PER_NODE\n",
	} {
		if got, err := os.ReadFile(name); err != nil || string(got) != want {
			t.Errorf("%s: %v %q, want %q", name, err, got, want)
		}
	}
	if got := runLine(f, t, 0, []string{"SLURM_JOBID=1"}, "scontrol", "update", "jobid=740", "numnodes=1"); got != "--- stderr\nslurm_allocation_lookup: Job is pending execution\n" {
		t.Errorf("of a job that waits: %q", got)
	}
}

// TestUpdateJobWords has what a Slurm 22.05 says of values that it does not take, and which beginnings of keys it knows.
func TestUpdateJobWords(t *testing.T) {
	const invalid = "scontrol: error: Invalid "
	unknown := func(s string) string {
		return "Update of this parameter is not supported: " + s + "\nRequest aborted\n"
	}
	for _, c := range []struct{ words, want string }{
		{"oversubscribe=x", invalid + "OverSubscribe value: x\n"},
		{"shared=x", invalid + "OverSubscribe value: x\n"},
		{"contiguous=x", invalid + "Contiguous value: x\n"},
		{"numtasks=x", invalid + "NumTasks value: x\n"},
		{"timemin=x", invalid + "TimeMin value\n"},
		{"dependency=x", "Job dependency problem for job 736\n"},
		{"tresperjob=x", "Invalid Trackable RESource (TRES) specification for job 736\n"},
		{"mail=END", unknown("mail=END")},
		{"time=3", unknown("time=3")},
		{"minmem=3", unknown("minmem=3")},
		{"jobid= numnodes=2", "scontrol: error: Could not load state information for job : Invalid job id specified\n"},
		{"switches=0", ""},
		{"timemin=0", ""},
		{"com=x", ""},
		{"na=x", ""},
		{"pri=5", ""},
	} {
		want := c.want
		if want != "" {
			want = "--- stderr\n" + want + "--- rc 1\n"
		}
		line := strings.Fields(c.words)
		if len(line) == 1 {
			line = []string{"jobid=736", c.words}
		}
		if got := runLine(slurmtest.New(), t, 0, nil, append([]string{"scontrol", "update"}, line...)...); got != want {
			t.Errorf("%s: %q, want %q", c.words, got, want)
		}
	}
}

// TestUpdateJobPatch: what reaches the servers of short and of unusual words.
func TestUpdateJobPatch(t *testing.T) {
	for _, c := range []struct{ words, want string }{
		{"tresperjob=gres:gpu:2", `"per_job":[{"name":"gpu","count":2}]`},
		{"tresperjob=gpu:2", `"per_job":[{"name":"gpu","count":2}]`},
		{"tresperjob=h100:2", `"per_job":[{"name":"gpu","type":"h100","count":2}]`},
		{"timemin=0", `"limit_min":0`},
		{"switches=0", `"switches":0`},
		{"timelimit=0", `"limit":1`}, // ends at once
		{"timelimit=00:00:00", `"limit":1`},
		{"timelimit=5", `"limit":300000000000`},
		{"numnodes=2-3", `"min_nodes":2,"max_nodes":3`},
	} {
		f := slurmtest.New()
		runLine(f, t, 0, nil, "scontrol", "update", "jobid=736", c.words)
		if got := strings.Join(f.Log, " "); !strings.Contains(got, c.want) {
			t.Errorf("%s: %s lacks %s", c.words, got, c.want)
		}
	}
}

// TestUpdatePairs: keys and values of update job without = between them, and jobs by their name and user.
func TestUpdatePairs(t *testing.T) {
	f := updating()
	for line, want := range map[string]string{
		"jobid=734 comment x":                    "",
		"jobid 734 comment x":                    "",
		"job 734 comment x nice 7":               "",
		"jobid=734 comment":                      "Invalid input: comment\nRequest aborted\n",
		"jobname=run1 userid=0 comment=x":        "",
		"userid=0 jobname=run1 comment=x":        "",
		"jobname=run1 userid=nosuch_x comment=x": "Invalid UserID: nosuch_x\nRequest aborted\n",
		"jobname=nosuch userid=0 comment=x":      "scontrol: error: No jobs with user ID 0 and name 'nosuch'\n",
	} {
		got := runLine(f, t, 0, nil, append([]string{"scontrol", "update"}, strings.Fields(line)...)...)
		if want != "" {
			want = "--- stderr\n" + want + "--- rc 1\n"
		}
		if got != want {
			t.Errorf("scontrol update %s: %q, want %q", line, got, want)
		}
	}
	for _, step := range []string{"735.batch", "735.0"} {
		if got := runLine(slurmtest.New(), t, 0, nil, "scontrol", "-o", "show", "step", step); strings.Count(got, "\n") > 2 ||
			!strings.HasPrefix(got, "StepId="+step+" ") {
			t.Errorf("scontrol show step %s: %s", step, got)
		}
	}
}
