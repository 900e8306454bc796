package slurm

import (
	"slices"
	"strings"
	"testing"
	"time"

	"dev.muster/cluster"
)

// TestJobComp: the records of jobs that have ended are those that Slurm 22.05 writes of the same jobs.
func TestJobComp(t *testing.T) {
	was := time.Local
	time.Local = time.UTC
	defer func() { time.Local = was }()
	at := time.Date(2026, 11, 22, 2, 37, 54, 0, time.UTC)
	spec := cluster.JobSpec{
		Layout: &cluster.Layout{}, Kind: cluster.Batch, Name: "wrap", User: "root", Group: "root",
		Account: "root", QOS: "normal", Partitions: []string{"train"}, WorkDir: "/tmp", Stdout: "/dev/null",
	}
	spec.Mem, spec.CPUsPerTask = cluster.Mem{Per: cluster.MemPerCPU, MB: 2000}, 1
	ran := func(change func(j *cluster.Job, s *cluster.JobSpec)) *cluster.Job {
		s := spec
		s.Layout = spec.Layout.Clone()
		j := &cluster.Job{ID: 2, Task: cluster.TaskAny, Spec: &s, Phase: cluster.Ended,
			Outcome: cluster.Completed, Submitted: at, Eligible: at, Started: at, Ended: at,
			Limit: 5 * time.Minute, Attempt: 1,
			Alloc: &cluster.Alloc{
				Partition: "train",
				Shares: []cluster.Share{
					{Node: "gpu-node-001", CPUs: cluster.RangeIDSet(0, 0), GPUs: cluster.RangeIDSet(0, 0), MemMB: 2000},
					{Node: "gpu-node-002", CPUs: cluster.RangeIDSet(0, 0), GPUs: cluster.RangeIDSet(0, 0), MemMB: 2000},
				},
			}}
		change(j, &s)
		return j
	}
	two := ran(func(_ *cluster.Job, s *cluster.JobSpec) { s.WCKey, s.MinNodes = "k1", 2 })
	task := ran(func(j *cluster.Job, _ *cluster.JobSpec) {
		j.ID, j.ArrayID, j.Task, j.Limit = 3, 3, 1, 7*24*time.Hour
		j.Alloc.Shares = []cluster.Share{{Node: "gpu-node-001", CPUs: cluster.RangeIDSet(0, 0), MemMB: 2000}}
	})
	never := ran(func(j *cluster.Job, _ *cluster.JobSpec) {
		j.ID = 4
		j.Outcome = cluster.Cancelled
		j.Started = time.Time{}
		j.Eligible = time.Time{}
		j.Alloc = nil
		j.Limit = 7 * 24 * time.Hour
	})
	cfg := cluster.DefaultConfig()
	cfg.ClusterName, cfg.JobComp, cfg.MemAlloc = "oracle", cluster.JobComp{Kind: "filetxt", Loc: "/var/log/comp"}, true
	for _, c := range []struct {
		job  *cluster.Job
		want string
	}{
		{
			two,
			"JobId=2 UserId=root(0) GroupId=root(0) Name=wrap JobState=COMPLETED Partition=train TimeLimit=5 StartTime=2026-11-22T02:37:54 EndTime=2026-11-22T02:37:54 NodeList=gpu-node-[001-002] NodeCnt=2 ProcCnt=2 WorkDir=/tmp ReservationName= Tres=cpu=2,mem=4000M,node=2,billing=2,gres/gpu=2 Account=root QOS=normal WcKey=k1 Cluster=oracle SubmitTime=2026-11-22T02:37:54 EligibleTime=2026-11-22T02:37:54 DerivedExitCode=0:0 ExitCode=0:0 ",
		},
		{
			task,
			"JobId=3 UserId=root(0) GroupId=root(0) Name=wrap JobState=COMPLETED Partition=train TimeLimit=10080 StartTime=2026-11-22T02:37:54 EndTime=2026-11-22T02:37:54 NodeList=gpu-node-001 NodeCnt=1 ProcCnt=1 WorkDir=/tmp ReservationName= Tres=cpu=1,mem=2000M,node=1,billing=1 Account=root QOS=normal WcKey= Cluster=oracle SubmitTime=2026-11-22T02:37:54 EligibleTime=2026-11-22T02:37:54 ArrayJobId=3 ArrayTaskId=1 DerivedExitCode=0:0 ExitCode=0:0 ",
		},
		{
			never,
			"JobId=4 UserId=root(0) GroupId=root(0) Name=wrap JobState=CANCELLED Partition=train TimeLimit=10080 StartTime=2026-11-22T02:37:54 EndTime=2026-11-22T02:37:54 NodeList=(null) NodeCnt=0 ProcCnt=0 WorkDir=/tmp ReservationName= Tres=cpu=1,mem=2000M,node=1,billing=1 Account=root QOS=normal WcKey= Cluster=oracle SubmitTime=2026-11-22T02:37:54 EligibleTime=unknown DerivedExitCode=0:0 ExitCode=0:0 ",
		},
	} {
		p := Dialect{}.HookProgram(&cluster.Hook{Kind: cluster.HookJobComp, Job: c.job}, &cfg)
		if p.Append != "/var/log/comp" || p.Line != c.want {
			t.Errorf("in %s\n%s\nwant\n%s", p.Append, p.Line, c.want)
		}
	}
	forged := ran(func(_ *cluster.Job, s *cluster.JobSpec) {
		s.Name, s.WorkDir, s.WCKey = "a\nJobId=1 UserId=eve(7)", "/tmp/\rx", "k\x1b[2J"
	})
	line := Dialect{}.HookProgram(&cluster.Hook{Kind: cluster.HookJobComp, Job: forged}, &cfg).Line
	if strings.ContainsAny(line, "\n\r\x1b") || !strings.Contains(line, "Name=a?JobId=1 ") {
		t.Errorf("a job writes records of others: %q", line)
	}
	cfg.JobComp = cluster.JobComp{Kind: "script", Loc: "/etc/comp"}
	p := Dialect{}.HookProgram(&cluster.Hook{Kind: cluster.HookJobComp, Job: never}, &cfg)
	slices.Sort(p.Environ)
	want := "ACCOUNT=root ARRAYJOBID=0 ARRAYTASKID=4294967294 BATCH=yes CLUSTER=oracle CONSTRAINTS= DB_FLAGS=None DEPENDENCY= DERIVED_EC=0:0 END=1795315074 EXITCODE=0:0 GID=0 GROUPNAME=root JOBID=4 " +
		"JOBNAME=wrap JOBSTATE=CANCELLED LIMIT=7-00:00:00 NODECNT=0 NODES= PARTITION=train PATH=/usr/bin:/bin:/usr/sbin:/sbin PROCS=0 QOS=normal RESERVATION= START=1795315074 STATEREASONPREV=None " +
		"STDOUT=/dev/null SUBMIT=1795315074 UID=0 USERNAME=root WORK_DIR=/tmp"
	if got := strings.Join(p.Environ, " "); !slices.Equal(p.Argv, []string{"/etc/comp"}) || got != want {
		t.Errorf("%v\n%s\nwant\n%s", p.Argv, got, want)
	}
}
