package queue

import (
	"slices"
	"strings"
	"testing"
	"time"

	"dev.muster/cluster"
)

var now = time.Date(2026, 11, 29, 10, 0, 0, 0, time.UTC)

// record is a line as a real controller of 22.05 prints it, with changes.
func record(changes ...string) string {
	line := "JobId=8 JobName=a.sh UserId=alice(7001) GroupId=alice(7001) MCS_label=N/A Priority=50132 Nice=0 " +
		"Account=team-a QOS=normal JobState=PENDING Reason=Resources Dependency=(null) Requeue=1 " +
		"Restarts=0 BatchFlag=1 " +
		"Reboot=0 ExitCode=0:0 RunTime=00:00:00 TimeLimit=7-00:00:00 TimeMin=N/A SubmitTime=2026-11-29T09:02:13 " +
		"EligibleTime=2026-11-29T09:02:14 AccrueTime=2026-11-29T09:02:15 " +
		"StartTime=Unknown EndTime=Unknown Deadline=N/A " +
		"SuspendTime=None SecsPreSuspend=0 LastSchedEval=2026-11-29T09:02:13 Scheduler=Main Partition=train " +
		"AllocNode:Sid=localhost:26532 ReqNodeList=(null) ExcNodeList=(null) NodeList= " +
		"NumNodes=2-2 NumCPUs=2 NumTasks=2 " +
		"CPUs/Task=1 ReqB:S:C:T=0:0:*:* TRES=cpu=2,mem=4000M,node=2,billing=2,gres/gpu=4 Socks/Node=* " +
		"NtasksPerN:B:S:C=0:0:*:* CoreSpec=* MinCPUsNode=1 MinMemoryCPU=2000M MinTmpDiskNode=0 Features=(null) " +
		"DelayBoot=00:00:00 OverSubscribe=OK Contiguous=0 Licenses=(null) Network=(null) Command=/tmp/ja/a.sh q r " +
		"WorkDir=/tmp/ja StdErr=/tmp/ja/slurm-8.out StdIn=/dev/null StdOut=/tmp/ja/slurm-8.out Power= "
	for i := 0; i+1 < len(changes); i += 2 {
		line = strings.Replace(line, changes[i], changes[i+1], 1)
	}
	return line + "\n"
}

func rows(t *testing.T, lines ...string) (out []Row) {
	t.Helper()
	for _, l := range lines {
		id, admin, _ := strings.Cut(l, " ")
		text := "7001            " + id + strings.Repeat(" ", 64-len(id)) + admin + "\n"
		r, err := ReadRows(text)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, r...)
	}
	return out
}

// TestRead: which jobs can be moved, and why others cannot.
func TestRead(t *testing.T) {
	for _, c := range []struct{ what, from, to, row, left string }{
		{"plain", "", "", "8 (null)", ""},
		{"interactive", "BatchFlag=1", "BatchFlag=0", "8 (null)", "an interactive srun"},
		{"heterogeneous", "JobId=8", "JobId=8 HetJobId=8", "8 (null)", "heterogeneous"},
		{"requeued", "Restarts=0", "Restarts=2", "8 (null)", "ran before"},
		{"burst buffer", "Power=", "Power= BurstBuffer=x", "8 (null)", "burst buffer"},
		{"failed dependency", "Dependency=(null)", "Dependency=afterok:3(failed)", "8 (null)", "never be satisfied"},
		{"not listed", "", "", "9 (null)", "squeue does not list it"},
		{"a name with an owner", "JobName=a.sh", "JobName=x UserId=root(0)", "8 (null)", "contains UserId="},
		{"another owner", "UserId=alice(7001)", "UserId=root(0)", "8 (null)", "disagree about its user"},
		{"no submit time", "SubmitTime=2", "SubmitTime=x2", "8 (null)", "submit time is not known"},
		{"a submit time to come", "SubmitTime=2026-11-29T09", "SubmitTime=2026-11-29T19", "8 (null)", "submit time"},
	} {
		t.Run(c.what, func(t *testing.T) {
			jobs := Read(record(c.from, c.to), rows(t, c.row), now, time.UTC)
			if len(jobs) != 1 || !strings.Contains(jobs[0].Left, c.left) || c.left == "" && jobs[0].Left != "" {
				t.Errorf("%+v", jobs[0])
			}
		})
	}
}

// TestMark: a job that was held for the move has its times and its hold from the mark, which no user writes.
func TestMark(t *testing.T) {
	first := Read(record("Reason=Resources", "Reason=JobHeldUser"), rows(t, "8 note"), now, time.UTC)[0]
	if first.Moved.Held != cluster.HeldUser || first.Mark != nil || first.Admin != "note" {
		t.Fatalf("%+v", first)
	}
	mark := first.NewMark()
	mark.Job = 12
	held := record("EligibleTime=2026-11-29T09:02:14", "EligibleTime=Unknown", "AccrueTime=2026-11-29T09:02:15",
		"AccrueTime=Unknown", "Reason=Resources", "Reason=JobHeldAdmin")
	again := Read(held, rows(t, "8 "+mark.Text("note")), now, time.UTC)[0]
	if again.Mark == nil || *again.Mark != *mark || again.Admin != "note" || again.Moved != first.Moved {
		t.Errorf("%+v, want %+v", again, first)
	}
	forged := Read(record("Power=", "Power= AdminComment="+mark.Text("x")), rows(t, "8 (null)"), now, time.UTC)[0]
	if forged.Mark != nil {
		t.Errorf("%+v", forged)
	}
	for _, text := range []string{"", "x", "muster-move:", "muster-move:9,1,1,1|", "muster-move:0,1,1|"} {
		if _, _, ok := readMark(text); ok {
			t.Errorf("%q is a mark", text)
		}
	}
}

// TestLine: the options of a job, as sbatch reads them.
func TestLine(t *testing.T) {
	always := "--job-name=a.sh --partition=train --account=team-a --qos=normal --time=7-00:00:00 --chdir=/tmp/ja " +
		"--output=/tmp/ja/slurm-8.out --error=/tmp/ja/slurm-8.out --mem-per-cpu=2000M"
	for _, c := range []struct{ what, from, to, more, bad string }{
		{"nodes", "", "", "--nodes=2-2 --requeue", ""},
		{"no nodes", "NumNodes=2-2", "NumNodes=1", "--ntasks=2 --requeue", ""},
		{"tasks per node", "NtasksPerN:B:S:C=0:0:*:*", "NtasksPerN:B:S:C=4:0:*:*",
			"--nodes=2-2 --ntasks-per-node=4 --ntasks=2 --requeue", ""},
		{"no requeue", "Requeue=1", "Requeue=0", "--nodes=2-2 --no-requeue", ""},
		{"exclusive", "OverSubscribe=OK", "OverSubscribe=NO", "--nodes=2-2 --exclusive --requeue", ""},
		{"newer, not exclusive", "OverSubscribe=OK", "OverSubscribe=NO Exclusive=NO", "--nodes=2-2 --requeue", ""},
		{"newer, exclusive", "OverSubscribe=OK", "OverSubscribe=NO Exclusive=NODE",
			"--nodes=2-2 --exclusive --requeue", ""},
		{"gres", "Power=", "Power= TresPerNode=gres:gpu:h100:2,gres:tmp:3",
			"--nodes=2-2 --requeue --gres=gpu:h100:2,tmp:3", ""},
		{"gpus", "Power=", "Power= TresPerJob=gres/gpu:4", "--nodes=2-2 --requeue --gpus=4", ""},
		{"gpus per task", "Power=", "Power= TresPerTask=cpu=2,gres/gpu=1",
			"--nodes=2-2 --requeue --gpus-per-task=1", ""},
		{"other per task", "Power=", "Power= TresPerTask=gres/tmp=1", "", "TresPerTask=gres/tmp=1 is not supported"},
		{"begin", "EligibleTime=2026-11-29T09:02:14", "EligibleTime=2026-11-29T19:02:14",
			"--nodes=2-2 --requeue --begin=2026-11-29T19:02:14", ""},
		{"dependency", "Dependency=(null)",
			"Dependency=afterok:5(unfulfilled):6_*(unfulfilled)?after:7+10(unfulfilled)",
			"--nodes=2-2 --requeue --dependency=afterok:50:6?after:7+10", ""},
		{"array", "JobId=8", "JobId=8 ArrayJobId=8 ArrayTaskId=0-9%3", "--nodes=2-2 --array=0-9%3 --requeue", ""},
		{"unknown", "Power=", "Power= Novel=1", "", "the field Novel=1 is unknown"},
		{"unknown without effect", "Power=", "Power= Novel=(null)", "--nodes=2-2 --requeue", ""},
		{"unsupported", "DelayBoot=00:00:00", "DelayBoot=00:01:00", "", "DelayBoot=00:01:00 is not supported"},
	} {
		t.Run(c.what, func(t *testing.T) {
			j := Read(record(c.from, c.to), rows(t, "8 (null)"), now, time.UTC)[0]
			line, err := j.Line(map[cluster.JobID]cluster.JobID{5: 50}, now, time.UTC)
			if c.bad != "" {
				if err == nil || err.Error() != c.bad {
					t.Errorf("%v, want %s", err, c.bad)
				}
				return
			}
			if got, want := strings.Join(line, " "), always+" "+c.more; err != nil || got != want {
				t.Errorf("%v\n%s\nwant\n%s", err, got, want)
			}
			if !slices.Equal(j.Args(), []string{"q", "r"}) {
				t.Errorf("%q", j.Args())
			}
		})
	}
}

// TestArray: the head of an array has its number, and no command touches tasks that run.
func TestArray(t *testing.T) {
	text := record("JobId=8", "JobId=9 ArrayJobId=8 ArrayTaskId=1", "JobState=PENDING", "JobState=RUNNING") +
		record("JobId=8", "JobId=8 ArrayJobId=8 ArrayTaskId=2-9%3", "slurm-8.out ", "slurm-8_4294967294.out ")
	j := Read(text, rows(t, "8_[2-9%3] (null)"), now, time.UTC)[0]
	if j.ID != 8 || j.Target != "8_[2-9]" || j.Left != "" {
		t.Errorf("%+v", j)
	}
	if line, err := j.Line(nil, now, time.UTC); err != nil || !slices.Contains(line, "--error=/tmp/ja/slurm-8_%a.out") {
		t.Errorf("%q %v", line, err)
	}
	text += record("JobId=8", "JobId=10 ArrayJobId=8 ArrayTaskId=1")
	for _, j := range Read(text, rows(t, "8_[2-9%3] (null)", "8_1 (null)"), now, time.UTC) {
		if !strings.Contains(j.Left, "differ") {
			t.Errorf("%+v", j)
		}
	}
}

// TestDepends: a job waits in the same place as those that it depends on, and those that depend on it.
func TestDepends(t *testing.T) {
	line := func(id, on, kind string) string {
		dep := "Dependency=(null)"
		if on != "" {
			dep = "Dependency=afterok:" + on + "(unfulfilled)"
		}
		return record("JobId=8", "JobId="+id, "Dependency=(null)", dep, "BatchFlag=1", "BatchFlag="+kind)
	}
	text := line("1", "", "1") + line("2", "3", "1") + line("3", "1", "1") + // 2 after 3 after 1
		line("4", "", "1") + line("5", "4", "0") + // 5 is interactive
		line("6", "7", "1") + record("JobId=8", "JobId=7", "JobState=PENDING", "JobState=RUNNING") +
		line("8", "99", "1")
	jobs := Read(text, rows(t, "1", "2", "3", "4", "5", "6", "7", "8"), now, time.UTC)
	Close(jobs)
	want := map[cluster.JobID]string{4: "job 5 depends on it and stays", 5: "an interactive",
		6: "job 7, which runs in Slurm", 8: "job 99, which is not pending"}
	var moving []*Job
	for _, j := range jobs {
		if !strings.Contains(j.Left, want[j.ID]) || (j.Left == "") != (want[j.ID] == "") {
			t.Errorf("job %d: %q", j.ID, j.Left)
		}
		if j.Left == "" {
			moving = append(moving, j)
		}
	}
	var order []cluster.JobID
	for _, j := range Order(moving) {
		order = append(order, j.ID)
	}
	if !slices.Equal(order, []cluster.JobID{1, 3, 2}) {
		t.Errorf("%d", order)
	}
}

// TestEnviron reads what slurmctld stores, and refuses anything else.
func TestEnviron(t *testing.T) {
	got, err := Environ([]byte("\x02\x00\x00\x00A=1\x00B=x y\n\x00"))
	if err != nil || !slices.Equal(got, []string{"A=1", "B=x y\n"}) {
		t.Errorf("%q %v", got, err)
	}
	for _, bad := range []string{"", "\x01\x00\x00", "\x03\x00\x00\x00A=1\x00B=2\x00", "\x01\x00\x00\x00A=1"} {
		if got, err := Environ([]byte(bad)); err == nil {
			t.Errorf("%q is read as %q", bad, got)
		}
	}
}
