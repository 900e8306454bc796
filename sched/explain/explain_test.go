package explain_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"dev.muster/cluster"
	"dev.muster/sched"
	"dev.muster/sched/explain"
	"dev.muster/sched/schedtest"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// TestExplain asks why jobs wait and compares with testdata/explain.txt.
func TestExplain(t *testing.T) {
	b := schedtest.New(t, 4, cluster.Partition{
		Name: "short", All: true, State: cluster.PartitionUp,
		PartitionLimits: cluster.PartitionLimits{MaxTime: 10 * time.Minute, MaxNodes: 1},
	},
		cluster.Partition{Name: "off", All: true, State: cluster.PartitionDown},
		cluster.Partition{
			Name: "theirs", All: true, State: cluster.PartitionUp,
			PartitionAccess: cluster.PartitionAccess{AllowAccounts: []string{"physics", "bio"}},
		})
	b.Schedule = sched.Schedule
	cfg := *b.S.Config()
	cfg.Licenses = []cluster.License{{Name: "matlab", Total: 10}, {Name: "ansys", Total: 1}}
	b.Apply(&cluster.Configure{Config: &cfg})
	why := "bad fan"
	b.Apply(&cluster.NodeSet{Nodes: []cluster.NodeName{"n003"}, Action: cluster.NodeDrain, Reason: &why})
	gpu := func(kind string, n int64) []cluster.GRES { return []cluster.GRES{{Name: "gpu", Type: kind, Count: n}} }
	var out strings.Builder
	names := map[string]cluster.JobID{}
	order := []string{}
	job := func(name string, change func(*cluster.JobSpec)) cluster.JobID {
		names[name] = b.Submit(change)
		order = append(order, name)
		return names[name]
	}
	on := func(part string) func(*cluster.JobSpec) {
		return func(s *cluster.JobSpec) { s.Partitions = []string{part} }
	}
	after := func(kind cluster.DependType, id cluster.JobID) func(*cluster.JobSpec) {
		return func(s *cluster.JobSpec) {
			s.Depends.Terms = []cluster.Depend{{Type: kind, Job: id, Task: cluster.TaskAny}}
		}
	}
	whole := b.Submit(func(s *cluster.JobSpec) {
		s.Sharing = cluster.ShareExclusive
		s.NodeList = []cluster.NodeName{"n000"}
	})
	b.Submit(func(s *cluster.JobSpec) { s.PerNode, s.NodeList = gpu("a100", 2), []cluster.NodeName{"n001"} })
	b.Submit(func(s *cluster.JobSpec) {
		s.Mem, s.NodeList = cluster.Mem{Per: cluster.MemPerNode, MB: 60000}, []cluster.NodeName{"n002"}
	})
	arr := b.Submit(func(s *cluster.JobSpec) {
		s.Array = &cluster.ArraySpec{
			Tasks: cluster.RangeIDSet(0, 9), Limit: 2,
		}
	})
	licensed := b.Submit(func(s *cluster.JobSpec) {
		s.Licenses, s.NodeList, s.Limit = "matlab:8", []cluster.NodeName{"n002"}, 2*time.Hour
	})
	pair := b.Submit(func(s *cluster.JobSpec) { s.Array = &cluster.ArraySpec{Tasks: cluster.RangeIDSet(1, 3)} })
	b.ScheduleAll()
	b.Apply(&cluster.Cancel{Ref: cluster.Ref{Job: pair, Tasks: cluster.NewIDSet(2)}})
	b.Apply(&cluster.Cancel{Ref: cluster.Ref{Job: b.Submit(func(s *cluster.JobSpec) { s.Hold = true })}})
	gone := b.Submit(nil)
	b.Apply(&cluster.Cancel{Ref: cluster.Ref{Job: gone}})

	names["array limit"], order = arr, append(order, "array limit")
	job("wants three nodes", func(s *cluster.JobSpec) { s.MinNodes, s.CPUsPerTask = 3, 14 })
	job("wants GPUs", func(s *cluster.JobSpec) { s.PerNode, s.MinNodes = gpu("a100", 2), 2 })
	job("wants memory", func(s *cluster.JobSpec) {
		s.Mem, s.MinNodes = cluster.Mem{Per: cluster.MemPerNode, MB: 50000}, 3
	})
	job("wants a GPU nobody has", func(s *cluster.JobSpec) { s.PerNode = gpu("b200", 1) })
	job("too many nodes", func(s *cluster.JobSpec) { s.MinNodes = 9 })
	job("more than the partition allows",
		func(s *cluster.JobSpec) { s.Partitions, s.MinNodes, s.Limit = []string{"short"}, 2, time.Minute })
	job("too long", on("short"))
	job("partition down", on("off"))
	job("wants a drained node", func(s *cluster.JobSpec) { s.NodeList = []cluster.NodeName{"n003"} })
	job("begins later", func(s *cluster.JobSpec) { s.Begin = schedtest.Epoch.Add(time.Hour) })
	job("held", func(s *cluster.JobSpec) { s.Hold = true })
	job("after a running job", after(cluster.AfterOK, whole))
	job("after an array", after(cluster.AfterAny, arr))
	job("can never start", after(cluster.AfterOK, gone))
	job("after a job that runs", after(cluster.AfterAny, licensed))
	job("wants licenses", func(s *cluster.JobSpec) { s.Licenses = "matlab:5" })
	job("wants more licenses than there are", func(s *cluster.JobSpec) { s.Licenses = "ansys" })
	fewer := *b.S.Config()
	fewer.Licenses = fewer.Licenses[:1]
	b.Apply(&cluster.Configure{Config: &fewer})
	job("not for its account", func(s *cluster.JobSpec) { s.Partitions, s.Account = []string{"theirs"}, "chem" })
	job("wants nodes side by side", func(s *cluster.JobSpec) {
		s.Contiguous, s.MinNodes, s.Exclude = true, 2, []cluster.NodeName{"n001"}
	})
	job("held by an administrator", nil)
	b.Apply(&cluster.HoldJobs{Ref: cluster.Ref{Job: names["held by an administrator"]}, Hold: cluster.HeldAdmin})
	job("singleton", after(cluster.SingletonOf, 0))
	b.ScheduleAll()
	for _, name := range order {
		e := explain.Job(b.S.Snapshot(), b.Now, names[name])
		fmt.Fprintf(&out, "%s (%s)\n", name, b.Where(names[name]))
		for _, c := range e.Causes {
			fmt.Fprintf(&out, "  %s: %s\n", c.Reason, c.Text)
			if c.Hint != "" {
				fmt.Fprintf(&out, "    hint: %s\n", c.Hint)
			}
		}
		if !e.StartsAt.IsZero() {
			fmt.Fprintf(&out, "  expected %s on %v\n", e.StartsAt.Format(time.DateTime), e.Nodes)
		}
		for _, h := range e.Holders {
			fmt.Fprintf(&out, "    job %d on %v until %s", h.Job.ID, h.Nodes, h.Until.Format(time.DateTime))
			if !h.From.IsZero() {
				fmt.Fprintf(&out, ", from %s", h.From.Format(time.DateTime))
			}
			out.WriteByte('\n')
		}
	}
	path := filepath.Join("testdata", "explain.txt")
	if *update {
		if err := os.WriteFile(path, []byte(out.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil || string(want) != out.String() {
		t.Errorf("%v; go test ./sched/explain -update rewrites %s. Got\n%s", err, path, out.String())
	}
}

// TestUnheldNotes: who asks why a job waits hears of limits that nothing enforces.
func TestUnheldNotes(t *testing.T) {
	b := schedtest.New(t, 1)
	b.Schedule = sched.Schedule
	b.Apply(&cluster.ChangeAccounts{Changes: []cluster.Change{
		{QOS: &cluster.QOS{
			Name: "high", UsageFactor: 1, Limits: cluster.Limits{{Name: "GrpTRES", TRES: "cpu", Max: 1}},
		}},
	}})
	id := b.Submit(func(s *cluster.JobSpec) { s.QOS, s.MinNodes, s.MaxNodes = "high", 2, 2 })
	e := explain.Job(b.S.Snapshot(), b.Now, id)
	if len(e.Notes) != 1 || !strings.HasPrefix(e.Notes[0], "GrpTRES: no job waits for it") {
		t.Errorf("notes: %q", e.Notes)
	}
}

// sight is that of somebody who sees one job, and no reservation.
type sight struct{ own cluster.JobID }

func (s sight) Job(j *cluster.Job) bool             { return j.ID == s.own }
func (sight) Reservation(*cluster.Reservation) bool { return false }

// TestHiddenReservations: what is told of a job does not name a reservation to somebody who may not see it.
func TestHiddenReservations(t *testing.T) {
	b := schedtest.New(t, 1)
	b.Schedule = sched.Schedule
	b.Apply(&cluster.ReservationPut{Reservation: cluster.Reservation{
		Name: "takeover", Users: []string{"boss"}, Nodes: []cluster.NodeName{schedtest.NodeName(0)}, Start: b.Now, End: b.Now.Add(time.Hour),
	}})
	id := b.Submit(func(s *cluster.JobSpec) { s.Limit = time.Hour })
	b.ScheduleAll()
	for want, may := range map[string]explain.Sight{"reservation takeover has": nil, "a reservation of others has": sight{id}} {
		text := fmt.Sprint(explain.JobFor(b.S.Snapshot(), b.Now, id, may).Causes)
		if !strings.Contains(text, want) || may != nil && strings.Contains(text, "takeover") {
			t.Errorf("%s, want %q", text, want)
		}
	}
}

// TestHiddenJobs: what is told of a job names no other one to somebody who may not see that.
func TestHiddenJobs(t *testing.T) {
	b := schedtest.New(t, 2)
	b.Schedule = sched.Schedule
	cfg := *b.S.Snapshot().Config()
	cfg.Licenses = []cluster.License{{Name: "matlab", Total: 1}}
	cfg.CompleteWait = 30 * time.Second
	b.Apply(&cluster.Configure{Config: &cfg})
	matlab := func(s *cluster.JobSpec) { s.Licenses, s.Limit = "matlab", time.Hour }
	first, second := b.Submit(matlab), b.Submit(matlab)
	b.ScheduleAll()
	sees := sight{second}
	hides := func(sentence, named, hidden string) {
		t.Helper()
		for want, may := range map[string]explain.Sight{named: nil, hidden: sees} {
			text := fmt.Sprint(explain.JobFor(b.S.Snapshot(), b.Now, second, may).Causes)
			if !strings.Contains(text, fmt.Sprintf(sentence, want)) {
				t.Errorf("%s, want %q", text, fmt.Sprintf(sentence, want))
			}
			if may != nil && strings.Contains(text, fmt.Sprintf("job %d", first)) {
				t.Errorf("job %d is told of: %s", first, text)
			}
		}
	}
	hides("when %s is over", fmt.Sprintf("job %d", first), "a job of another user")
	j, _ := b.S.Job(first)
	n, _ := b.S.Node(j.Alloc.Shares[0].Node)
	b.Apply(&cluster.Report{Node: n.Name, Seq: n.ReportSeq + 1, Updates: []cluster.Update{
		{Kind: cluster.BatchOver, Job: first, Attempt: j.Attempt, At: b.Now},
	}})
	hides("%s does, and is waited for", fmt.Sprintf("job %d of %s", first, j.Spec.User), "a job of another user")
}
