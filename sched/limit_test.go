package sched_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"dev.muster/cluster"
	"dev.muster/sched"
	"dev.muster/sched/explain"
	"dev.muster/sched/schedtest"
)

// ruled is a testbed of four nodes with accounts: users u and v in team, which is below group; and the
// partitions main and strict, whose QOS is gate.
type ruled struct{ *testbed }

func newRuled(t testing.TB, nodes int, root, group, team, user, qos, gate string, flags ...string) ruled {
	return ruled{of(schedtest.Ruled(t, nodes, root, group, team, user, qos, gate, flags...))}
}

// ruledJob reads a job: "u 4cpu 2gpu 1000mb 2nodes 60min strict 3tasks"; 0min leaves the time limit open.
func ruledJob(text string) *cluster.JobSpec {
	s := &cluster.JobSpec{Layout: &cluster.Layout{}, Name: "j", UID: 1, User: "u", Limit: time.Hour}
	s.Mem = cluster.Mem{Per: cluster.MemPerNode, MB: 100}
	for _, w := range strings.Fields(text) {
		n, unit := 0, ""
		_, _ = fmt.Sscanf(w, "%d%s", &n, &unit)
		switch unit {
		case "cpu":
			s.CPUsPerTask = n
		case "gpu":
			s.PerNode = []cluster.GRES{{Name: "gpu", Count: int64(n)}}
		case "mb":
			s.Mem.MB = cluster.MemMB(n)
		case "nodes":
			s.MinNodes, s.MaxNodes = n, n
		case "min":
			s.Limit = time.Duration(n) * time.Minute
		case "tasks":
			s.Array = &cluster.ArraySpec{Tasks: cluster.RangeIDSet(0, n-1)}
		default:
			if w == "v" {
				s.User, s.UID = "v", 2
			} else if w == "hold" {
				s.Hold = true
			} else if w == "whole" {
				s.Sharing = cluster.ShareExclusive
			} else if w != "u" {
				s.Partitions = []string{w}
			}
		}
	}
	return s
}

// TestLimits has a case for each class of limit: the jobs submitted in this order, and for each why it
// waits, - if it starts, or the limit by which it is refused.
func TestLimits(t *testing.T) {
	for _, c := range []struct{ limits, jobs, want string }{
		// of associations: where: limits; each job's
		{"user: MaxJobs=2", "u, u, u, v", "- - AssocMaxJobsLimit -"},
		{"team: MaxJobs=1", "u, u, v, v", "- AssocMaxJobsLimit - AssocMaxJobsLimit"},
		{"team: MaxJobs=1; user: MaxJobs=2", "u, u, u, v, v", "- - AssocMaxJobsLimit - AssocMaxJobsLimit"},
		{"user: MaxJobs=2", "u 5tasks", "AssocMaxJobsLimit"},
		{"team: GrpJobs=2", "u, v, u", "- - AssocGrpJobsLimit"},
		{"group: GrpJobs=2", "u, v, u", "- - AssocGrpJobsLimit"},
		{"root: GrpJobs=2", "u, v, u", "- - AssocGrpJobsLimit"},
		{"team: GrpJobs=3; root: GrpJobs=2", "u, v, u", "- - AssocGrpJobsLimit"},
		{"user: MaxSubmitJobs=2", "u, u, u, v", "- - refused:AssocMaxSubmitJobLimit -"},
		{"user: MaxSubmitJobs=2", "u 3tasks, u 2tasks", "refused:AssocMaxSubmitJobLimit -"},
		{"team: GrpSubmitJobs=2", "u, v, u", "- - refused:AssocGrpSubmitJobsLimit"},
		{"team: GrpTRES=cpu=4", "u 3cpu, v 2cpu, v 1cpu", "- AssocGrpCpuLimit -"},
		{"group: GrpTRES=mem=300", "u 200mb, v 200mb, v 100mb", "- AssocGrpMemLimit -"},
		{"team: GrpTRES=node=2", "u 2nodes, v", "- AssocGrpNodeLimit"},
		{"team: GrpTRES=gres/gpu=2", "u 2gpu, v 1gpu, v", "- AssocGrpGRES -"},
		{"team: GrpTRES=billing=4", "u 3cpu, v 2cpu", "- AssocGrpBilling"},
		{"team: GrpTRESRunMins=cpu=100", "u 60min, v 60min, v 40min", "- AssocGrpCPURunMinutesLimit -"},
		{"team: GrpTRESMins=cpu=0", "u", "AssocGrpCPUMinutesLimit"},
		{"team: GrpTRESMins=gres/gpu=0", "u, u 1gpu", "- AssocGrpGRESMinutes"},
		{"team: GrpWall=0", "u", "AssocGrpWallLimit"},
		{"user: MaxWall=1800", "u 60min, u 30min", "AssocMaxWallDurationPerJobLimit -"},
		{"team: MaxWall=1800", "u 60min, v 30min", "AssocMaxWallDurationPerJobLimit -"},
		{"user: MaxTRES=cpu=2", "u 3cpu, u 2cpu, v 3cpu", "AssocMaxCpuPerJobLimit - -"},
		{"user: MaxTRES=mem=200", "u 201mb, u 200mb", "AssocMaxMemPerJob -"},
		{"user: MaxTRES=node=1", "u 2nodes, u 1nodes", "AssocMaxNodePerJobLimit -"},
		{"user: MaxTRES=gres/gpu=1", "u 2gpu, u 1gpu", "AssocMaxGRESPerJob -"},
		{"user: MaxTRESPerNode=cpu=2", "u 3cpu, u 2cpu 2nodes", "AssocMaxCpuPerNode -"},
		{"user: MaxTRESMins=cpu=60", "u 2cpu 60min, u 60min", "AssocMaxCpuMinutesPerJobLimit -"},
		// of QOS
		{"qos: MaxJobsPerUser=1", "u, u, v, v", "- QOSMaxJobsPerUserLimit - QOSMaxJobsPerUserLimit"},
		{"qos: MaxJobsPerUser=3; user: MaxJobs=1", "u, u", "- -"},
		{"qos: MaxJobsPerAccount=1", "u, v", "- MaxJobsPerAccount"},
		{"qos: MaxSubmitJobsPerUser=1", "u, u, v", "- refused:QOSMaxSubmitJobPerUserLimit -"},
		{"qos: MaxSubmitJobsPerAccount=1", "u, v", "- refused:MaxSubmitJobsPerAccount"},
		{"qos: GrpSubmitJobs=1", "u, v", "- refused:QOSGrpSubmitJobsLimit"},
		{"qos: GrpJobs=1", "u, v", "- QOSGrpJobsLimit"},
		{"qos: GrpTRES=cpu=4", "u 3cpu, v 2cpu", "- QOSGrpCpuLimit"},
		{"qos: GrpTRES=cpu=4; team: GrpTRES=cpu=2", "u 3cpu, v 2cpu", "- QOSGrpCpuLimit"},
		{"qos: GrpTRES=mem=300", "u 200mb, v 200mb", "- QOSGrpMemLimit"},
		{"qos: GrpTRESMins=mem=0", "u", "QOSGrpMemoryMinutes"},
		{"qos: GrpTRESRunMins=cpu=100", "u 60min, v 60min, v 40min", "- QOSGrpCPURunMinutesLimit -"},
		{"qos: GrpWall=0", "u", "QOSGrpWallLimit"},
		{"qos: MaxWall=1800", "u 60min, u 30min", "QOSMaxWallDurationPerJobLimit -"},
		{"qos: MaxWall=7200; user: MaxWall=1800", "u 60min", "-"},
		{"qos: MaxTRES=cpu=2", "u 3cpu, u 2cpu", "QOSMaxCpuPerJobLimit -"},
		{"qos: MaxTRES=mem=200", "u 201mb", "QOSMaxMemoryPerJob"},
		{"qos: MaxTRES=node=1", "u 2nodes", "QOSMaxNodePerJobLimit"},
		{"qos: MaxTRESPerNode=gres/gpu=1", "u 2gpu, u 1gpu 2nodes", "QOSMaxGRESPerNode -"},
		{"qos: MaxTRESMins=cpu=60", "u 2cpu 60min", "QOSMaxCpuMinutesPerJobLimit"},
		{"qos: MaxTRESPerUser=cpu=4", "u 3cpu, u 2cpu, v 3cpu", "- QOSMaxCpuPerUserLimit -"},
		{"qos: MaxTRESPerUser=gres/gpu=2", "u 2gpu, u 1gpu, v 1gpu", "- QOSMaxGRESPerUser -"},
		{"qos: MaxTRESPerUser=node=1", "u, u", "- QOSMaxNodePerUserLimit"},
		{"qos: MaxTRESPerAccount=cpu=4", "u 3cpu, v 2cpu", "- MaxCpuPerAccount"},
		{"qos: MaxTRESRunMinsPerUser=cpu=100", "u 60min, u 60min, v 60min", "- QOSGrpCPURunMinutesLimit -"},
		{"qos: MaxTRESRunMinsPerAccount=cpu=100", "u 60min, v 60min", "- QOSGrpCPURunMinutesLimit"},
		{"qos: MinTRES=cpu=2", "u, u 2cpu", "QOSMinCpuNotSatisfied -"},
		{"qos: MinTRES=gres/gpu=1", "u, u 1gpu", "QOSMinGRES -"},
		// of the partition's QOS, which comes first; or the job's, if it says so
		{"gate: MaxJobsPerUser=1", "u strict, u strict, u", "- QOSMaxJobsPerUserLimit -"},
		{"gate: MaxJobsPerUser=2; qos: MaxJobsPerUser=1", "u strict, u strict, u strict", "- - QOSMaxJobsPerUserLimit"},
		{
			"gate: MaxJobsPerUser=2; qos: MaxJobsPerUser=1; flags: OverPartQOS", "u strict, u strict",
			"- QOSMaxJobsPerUserLimit",
		},
		{"gate: GrpTRES=cpu=2", "u 2cpu strict, v strict, v", "- QOSGrpCpuLimit -"},
		// of the partition
		{"", "u 3cpu few, u 2cpu few, v 2cpu few, u 2cpu", "- QOSMaxCpuPerUserLimit - -"},
		// what the job alone cannot keep
		{"qos: MaxTRES=cpu=2; flags: DenyOnLimit", "u 3cpu, u 2cpu", "refused:QOSMaxCpuPerJobLimit -"},
		{"qos: GrpTRES=cpu=4; flags: DenyOnLimit", "u 5cpu, u 3cpu, u 3cpu", "refused:QOSGrpCpuLimit - QOSGrpCpuLimit"},
		{"qos: MaxWall=1800; flags: DenyOnLimit", "u 60min", "refused:QOSMaxWallDurationPerJobLimit"},
		{"user: MaxTRES=cpu=2; flags: DenyOnLimit", "u 3cpu", "refused:AssocMaxCpuPerJobLimit"},
		{"qos: MinTRES=cpu=2; flags: DenyOnLimit", "u", "refused:QOSMinCpuNotSatisfied"},
		{"qos: GrpTRESRunMins=cpu=100; flags: DenyOnLimit", "u 2cpu, u", "refused:QOSGrpCPURunMinutesLimit -"},
		{"qos: GrpTRESMins=cpu=100; flags: DenyOnLimit", "u 2cpu, u", "refused:QOSGrpCPUMinutesLimit -"},
		{"qos: GrpWall=1800; flags: DenyOnLimit", "u 60min, u 30min", "refused:QOSGrpWallLimit -"},
		{"qos: GrpJobs=0; flags: DenyOnLimit", "u", "QOSGrpJobsLimit"},
		// a partition's time limit, and a QOS that lifts it
		{"", "u 60min short, u 10min short", "PartitionTimeLimit -"},
		{"flags: PartitionTimeLimit", "u 60min short", "-"},
	} {
		t.Run(c.limits+"/"+c.jobs, func(t *testing.T) {
			b := rules(t, c.limits)
			var jobs []cluster.JobID
			var got []string
			for _, text := range strings.Split(c.jobs, ",") {
				b.N++
				out := b.S.Apply(cluster.Entry{
					Index: b.N, At: b.Now, By: cluster.Identity{System: true},
					Cmd: &cluster.Submit{Spec: ruledJob(text)},
				})
				id := cluster.JobID(0)
				if out.Err == nil {
					id = out.Result.(cluster.JobID)
				} else if out.Err.Kind == cluster.ErrPolicy {
					got = append(got, "refused:"+out.Err.Hint)
				} else {
					t.Fatal(out.Err)
				}
				if id != 0 {
					got = append(got, "")
				}
				jobs = append(jobs, id)
			}
			b.ScheduleAll()
			for i, id := range jobs {
				if j, ok := b.S.Job(id); ok && j.Phase == cluster.Pending {
					got[i] = string(j.Wait)
					b.told(j)
				} else if ok {
					got[i] = "-"
				}
			}
			if text := strings.Join(got, " "); text != c.want {
				t.Errorf("got %s\nwant %s", text, c.want)
			}
			b.letsGo(c.limits, strings.Split(c.jobs, ","), jobs)
		})
	}
}

// TestLimitsOnRange: of a range of nodes a job gets as many as a limit allows, and waits if the fewest are too many.
// Tasks that need more nodes wait for the limit, too.
func TestLimitsOnRange(t *testing.T) {
	for _, c := range []struct {
		limits                    string
		least, most, tasks, nodes int
		why                       cluster.Reason
	}{
		{limits: "qos: MaxTRES=node=3", least: 1, most: 8, nodes: 3},
		{limits: "user: MaxTRES=node=3", least: 1, most: 8, nodes: 3},
		{limits: "team: MaxTRES=node=2", least: 2, most: 8, nodes: 2},
		{limits: "qos: GrpTRES=node=3", least: 1, most: 8, nodes: 3},
		{limits: "qos: MaxTRESPerUser=node=1", least: 1, most: 8, nodes: 1},
		{limits: "qos: MaxTRES=node=3", least: 1, most: 2, nodes: 2},
		{limits: "qos: MaxTRES=node=3", least: 4, most: 8, why: "QOSMaxNodePerJobLimit"},
		{limits: "user: MaxTRES=node=3", least: 4, most: 8, why: "AssocMaxNodePerJobLimit"},
		{limits: "qos: MaxTRES=node=3", tasks: 50, why: "QOSMaxNodePerJobLimit"},
	} {
		t.Run(fmt.Sprintf("%s/%d-%d", c.limits, c.least, c.most), func(t *testing.T) {
			b := rules(t, c.limits)
			id := b.Submit(func(s *cluster.JobSpec) {
				layout := cluster.Layout{MinNodes: c.least, MaxNodes: c.most, Tasks: c.tasks}
				*s = *ruledJob("u")
				layout.Mem = s.Mem
				s.Layout = &layout
			})
			b.ScheduleAll()
			j, _ := b.S.Job(id)
			nodes := 0
			if j.Alloc != nil {
				nodes = len(j.Alloc.Shares)
			}
			if nodes != c.nodes || j.Phase == cluster.Pending && j.Wait != c.why {
				t.Errorf("it has %d nodes, %q; want %d, %q", nodes, j.Wait, c.nodes, c.why)
			}
		})
	}
}

// told wants the limit that a job waits for among the causes that are told.
func (b ruled) told(j *cluster.Job) {
	b.T.Helper()
	causes := explain.Job(b.S.Snapshot(), b.Now, j.ID).Causes
	limited := strings.HasPrefix(string(j.Wait), "Assoc") || strings.HasPrefix(string(j.Wait), "QOS")
	if limited && !slices.ContainsFunc(causes, func(c explain.Cause) bool { return c.Reason == j.Wait }) {
		b.T.Errorf("job %d waits for %s, told is %+v", j.ID, j.Wait, causes)
	}
}

// TestOverrun: of a limit that is in the way is told whose it is, its figures, and when there is room.
func TestOverrun(t *testing.T) {
	for _, c := range []struct{ limits, jobs, want, hint string }{
		{
			"user: MaxJobs=2", "u 30min, u 90min, u",
			"MaxJobs=2 of user u in account team: 2 jobs run now; there is room at 2026-03-01 08:30:00 when job " +
				"1 is over",
			"sacctmgr show assoc where account=team user=u",
		},
		{
			"group: GrpJobs=1", "v, u",
			"GrpJobs=1 of account group: 1 job runs now; there is room at 2026-03-01 09:00:00 when job 1 is over",
			"sacctmgr show assoc where account=group",
		},
		{
			"team: GrpTRES=cpu=8", "u 3cpu 50min, v 4cpu 20min, v 5cpu",
			"GrpTRES=cpu=8 of account team: 7 in use, the job asks for 5; there is room at 2026-03-01 08:20:00 " +
				"when job 2 is over",
			"sacctmgr show assoc where account=team",
		},
		{
			"team: GrpTRES=cpu=8", "u 3cpu 50min, v 4cpu 20min, v 8cpu",
			"GrpTRES=cpu=8 of account team: 7 in use, the job asks for 8; there is room at 2026-03-01 08:50:00 " +
				"when job 1 is over",
			"sacctmgr show assoc where account=team",
		},
		{
			"team: GrpTRES=cpu=8", "u 3cpu, v 9cpu",
			"GrpTRES=cpu=8 of account team: 3 in use, the job asks for 9; it never fits",
			"sacctmgr show assoc where account=team",
		},
		{
			"qos: GrpTRES=mem=300", "u 200mb, v 200mb",
			"GrpTRES=mem=300MB of QOS normal: 200 MB in use, the job asks for 200 MB; there is room at " +
				"2026-03-01 09:00:00 when job 1 is over",
			"sacctmgr show qos normal",
		},
		{
			"team: GrpTRESRunMins=cpu=100", "u 60min, v 50min",
			"GrpTRESRunMins=cpu=100 of account team: what runs has 60 minutes left, the job asks for 50 minutes",
			"sacctmgr show assoc where account=team",
		},
		{
			"team: GrpTRESMins=cpu=0", "u", "GrpTRESMins=cpu=0 of account team: 0 minutes used up",
			"sacctmgr show assoc where account=team",
		},
		{
			"user: MaxWall=1800", "u 60min",
			"MaxWall=30min of user u in account team: the job asks for 1 h; it never fits",
			"sacctmgr show assoc where account=team user=u",
		},
		{
			"user: MaxTRES=gres/gpu=1", "u 2gpu",
			"MaxTRES=gres/gpu=1 of user u in account team: the job asks for 2; it never fits",
			"sacctmgr show assoc where account=team user=u",
		},
		{"qos: MinTRES=cpu=2", "u", "MinTRES=cpu=2 of QOS normal: the job asks for 1", "sacctmgr show qos normal"},
		{
			"qos: MaxTRESPerUser=cpu=4", "u 3cpu, u 2cpu",
			"MaxTRESPerUser=cpu=4 of QOS normal for user u: 3 in use, the job asks for 2; there is room at " +
				"2026-03-01 09:00:00 when job 1 is over",
			"sacctmgr show qos normal",
		},
		{
			"qos: MaxJobsPerAccount=1", "v, u",
			"MaxJobsPerAccount=1 of QOS normal for account team: 1 job runs now; there is room at 2026-03-01 " +
				"09:00:00 when job 1 is over",
			"sacctmgr show qos normal",
		},
		{
			"user: MaxJobs=9", "u 3cpu few, u 2cpu few",
			"MaxCPUsPerUser=4 of partition few for user u: 3 in use, the job asks for 2; there is room at " +
				"2026-03-01 09:00:00 when job 1 is over",
			"scontrol show partition few",
		},
		{
			"team: GrpTRES=cpu=18", "u 3cpu, u 2cpu whole",
			"GrpTRES=cpu=18 of account team: 3 in use, the job asks for 16; there is room at 2026-03-01 " +
				"09:00:00 when job 1 is over",
			"sacctmgr show assoc where account=team",
		},
	} {
		b := rules(t, c.limits)
		var last cluster.JobID
		for _, text := range strings.Split(c.jobs, ",") {
			last = b.add(text)
		}
		b.ScheduleAll()
		j, _ := b.S.Job(last)
		list := explain.Job(b.S.Snapshot(), b.Now, last).Causes
		want := explain.Cause{Reason: j.Wait, Text: "partition " + j.Spec.Partitions[0] + ": " + c.want, Hint: c.hint}
		if j.Wait == cluster.NoReason || len(list) == 0 || list[0] != want {
			t.Errorf("%s; %s\ngot  %+v\nwant %s, %s", c.limits, c.jobs, list, c.want, c.hint)
		}
	}
}

// rules is newRuled with limits in one line, as in "team: GrpJobs=2; user: MaxJobs=1".
func rules(t testing.TB, limits string) ruled {
	set := map[string]string{}
	for _, part := range strings.Split(limits, ";") {
		where, text, _ := strings.Cut(strings.TrimSpace(part), ":")
		set[where] = text
	}
	return newRuled(t, 4, set["root"], set["group"], set["team"], set["user"], set["qos"], set["gate"], strings.Fields(set["flags"])...)
}

// letsGo wants what a limit held back to go on: for one on what is in use once that is over, for others once they are
// lifted.
func (b ruled) letsGo(limits string, texts []string, jobs []cluster.JobID) {
	b.T.Helper()
	inUse := regexp.MustCompile(`^\w+: *(GrpJobs|GrpTRES|GrpTRESRunMins|MaxJobs|MaxSubmitJobs|GrpSubmitJobs|Max\w+Per(User|Account))=[^;]*$`).MatchString(limits) && !strings.Contains(texts[0], "tasks")
	if !inUse {
		b.Apply(&cluster.ChangeAccounts{Changes: []cluster.Change{{
			QOS: &cluster.QOS{Name: "normal", UsageFactor: 1, Flags: []string{"PartitionTimeLimit"}},
		},
			{QOS: &cluster.QOS{Name: "gate", UsageFactor: 1}},
			{Assoc: &cluster.Association{Account: "root", Shares: 1, QOS: []string{"normal", "gate"}}},
			{Assoc: &cluster.Association{Account: "group", Shares: 1}},
			{Assoc: &cluster.Association{Account: "team", Shares: 1}, Under: "group"},
			{Assoc: &cluster.Association{Account: "team", User: "u", Shares: 1}}}})
	}
	for i, id := range jobs {
		for range texts { // as many rounds as there are jobs that may wait for each other
			for j := range b.S.Snapshot().Live() {
				b.EndJob(j.ID)
			}
			b.Now = b.Now.Add(time.Second)
			b.ScheduleAll()
		}
		if id == 0 {
			id = b.add(texts[i])
			b.ScheduleAll()
		}
		if j, ok := b.S.Job(id); ok && j.Phase == cluster.Pending && j.ArrayID == 0 {
			b.T.Errorf("job %d (%s) still waits for %s (lifted: %v)", id, texts[i], j.Wait, !inUse)
		}
	}
}

// TestLimitsPass: a job that a limit holds back does not block those behind it, and starts once there is room.
func TestLimitsPass(t *testing.T) {
	b := newRuled(t, 1, "", "", "", "MaxJobs=1", "", "")
	first, second, other := b.add("u"), b.add("u"), b.add("v")
	b.ScheduleAll()
	if j, _ := b.S.Job(second); j.Wait != "AssocMaxJobsLimit" || b.phase(other) == cluster.Pending {
		t.Errorf("the second waits for %s, the one behind it is in phase %d", j.Wait, b.phase(other))
	}
	b.EndJob(first)
	b.ScheduleAll()
	if b.phase(second) == cluster.Pending {
		t.Error("the second does not start when the first is over")
	}
}

// TestLimitStop: a job that a limit holds back, a heterogeneous one as well as a plain one, holds back those behind
// it in its partitions if it is to (assoc_limit_stop); one that waits for something else does not.
func TestLimitStop(t *testing.T) {
	for _, c := range []struct{ limits, jobs, want string }{
		{"qos: GrpTRES=cpu=4", "u 5cpu, u, v, u brief", "QOSGrpCpuLimit Priority Priority -"},
		{"qos: GrpTRES=cpu=4", "u 5cpu : u, u, v, u brief", "QOSGrpCpuLimit+ Priority Priority -"},
		{"qos: GrpTRES=cpu=4", "u 3cpu : u 3cpu, u, v, u brief", "+QOSGrpCpuLimit Priority Priority -"},
		{"user: MaxJobs=1", "u : u, u", "+AssocMaxJobsLimit Priority"},
		{
			"qos: GrpTRES=cpu=4", "u 3cpu : u 3cpu brief, u brief, u", "+QOSGrpCpuLimit Priority -",
		}, // as the one that the limit keeps
		{"qos: GrpTRES=cpu=17", "u 1cpu whole : u 1cpu whole, u", "QOSGrpCpuLimit+ Priority"}, // for what it would get
		{"qos: GrpTRES=cpu=4", "u 3cpu : u 3cpu hold, u", "+JobHeldUser -"},
		{"qos: GrpTRES=cpu=90", "u 5nodes : u, u", "PartitionNodeLimit+ -"},
	} {
		for _, stop := range []bool{true, false} {
			b := rules(t, c.limits)
			cfg := *b.S.Config()
			cfg.LimitStop = stop
			b.Apply(&cluster.Configure{Config: &cfg})
			var got []string
			var jobs []cluster.JobID
			for _, text := range strings.Split(c.jobs, ",") {
				jobs = append(jobs, b.addHet(text))
			}
			b.ScheduleAll()
			for k, id := range jobs {
				j, _ := b.S.Job(id)
				word := string(j.Wait)
				if j.Phase != cluster.Pending {
					word = "-"
				}
				if o, _ := b.S.Job(id + 1); k == 0 && j.Het != nil {
					word += "+" + string(o.Wait)
				}
				got = append(got, word)
			}
			want := strings.Fields(c.want)
			if !stop { // then the first one's reason changes as others start
				got[0], want = want[0], strings.Fields(strings.ReplaceAll(c.want, "Priority", "-"))
			}
			if !slices.Equal(got, want) {
				t.Errorf("%s; %s, stop %v: got %s, want %s", c.limits, c.jobs, stop, got, want)
			}
		}
	}
}

// addHet is add for a job whose components a colon separates.
func (b ruled) addHet(text string) cluster.JobID {
	b.T.Helper()
	parts := strings.Split(text, ":")
	if len(parts) == 1 {
		return b.add(text)
	}
	c := &cluster.SubmitHet{}
	for _, one := range parts {
		c.Specs = append(c.Specs, ruledJob(one))
	}
	return b.Apply(c).(cluster.JobID)
}

func (b ruled) add(text string) cluster.JobID {
	b.T.Helper()
	return b.Apply(&cluster.Submit{Spec: ruledJob(text)}).(cluster.JobID)
}

func (b ruled) phase(id cluster.JobID) cluster.Phase {
	j, _ := b.S.Job(id)
	return j.Phase
}

// TestLimitsHold is the property: whatever is submitted and ends, no pass goes over any limit. The running jobs are
// summed again from all jobs.
func TestLimitsHold(t *testing.T) {
	for seed := range uint64(8) {
		rnd := rand.New(rand.NewPCG(seed, 1))
		b := newRuled(t, 6, "GrpTRES=cpu=40", "GrpJobs=9", "GrpTRES=gres/gpu=7", "MaxJobs=4",
			"MaxTRESPerUser=mem=9000 GrpTRESRunMins=cpu=2000", "GrpTRES=node=3 MaxJobsPerUser=6")
		for range 60 {
			for range rnd.IntN(6) {
				b.add(fmt.Sprintf("%s %dcpu %dgpu %dmb %dnodes %dmin %s", []string{
					"u", "v",
				}[rnd.IntN(2)], 1+rnd.IntN(6), rnd.IntN(3), 100+rnd.IntN(3000),
					1+rnd.IntN(2), 10+rnd.IntN(100), []string{"main", "strict", "few"}[rnd.IntN(3)]))
			}
			b.ScheduleAll()
			b.holds(seed)
			for j := range b.S.Snapshot().Live() {
				if rnd.IntN(3) == 0 {
					b.EndJob(j.ID)
				}
			}
			b.Now = b.Now.Add(time.Duration(rnd.IntN(300)) * time.Second)
		}
		var text bytes.Buffer
		if err := b.S.Snapshot().Encode(&text); err != nil {
			t.Fatal(err)
		}
		again, err := cluster.Decode(&text)
		if err != nil {
			t.Fatal(err)
		}
		if err := again.Check(); err != nil {
			t.Errorf("seed %d: read back: %v", seed, err)
		}
	}
}

func (b ruled) holds(seed uint64) {
	b.T.Helper()
	sums := map[string]float64{}
	users := map[string]float64{}
	for j := range b.S.Live() {
		add := func(k string, n float64) { sums[k] += n }
		add("jobs", 1)
		users["jobs "+j.Spec.User+" "+j.Alloc.Partition]++
		for _, sh := range j.Alloc.Shares {
			cpus := float64(sh.CPUs.Len())
			add("cpu", cpus)
			add("gpu", float64(sh.GPUs.Len()))
			add("mem "+j.Spec.User, float64(sh.MemMB))
			add("run", float64(cpus*max(j.Limit-b.Now.Sub(j.Started), 0).Minutes()))
			if j.Alloc.Partition == "strict" {
				add("node strict", 1)
			}
			if j.Alloc.Partition == "few" {
				add("few "+j.Spec.User, cpus)
			}
		}
	}
	for what, top := range map[string]float64{
		"cpu": 40, "jobs": 9, "gpu": 7, "mem u": 9000, "mem v": 9000, "run": 2000, "node strict": 3,
		"few u": 4, "few v": 4,
	} {
		if sums[what] > top {
			b.T.Fatalf("seed %d: %s is %v, its limit %v", seed, what, sums[what], top)
		}
	}
	if n := users["jobs u main"] + users["jobs u few"]; n > 4 {
		b.T.Fatalf("seed %d: u runs %v jobs, its limit is 4", seed, n)
	}
}

// BenchmarkLimits is a cycle over jobs that limits of all kinds hold back.
func BenchmarkLimits(t *testing.B) {
	b := newRuled(t, 1000, "GrpTRES=cpu=2000", "", "GrpTRES=gres/gpu=100", "MaxTRES=cpu=64",
		"MaxTRESPerUser=cpu=1000", "")
	for i := range 10_000 {
		b.add(fmt.Sprintf("%s %dcpu %dmin", []string{"u", "v"}[i%2], 1+i%8, 10+i%50))
	}
	b.ScheduleAll()
	snap := b.S.Snapshot()
	for t.Loop() {
		sched.Schedule(snap, b.Now)
	}
}

// TestLimitsBeforeAccounts: limits are the reason before the accounts that a partition takes, but for limits on
// resources.
func TestLimitsBeforeAccounts(t *testing.T) {
	for limits, want := range map[string]string{"GrpJobs=0": "AssocGrpJobsLimit",
		"GrpWall=0": "AssocGrpWallLimit", "MaxWall=60": "AssocMaxWallDurationPerJobLimit",
		"GrpTRES=cpu=0": "Job's account not permitted to use this partition (shut allows others not team)"} {
		b := newRuled(t, 1, "", "", limits, "", "", "")
		id := b.Apply(&cluster.Submit{Spec: ruledJob("u shut")}).(cluster.JobID)
		b.ScheduleAll()
		if got := b.Where(id); got != "waits "+want {
			t.Errorf("%s: it %s", limits, got)
		}
	}
}

// TestDefaultTimeLimit: a job that asks for no time limit gets its partition's default one, or the longest that is
// allowed.
func TestDefaultTimeLimit(t *testing.T) {
	for _, c := range []struct{ qos, gate, user, flags, job, want string }{
		{"", "", "", "", "u 0min", "none"},
		{"", "", "MaxWall=3000", "", "u 0min", "50m0s"},
		{"MaxWall=4200", "", "MaxWall=3000", "", "u 0min", "1h10m0s"},
		{"MaxWall=4200", "MaxWall=3000", "", "", "u 0min strict", "50m0s"},
		{"MaxWall=4200", "MaxWall=3000", "", "OverPartQOS", "u 0min strict", "1h10m0s"},
		{"MaxWall=3000", "", "", "", "u 0min brief", "15m0s"},
		{"MaxWall=3000", "", "", "", "u 0min short", "30m0s"},
		{"MaxWall=600", "", "", "", "u 0min short", "10m0s"},
		{"MaxWall=3000", "", "", "PartitionTimeLimit", "u 0min short", "50m0s"},
		{"", "", "", "PartitionTimeLimit", "u 0min short", "30m0s"},
		{"MaxTRESMins=cpu=40", "", "", "DenyOnLimit", "u 0min 4cpu", "10m0s"},
		{"MaxTRESMins=cpu=40", "", "", "", "u 0min 4cpu", "none"},
		{"MaxWall=3000", "", "", "", "u 5min", "5m0s"},
	} {
		b := newRuled(t, 1, "", "", "", c.user, c.qos, c.gate, c.flags)
		id := b.Apply(&cluster.Submit{Spec: ruledJob(c.job)}).(cluster.JobID)
		j, _ := b.S.Job(id)
		got := j.Limit.String()
		if j.Limit == cluster.Unlimited {
			got = "none"
		}
		if got != c.want {
			t.Errorf("%+v: the time limit is %s", c, got)
		}
	}
}

// TestUsageThreshold: a QOS may keep back those who have used too much.
func TestUsageThreshold(t *testing.T) {
	b := newRuled(t, 1, "", "", "", "", "", "")
	most := 2.0
	b.Apply(&cluster.ChangeAccounts{
		Changes: []cluster.Change{
			{
				QOS: &cluster.QOS{
					Name: "normal", UsageFactor: 1, UsageThreshold: &most,
					Flags: []string{"EnforceUsageThreshold"},
				},
			},
		},
	})
	id := b.Apply(&cluster.Submit{Spec: ruledJob("u")}).(cluster.JobID)
	b.ScheduleAll()
	if c := explain.Job(b.S.Snapshot(), b.Now, id).Causes; len(c) != 1 || c[0].Text != "partition main: UsageThreshold=2 of QOS normal: the fair share of the job's association is 1" {
		t.Errorf("told is %+v", c)
	}
	if got := b.Where(id); got != "waits QOSUsageThreshold" {
		t.Error(got)
	}
}

// TestMinPrioThreshold: no nodes are kept free for a job whose priority is below the limit, so that a later one
// passes it; without the limit they are.
func TestMinPrioThreshold(t *testing.T) {
	for _, c := range []struct {
		user, qos string
		passes    bool
	}{{"", "", false}, {"MinPrioThreshold=4000000000", "", true}, {"", "MinPrioThreshold=4000000000", true},
		{"MinPrioThreshold=1", "", false},
		{"MinPrioThreshold=4000000000", "MinPrioThreshold=1", false}} {
		b := newRuled(t, 1, "", "", "", c.user, c.qos, "")
		b.add("u 12cpu 60min")
		b.ScheduleAll()
		big, small := b.add("u 16cpu 60min"), b.add("u 1cpu 600min")
		b.ScheduleAll()
		if passes := b.phase(small) != cluster.Pending; passes != c.passes || b.phase(big) != cluster.Pending {
			j, _ := b.S.Job(small)
			t.Errorf("limits of the user %q, of the QOS %q: a later job passes: %v, it waits for %s",
				c.user, c.qos, passes, j.Wait)
		}
	}
}

// TestLimitOfTasks: a task that has a record of its own, as it was changed, counts for the array's limit, too.
func TestLimitOfTasks(t *testing.T) {
	b := newTestbed(t, 2)
	id := b.Submit(func(s *cluster.JobSpec) { s.Array = &cluster.ArraySpec{Tasks: cluster.RangeIDSet(1, 5), Limit: 2} })
	name := "other"
	b.Apply(&cluster.UpdateJob{
		Ref: cluster.Ref{Job: id, Tasks: cluster.RangeIDSet(2, 4)}, Patch: cluster.Patch{Name: &name},
	})
	b.ScheduleAll()
	if n := b.S.RunningTasks(id); n != 2 {
		t.Errorf("%d tasks run, want 2", n)
	}
}
