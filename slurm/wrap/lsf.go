package wrap

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"dev.muster/api"
	"dev.muster/cluster"
	"dev.muster/slurm/front"
	"dev.muster/slurm/show"
)

// lsfJob is what bsub's line and the script's #BSUB lines ask for; argv are sbatch's options.
type lsfJob struct {
	argv        []string
	name        string
	out, errs   string
	interactive bool
	array       bool
}

func (j *lsfJob) add(words ...string) error { j.argv = append(j.argv, words...); return nil }

func lsfTo(option string) func(*lsfJob, string) error {
	return func(j *lsfJob, v string) error { return j.add("--" + option + "=" + v) }
}

func lsfRows() []row[lsfJob] {
	flag := func(option string) func(*lsfJob, string) error {
		return func(j *lsfJob, _ string) error { return j.add("--" + option) }
	}
	terminal := func(j *lsfJob, _ string) error { j.interactive = true; return nil }
	file := func(to func(*lsfJob) *string, mode string) func(*lsfJob, string) error {
		return func(j *lsfJob, v string) error {
			*to(j) = strings.NewReplacer("%J", "\x00", "%I", "%a").Replace(v)
			return j.add("--open-mode=" + mode)
		}
	}
	out, errs := func(j *lsfJob) *string { return &j.out }, func(j *lsfJob) *string { return &j.errs }
	return []row[lsfJob]{
		{"n", true, func(j *lsfJob, v string) error { v, _, _ = strings.Cut(v, ","); return j.add("--ntasks=" + v) }},
		{"J", true, lsfName}, {"q", true, lsfTo("partition")}, {"W", true, lsfWall}, {"M", true, lsfMem},
		{"o", true, file(out, "append")}, {"oo", true, file(out, "truncate")},
		{"e", true, file(errs, "append")}, {"eo", true, file(errs, "truncate")},
		{"i", true, lsfTo("input")}, {"R", true, lsfResources}, {"m", true, lsfHosts}, {"w", true, lsfDepend},
		{"P", true, lsfTo("wckey")}, {"G", true, lsfTo("account")}, {"x", false, flag("exclusive")}, {"K", false,
			flag("wait")},
		{"H", false, flag("hold")}, {"B", false, flag("mail-type=BEGIN")}, {"N", false, flag("mail-type=END,FAIL")},
		{"u", true, lsfTo("mail-user")}, {"b", true, lsfBegin}, {"cwd", true, lsfTo("chdir")}, {"r", false,
			flag("requeue")},
		{"rn", false, flag("no-requeue")}, {"I", false, terminal}, {"Is", false, terminal}, {"Ip", false, terminal},
		{"ISs", false, terminal}, {"gpu", true, lsfGPU}, {"U", true, lsfTo("reservation")},
		{"env", true, func(j *lsfJob, v string) error { return j.add("--export=" + strings.ReplaceAll(v, " ", "")) }},
		{"Jd", true, lsfTo("comment")}, {"sla", true, lsfTo("qos")},
		{"sp", true, func(j *lsfJob, v string) error {
			n, err := strconv.Atoi(v)
			return errors.Join(err, j.add("--nice="+strconv.Itoa(-n)))
		}},
		{"c", true, refuse[lsfJob]("time is limited by -W")},
		{"L", true,
			refuse[lsfJob]("jobs have the environment of the shell; sbatch --get-user-env reads that of a login")},
		{"E", true, refuse[lsfJob]("prologs are the cluster's")}, {"f", true,
			refuse[lsfJob]("sbcast copies files to nodes")},
		{"k", true, refuse[lsfJob]("jobs save what they need themselves, at the signal of sbatch --signal")},
	}
}

// lsfName reads NAME, or NAME[1-10:2]%3, an array.
func lsfName(j *lsfJob, v string) error {
	name, list, ok := strings.Cut(v, "[")
	if j.name = name; !ok {
		return nil
	}
	list, limit, _ := strings.Cut(list, "]")
	j.array = true
	return j.add("--array=" + list + limit)
}

// lsfWall reads [hours:]minutes; a machine's name may follow.
func lsfWall(j *lsfJob, v string) error {
	v, _, _ = strings.Cut(v, "/")
	hours, minutes, ok := strings.Cut(v, ":")
	if !ok {
		hours, minutes = "0", v
	}
	h, err1 := strconv.Atoi(hours)
	m, err2 := strconv.Atoi(minutes)
	if err1 != nil || err2 != nil {
		return fmt.Errorf("%q: want [HOURS:]MINUTES", v)
	}
	return j.add("--time=" + strconv.Itoa(60*h+m))
}

// lsfSize is a size, in KB without a unit.
func lsfSize(v, unit string) string {
	if strings.Trim(v, "0123456789") == "" {
		return v + unit
	}
	return strings.TrimSuffix(strings.ToUpper(v), "B")
}

// lsfMem is the limit of each process.
func lsfMem(j *lsfJob, v string) error { return j.add("--mem-per-cpu=" + lsfSize(v, "K")) }

func lsfHosts(j *lsfJob, v string) error {
	var names []string
	for w := range strings.FieldsSeq(v) {
		name, _, _ := strings.Cut(w, "+")
		if w, _, many := strings.Cut(name, "*"); many {
			name = w
		}
		names = append(names, name)
	}
	return j.add("--nodelist=" + strings.Join(names, ","))
}

// lsfBegin reads [[month:]day:]hour:minute.
func lsfBegin(j *lsfJob, v string) error {
	part := strings.Split(v, ":")
	switch len(part) {
	case 2:
		return j.add("--begin=" + v)
	case 4:
		return j.add(fmt.Sprintf("--begin=%s/%s-%s:%s", part[0], part[1], part[2], part[3]))
	}
	return fmt.Errorf("%q: want [MONTH:DAY:]HOUR:MINUTE", v)
}

// lsfResources reads span[], rusage[] and affinity[]; what asks for kinds of machines is refused.
func lsfResources(j *lsfJob, v string) error {
	for v = strings.TrimSpace(v); v != ""; v = strings.TrimSpace(v) {
		section, rest, ok := strings.Cut(v, "[")
		items, after, closed := strings.Cut(rest, "]")
		if !ok || !closed {
			return fmt.Errorf("%q: want span[...] or rusage[...]; machines are chosen by sbatch --constraint", v)
		}
		v = after
		for item := range strings.FieldsFuncSeq(items, func(c rune) bool { return c == ',' || c == ':' }) {
			if err := lsfResource(j, section, strings.TrimSpace(item)); err != nil {
				return err
			}
		}
	}
	return nil
}

// lsfResource reads one item of a section: ptile=4 of span.
func lsfResource(j *lsfJob, section, item string) error {
	key, value, _ := strings.Cut(item, "=")
	switch section + "." + key {
	case "span.ptile":
		return j.add("--ntasks-per-node=" + value)
	case "span.hosts":
		return j.add("--nodes=" + front.Choose(value == "1", "1", "1-"))
	case "rusage.mem":
		return j.add("--mem=" + lsfSize(value, "M"))
	case "rusage.ngpus_excl_p", "rusage.ngpus_physical", "rusage.ngpus":
		return j.add("--gpus-per-node=" + value)
	case "affinity.core(1)":
		return nil
	}
	return fmt.Errorf("%s[%s] has no counterpart here: see sbatch --constraint and --gres", section, item)
}

// lsfGPU reads num=2:mode=...:gmodel=....
func lsfGPU(j *lsfJob, v string) error {
	count, kind := "1", ""
	for w := range strings.SplitSeq(v, ":") {
		key, value, _ := strings.Cut(w, "=")
		switch key {
		case "num":
			count = value
		case "gmodel":
			kind = strings.ToLower(value) + ":"
		case "mode", "j_exclusive", "-": // a job's GPUs are its own
		default:
			return fmt.Errorf("%s has no counterpart here: see sbatch --gpus-per-node", w)
		}
	}
	return j.add("--gpus-per-node=" + kind + count)
}

// lsfConditions are what the terms of -w are as a dependency.
func lsfConditions() map[string]string {
	return map[string]string{"done": "afterok", "ended": "afterany", "exit": "afternotok", "started": "after"}
}

// lsfDepend reads terms with && or || between.
func lsfDepend(j *lsfJob, v string) error {
	sep, joint := "&&", ","
	if strings.Contains(v, "||") {
		if sep, joint = "||", "?"; strings.Contains(v, "&&") {
			return fmt.Errorf("%q: && and || together have no counterpart here", v)
		}
	}
	var terms []string
	for t := range strings.SplitSeq(v, sep) {
		word, id, called := strings.Cut(strings.TrimSpace(t), "(")
		if !called {
			word, id = "done", word
		}
		id = strings.Trim(strings.TrimSuffix(id, ")"), ` "`)
		switch {
		case lsfConditions()[word] == "":
			return fmt.Errorf("%q has no counterpart here: want done(ID), ended(ID), exit(ID) or started(ID)", t)
		case id == "" || strings.Trim(id, "0123456789") != "":
			return fmt.Errorf("%q: name the job by its number", t)
		}
		terms = append(terms, lsfConditions()[word]+":"+id)
	}
	return j.add("--dependency=" + strings.Join(terms, joint))
}

// lsfPrologue sets LSF's variables in the job.
const lsfPrologue = `export LSB_JOBID="${SLURM_ARRAY_JOB_ID:-$SLURM_JOB_ID}" LSB_JOBNAME="$SLURM_JOB_NAME"
export LSB_QUEUE="$SLURM_JOB_PARTITION"
export LSB_JOBINDEX="${SLURM_ARRAY_TASK_ID:-0}" LSB_DJOB_NUMPROC="${SLURM_NTASKS:-1}" LS_SUBCWD="$SLURM_SUBMIT_DIR"
export LSB_SUB_HOST="$SLURM_SUBMIT_HOST" LSB_DJOB_HOSTFILE="${TMPDIR:-/tmp}/lsb_hostfile.$SLURM_JOB_ID"
trap 'rm -f "$LSB_DJOB_HOSTFILE"' EXIT
` + hostFile + `>"$LSB_DJOB_HOSTFILE"
export LSB_HOSTS="$(tr '\n' ' ' <"$LSB_DJOB_HOSTFILE")"
export LSB_MCPU_HOSTS="$(uniq -c "$LSB_DJOB_HOSTFILE" | while read -r n h; do printf '%s %s ' "$h" "$n"; done)"
`

// bsub submits a command, or the script of standard input.
func bsub(sys *front.Sys, argv []string) int {
	var line lsfJob
	rest, err := parse(&line, lsfRows(), argv)
	if err != nil {
		return failed(sys, err)
	}
	if line.interactive {
		return interactive(sys, line.argv, rest)
	}
	script, name := "#!/bin/sh\n"+strings.Join(rest, " ")+"\n", strings.Join(rest, " ")
	if len(rest) == 0 {
		if script, err = readScript(sys, ""); err != nil {
			return failed(sys, err)
		}
		name = "STDIN"
	}
	j := lsfJob{name: name}
	for _, words := range [][]string{pbsDirectives(script, "#BSUB"), argv} { // the line wins
		if _, err := parse(&j, lsfRows(), words); err != nil {
			return failed(sys, err)
		}
	}
	words := append(j.argv, "--ignore-pbs", "--parsable", "--job-name="+j.name)
	number := front.Choose(j.array, "%A", "%j")
	for _, o := range [...][2]string{{"--output=", cmp.Or(j.out, "/dev/null")}, {"--error=", j.errs}} {
		if o[1] != "" {
			words = append(words, o[0]+strings.ReplaceAll(o[1], "\x00", number))
		}
	}
	id, code := output(sys, strings.NewReader(withPrologue(script, "/bin/sh", lsfPrologue)), "sbatch", words...)
	if code != 0 && id == "" {
		return code
	}
	queue := "default queue"
	if list, err := refs([]string{id}); err == nil {
		if rows, _, err := jobs(sys, picked{refs: list}); err == nil && len(rows) > 0 {
			queue = front.Choose(slices.ContainsFunc(words, func(w string) bool {
				return strings.HasPrefix(w,
					"--partition=")
			}), "queue", queue) +
				" <" + rows[0].Partition() + ">"
		}
	}
	fmt.Fprintf(sys.Stdout, "Job <%s> is submitted to %s.\n", id, queue)
	return code
}

// lsfStates are LSF's words of states.
func lsfStates() map[string]string {
	return map[string]string{"HELD": "PSUSP", "PD": "PEND", "CF": "RUN", "R": "RUN", "S": "USUSP", "CG": "RUN",
		"CD": "DONE", "RQ": "PEND", "RH": "PSUSP"}
}

// lsfList is what bjobs and bkill name.
type lsfList struct {
	picked
	wide, long, noHeader, everything bool
	signal                           string
}

func lsfListRows() []row[lsfList] {
	phases := func(p ...cluster.Phase) func(*lsfList, string) error {
		return func(l *lsfList, _ string) error { l.phases = append(l.phases, p...); return nil }
	}
	return []row[lsfList]{
		{"u", true, func(l *lsfList, v string) error { l.users = front.SplitList(v); return nil }},
		{"q", true, func(l *lsfList, v string) error { l.partitions = []string{v}; return nil }},
		{"J", true, func(l *lsfList, v string) error { l.names = []string{v}; return nil }},
		{"w", false, func(l *lsfList, _ string) error { l.wide = true; return nil }},
		{"l", false, func(l *lsfList, _ string) error { l.long = true; return nil }},
		{"noheader", false, func(l *lsfList, _ string) error { l.noHeader = true; return nil }},
		{"a", false, func(l *lsfList, _ string) error { l.everything = true; return nil }},
		{"A", false, func(*lsfList, string) error { return nil }},
		{"r", false, phases(cluster.Starting, cluster.Running, cluster.Ending)}, {"p", false, phases(cluster.Pending)},
		{"d", false, phases(cluster.Ended)}, {"s", false, phases(cluster.Suspended)},
		{"o", true, refuse[lsfList]("squeue --Format picks what to show")},
		{"json", false, refuse[lsfList]("squeue --json writes jobs for programs")},
		{"m", true, refuse[lsfList]("squeue --nodelist asks for nodes")},
	}
}

// own leaves the jobs of who asks, unless others are named.
func (l *lsfList) own(sys *front.Sys) {
	switch {
	case slices.Equal(l.users, []string{"all"}):
		l.users = nil
	case len(l.users) == 0 && len(l.refs) == 0:
		l.users = []string{front.UintText(sys.UID)}
	}
}

// bjobs lists jobs.
func bjobs(sys *front.Sys, argv []string) int {
	var l lsfList
	rest, err := parse(&l, lsfListRows(), argv)
	if err == nil && len(rest) > 0 {
		l.refs, err = refs(rest)
	}
	if err != nil {
		return failed(sys, err)
	}
	l.own(sys)
	if len(l.phases) == 0 && !l.everything && len(l.refs) == 0 {
		l.phases = live
	}
	rows, missing, err := jobs(sys, l.picked)
	if err != nil {
		return failed(sys, err)
	}
	for _, m := range missing {
		fmt.Fprintf(sys.Stderr, "Job <%d> is not found\n", m.Job)
	}
	if len(rows) == 0 {
		if len(missing) == 0 {
			fmt.Fprintln(sys.Stderr, front.Choose(l.everything, "No job found", "No unfinished job found"))
		}
		return 255
	}
	out := bufio.NewWriter(sys.Stdout)
	defer out.Flush()
	if l.long {
		for i := range rows {
			lsfLong(out, &rows[i])
		}
		return 0
	}
	if !l.noHeader {
		out.WriteString("JOBID   USER    STAT  QUEUE      FROM_HOST   EXEC_HOST   JOB_NAME   SUBMIT_TIME\n")
	}
	form := "%-7s %-7.7s %-5.5s %-10.10s %-11.11s %-11.11s %-10.10s %s\n"
	if l.wide {
		form = "%-7s %-7s %-5s %-10s %-11s %-11s %-10s %s\n"
	}
	for i := range rows {
		r := &rows[i]
		fmt.Fprintf(out, form, lsfID(r), r.Spec.User, stateOf(r, lsfStates(), "EXIT"), r.Partition(),
			cmp.Or(r.Spec.SubmitHost, "-"),
			cmp.Or(front.Choose(r.Alloc == nil, "-", r.Nodes()), "-"), lsfTask(r),
			r.Submitted.Local().Format("Jan _2 15:04"))
	}
	return 0
}

func lsfID(r *show.JobRow) string {
	id, _, _ := strings.Cut(r.ShownID(), "_")
	return id
}

// lsfTask is a job's name, of a task with its number.
func lsfTask(r *show.JobRow) string {
	if _, task, ok := strings.Cut(r.ShownID(), "_"); ok {
		return cluster.PlainLine(r.Spec.Name) + "[" + strings.Trim(task, "[]") + "]"
	}
	return cluster.PlainLine(r.Spec.Name)
}

func lsfLong(out *bufio.Writer, r *show.JobRow) {
	fmt.Fprintf(out, "\nJob <%s>, Job Name <%s>, User <%s>, Project <%s>, Status <%s>, Queue <%s>, Command <%s>\n",
		lsfID(r), lsfTask(r),
		r.Spec.User, cmp.Or(r.Spec.WCKey, "default"), stateOf(r, lsfStates(), "EXIT"), r.Partition(), r.Command())
	fmt.Fprintf(out, "%s: Submitted from host <%s>, CWD <%s>, %d Task(s);\n",
		r.Submitted.Local().Format("Mon Jan _2 15:04:05"),
		cmp.Or(r.Spec.SubmitHost, "-"), r.Spec.WorkDir, r.NumTasks())
	switch {
	case !r.Started.IsZero():
		fmt.Fprintf(out, "%s: Started on <%s>;\n", r.Started.Local().Format("Mon Jan _2 15:04:05"), r.Nodes())
	default:
		fmt.Fprintf(out, " PENDING REASONS:\n %s;\n", r.Reason())
	}
}

// bkill ends jobs, or sends them a signal; 0 means all of the user's.
func bkill(sys *front.Sys, argv []string) int {
	var l lsfList
	rows := append(lsfListRows(), row[lsfList]{"s", true, func(l *lsfList,
		v string) error {
		l.signal = v
		return nil
	}})
	rows = slices.DeleteFunc(rows, func(r row[lsfList]) bool {
		return !slices.Contains([]string{"u", "q", "J", "s"}, r.flag) || r.flag == "s" && !r.arg
	})
	rest, err := parse(&l, rows, argv)
	if err != nil {
		return failed(sys, err)
	}
	if len(rest) == 0 {
		return failed(sys, fmt.Errorf("job ID or 0 must be specified"))
	}
	var words []string
	if rest[0] == "0" {
		l.own(sys)
		l.phases = live
		found, _, err := jobs(sys, l.picked)
		if err != nil || len(found) == 0 {
			return failed(sys, cmp.Or(err, errors.New("no matching job found")))
		}
		rest = nil
		for i := range found {
			words = append(words, front.UintText(uint32(found[i].ID)))
		}
	}
	ids, err := jobIDs(append(rest, words...))
	if err != nil {
		return failed(sys, err)
	}
	code := 0
	for _, id := range ids {
		line := []string{id}
		switch verb := map[string]string{"STOP": "suspend", "CONT": "resume"}[strings.TrimPrefix(l.signal, "SIG")]; {
		case verb != "":
			if rc := as(sys, "scontrol", verb, id); rc != 0 {
				code = 255
				continue
			}
		default:
			if l.signal != "" {
				line = []string{"--full", "--signal=" + strings.TrimPrefix(l.signal, "SIG"), id}
			}
			if rc := as(sys, "scancel", line...); rc != 0 {
				code = 255
				continue
			}
		}
		fmt.Fprintf(sys.Stdout, "Job <%s> is being %s\n", id, front.Choose(l.signal == "", "terminated", "signaled"))
	}
	return code
}

// bhosts lists nodes.
func bhosts(sys *front.Sys, argv []string) int {
	wide := func(*none, string) error { return nil }
	var n none
	rest, err := parse(&n, []row[none]{{"w", false, wide}, {"l", false,
		refuse[none]("scontrol show node tells all of a node")},
		{"R", true, refuse[none]("sinfo asks for partitions and states")}}, argv)
	var resp api.NodesResponse
	if err == nil {
		resp, err = nodes(sys, rest)
	}
	if err != nil {
		return failed(sys, err)
	}
	running, _, err := jobs(sys, picked{phases: live[1:]})
	if err != nil {
		return failed(sys, err)
	}
	fmt.Fprintln(sys.Stdout, "HOST_NAME          STATUS       JL/U    MAX  NJOBS    RUN  SSUSP  USUSP    RSV ")
	for i := range resp.Nodes {
		x := &resp.Nodes[i]
		run, stopped := 0, 0
		for k := range running {
			for _, sh := range running[k].Alloc.Shares {
				if sh.Node == x.Name && running[k].Phase == cluster.Suspended {
					stopped += sh.CPUs.Len()
				} else if sh.Node == x.Name {
					run += sh.CPUs.Len()
				}
			}
		}
		state := map[string]string{"free": "ok", "job-exclusive": "closed", "offline": "closed",
			"down": "unavail"}[pbsNodeState(x)]
		fmt.Fprintf(sys.Stdout, "%-18s %-12s %4s %6d %6d %6d %6d %6d %6d \n", x.Name, state, "-",
			x.Inventory.JobCPUCount(), run+stopped, run, 0, stopped, 0)
	}
	for _, m := range resp.Missing {
		fmt.Fprintf(sys.Stderr, "%s: Bad host name\n", m)
	}
	return 255 * front.BoolInt(len(resp.Missing) > 0)
}

// lsid tells who this is.
func lsid(sys *front.Sys, _ []string) int {
	resp, err := front.Call(sys, api.ShowCluster, api.Empty{})
	if err != nil {
		return failed(sys, err)
	}
	leader := "-"
	for _, s := range resp.Servers {
		if s.Leader {
			leader = s.Name
		}
	}
	fmt.Fprintf(sys.Stdout, "muster %s, in LSF's words\n\nMy cluster name is %s\nMy master name is %s\n", front.Version,
		resp.Config.ClusterName, leader)
	return 0
}
