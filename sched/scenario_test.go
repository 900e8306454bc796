package sched_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"dev.muster/cluster"
	"dev.muster/sched"
	"dev.muster/sched/explain"
	"dev.muster/sched/schedtest"
)

// scenario is a situation of policy being played: a cluster, and its jobs by name.
type scenario struct {
	*testbed
	jobs  map[string]cluster.JobID
	names []string // in the order of submission
	out   []string
}

var update = flag.Bool("update", false, "rewrite the golden files")

// TestScenarios plays the situations of testdata/scenarios. A file holds several, each behind a line
// "== what it shows"; a line is a command of sayings, and lines with > are what show prints.
func TestScenarios(t *testing.T) {
	files, err := filepath.Glob("testdata/scenarios/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no scenarios: %v", err)
	}
	all := 0
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var now strings.Builder
		for i, part := range strings.Split(string(text), "== ") {
			if i == 0 {
				now.WriteString(part)
				continue
			}
			all++
			title, body, _ := strings.Cut(part, "\n")
			kept := body // what -run leaves out stays
			t.Run(strings.TrimSuffix(filepath.Base(file), ".txt")+"/"+title, func(t *testing.T) {
				played := play(t, body)
				if played != body && !*update {
					t.Errorf("got\n%s\nwant\n%s", played, body)
				}
				kept = played
			})
			now.WriteString("== " + title + "\n" + kept)
		}
		if *update {
			if err := os.WriteFile(file, []byte(now.String()), 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	t.Logf("%d scenarios", all)
}

// play carries out a scenario's lines and returns them with what they show now.
func play(t *testing.T, body string) string {
	s := &scenario{testbed: of(schedtest.Empty(t)), jobs: map[string]cluster.JobID{}}
	cfg := strictOrderConfig()
	s.Apply(&cluster.Configure{Config: &cfg})
	for line := range strings.Lines(body) {
		line = strings.TrimSuffix(line, "\n")
		if strings.HasPrefix(line, ">") {
			continue
		}
		s.out = append(s.out, line)
		if words := strings.Fields(line); len(words) > 0 && words[0] != "#" {
			do, ok := sayings[words[0]]
			if !ok {
				t.Fatalf("the scenarios know no %q", words[0])
			}
			do(s, words[1:])
		}
	}
	return strings.Join(s.out, "\n") + "\n"
}

// sayings are the commands of scenarios.
var sayings = map[string]func(*scenario, []string){
	"nodes":     (*scenario).nodes,
	"partition": (*scenario).partition,
	"license":   func(s *scenario, w []string) { s.configure(func(c *cluster.Config) { s.license(c, w) }) },
	"leaves":    func(s *scenario, _ []string) { s.configure(twoLeaves) },
	"job":       (*scenario).job,
	"het":       (*scenario).het,
	"preempt":   (*scenario).preempt,
	"clear":     func(s *scenario, _ []string) { s.confirm(); s.due(); s.settle(); s.ScheduleAll(); s.confirm() },
	"requeue": func(s *scenario, w []string) { // and hold
		s.each(w, func(id cluster.JobID) { s.Apply(&cluster.Requeue{Ref: cluster.Ref{Job: id}, Hold: true}) })
	},
	"explain":   (*scenario).explain,
	"resv":      (*scenario).resv,
	"replenish": (*scenario).replenish,
	"qos":       (*scenario).qos,
	"select":    (*scenario).choose,
	"gang":      func(s *scenario, w []string) { s.configure(func(c *cluster.Config) { s.gang(c, w) }) },
	"run":       func(s *scenario, _ []string) { s.ScheduleAll(); s.confirm(); s.due(); s.ScheduleAll() },
	"suspend":   func(s *scenario, w []string) { s.each(w, s.suspend(false)) },
	"continue":  func(s *scenario, w []string) { s.each(w, s.suspend(true)) },
	"wait":      func(s *scenario, w []string) { s.wait(s.minutes(w[0])) },
	"end":       func(s *scenario, w []string) { s.each(w, s.EndJob) },
	"fail":      func(s *scenario, w []string) { s.fails(w, cluster.Update{Exit: cluster.ExitStatus{Code: 1}}) },
	"exhaust":   func(s *scenario, w []string) { s.fails(w, cluster.Update{OOM: true}) },
	"cancel": func(s *scenario, w []string) {
		s.each(w, func(id cluster.JobID) { s.Apply(&cluster.Cancel{Ref: cluster.Ref{Job: id}}); s.settle() })
	},
	"hold": func(s *scenario, w []string) {
		s.each(w, func(id cluster.JobID) {
			s.Apply(&cluster.HoldJobs{Ref: cluster.Ref{Job: id}, Hold: cluster.HeldAdmin})
		})
	},
	"release": func(s *scenario, w []string) {
		s.each(w, func(id cluster.JobID) { s.Apply(&cluster.HoldJobs{Ref: cluster.Ref{Job: id}}) })
	},
	"drain":      func(s *scenario, w []string) { s.set(w, cluster.NodeDrain) },
	"resume":     func(s *scenario, w []string) { s.set(w, cluster.NodeResume) },
	"limit":      func(s *scenario, w []string) { s.limit(s.jobs[w[0]], s.minutes(w[1])) },
	"plan":       func(s *scenario, _ []string) { s.configure(func(c *cluster.Config) { c.PlanWhole = true }) },
	"responsive": func(s *scenario, _ []string) { s.UseResponsiveOrder() },
	"show":       (*scenario).show,
	"why":        (*scenario).why,
	"cpus":       (*scenario).cpus,
}

func (s *scenario) minutes(text string) time.Duration {
	n, err := strconv.Atoi(text)
	if err != nil {
		s.T.Fatal(err)
	}
	return time.Duration(n) * time.Minute
}

func (s *scenario) configure(change func(*cluster.Config)) {
	cfg := *s.S.Config()
	change(&cfg)
	s.Apply(&cluster.Configure{Config: &cfg})
}

func (s *scenario) license(c *cluster.Config, words []string) {
	for _, w := range words {
		name, n, _ := strings.Cut(w, "=")
		total, err := strconv.Atoi(n)
		if err != nil {
			s.T.Fatal(err)
		}
		c.Licenses = append(c.Licenses, cluster.License{Name: name, Total: total})
	}
}

// nodes adds nodes of 16 cores and 8 GPUs: a number, and features; with the feature threads the cores have two each.
func (s *scenario) nodes(words []string) {
	n, _ := strconv.Atoi(words[0])
	for range n {
		inv := machine(words[1:]...)
		if slices.Contains(words[1:], "threads") {
			inv.ThreadsPerCore, inv.CPUs = 2, 2*inv.CPUs
		}
		s.Apply(&cluster.NodeUp{Name: numbered(s.S.NodeCount() + 1), Inventory: inv})
	}
}

// partition makes one: nodes=a,b tier=N maxtime=MIN maxnodes=N accounts=a,b qos=a,b mode=PREEMPTMODE grace=MIN down
// inactive default.
func (s *scenario) partition(words []string) {
	p := cluster.Partition{Name: words[0], All: true, State: cluster.PartitionUp}
	for _, w := range words[1:] {
		key, val, _ := strings.Cut(w, "=")
		switch key {
		case "nodes":
			p.All = false
			for n := range strings.SplitSeq(val, ",") {
				p.Nodes = append(p.Nodes, cluster.NodeName(n))
			}
		case "tier":
			p.PriorityTier, _ = strconv.Atoi(val)
		case "maxtime":
			p.MaxTime = s.minutes(val)
		case "minnodes":
			p.MinNodes, _ = strconv.Atoi(val)
		case "maxnodes":
			p.MaxNodes, _ = strconv.Atoi(val)
		case "over":
			p.OverSubscribe = val
		case "mode":
			p.PreemptMode = val
		case "grace":
			p.GraceTime = s.minutes(val)
		case "down":
			p.State = cluster.PartitionDown
		case "inactive":
			p.State = cluster.PartitionInactive
		case "accounts":
			p.AllowAccounts = strings.Split(val, ",")
		case "qos":
			p.AllowQOS = strings.Split(val, ",")
		case "default":
			p.Default = true
		default:
			s.T.Fatalf("partitions know no %s", w)
		}
	}
	s.Apply(&cluster.PartitionSet{Partition: p})
}

// job submits one: its name, and options as sbatch has them; -t and -b are minutes, -d names jobs.
func (s *scenario) job(words []string) {
	spec := s.spec(words)
	if _, err := cluster.Admit(s.S.Snapshot(), cluster.Identity{System: true}, *spec); err != nil {
		s.out = append(s.out, "> "+err.Error())
		return
	}
	submit := &cluster.Submit{Spec: spec}
	if slices.Contains(words, "dead") {
		submit.Dead = cluster.EndBadConstraints
	}
	s.jobs[words[0]] = s.Apply(submit).(cluster.JobID)
	s.names = append(s.names, words[0])
}

// spec reads what a job asks.
func (s *scenario) spec(words []string) *cluster.JobSpec {
	spec := &cluster.JobSpec{Layout: &cluster.Layout{}, Name: words[0], UID: 1, User: "u", Limit: time.Hour}
	for _, w := range words[1:] {
		val := w[min(2, len(w)):]
		_, long, _ := strings.Cut(w, "=")
		switch {
		case strings.HasPrefix(w, "-t"):
			spec.Limit = s.minutes(val)
		case strings.HasPrefix(w, "-b"):
			spec.Begin = s.Now.Add(s.minutes(val))
		case strings.HasPrefix(w, "-u"):
			spec.User, spec.UID = val, uint32(len(val))
		case strings.HasPrefix(w, "-p"):
			spec.Partitions = strings.Split(val, ",")
		case strings.HasPrefix(w, "-L"):
			spec.Licenses = val
		case strings.HasPrefix(w, "-a"):
			spec.Array = s.array(val)
		case strings.HasPrefix(w, "-d"):
			kind, name, _ := strings.Cut(val, ":")
			spec.Depends = cluster.Depends{
				Terms: []cluster.Depend{{Type: cluster.DependType(kind), Job: s.jobs[name], Task: cluster.TaskAny}},
			}
		case strings.HasPrefix(w, "--time-min="):
			spec.LimitMin = s.minutes(long)
		case strings.HasPrefix(w, "--deadline="):
			spec.Deadline = s.Now.Add(s.minutes(long))
		case strings.HasPrefix(w, "--signal="): // R:SECONDS
			at, _ := strconv.Atoi(strings.TrimPrefix(long, "R:"))
			spec.Signal = cluster.Signal{
				Num: 10, Before: time.Duration(at) * time.Second,
				Reservation: strings.HasPrefix(long, "R:"),
			}
		case w == "--no-requeue":
			spec.Requeue = new(bool)
		case w == "dead": // refused, and kept for history
		case w == "-H":
			spec.Hold = true
		case strings.HasPrefix(w, "--nice="):
			spec.Nice, _ = strconv.Atoi(long)
		case strings.HasPrefix(w, "--mem="):
			mb, _ := strconv.Atoi(long)
			spec.Mem = cluster.Mem{Per: cluster.MemPerNode, MB: cluster.MemMB(mb)}
		case strings.HasPrefix(w, "--reservation="):
			spec.Reservation = long
		case strings.HasPrefix(w, "--qos="):
			spec.QOS = long
		case w == "-s":
			spec.Sharing = cluster.ShareOver
		case w == "--exclusive=user":
			spec.Sharing = cluster.ShareUser
		default:
			ask(s.T, w)(spec)
		}
	}
	return spec
}

// array reads 4%2: four tasks, two at once.
func (s *scenario) array(text string) *cluster.ArraySpec {
	tasks, limit, _ := strings.Cut(text, "%")
	n, _ := strconv.Atoi(tasks)
	most, _ := strconv.Atoi(limit)
	return &cluster.ArraySpec{Tasks: cluster.RangeIDSet(0, n-1), Limit: most}
}

// resv makes a reservation: its name, in=MIN for=MIN, nodes=a,b or count=N, cores=N,M, users=a,b, delay=MIN, and flags.
func (s *scenario) resv(words []string) {
	r := cluster.Reservation{Name: words[0], Start: s.Now, End: s.Now.Add(time.Hour), Users: []string{"vip"}}
	flags := map[string]cluster.ResvFlags{"maint": cluster.ResvMaint, "overlap": cluster.ResvOverlap,
		"flex":  cluster.ResvFlex,
		"daily": cluster.ResvDaily, "ignore_jobs": cluster.ResvIgnoreJobs, "magnetic": cluster.ResvMagnetic,
		"no_hold": cluster.ResvNoHold, "time_float": cluster.ResvTimeFloat,
		"any_nodes": cluster.ResvAnyNodes, "replace": cluster.ResvReplace, "static": cluster.ResvStatic,
		"first_cores": cluster.ResvFirstCores}
	long := time.Hour
	for _, w := range words[1:] {
		key, val, _ := strings.Cut(w, "=")
		switch key {
		case "in":
			r.Start = s.Now.Add(s.minutes(val))
		case "for":
			long = s.minutes(val)
		case "users":
			r.Users = strings.Split(val, ",")
		case "nodes":
			for n := range strings.SplitSeq(val, ",") {
				r.Nodes = append(r.Nodes, cluster.NodeName(n))
			}
		case "licenses":
			r.Licenses = val
		case "delay":
			r.MaxStartDelay = s.minutes(val)
		case "count":
			r.Count, _ = strconv.Atoi(val)
		case "cores":
			for n := range strings.SplitSeq(val, ",") {
				cores, _ := strconv.Atoi(n)
				r.Cores = append(r.Cores, cores)
			}
		default:
			f, ok := flags[w]
			if !ok {
				s.T.Fatalf("reservations know no %s", w)
			}
			r.Flags |= f
		}
	}
	r.End = r.Start.Add(long)
	if r.Count > 0 || r.Cores != nil {
		nodes, cpus, err := sched.Reserve(s.S.Snapshot(), &r, s.Now)
		if err != nil {
			s.out = append(s.out, "> "+string(err.Kind))
			return
		}
		r.Nodes, r.CPUs = nodes, cpus
		s.out = append(s.out, strings.TrimSpace(fmt.Sprintf("> %s %s", nodes, strings.Trim(fmt.Sprint(cpus), "[]"))))
	}
	s.N++
	if a := s.S.Apply(cluster.Entry{
		Index: s.N, At: s.Now, By: cluster.Identity{System: true},
		Cmd: &cluster.ReservationPut{Reservation: r},
	}); a.Err != nil {
		s.out = append(s.out, "> "+string(a.Err.Kind))
	}
}

// replenish replaces nodes of reservations, and shows what they have.
func (s *scenario) replenish([]string) {
	for _, c := range sched.Replenish(s.S.Snapshot(), s.Now) {
		s.Apply(c)
	}
	for _, r := range s.S.Reservations() {
		s.out = append(s.out, fmt.Sprintf("> %s has %s", r.Name, r.Nodes))
	}
}

func (s *scenario) each(names []string, f func(cluster.JobID)) {
	for _, n := range names {
		f(s.jobs[n])
	}
}

// fails ends jobs of one node badly.
func (s *scenario) fails(names []string, how cluster.Update) {
	s.each(names, func(id cluster.JobID) {
		j, _ := s.S.Job(id)
		how.Kind, how.Job, how.Attempt, how.At = cluster.BatchOver, id, j.Attempt, s.Now
		n, _ := s.S.Node(j.AllocNodes()[0])
		s.Apply(&cluster.Report{
			Node: n.Name, Seq: n.ReportSeq + 1,
			Updates: []cluster.Update{how, {Kind: cluster.NodeDone, Job: id, Attempt: j.Attempt}},
		})
	})
}

func (s *scenario) set(names []string, to cluster.NodeAction) {
	why := "test"
	for _, n := range names {
		s.Apply(&cluster.NodeSet{Nodes: []cluster.NodeName{cluster.NodeName(n)}, Action: to, Reason: &why})
	}
}

func (s *scenario) limit(id cluster.JobID, to time.Duration) {
	s.Apply(&cluster.UpdateJob{Ref: cluster.Ref{Job: id}, Patch: cluster.Patch{Limit: &to}})
}

// wait lets time pass, minute by minute, with all that the clock demands.
func (s *scenario) wait(d time.Duration) {
	s.confirm()
	for end := s.Now.Add(d); s.Now.Before(end); {
		s.Now = s.Now.Add(time.Minute)
		s.due()
		s.settle()
		s.ScheduleAll()
		s.confirm()
	}
}

// due does what the clock demands.
func (s *scenario) due() {
	for _, c := range cluster.Due(s.S.Snapshot(), s.Now) {
		s.Apply(c)
	}
}

// qos makes one: its name, flags, and behind a > those that make room for it. From then on limits are held.
func (s *scenario) qos(words []string) {
	s.configure(func(c *cluster.Config) { c.Enforce.Limits = true })
	q := &cluster.QOS{Name: words[0], UsageFactor: 1}
	for _, w := range words[1:] {
		if name, ok := strings.CutPrefix(w, ">"); ok {
			q.Preempt = append(q.Preempt, name)
		} else {
			q.Flags = append(q.Flags, w)
		}
	}
	s.Apply(&cluster.ChangeAccounts{Changes: []cluster.Change{{QOS: q}}})
}

// choose is SelectTypeParameters.
func (s *scenario) choose(words []string) {
	s.configure(func(c *cluster.Config) {
		for _, w := range words {
			switch w {
			case "CR_CPU":
				c.CoreAlloc = false
			case "CR_Socket":
				c.SocketAlloc = true
			case "CR_Pack_Nodes":
				c.PackNodes = true
			case "CR_LLN":
				c.LLN = true
			case "CR_ONE_TASK_PER_CORE":
				c.OneTaskPerCore = true
			case "CR_CORE_DEFAULT_DIST_BLOCK":
				c.DistBlock = true
			default:
				s.T.Fatalf("there is no %s to select", w)
			}
		}
	})
}

// gang has jobs take turns of a minute; with a word, this type of preemption suspends.
func (s *scenario) gang(c *cluster.Config, words []string) {
	c.Preempt = cluster.PreemptConfig{Mode: "GANG", TurnLength: time.Minute}
	if len(words) > 0 {
		c.Preempt.Type, c.Preempt.Mode = cluster.PreemptType(words[0]), "GANG,SUSPEND"
	}
}

func (s *scenario) suspend(resume bool) func(cluster.JobID) {
	return func(id cluster.JobID) {
		c := &cluster.Suspend{Ref: cluster.Ref{Job: id}, Resume: resume}
		if out := s.S.Apply(cluster.Entry{At: s.Now, By: cluster.Identity{System: true}, Cmd: c}); out.Err != nil {
			s.out = append(s.out, "> "+out.Err.Message)
		}
	}
}

// confirm has all nodes confirm what was launched.
func (s *scenario) confirm() {
	for j := range s.S.Snapshot().Live() {
		if j.Phase != cluster.Starting {
			continue
		}
		for _, n := range j.AllocNodes() {
			nd, _ := s.S.Node(n)
			s.Apply(&cluster.Report{
				Node: n, Seq: nd.ReportSeq + 1,
				Updates: []cluster.Update{{Kind: cluster.NodeReady, Job: j.ID, Attempt: j.Attempt, At: s.Now}},
			})
		}
	}
}

// settle has the nodes of ending jobs tell that they are done.
func (s *scenario) settle() {
	for j := range s.S.Snapshot().Live() {
		if j.Phase == cluster.Ending {
			s.EndJob(j.ID)
		}
	}
}

// show schedules, and prints each job: its nodes, or why it waits and when it is planned to start.
func (s *scenario) show([]string) {
	s.ScheduleAll()
	for _, name := range s.names {
		for j := range s.S.Snapshot().Jobs() {
			if j.Spec.Name == name {
				s.out = append(s.out, "> "+name+s.line(j))
			}
		}
	}
}

// why prints what would start jobs sooner.
func (s *scenario) why(names []string) {
	s.each(names, func(id cluster.JobID) {
		for _, c := range explain.Changes(s.S.Snapshot(), s.Now, id, func(*cluster.Partition) bool { return true }) {
			when := "now"
			if c.At.After(s.Now) {
				when = fmt.Sprintf("in %d min", int(c.At.Sub(s.Now).Minutes()))
			}
			s.out = append(s.out, fmt.Sprintf("> %s: %s on %v", c.Text, when, c.Nodes()))
			if c.Hint != "" {
				s.out = append(s.out, ">   "+c.Hint)
			}
		}
	})
}

// cpus schedules, and prints where each job's CPUs are, with a word also how many tasks.
func (s *scenario) cpus(words []string) {
	s.ScheduleAll()
	for _, name := range s.names {
		j, _ := s.S.Job(s.jobs[name])
		text := ""
		if j.Alloc != nil && j.Phase != cluster.Ended {
			for _, sh := range j.Alloc.Shares {
				text += fmt.Sprintf(" %s:%s", sh.Node, sh.CPUs)
				if len(words) > 0 {
					text += fmt.Sprintf("(%d)", sh.Tasks)
				}
			}
		} else {
			text = s.line(j)
		}
		s.out = append(s.out, "> "+name+text)
	}
}

var outcomes = map[cluster.Outcome]string{cluster.Completed: "completed", cluster.Failed: "failed",
	cluster.Cancelled: "cancelled",
	cluster.TimedOut:  "timed out", cluster.Preempted: "preempted", cluster.OutOfMemory: "out of memory",
	cluster.DeadlineMissed: "deadline"}

func (s *scenario) line(j *cluster.Job) string {
	task := ""
	switch {
	case j.ArrayID != 0 && j.Task != cluster.TaskAny:
		task = "_" + strconv.Itoa(j.Task)
	case j.ArrayID != 0:
		task = "_[" + j.Tasks.String() + "]"
	}
	switch {
	case j.Phase == cluster.Ended:
		if j.EndReason == cluster.EndNonZeroExit || j.EndReason == cluster.EndOutOfMemory || j.EndReason == cluster.EndBadConstraints {
			return task + " " + outcomes[j.Outcome] + ": " + string(j.EndReason)
		}
		return task + " " + outcomes[j.Outcome]
	case j.Alloc != nil && j.Phase != cluster.Pending:
		if j.Limit < j.Spec.Limit {
			task += fmt.Sprintf(" for %d min", int(j.Limit.Minutes()))
		}
		if j.Preempt != nil && j.Phase != cluster.Suspended {
			return fmt.Sprintf("%s %s leaves in %d min: %s", task, s.on(j.ID),
				max(int(j.Preempt.Until.Sub(s.Now).Minutes()), 0), j.Preempt.Mode)
		}
		if j.Phase == cluster.Suspended {
			return fmt.Sprintf("%s %s stopped after %d min", task, s.on(j.ID), int(j.PreSuspend.Minutes()))
		}
		return task + " " + s.on(j.ID)
	}
	text := fmt.Sprintf("%s waits: %s", task, s.on(j.ID))
	if !j.PlannedStart.IsZero() {
		text += fmt.Sprintf(", planned in %d min on %v", int(j.PlannedStart.Sub(s.Now).Minutes()), j.PlannedNodes)
	}
	return text
}
