package wrap

import (
	"errors"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"

	"dev.muster/slurm/front"
)

// pbsJob is what qsub's line and the script's #PBS lines ask for; argv are sbatch's options.
type pbsJob struct {
	argv            []string
	name, out, errs string
	join, shell     string
	args            string
	interactive     bool
	quiet, nodes    bool
	array, block    bool
	allVars         bool
	vars            string
}

func (j *pbsJob) add(words ...string) error { j.argv = append(j.argv, words...); return nil }

// to is a row whose value is that of one option of sbatch.
func to(option string) func(*pbsJob, string) error {
	return func(j *pbsJob, v string) error { return j.add("--" + option + "=" + v) }
}

// pbsRows are the options of qsub.
func pbsRows() []row[pbsJob] {
	return []row[pbsJob]{
		{"a", true, func(j *pbsJob, v string) error {
			at, err := pbsTime(v)
			return errors.Join(err, j.add("--begin="+at))
		}},
		{"A", true, to("account")},
		{"b", true, refuse[pbsJob]("qsub waits for the server by itself")},
		{"c", true, refuse[pbsJob]("jobs save what they need themselves, at the signal of --signal")},
		{"C", true, refuse[pbsJob]("directives begin with #PBS")},
		{"d", true, to("chdir")},
		{"D", true, to("chdir")},
		{"e", true, func(j *pbsJob, v string) error { j.errs = withoutHost(v); return nil }},
		{"F", true, func(j *pbsJob, v string) error { j.args = v; return nil }},
		{"f", false, func(*pbsJob, string) error { return nil }},
		{"h", false, func(j *pbsJob, _ string) error { return j.add("--hold") }},
		{"I", false, func(j *pbsJob, _ string) error { j.interactive = true; return nil }},
		{"j", true, func(j *pbsJob, v string) error { j.join = v; return oneOf(v, "oe", "eo", "n") }},
		{"J", true, func(j *pbsJob, v string) error { j.array = true; return j.add("--array=" + v) }},
		{"k", true, refuse[pbsJob]("output is written where -o and -e say, at once")},
		{"l", true, pbsResources},
		{"m", true, pbsMail},
		{"M", true, to("mail-user")},
		{"n", false, func(j *pbsJob, _ string) error { return j.add("--exclusive") }},
		{"N", true, func(j *pbsJob, v string) error { j.name = v; return nil }},
		{"o", true, func(j *pbsJob, v string) error { j.out = withoutHost(v); return nil }},
		{"p", true, func(j *pbsJob, v string) error {
			n, err := strconv.Atoi(v)
			return errors.Join(err, j.add("--nice="+strconv.Itoa(-n)))
		}},
		{"P", true, to("wckey")},
		{"q", true, func(j *pbsJob, v string) error {
			if v, _, _ = strings.Cut(v, "@"); v == "" {
				return nil
			}
			return j.add("--partition=" + v)
		}},
		{"r", true, func(j *pbsJob, v string) error {
			return errors.Join(oneOf(v, "y", "n"), j.add(front.Choose(v == "y", "--requeue", "--no-requeue")))
		}},
		{"S", true, func(j *pbsJob, v string) error { j.shell, _, _ = strings.Cut(v, "@"); return nil }},
		{"t", true, func(j *pbsJob, v string) error { j.array = true; return j.add("--array=" + v) }},
		{"T", true, refuse[pbsJob]("prologs are the cluster's")},
		{"u", true, refuse[pbsJob]("jobs are of the user who submits them; root has sbatch --uid")},
		{"v", true, func(j *pbsJob, v string) error { j.vars = v; return nil }},
		{"V", false, func(j *pbsJob, _ string) error { j.allVars = true; return nil }},
		{"w", true, to("chdir")},
		{"wd", true, to("chdir")},
		{"pe", true, func(j *pbsJob, v string) error { // tasks of SGE's environments share a node
			_, slots, _ := strings.Cut(v, " ")
			return j.add("--nodes=1", "--cpus-per-task="+slots)
		}},
		{"W", true, pbsAttributes},
		{"X", false, refuse[pbsJob]("srun --x11 forwards displays where the site allows it")},
		{"x", false, func(*pbsJob, string) error { return nil }}, // with -I: run the script's words
		{"z", false, func(j *pbsJob, _ string) error { j.quiet = true; return nil }},
	}
}

func oneOf(v string, words ...string) error {
	if slices.Contains(words, v) {
		return nil
	}
	return fmt.Errorf("%q: want one of %s", v, strings.Join(words, ", "))
}

// withoutHost is a path of PBS without the machine before it.
func withoutHost(v string) string {
	if host, file, ok := strings.Cut(v, ":"); ok && !strings.Contains(host, "/") {
		v = file
	}
	return strings.NewReplacer("$PBS_JOBID", "%j", "^array_index^", "%a").Replace(v)
}

// pbsTime reads [[CC]YY][MMDD]hhmm[.SS].
func pbsTime(v string) (string, error) {
	digits, seconds, _ := strings.Cut(v, ".")
	if seconds == "" {
		seconds = "00"
	}
	n := len(digits)
	if n < 4 || n > 12 || n%2 != 0 || strings.Trim(digits+seconds, "0123456789") != "" {
		return "", fmt.Errorf("%q: want [[[[CC]YY]MM]DD]hhmm[.SS]", v)
	}
	at := digits[n-4:n-2] + ":" + digits[n-2:] + ":" + seconds
	switch n {
	case 8:
		return digits[0:2] + "/" + digits[2:4] + "-" + at, nil
	case 10:
		return "20" + digits[0:2] + "-" + digits[2:4] + "-" + digits[4:6] + "T" + at, nil
	case 12:
		return digits[0:4] + "-" + digits[4:6] + "-" + digits[6:8] + "T" + at, nil
	case 4:
		return at, nil
	}
	return "", fmt.Errorf("%q: name the month, too", v)
}

// pbsMail reads the letters of -m.
func pbsMail(j *pbsJob, v string) error {
	var events []string
	for _, c := range v {
		event := map[rune]string{'a': "FAIL", 'b': "BEGIN", 'e': "END", 'f': "FAIL", 'n': "NONE", 'p': "NONE"}[c]
		if event == "" {
			return fmt.Errorf("%q: want letters of abe, or n", v)
		}
		events = append(events, event)
	}
	return j.add("--mail-type=" + strings.Join(events, ","))
}

// pbsAttributes reads -W name=value[,name=value].
func pbsAttributes(j *pbsJob, v string) error {
	for _, a := range pbsList(v) {
		name, value, _ := strings.Cut(a, "=")
		switch name {
		case "depend":
			terms, err := pbsDepend(value)
			if err = errors.Join(err, j.add("--dependency="+terms)); err != nil {
				return err
			}
		case "block":
			j.block = value == "" || value == "true"
		case "umask":
			return fmt.Errorf("umask: jobs have that of the shell that submits: call umask before")
		default:
			return fmt.Errorf("attribute %s has no counterpart here: sbatch --help lists what jobs can ask for", name)
		}
	}
	return nil
}

// pbsList splits at commas, but keeps what has no = with what is before it.
func pbsList(v string) (out []string) {
	for part := range strings.SplitSeq(v, ",") {
		if len(out) > 0 && !strings.Contains(part, "=") {
			out[len(out)-1] += "," + part
			continue
		}
		out = append(out, part)
	}
	return out
}

// pbsDepend reads the terms of depend=: after, afterok, afternotok, afterany, and those of arrays.
func pbsDepend(v string) (string, error) {
	var terms []string
	for t := range strings.SplitSeq(v, ",") {
		kind, list, _ := strings.Cut(t, ":")
		if i := strings.Index(kind, "array"); i > 0 && strings.HasPrefix(kind, "after") {
			kind = strings.TrimSuffix(kind, "array")
			kind = front.Choose(kind == "afterstart", "after", kind)
		}
		if err := oneOf(kind, "after", "afterok", "afternotok", "afterany"); err != nil {
			return "", fmt.Errorf("depend=%s: %w", kind, err)
		}
		ids, err := jobIDs(strings.Split(list, ":"))
		if err != nil {
			return "", err
		}
		terms = append(terms, kind+":"+strings.Join(ids, ":"))
	}
	return strings.Join(terms, ","), nil
}

// resource is one name of -l.
type resource struct {
	name string
	set  func(*pbsJob, string) error
}

func pbsResourceRows() []resource {
	way := func(text string) func(*pbsJob, string) error { return refuse[pbsJob](text) }
	return []resource{
		{"nodes", pbsNodes}, {"select", pbsSelect}, {"procs", to("ntasks")},
		{"ncpus", func(j *pbsJob, v string) error { return j.add("--nodes=1", "--ntasks="+v) }},
		{"walltime", func(j *pbsJob, v string) error {
			at, err := pbsWall(v)
			return errors.Join(err, j.add("--time="+at))
		}},
		{"mem", func(j *pbsJob, v string) error { return j.add("--mem=" + pbsMem(v)) }},
		{"pmem", func(j *pbsJob, v string) error { return j.add("--mem-per-cpu=" + pbsMem(v)) }},
		{"vmem", way("memory is limited by mem=")}, {"pvmem", way("memory is limited by pmem=")},
		{"cput", way("time is limited by walltime=")}, {"pcput", way("time is limited by walltime=")},
		{"nice", to("nice")}, {"host", to("nodelist")}, {"feature", to("constraint")},
		{"file", func(j *pbsJob, v string) error { return j.add("--tmp=" + pbsMem(v)) }},
		{"gres", func(j *pbsJob, v string) error { return j.add("--gres=" + v) }},
		{"ngpus", to("gpus")}, {"gpus", to("gpus")}, {"naccelerators", to("gpus-per-node")},
		{"software", to("licenses")}, {"qos", to("qos")},
		{"naccesspolicy", func(j *pbsJob, v string) error {
			return errors.Join(oneOf(strings.ToLower(v), "singlejob", "shared"), j.add(front.Choose(strings.EqualFold(v,
				"singlejob"), "--exclusive", "--oversubscribe")))
		}},
		{"place", func(j *pbsJob, v string) error {
			for w := range strings.SplitSeq(v, ":") {
				switch w {
				case "excl", "exclhost":
					j.argv = append(j.argv, "--exclusive")
				case "pack":
					j.argv = append(j.argv, "--nodes=1")
				case "scatter", "free", "shared", "vscatter":
				default:
					return fmt.Errorf("place=%s has no counterpart here: sbatch has --switches and --spread-job", w)
				}
			}
			return nil
		}},
	}
}

// pbsResources reads -l name=value[,name=value].
func pbsResources(j *pbsJob, v string) error {
	for _, item := range pbsList(v) {
		name, value, ok := strings.Cut(item, "=")
		var set func(*pbsJob, string) error
		for _, r := range pbsResourceRows() {
			if r.name == name {
				set = r.set
			}
		}
		if !ok || set == nil {
			return fmt.Errorf("resource %s has no counterpart here: sbatch --help lists what jobs can ask for", item)
		}
		if err := set(j, value); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return nil
}

// pbsWall is a time in seconds, or with colons as sbatch reads it.
func pbsWall(v string) (string, error) {
	n, err := strconv.Atoi(v)
	switch {
	case err == nil:
		return clock(n), nil
	case strings.Trim(v, "0123456789:.") != "":
		return "", fmt.Errorf("%q: want [[H:]M:]S", v)
	}
	v, _, _ = strings.Cut(v, ".")
	if part := strings.Split(v, ":"); len(part) == 4 { // days, as some sites write them
		return part[0] + "-" + strings.Join(part[1:], ":"), nil
	}
	return v, nil
}

// pbsMem is a size with PBS's unit as sbatch reads it: 4gb, 4gw, 512.
func pbsMem(v string) string {
	low := strings.ToLower(v)
	number := strings.TrimRight(low, "abcdefghijklmnopqrstuvwxyz")
	switch unit := strings.TrimRight(low[len(number):], "bw"); unit {
	case "k", "m", "g", "t":
		return number + strings.ToUpper(unit)
	case "": // bytes
		n, err := strconv.ParseInt(number, 10, 64)
		if err == nil {
			return strconv.FormatInt(max(n>>10, 1), 10) + "K"
		}
	}
	return v
}

// pbsNodes reads nodes=2:ppn=4:gpus=1:feature, or names with + between.
func pbsNodes(j *pbsJob, v string) error {
	var names []string
	count := 0
	for i, part := range strings.Split(v, "+") {
		words := strings.Split(part, ":")
		if n, err := strconv.Atoi(words[0]); err == nil {
			count += n
		} else {
			names, count = append(names, words[0]), count+1
		}
		if i > 0 && len(words) > 1 && !strings.HasSuffix(strings.Split(v, "+")[i-1], strings.Join(words[1:], ":")) {
			return fmt.Errorf("nodes that differ have no counterpart in one job: see heterogeneous jobs of sbatch")
		}
		if i > 0 {
			continue
		}
		if err := pbsNode(j, words[1:]); err != nil {
			return err
		}
	}
	j.nodes = true
	j.argv = append(j.argv, "--nodes="+strconv.Itoa(count))
	if len(names) > 0 {
		j.argv = append(j.argv, "--nodelist="+strings.Join(names, ","))
	}
	return nil
}

// pbsNode reads what follows a number of nodes.
func pbsNode(j *pbsJob, words []string) error {
	var features []string
	for _, w := range words {
		name, value, ok := strings.Cut(w, "=")
		switch {
		case name == "ppn":
			j.argv = append(j.argv, "--ntasks-per-node="+value)
		case name == "gpus":
			j.argv = append(j.argv, "--gpus-per-node="+value)
		case ok:
			return fmt.Errorf("%s has no counterpart here: see sbatch --gres", w)
		case w == "exclusive_process" || w == "shared" || w == "default": // the mode of GPUs: a job's are its own
		case w != "":
			features = append(features, w)
		}
	}
	if len(features) > 0 {
		j.argv = append(j.argv, "--constraint="+strings.Join(features, "&"))
	}
	return nil
}

// pbsSelect reads select=2:ncpus=8:mpiprocs=2:mem=4gb:ngpus=1.
func pbsSelect(j *pbsJob, v string) error {
	if strings.Contains(v, "+") {
		return fmt.Errorf("chunks that differ have no counterpart in one job: see heterogeneous jobs of sbatch")
	}
	words, chunks := strings.Split(v, ":"), "1"
	if _, err := strconv.Atoi(words[0]); err == nil {
		chunks, words = words[0], words[1:]
	}
	cpus, procs := 1, 0
	for _, w := range words {
		name, value, _ := strings.Cut(w, "=")
		n, err := strconv.Atoi(value)
		switch name {
		case "ncpus":
			cpus = n
		case "mpiprocs":
			procs = n
		case "ompthreads":
			j.argv = append(j.argv, "--cpus-per-task="+value)
		case "ngpus":
			j.argv = append(j.argv, "--gpus-per-node="+value)
		case "mem":
			err = j.add("--mem=" + pbsMem(value))
		case "host", "vnode":
			err = j.add("--nodelist=" + value)
		default:
			return fmt.Errorf("%s has no counterpart here: see sbatch --constraint and --gres", w)
		}
		if err != nil {
			return fmt.Errorf("%s: want a number", w)
		}
	}
	j.nodes = true
	j.argv = append(j.argv, "--nodes="+chunks)
	if procs == 0 {
		return j.add("--ntasks-per-node=" + strconv.Itoa(cpus))
	}
	return j.add("--ntasks-per-node="+strconv.Itoa(procs), "--cpus-per-task="+strconv.Itoa(max(cpus/procs, 1)))
}

// pbsDirectives are the words of a script's #PBS lines, up to its first command.
func pbsDirectives(script, mark string) (argv []string) {
	for line := range strings.SplitSeq(script, "\n") {
		t := strings.TrimSpace(line)
		if t != "" && t[0] != '#' {
			break
		}
		if rest, ok := strings.CutPrefix(t, mark); ok {
			if i := strings.Index(rest, " #"); i >= 0 {
				rest = rest[:i]
			}
			words, _ := front.SplitQuoted(rest)
			argv = append(argv, words...)
		}
	}
	return argv
}

// joinSlots makes the two arguments of -pe one: its environment and its slots.
func joinSlots(argv []string) []string {
	i := slices.Index(argv, "-pe")
	if i < 0 || i+2 >= len(argv) {
		return argv
	}
	return slices.Concat(argv[:i+1], []string{argv[i+1] + " " + argv[i+2]}, argv[i+3:])
}

// qsub submits a job.
func qsub(sys *front.Sys, argv []string) int {
	var line pbsJob
	argv = joinSlots(argv)
	rest, err := parse(&line, pbsRows(), argv)
	if err != nil {
		return failed(sys, err)
	}
	if line.interactive {
		return interactive(sys, line.argv, rest)
	}
	file := ""
	if len(rest) > 0 {
		file = rest[0]
	}
	script, err := readScript(sys, file)
	if err != nil {
		return failed(sys, err)
	}
	j := pbsJob{name: front.Choose(file == "", "STDIN", path.Base(file))}
	for _, words := range [][]string{joinSlots(pbsDirectives(script, "#PBS")), argv} { // the line wins
		if _, err := parse(&j, pbsRows(), words); err != nil {
			return failed(sys, err)
		}
	}
	prologue := j.prologue()
	if len(rest) > 1 || j.args != "" {
		prologue += "set -- " + strings.TrimSpace(j.args+" "+shellWords(rest[min(len(rest), 1):])) + "\n"
	}
	id, code := output(sys, strings.NewReader(withPrologue(script, j.shell, prologue)), "sbatch", j.sbatch(sys)...)
	if code == 0 && !j.quiet {
		fmt.Fprintln(sys.Stdout, id)
	}
	return code
}

// interactive runs a shell, or the words, in a terminal on the job's first node.
func interactive(sys *front.Sys, argv, words []string) int {
	shell := sys.Getenv("SHELL")
	if shell == "" {
		shell = "/bin/sh"
	}
	if len(words) == 0 {
		words = []string{shell, "-i"}
	}
	return as(sys, "srun", append(append(argv, "--pty"), words...)...)
}

// sbatch is the command line of sbatch.
func (j *pbsJob) sbatch(sys *front.Sys) []string {
	argv := append(j.argv, "--ignore-pbs", "--parsable", "--job-name="+j.name)
	number := front.Choose(j.array, "%A-%a", "%j")
	out, errs := j.out, j.errs
	if out == "" || strings.HasSuffix(out, "/") {
		out += "%x.o" + number
	}
	if errs == "" || strings.HasSuffix(errs, "/") {
		errs += "%x.e" + number
	}
	switch j.join {
	case "oe":
		argv = append(argv, "--output="+out)
	case "eo":
		argv = append(argv, "--output="+errs)
	default:
		argv = append(argv, "--output="+out, "--error="+errs)
	}
	if j.block {
		argv = append(argv, "--wait")
	}
	if j.vars != "" {
		argv = append(argv, "--export="+front.Choose(j.allVars, "ALL,", "")+j.vars+","+pbsOrigin(sys))
	} else {
		argv = append(argv, "--export=ALL,"+pbsOrigin(sys))
	}
	return argv
}

// pbsOrigin are the variables that tell where a job was submitted. One with a comma in it cannot be told.
func pbsOrigin(sys *front.Sys) string {
	dir, _ := sys.Getwd()
	host, _ := sys.Hostname()
	words := []string{"PBS_O_WORKDIR=" + dir, "PBS_O_HOST=" + host}
	for _, name := range []string{"HOME", "LANG", "LOGNAME", "PATH", "SHELL", "MAIL"} {
		if v, ok := sys.LookupEnv(name); ok {
			words = append(words, "PBS_O_"+name+"="+v)
		}
	}
	var out []string
	for _, w := range words {
		if !strings.ContainsAny(w, ",\n") {
			out = append(out, w)
		}
	}
	return strings.Join(out, ",")
}

// prologue sets PBS's variables in the job.
func (j *pbsJob) prologue() string {
	return `export PBS_JOBID="$SLURM_JOB_ID" PBS_JOBNAME="$SLURM_JOB_NAME" PBS_QUEUE="$SLURM_JOB_PARTITION"
export PBS_O_QUEUE="$SLURM_JOB_PARTITION" PBS_ENVIRONMENT=PBS_BATCH PBS_ACCOUNT="$SLURM_JOB_ACCOUNT"
export PBS_NUM_NODES="$SLURM_JOB_NUM_NODES" PBS_NP="${SLURM_NTASKS:-$SLURM_JOB_CPUS_PER_NODE}"
export PBS_NODENUM=0 PBS_TASKNUM=1
if [ -n "$SLURM_ARRAY_TASK_ID" ]; then
export PBS_ARRAYID="$SLURM_ARRAY_TASK_ID" PBS_ARRAY_INDEX="$SLURM_ARRAY_TASK_ID"
export PBS_JOBID="${SLURM_ARRAY_JOB_ID}[$SLURM_ARRAY_TASK_ID]"; fi
export PBS_NODEFILE="${TMPDIR:-/tmp}/pbs_nodefile.$SLURM_JOB_ID"
trap 'rm -f "$PBS_NODEFILE"' EXIT
` + hostFile + `>"$PBS_NODEFILE"
`
}

// shellWords quotes words for a shell.
func shellWords(words []string) string {
	var out []string
	for _, w := range words {
		out = append(out, "'"+strings.ReplaceAll(w, "'", `'\''`)+"'")
	}
	return strings.Join(out, " ")
}
