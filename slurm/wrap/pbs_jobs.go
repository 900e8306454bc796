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
	full, wide, nodes, oneLine, limits, queues, running, idle bool
}

func statRows() []row[statLine] {
	yes := func(f func(*statLine) *bool) func(*statLine, string) error {
		return func(l *statLine, _ string) error { *f(l) = true; return nil }
	}
	return []row[statLine]{
		{"a", false, yes(func(l *statLine) *bool { return &l.wide })},
		{"f", false, yes(func(l *statLine) *bool { return &l.full })},
		{"n", false, func(l *statLine, _ string) error { l.nodes, l.wide = true, true; return nil }},
		{"1", false, yes(func(l *statLine) *bool { return &l.oneLine })},
		{"i", false, func(l *statLine, _ string) error { l.idle, l.wide = true, true; return nil }},
		{"r", false, func(l *statLine, _ string) error { l.running, l.wide = true, true; return nil }},
		{"s", false, yes(func(l *statLine) *bool { return &l.wide })},
		{"t", false, func(*statLine, string) error { return nil }},
		{"q", false, func(l *statLine, _ string) error { l.queues, l.limits = true, true; return nil }},
		{"Q", false, yes(func(l *statLine) *bool { return &l.queues })},
		{"u", true, func(l *statLine, v string) error { l.users = front.SplitList(v); l.wide = true; return nil }},
		{"G", false, yes(func(l *statLine) *bool { return &l.wide })},
		{"M", false, yes(func(l *statLine) *bool { return &l.wide })},
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
	if l.running {
		l.phases = live[1:]
	}
	if l.idle {
		l.phases = live[:1]
	}
	out := bufio.NewWriter(sys.Stdout)
	defer out.Flush()
	if l.queues {
		return l.printQueues(sys, out)
	}
	rows, missing, err := jobs(sys, l.picked)
	if err != nil {
		return failed(sys, err)
	}
	l.print(sys, out, rows)
	for _, m := range missing {
		_ = out.Flush()
		fmt.Fprintf(sys.Stderr, "qstat: Unknown Job Id %d\n", m.Job)
	}
	return front.BoolInt(len(missing) > 0) * pbsUnknown
}

// pbsUnknown is the exit code of PBS's commands about a job that is not there.
const pbsUnknown = 153

// wideHead is above the lines of qstat -a, below the host's name.
const wideHead = "                                                       " +
	"                        Req'd  Req'd   Elap \n" +
	"Job id               Username Queue    Name                 SessID NDS   TSK   Memory Time Use S Time \n" +
	"-------------------- -------- -------- -------------------- ------ ----- ----- ------ ----- - -----\n"

func (l *statLine) print(sys *front.Sys, out *bufio.Writer, rows []show.JobRow) {
	host, _ := sys.Hostname()
	switch {
	case l.full:
		for i := range rows {
			pbsFull(out, &rows[i], host)
		}
	case len(rows) == 0:
	case l.wide:
		out.WriteString("\n" + host + ":\n" + wideHead)
		for i := range rows {
			l.wideLine(out, &rows[i])
		}
	default:
		out.WriteString("Job id              Name             Username        Time Use S Queue          \n" +
			"------------------- ---------------- --------------- -------- - ---------------\n")
		for i := range rows {
			r := &rows[i]
			fmt.Fprintf(out, "%-19s %-16.16s %-15.15s %-8s %-1s %-15s\n", r.ShownID(), cluster.PlainLine(r.Spec.Name),
				r.Spec.User, pbsClock(r.Elapsed()), pbsState(r), r.Partition())
		}
	}
}

// wideLine is a job of qstat -a, -n and their kin: times are HH:MM.
func (l *statLine) wideLine(out *bufio.Writer, r *show.JobRow) {
	limit := "--"
	if r.Limit > 0 && r.Limit < cluster.Unlimited {
		limit = pbsMinutes(r.Limit)
	}
	memory := "--"
	if mb := r.TotalMem(); mb > 0 {
		memory = strconv.FormatInt(int64(mb), 10) + "mb"
	}
	const format = "%-20s %-8.8s %-8.8s %-20.20s %-6s %5d %5d %6s %5s %1s %5s"
	fmt.Fprintf(out, format, r.ShownID(), r.Spec.User,
		r.Partition(), cluster.PlainLine(r.Spec.Name), "--", r.NumNodes(), r.NumTasks(), memory, limit, pbsState(r),
		pbsMinutes(r.Elapsed()))
	if l.nodes {
		out.WriteString(front.Choose(l.oneLine, "", "\n") + "   " + front.Choose(r.Alloc == nil, "--", pbsHosts(r)))
	}
	out.WriteString("\n")
}

// pbsMinutes writes a time as HH:MM.
func pbsMinutes(d time.Duration) string {
	m := int(d / time.Minute)
	return fmt.Sprintf("%02d:%02d", m/60, m%60)
}

// pbsHosts are the nodes of a job with their CPUs: NODE/COUNT+NODE/COUNT.
func pbsHosts(r *show.JobRow) string {
	if r.Alloc == nil {
		return ""
	}
	var list []string
	for i := range r.Alloc.Shares {
		sh := &r.Alloc.Shares[i]
		list = append(list, fmt.Sprintf("%s/%d", sh.Node, sh.CPUs.Len()))
	}
	return strings.Join(list, "+")
}

// pbsFull writes all of a job: what Slurm's qstat has, then what else is known.
func pbsFull(out *bufio.Writer, r *show.JobRow, host string) {
	fmt.Fprintf(out, "Job Id:\t%s\n", r.ShownID())
	line := func(key, value string) {
		if value != "" {
			fmt.Fprintf(out, "\t%s = %s\n", key, cluster.PlainLine(value))
		}
	}
	stamp := func(t time.Time) string {
		if t.IsZero() {
			return ""
		}
		return t.Local().Format(time.ANSIC)
	}
	line("Job_Name", r.Spec.Name)
	line("Job_Owner", r.Spec.User+"@"+front.Choose(r.Spec.SubmitHost == "", host, r.Spec.SubmitHost))
	line("job_state", pbsState(r))
	line("queue", r.Partition())
	line("qtime", stamp(r.Submitted))
	line("mtime", stamp(r.Started))
	line("Account_Name", r.Spec.Account)
	line("exec_host", pbsHosts(r))
	line("Priority", strconv.FormatUint(uint64(r.Priority), 10))
	line("euser", fmt.Sprintf("%s(%d)", r.Spec.User, r.Spec.UID))
	line("egroup", fmt.Sprintf("%s(%d)", r.Group(), r.Spec.GID))
	if r.Limit > 0 && r.Limit < cluster.Unlimited {
		line("Resource_List.walltime", pbsClock(r.Limit))
	}
	line("Resource_List.nodect", strconv.Itoa(r.NumNodes()))
	line("Resource_List.ncpus", strconv.Itoa(r.NumCPUs()))
	line("resources_used.walltime", pbsClock(r.Elapsed()))
	line("comment", r.Reason())
	out.WriteString("\n")
}

// queueLoad is how many jobs of a partition are in each state of PBS.
type queueLoad map[string]int

func (q queueLoad) waiting() int { return q["Q"] + q["H"] + q["W"] }
func (q queueLoad) running() int { return q["R"] + q["S"] + q["E"] }

// printQueues lists partitions as queues: -q with their limits, -Q with their jobs, -Q -f in full.
func (l *statLine) printQueues(sys *front.Sys, out *bufio.Writer) int {
	resp, err := nodes(sys, nil)
	if err != nil {
		return failed(sys, err)
	}
	rows, _, err := jobs(sys, picked{phases: live})
	if err != nil {
		return failed(sys, err)
	}
	switch {
	case l.full:
	case l.limits:
		out.WriteString("Queue            Memory CPU Time Walltime Node  Run Que Lm State\n" +
			"---------------- ------ -------- -------- ----  --- --- -- -----\n")
	default:
		out.WriteString("Queue              Max   Tot   Ena   Str   Que   Run   Hld   Wat   Trn   Ext T\n" +
			"----------------   ---   ---   ---   ---   ---   ---   ---   ---   ---   --- -\n")
	}
	running, waiting := 0, 0
	for i := range resp.Partitions {
		p := &resp.Partitions[i]
		if len(l.partitions) > 0 && !slices.Contains(l.partitions, p.Name) {
			continue
		}
		load := queueLoad{}
		for i := range rows {
			if slices.Contains(strings.Split(rows[i].Partition(), ","), p.Name) {
				load[pbsState(&rows[i])]++
			}
		}
		running, waiting = running+load.running(), waiting+load.waiting()
		l.printQueue(out, p, load)
	}
	if l.limits && !l.full {
		fmt.Fprintf(out, "%47s----- -----\n%52d %5d\n", "", running, waiting)
	}
	return 0
}

func (l *statLine) printQueue(out *bufio.Writer, p *cluster.Partition, load queueLoad) {
	up := p.State == cluster.PartitionUp
	yes := front.Choose(up, "yes", "no")
	switch {
	case l.full:
		fmt.Fprintf(out, "Queue:\t%s\n\tqueue_type = Execution\n\tresources_default.nodes = %d\n"+
			"\tenabled = %s\n\tstarted = %s\n\n", p.Name, len(p.Nodes), yes, yes)
	case l.limits:
		limit := "--"
		if p.MaxTime > 0 && p.MaxTime < cluster.Unlimited {
			limit = pbsClock(p.MaxTime)
		}
		fmt.Fprintf(out, "%-16s   --      --    %-8s  --  %3d %3d --  %s %s \n", p.Name, limit,
			load.running(), load.waiting(), front.Choose(up, "E", "D"), front.Choose(up, "R", "S"))
	default:
		all := load.waiting() + load.running()
		fmt.Fprintf(out, "%-16s %5d %5d %5s %5s %5d %5d %5d %5d %5d %5d E\n", p.Name, 0, all, yes, yes,
			load["Q"], load["R"]+load["S"], load["H"], load["W"], 0, load["E"])
	}
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
	case hasState(text, "mixed", "completing"):
		return text
	}
	return "free"
}

func (l *nodesLine) print(out *bufio.Writer, n *api.NodeInfo) {
	state := pbsNodeState(n)
	if l.list {
		if state == "down" || state == "offline" {
			fmt.Fprintf(out, "%s\t\t%s\n", n.Name, state)
		}
		return
	}
	fmt.Fprintf(out, "%s\n    state = %s\n    np = %d\n", n.Name, state, n.Inventory.CPUs)
	if len(n.Inventory.Features) > 0 {
		fmt.Fprintf(out, "    properties = %s\n", strings.Join(n.Inventory.Features, ","))
	}
	fmt.Fprintf(out, "    ntype = cluster\n    status = %s\n", pbsNodeStatus(n, state))
	if n.Reason != "" {
		fmt.Fprintf(out, "    note = %s\n", n.Reason)
	}
	if gpus := len(n.Inventory.GPUs); gpus > 0 {
		fmt.Fprintf(out, "    gpus = %d\n", gpus)
	}
	out.WriteString("\n")
}

// pbsNodeStatus is what Slurm's pbsnodes tells of a node in one line.
func pbsNodeStatus(n *api.NodeInfo, state string) string {
	inv := &n.Inventory
	words := []string{"state=" + state, "slurmstate=" + show.StateWord(show.NodeState(n), true)}
	if gres := show.GRESText(inv); gres != "" {
		words = append(words, "gres="+gres)
	}
	if n.Reason != "" {
		words = append(words, "message="+strconv.Quote(n.Reason))
	}
	words = append(words, fmt.Sprintf("ncpus=%d,sockets=%d,cores=%d,threads=%d,availmem=%dmb", inv.CPUs, inv.Sockets,
		inv.CoresPerSocket, inv.ThreadsPerCore, inv.MemMB), "opsys="+strings.ToLower(inv.OS), "arch="+inv.Arch)
	return strings.Join(words, ",")
}
