package wrap

import (
	"bufio"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"dev.muster/api"
	"dev.muster/cluster"
	"dev.muster/slurm/front"
	"dev.muster/slurm/show"
)

// statLine is what qstat's line asks for.
type statLine struct {
	picked
	full, wide, nodes, queues, running, idle bool
}

func statRows() []row[statLine] {
	yes := func(f func(*statLine) *bool) func(*statLine, string) error {
		return func(l *statLine, _ string) error { *f(l) = true; return nil }
	}
	return []row[statLine]{
		{"a", false, yes(func(l *statLine) *bool { return &l.wide })},
		{"f", false, yes(func(l *statLine) *bool { return &l.full })},
		{"n", false, func(l *statLine, _ string) error { l.nodes, l.wide = true, true; return nil }},
		{"1", false, func(*statLine, string) error { return nil }},
		{"i", false, func(l *statLine, _ string) error { l.idle, l.wide = true, true; return nil }},
		{"r", false, func(l *statLine, _ string) error { l.running, l.wide = true, true; return nil }},
		{"s", false, yes(func(l *statLine) *bool { return &l.wide })},
		{"t", false, func(*statLine, string) error { return nil }},
		{"q", false, yes(func(l *statLine) *bool { return &l.queues })},
		{"Q", false, yes(func(l *statLine) *bool { return &l.queues })},
		{"u", true, func(l *statLine, v string) error { l.users = front.SplitList(v); l.wide = true; return nil }},
		{"B", false, refuse[statLine]("scontrol ping and sdiag tell of the servers")},
		{"x", false, refuse[statLine]("squeue --json writes jobs for programs, sacct lists those of the past")},
		{"W", true, refuse[statLine]("squeue --Format picks what to show")},
	}
}

// pbsStates are PBS's letters of states.
func pbsStates() map[string]string {
	return map[string]string{"HELD": "H", "PD": "Q", "CF": "R", "R": "R", "S": "S", "CG": "E", "RQ": "Q",
		"RH": "H", "SE": "H"}
}

func pbsState(r *show.JobRow) string {
	if r.Phase == cluster.Pending && r.Reason() == "BeginTime" {
		return "W"
	}
	return stateOf(r, pbsStates(), "C")
}

// pbsClock writes a time as HH:MM:SS.
func pbsClock(d time.Duration) string {
	s := int(d / time.Second)
	return fmt.Sprintf("%02d:%02d:%02d", s/3600, s/60%60, s%60)
}

// qstat lists jobs, or queues.
func qstat(sys *front.Sys, argv []string) int {
	var l statLine
	rest, err := parse(&l, statRows(), argv)
	if err != nil {
		return failed(sys, err)
	}
	for _, w := range rest {
		if list, err := refs([]string{w}); err == nil {
			l.refs = append(l.refs, list...)
			continue
		}
		queue, _, _ := strings.Cut(w, "@")
		l.partitions = append(l.partitions, queue)
	}
	if l.phases = live; l.running {
		l.phases = live[1:]
	}
	if l.idle {
		l.phases = live[:1]
	}
	if len(l.refs) > 0 {
		l.phases = nil
	}
	out := bufio.NewWriter(sys.Stdout)
	defer out.Flush()
	if l.queues {
		return pbsQueues(sys, out, l.partitions)
	}
	rows, missing, err := jobs(sys, l.picked)
	if err != nil {
		return failed(sys, err)
	}
	l.print(out, rows)
	for _, m := range missing {
		_ = out.Flush()
		fmt.Fprintf(sys.Stderr, "qstat: Unknown Job Id %d\n", m.Job)
	}
	return front.BoolInt(len(missing) > 0) * pbsUnknown
}

// pbsUnknown is the exit code of PBS's commands about a job that is not there.
const pbsUnknown = 153

// wideHead is above the lines of qstat -a.
const wideHead = "\n" +
	"                                                                               Req'd    Req'd       Elap\n" +
	"Job ID                  Username    Queue    Jobname          SessID  NDS   TSK   Memory   Time    S   Time\n" +
	"----------------------- ----------- -------- ---------------- ------ ----- ------ ------ " +
	"--------- - ---------\n"

func (l *statLine) print(out *bufio.Writer, rows []show.JobRow) {
	switch {
	case l.full:
		for i := range rows {
			pbsFull(out, &rows[i])
		}
	case len(rows) == 0:
	case l.wide:
		out.WriteString(wideHead)
		for i := range rows {
			l.wideLine(out, &rows[i])
		}
	default:
		out.WriteString("Job id              Name             Username        Time Use S Queue          \n" +
			"------------------- ---------------- --------------- -------- - ---------------\n")
		for i := range rows {
			r := &rows[i]
			fmt.Fprintf(out, "%-19s %-16.16s %-15.15s %-8s %-1s %-15s\n", r.ShownID(), r.Spec.Name, r.Spec.User,
				pbsClock(r.Elapsed()), pbsState(r), r.Partition())
		}
	}
}

func (l *statLine) wideLine(out *bufio.Writer, r *show.JobRow) {
	limit := "--"
	if r.Limit > 0 && r.Limit < cluster.Unlimited {
		limit = pbsClock(r.Limit)
	}
	elapsed := "--"
	if !r.Started.IsZero() {
		elapsed = pbsClock(r.Elapsed())
	}
	memory := "--"
	if mb := r.TotalMem(); mb > 0 {
		memory = strconv.FormatInt(int64(mb), 10) + "mb"
	}
	fmt.Fprintf(out, "%-23s %-11.11s %-8.8s %-16.16s %6s %5d %6d %6s %9s %1s %9s\n", r.ShownID(), r.Spec.User,
		r.Partition(),
		r.Spec.Name, "--", r.NumNodes(), r.NumTasks(), memory, limit, pbsState(r), elapsed)
	if l.nodes {
		out.WriteString("   " + front.Choose(r.Alloc == nil, "--", r.Nodes()) + "\n")
	}
}

// pbsFull writes all of a job.
func pbsFull(out *bufio.Writer, r *show.JobRow) {
	fmt.Fprintf(out, "Job Id: %s\n", r.ShownID())
	line := func(key, value string) {
		if value != "" {
			fmt.Fprintf(out, "    %s = %s\n", key, value)
		}
	}
	stamp := func(t time.Time) string {
		if t.IsZero() {
			return ""
		}
		return t.Local().Format(time.ANSIC)
	}
	line("Job_Name", r.Spec.Name)
	line("Job_Owner", r.Spec.User)
	line("job_state", pbsState(r))
	line("queue", r.Partition())
	line("Account_Name", r.Spec.Account)
	line("qtime", stamp(r.Submitted))
	line("start_time", stamp(r.Started))
	line("exec_host", front.Choose(r.Alloc == nil, "", r.Nodes()))
	line("Resource_List.nodect", strconv.Itoa(r.NumNodes()))
	line("Resource_List.ncpus", strconv.Itoa(r.NumCPUs()))
	if r.Limit > 0 && r.Limit < cluster.Unlimited {
		line("Resource_List.walltime", pbsClock(r.Limit))
	}
	line("resources_used.walltime", pbsClock(r.Elapsed()))
	line("comment", r.Reason())
	out.WriteString("\n")
}

// pbsQueues lists partitions as queues.
func pbsQueues(sys *front.Sys, out *bufio.Writer, only []string) int {
	resp, err := nodes(sys, nil)
	if err != nil {
		return failed(sys, err)
	}
	rows, _, err := jobs(sys, picked{phases: live})
	if err != nil {
		return failed(sys, err)
	}
	out.WriteString("Queue              Max    Tot   Ena   Str   Que   Run   Hld   Wat   Trn   Ext T\n" +
		"----------------   ---   ----    --    --   ---   ---   ---   ---   ---   --- -\n")
	for _, p := range resp.Partitions {
		if len(only) > 0 && !slices.Contains(only, p.Name) {
			continue
		}
		count := map[string]int{}
		for i := range rows {
			if slices.Contains(strings.Split(rows[i].Partition(), ","), p.Name) {
				count[pbsState(&rows[i])]++
				count["all"]++
			}
		}
		up := front.Choose(p.State == cluster.PartitionUp, "yes", "no")
		fmt.Fprintf(out, "%-16s %5d %6d %5s %5s %5d %5d %5d %5d %5d %5d E\n", p.Name, 0, count["all"], up, up,
			count["Q"], count["R"]+count["S"], count["H"], count["W"], 0, count["E"])
	}
	return 0
}

// none is a command line that takes no more than job numbers.
type none struct{ words []string }

func keep(flags ...string) func(*none, string) error {
	return func(n *none, v string) error { n.words = append(append(n.words, flags...), v); return nil }
}

// over runs another front-end once for all jobs of a line.
func over(sys *front.Sys, rows []row[none], argv []string, run func(words, ids []string) int) int {
	var n none
	rest, err := parse(&n, rows, argv)
	if err == nil {
		rest, err = jobIDs(rest)
	}
	if err != nil {
		return failed(sys, err)
	}
	return run(n.words, rest)
}

func qdel(sys *front.Sys, argv []string) int {
	rows := []row[none]{{"p", false, func(*none, string) error { return nil }},
		{"W", true, refuse[none]("scancel ends jobs as KillWait says; scancel -s sends signals")},
		{"m", true, refuse[none]("scancel sends no words; scontrol notify does")}}
	return over(sys, rows, argv, func(_, ids []string) int { return as(sys, "scancel", ids...) })
}

// holdKinds reads -h: u, o, s, n.
func holdKinds(n *none, v string) error {
	if strings.Trim(v, "uosn") != "" || v == "" {
		return fmt.Errorf("%q: want letters of uos, or n", v)
	}
	n.words = []string{v}
	return nil
}

func qhold(sys *front.Sys, argv []string) int {
	return over(sys, []row[none]{{"h", true, holdKinds}}, argv, func(kinds, ids []string) int {
		verb := "uhold"
		if len(kinds) > 0 && strings.ContainsAny(kinds[0], "os") {
			verb = "hold"
		}
		return as(sys, "scontrol", verb, strings.Join(ids, ","))
	})
}

func qrls(sys *front.Sys, argv []string) int {
	return over(sys, []row[none]{{"h", true, holdKinds}}, argv, func(_, ids []string) int {
		return as(sys, "scontrol", "release", strings.Join(ids, ","))
	})
}

func qrerun(sys *front.Sys, argv []string) int {
	rows := []row[none]{{"f", false, func(*none, string) error { return nil }}}
	return over(sys, rows, argv, func(_, ids []string) int {
		return as(sys, "scontrol", "requeue", strings.Join(ids,
			","))
	})
}

func qsig(sys *front.Sys, argv []string) int {
	return over(sys, []row[none]{{"s", true, keep()}, {"a", false, func(*none, string) error { return nil }}}, argv,
		func(words, ids []string) int {
			signal := "TERM"
			if len(words) > 0 {
				signal = words[len(words)-1]
			}
			switch signal {
			case "suspend", "resume":
				return as(sys, "scontrol", signal, strings.Join(ids, ","))
			}
			return as(sys, "scancel", append([]string{"--full", "--signal=" + strings.TrimPrefix(signal, "SIG")},
				ids...)...)
		})
}

// alterKeys are what options of sbatch are for scontrol update.
func alterKeys() map[string]string {
	return map[string]string{"--begin": "StartTime", "--account": "Account", "--nice": "Nice",
		"--time": "TimeLimit", "--dependency": "Dependency",
		"--nodes": "NumNodes", "--partition": "Partition", "--mem": "MinMemoryNode", "--mem-per-cpu": "MinMemoryCPU",
		"--ntasks":     "NumTasks",
		"--constraint": "Features", "--mail-type": "MailType", "--mail-user": "MailUser", "--wckey": "WCKey",
		"--nodelist": "ReqNodeList", "--qos": "QOS",
		"--ntasks-per-node": "TasksPerNode", "--gres": "Gres", "--licenses": "Licenses"}
}

// qalter changes jobs: the options of qsub, as far as scontrol update has them.
func qalter(sys *front.Sys, argv []string) int {
	var j pbsJob
	rest, err := parse(&j, pbsRows(), argv)
	if err == nil {
		rest, err = jobIDs(rest)
	}
	if err != nil {
		return failed(sys, err)
	}
	var words []string
	if j.name != "" {
		words = append(words, "JobName="+j.name)
	}
	if j.out != "" || j.errs != "" || j.join != "" {
		return failed(sys, fmt.Errorf("-o, -e, -j: where a job writes does not change once it is submitted"))
	}
	for _, w := range j.argv {
		option, value, _ := strings.Cut(w, "=")
		switch key := alterKeys()[option]; {
		case key != "":
			words = append(words, key+"="+value)
		case option == "--requeue", option == "--no-requeue":
			words = append(words, "Requeue="+front.Choose(option == "--requeue", "1", "0"))
		default:
			return failed(sys, fmt.Errorf("%s does not change once a job is submitted: scontrol update says what does",
				option))
		}
	}
	if len(words) == 0 {
		return failed(sys, fmt.Errorf("say what to change"))
	}
	code := 0
	for _, id := range rest {
		code = max(code, as(sys, "scontrol", append([]string{"update", "JobId=" + id}, words...)...))
	}
	return code
}

// nodeLine is what pbsnodes's line asks for.
type nodesLine struct {
	list, offline, clear bool
	note                 string
}

func pbsnodes(sys *front.Sys, argv []string) int {
	var l nodesLine
	nothing := func(*nodesLine, string) error { return nil }
	rest, err := parse(&l, []row[nodesLine]{{"a", false, nothing}, {"q", false, nothing},
		{"l", false, func(l *nodesLine, _ string) error { l.list = true; return nil }},
		{"o", false, func(l *nodesLine, _ string) error { l.offline = true; return nil }},
		{"c", false, func(l *nodesLine, _ string) error { l.clear = true; return nil }},
		{"r", false, func(l *nodesLine, _ string) error { l.clear = true; return nil }},
		{"N", true, func(l *nodesLine, v string) error { l.note = v; return nil }},
		{"x", false, refuse[nodesLine]("sinfo --json writes nodes for programs")},
		{"s", true, refuse[nodesLine]("one cluster is asked")},
	}, argv)
	if err != nil {
		return failed(sys, err)
	}
	if l.offline || l.clear {
		if len(rest) == 0 {
			return failed(sys, fmt.Errorf("name nodes"))
		}
		words := []string{"update", "NodeName=" + strings.Join(rest, ","), "State=RESUME"}
		if l.offline {
			words[2] = "State=DRAIN"
			words = append(words, "Reason="+front.Choose(l.note == "", "pbsnodes -o", l.note))
		}
		return as(sys, "scontrol", words...)
	}
	resp, err := nodes(sys, rest)
	if err != nil {
		return failed(sys, err)
	}
	out := bufio.NewWriter(sys.Stdout)
	defer out.Flush()
	for i := range resp.Nodes {
		l.print(out, &resp.Nodes[i])
	}
	for _, n := range resp.Missing {
		_ = out.Flush()
		fmt.Fprintf(sys.Stderr, "pbsnodes: Unknown node %s\n", n)
	}
	return front.BoolInt(len(resp.Missing) > 0)
}

// pbsNodeState is a node's state in PBS's words.
func pbsNodeState(n *api.NodeInfo) string {
	text := show.StateWord(show.NodeState(n), true)
	switch {
	case hasState(text, "down", "not_respond", "unknown"):
		return "down"
	case hasState(text, "drain", "maint", "reserved"):
		return "offline"
	case hasState(text, "alloc"):
		return "job-exclusive"
	}
	return "free"
}

func (l *nodesLine) print(out *bufio.Writer, n *api.NodeInfo) {
	state := pbsNodeState(n)
	if l.list {
		if state == "down" || state == "offline" {
			fmt.Fprintf(out, "%-20s %-17s %s\n", n.Name, state, n.Reason)
		}
		return
	}
	fmt.Fprintf(out, "%s\n     state = %s\n     np = %d\n", n.Name, state, n.Inventory.CPUs)
	if len(n.Inventory.Features) > 0 {
		fmt.Fprintf(out, "     properties = %s\n", strings.Join(n.Inventory.Features, ","))
	}
	fmt.Fprintf(out, "     ntype = cluster\n     gpus = %d\n     status = opsys=%s,physmem=%dmb\n",
		len(n.Inventory.GPUs), n.Inventory.OS, n.Inventory.MemMB)
	if n.Reason != "" {
		fmt.Fprintf(out, "     note = %s\n", n.Reason)
	}
	out.WriteString("\n")
}
