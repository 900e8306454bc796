package cli

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"

	"dev.muster/api"
	"dev.muster/cluster"
	"dev.muster/slurm/conf"
	"dev.muster/slurm/front"
	"dev.muster/slurm/submit"
)

// maxNotes is how many notes one file gets: more are not read. Names that the cluster lacks are all told: one that is
// left out is met at the next attempt.
const maxNotes = 3

// lintNote is a remark on a line of a file; line 0 is the file as a whole.
type lintNote struct {
	line int
	text string
}

// lintLine is one command of a script, continued lines joined.
type lintLine struct {
	n     int // of its first line
	words []string
}

// has reports whether the command calls a program, and which words follow it.
func (l *lintLine) has(program string) (args []string, ok bool) {
	i := slices.IndexFunc(l.words, func(w string) bool { return w == program || strings.HasSuffix(w, "/"+program) })
	if i < 0 {
		return nil, false
	}
	return l.words[i+1:], true
}

// jobScript is a script as the rules see it.
type jobScript struct {
	path     string
	text     []byte
	comments []lintLine // lines that begin with #, blanks before it cut off, as one word each, outside of here-documents
	commands []lintLine
	options  bool            // it has #SBATCH lines that count
	req      *submit.Request // nil if sbatch would refuse it; then refused says why
	refused  string
	nodes    []cluster.Node // none if no cluster answers
	config   *cluster.Config
	books    *api.BooksResponse // nil if no cluster answers
	noFiles  bool               // no file that it names is opened (front.Sys.NoFiles)
}

// lintRule finds one kind of mistake.
type lintRule struct {
	name    string
	of      func(s *jobScript) (lintNote, bool)
	always  bool // however many others there are
	certain bool // what it finds is a mistake, and no matter of taste
}

// lintRules are the rules, the ones that matter most first: those behind the third that applies are not heard, but for
// names.
var lintRules = [...]lintRule{
	{"crlf", lintCRLF, false, true},
	{"late", lintLate, false, true},
	{"mistyped", lintMistyped, true, true},
	{"refused", lintRefused, false, true},
	{"partition", lintPartition, true, true},
	{"account", lintAccount, true, true},
	{"qos", lintQOS, true, true},
	{"gpus-of-node", lintTooManyGPUs, true, true},
	{"torchrun-per-node", lintTorchrunTasks, false, false},
	{"torchrun-nodes", lintTorchrunNodes, false, false},
	{"torchrun-gpus", lintTorchrunGPUs, false, false},
	{"rendezvous", lintRendezvous, false, false},
	{"tasks-gpus", lintTasksGPUs, false, false},
	{"one-node", lintOneNode, false, false},
	{"data-loader", lintDataLoader, false, false},
	{"memory", lintMemory, false, false},
	{"mail", lintMail, false, false},
	{"array", lintArray, false, false},
	{"time", lintTime, false, false},
	{"shebang", lintShebang, false, false},
}

// runLint prints at most three notes on each script or configuration file, and all names that are wrong, the most
// helpful first, and nothing where there is nothing to say. It returns 1 if some are certain to be mistakes.
func runLint(s *front.Sys, args []string) int {
	if len(args) > 1 && args[0] == "--submit" {
		return lintSubmit(s, args[1:])
	}
	if len(args) == 0 || strings.HasPrefix(args[0], "-") && args[0] != "-" {
		return s.Fail("usage: muster lint FILE…, scripts for sbatch or configuration files; - is the standard input; " +
			"muster lint --submit SCRIPT, what the site would make of it")
	}
	nodes, config := lintCluster(s)
	books := lintBooks(s)
	code := 0
	for _, file := range args {
		text, err := lintText(s, file)
		if err != nil {
			code = s.Fail("%s: %v", file, err)
			continue
		}
		var notes []lintNote
		if strings.HasSuffix(file, ".conf") {
			code = max(code, lintConf(s, file, books))
			continue
		}
		sc := readJobScript(s, file, text)
		sc.nodes, sc.config, sc.books = nodes, config, books
		for _, r := range lintRules {
			if n, ok := r.of(sc); ok && (r.always || len(notes) < maxNotes) {
				notes = append(notes, n)
				if r.certain {
					code = max(code, 1)
				}
			}
		}
		for _, n := range notes {
			fmt.Fprintf(s.Stdout, "%s: %s\n", lintPlace(file, n.line), n.text)
		}
	}
	return code
}

// lintText reads a file, or what is typed.
func lintText(s *front.Sys, file string) ([]byte, error) {
	if file == "-" {
		return io.ReadAll(io.LimitReader(s.Stdin, submit.MaxScript))
	}
	return front.ReadFileLimited(file, submit.MaxScript)
}

func lintPlace(file string, line int) string {
	if line == 0 {
		return file
	}
	return file + ":" + strconv.Itoa(line)
}

// lintCluster is what a cluster has, if one answers.
func lintCluster(s *front.Sys) ([]cluster.Node, *cluster.Config) {
	if s.Dial == nil {
		return nil, nil
	}
	about, err := front.Call(s, api.ShowCluster, api.Empty{})
	if err != nil {
		return nil, nil
	}
	r, err := front.Call(s, api.ListNodes, api.NodeQuery{})
	if err != nil {
		return nil, nil
	}
	out := make([]cluster.Node, len(r.Nodes))
	for i := range r.Nodes {
		out[i] = r.Nodes[i].Node
	}
	return out, &about.Config
}

// confRanks order the notes on a configuration by words in them: what is a mistake before what has no effect.
var confRanks = []string{"do you mean", "is no key", "ignored", "is not", "want", "plugins of Slurm"}

// lintConf prints the notes of config check that matter most, and which limits of a cluster's accounts and QOS hold
// nothing back with the file.
func lintConf(s *front.Sys, file string, books *api.BooksResponse) int {
	cfg, notes, err := confNotes(file)
	if err != nil {
		return s.Fail("%s: %v", file, err)
	}
	rank := func(n string) int {
		i := slices.IndexFunc(confRanks, func(w string) bool { return strings.Contains(n, w) })
		return cmp.Or(i+1, len(confRanks)+1)
	}
	slices.SortStableFunc(notes, func(a, b string) int { return cmp.Compare(rank(a), rank(b)) })
	for _, n := range notes[:min(len(notes), maxNotes)] {
		fmt.Fprintln(s.Stdout, n)
	}
	if path.Base(file) == "slurm.conf" {
		for _, n := range unheldIn(books, cfg) {
			fmt.Fprintf(s.Stdout, "%s: %s\n", file, n)
		}
	}
	if more := len(notes) - maxNotes; more > 0 {
		fmt.Fprintf(s.Stdout, "%s: %d more: muster config check %s\n", file, more, file)
	}
	return 0
}

// confNotes are the notes on a file, or on the slurm.conf beside it, of which only those on the file itself count.
func confNotes(file string) (*cluster.Config, []string, error) {
	main := file
	if path.Base(file) != "slurm.conf" {
		if beside := path.Join(path.Dir(file), "slurm.conf"); conf.Beside(path.Base(file)) {
			main = beside
		}
	}
	cfg, notes, err := conf.Load(main)
	if main == file || err != nil {
		return cfg, notes, err
	}
	return cfg, slices.DeleteFunc(notes, func(n string) bool {
		return !strings.HasPrefix(n, file+":") && !strings.HasPrefix(n, path.Base(file)+":")
	}), nil
}

// unheldIn tells which limits of a cluster hold nothing back under a configuration.
func unheldIn(books *api.BooksResponse, cfg *cluster.Config) []string {
	if books == nil {
		return nil
	}
	var set []cluster.Limits
	for _, a := range books.Assocs {
		set = append(set, a.Limits)
	}
	for _, q := range books.QOS {
		set = append(set, q.Limits)
	}
	return cluster.Unheld(cfg.Enforce, cfg.Priority, set...)
}

// readJobScript takes a script apart.
func readJobScript(s *front.Sys, file string, text []byte) *jobScript {
	sc := &jobScript{path: file, text: text, noFiles: s.NoFiles}
	sc.split()
	sys := *s
	sys.Prog, sys.Environ = "sbatch", nil // of the script alone
	if !path.IsAbs(file) {
		file = "./" + file
	}
	argv := []string{file}
	if sc.path == "-" {
		argv, sys.Stdin = nil, bytes.NewReader(text)
	}
	req, err := submit.ParseSbatch(argv, &sys)
	if err != nil {
		sc.refused = strings.TrimPrefix(strings.TrimPrefix(strings.Split(err.Error(), "\n")[0], "sbatch: "), "error: ")
		return sc
	}
	sc.req = req
	for _, g := range req.Set {
		sc.options = sc.options || g.From == submit.FromDirective
	}
	return sc
}

// split finds comments and commands, outside of here-documents. Scripts that are not for a shell have no commands.
func (s *jobScript) split() {
	first, _, _ := strings.Cut(string(s.text), "\n")
	shell := !strings.HasPrefix(first, "#!") || strings.Contains(first, "sh")
	until, joined, from := "", "", 0
	for i, line := range strings.Split(string(s.text), "\n") {
		line = strings.TrimSuffix(line, "\r")
		trimmed := strings.TrimSpace(line)
		switch {
		case until != "":
			if trimmed == until {
				until = ""
			}
			continue
		case joined == "" && strings.HasPrefix(trimmed, "#"):
			s.comments = append(s.comments, lintLine{i + 1, []string{line}})
			continue
		case !shell:
			if trimmed != "" {
				s.commands = append(s.commands, lintLine{n: i + 1})
			}
			continue
		}
		if joined == "" {
			from = i + 1
		}
		if rest, ok := strings.CutSuffix(line, `\`); ok {
			joined += rest + " "
			continue
		}
		if words := strings.Fields(joined + line); len(words) > 0 {
			s.commands = append(s.commands, lintLine{from, words})
			until = submit.HereDocument(joined + line)
		}
		joined = ""
	}
}

// gpusPerNode is how many GPUs of which type the job asks for on each node; 0 if it does not say.
func (s *jobScript) gpusPerNode() (n int, kind string) {
	if s.req == nil {
		return 0, ""
	}
	for _, g := range s.req.Job.PerNode {
		if g.Name == "gpu" {
			n, kind = n+int(g.Count), g.Type
		}
	}
	return n, kind
}

// directiveLine is where an option stands.
func (s *jobScript) directiveLine(words ...string) int {
	for _, c := range s.comments {
		if rest, ok := strings.CutPrefix(c.words[0], "#SBATCH"); ok && slices.ContainsFunc(words,
			func(w string) bool { return strings.Contains(rest, w) }) {
			return c.n
		}
	}
	return 0
}

func lintCRLF(s *jobScript) (lintNote, bool) {
	return lintNote{
		1,
		"lines end with carriage returns, as on Windows, and sbatch refuses that: sed -i " +
			"'s/\\r$//' " + path.Base(s.path),
	}, bytes.Contains(s.text, []byte("\r\n"))
}

// lintLate finds #SBATCH lines that are not read: behind the first command, or not at the beginning of their line.
func lintLate(s *jobScript) (lintNote, bool) {
	for _, c := range s.comments {
		text := c.words[0]
		switch {
		case len(s.commands) > 0 && c.n > s.commands[0].n && strings.HasPrefix(text, "#SBATCH"):
			return lintNote{
				c.n,
				fmt.Sprintf("ignored, as it comes after the first command (line %d): move it up", s.commands[0].n),
			}, true
		case len(s.commands) > 0 && c.n > s.commands[0].n:
		case strings.HasPrefix(strings.TrimSpace(text), "#SBATCH") && !strings.HasPrefix(text, "#"):
			return lintNote{c.n, "ignored: #SBATCH must be at the beginning of the line"}, true
		case strings.HasPrefix(text, "# SBATCH -"):
			return lintNote{
				c.n,
				"a comment, not an option: write #SBATCH without the blank (or ##SBATCH to turn it off)",
			}, true
		}
	}
	return lintNote{}, false
}

func lintRefused(s *jobScript) (lintNote, bool) {
	return lintNote{0, "sbatch refuses it: " + s.refused}, s.refused != "" && !bytes.Contains(s.text, []byte("\r\n"))
}

// lintTooManyGPUs compares with what the nodes of a cluster have.
func lintTooManyGPUs(s *jobScript) (lintNote, bool) {
	want, kind := s.gpusPerNode()
	if want == 0 || len(s.nodes) == 0 {
		return lintNote{}, false
	}
	most, name := 0, "GPUs"
	if kind != "" {
		name = kind + " GPUs"
	}
	for i := range s.nodes {
		n := 0
		for _, g := range s.nodes[i].Inventory.GPUs {
			if kind == "" || g.Type == kind {
				n++
			}
		}
		most = max(most, n)
	}
	return lintNote{
		s.directiveLine("gres", "gpus", "-G"),
		fmt.Sprintf("asks for %d %s on a node, no node of this cluster has more than %d", want, name, most),
	}, want > most
}

// torchrun finds the command that starts torchrun, its options, and whether srun starts it.
func (s *jobScript) torchrun() (l lintLine, args []string, srun, ok bool) {
	for _, l := range s.commands {
		for _, p := range []string{"torchrun", "torch.distributed.run", "torch.distributed.launch"} {
			if args, ok := l.has(p); ok {
				_, srun := l.has("srun")
				return l, args, srun, true
			}
		}
	}
	return lintLine{}, nil, false, false
}

// option is the value of a long option, however its words are joined.
func option(args []string, name string) (string, bool) {
	same := func(a string) bool { return strings.ReplaceAll(strings.TrimLeft(a, "-"), "-", "_") == name }
	for i, a := range args {
		key, value, joined := strings.Cut(a, "=")
		switch {
		case !strings.HasPrefix(a, "-") || !same(key):
		case joined:
			return value, true
		case i+1 < len(args):
			return args[i+1], true
		}
	}
	return "", false
}

func (s *jobScript) tasksPerNode() int {
	j := &s.req.Job
	if j.TasksPerNode == 0 && j.Tasks > 0 && j.MinNodes > 0 {
		return j.Tasks / j.MinNodes
	}
	return j.TasksPerNode
}

func lintTorchrunTasks(s *jobScript) (lintNote, bool) {
	l, args, srun, ok := s.torchrun()
	if !ok || !srun || s.req == nil {
		return lintNote{}, false
	}
	each, tasks := s.tasksPerNode(), 0
	if n, given := option(l.words, "ntasks_per_node"); given {
		each, _ = strconv.Atoi(n)
	}
	workers, _ := option(args, "nproc_per_node")
	tasks, _ = strconv.Atoi(workers)
	return lintNote{
		l.n,
		fmt.Sprintf("srun starts torchrun %d times on each node, and each starts %s workers: want --ntasks-per-node=1",
			each, workers),
	}, each > 1 && tasks > 1
}

func lintTorchrunNodes(s *jobScript) (lintNote, bool) {
	l, args, srun, ok := s.torchrun()
	if !ok || s.req == nil || s.req.Job.MinNodes == 0 {
		return lintNote{}, false
	}
	want := s.req.Job.MinNodes
	if n, given := option(l.words[:len(l.words)-len(args)], "nodes"); given {
		want, _ = strconv.Atoi(n)
	}
	text, given := option(args, "nnodes")
	n, err := strconv.Atoi(text)
	switch {
	case given && err == nil && n != want && want > 0:
		return lintNote{
			l.n,
			fmt.Sprintf("torchrun waits for --nnodes=%d, the job has %d nodes: write --nnodes=$SLURM_NNODES", n, want),
		}, true
	case !given && want > 1:
		return lintNote{
			l.n,
			fmt.Sprintf("torchrun without --nnodes trains on each of the %d nodes alone: add "+
				"--nnodes=$SLURM_NNODES and --rdzv-endpoint",
				want),
		}, true
	case want > 1 && !srun && !s.mentions("pdsh", "ssh", "mpirun", "clush"):
		return lintNote{
			l.n, fmt.Sprintf("torchrun runs on the first of the %d nodes only: put srun before it", want),
		}, true
	}
	return lintNote{}, false
}

func lintTorchrunGPUs(s *jobScript) (lintNote, bool) {
	l, args, _, ok := s.torchrun()
	gpus, _ := s.gpusPerNode()
	text, _ := option(args, "nproc_per_node")
	n, err := strconv.Atoi(text)
	return lintNote{
			l.n,
			fmt.Sprintf("torchrun starts %d workers on a node, the job has %d GPUs there: write "+
				"--nproc-per-node=$SLURM_GPUS_ON_NODE",
				n, gpus),
		},
		ok && err == nil && gpus > 0 && n != gpus
}

func lintTasksGPUs(s *jobScript) (lintNote, bool) {
	gpus, _ := s.gpusPerNode()
	if gpus == 0 {
		return lintNote{}, false
	}
	tasks := s.tasksPerNode()
	return lintNote{
			s.directiveLine("ntasks-per-node", "gpus-per-node"),
			fmt.Sprintf("%d tasks on a node do not share its %d GPUs evenly: want as many tasks as GPUs, or "+
				"one for a launcher such as torchrun",
				tasks, gpus),
		},
		tasks > 1 && gpus%tasks != 0 && tasks%gpus != 0
}

// mentions reports whether a command calls, or might, one of some programs.
func (s *jobScript) mentions(programs ...string) bool {
	return slices.ContainsFunc(s.commands, func(l lintLine) bool {
		return slices.ContainsFunc(l.words, func(w string) bool {
			return slices.ContainsFunc(programs, func(p string) bool { return strings.Contains(w, p) })
		})
	})
}

// spreaders start programs on several nodes, or several of them, or are scripts that may.
var spreaders = []string{"srun", "mpi", "torchrun", "torch.distributed", "ray", "deepspeed", "accelerate",
	"horovod", "ssh", "pdsh", "clush", "parallel", "xargs", ".sh", "make", "nextflow", "snakemake",
	"charmrun", "spark", "dask", "julia", "SLURM_"}

func lintOneNode(s *jobScript) (lintNote, bool) {
	if s.req == nil || s.req.Job.MinNodes < 2 || s.mentions(spreaders...) {
		return lintNote{}, false
	}
	for _, l := range s.commands {
		if _, ok := l.has("python"); ok {
			return lintNote{
				l.n,
				fmt.Sprintf("runs on the first of the %d nodes only: put srun before it", s.req.Job.MinNodes),
			}, true
		}
		if _, ok := l.has("python3"); ok {
			return lintNote{
				l.n,
				fmt.Sprintf("runs on the first of the %d nodes only: put srun before it", s.req.Job.MinNodes),
			}, true
		}
	}
	return lintNote{}, false
}

// lintDataLoader finds programs that load data by processes of their own, on one CPU.
func lintDataLoader(s *jobScript) (lintNote, bool) {
	if s.req == nil || s.req.Job.CPUsPerTask > 1 || s.req.Job.CPUsPerGPU > 0 || s.req.Job.Sharing == cluster.ShareExclusive {
		return lintNote{}, false
	}
	for _, l := range s.commands {
		if _, ok := l.has("srun"); !ok || slices.ContainsFunc(l.words,
			func(w string) bool { return strings.HasPrefix(w, "-c") || strings.HasPrefix(w, "--cpus-per") }) {
			continue
		}
		for _, w := range l.words {
			if s.noFiles || !strings.HasSuffix(w, ".py") {
				continue
			}
			if !path.IsAbs(w) {
				w = path.Join(path.Dir(s.path), w)
			}
			text, err := os.ReadFile(w)
			if _, rest, found := strings.Cut(string(text), "num_workers="); err == nil && found && bytes.Contains(text, []byte("DataLoader")) && !strings.HasPrefix(rest, "0") {
				return lintNote{
					l.n,
					path.Base(w) + " loads data by processes of their own (DataLoader with num_workers), on " +
						"one CPU for each task: ask for more by -c, 8 to 16 for a GPU say",
				}, true
			}
		}
	}
	return lintNote{}, false
}

func lintMemory(s *jobScript) (lintNote, bool) {
	if s.req == nil || s.req.Job.Mem != (cluster.Mem{Per: cluster.MemPerNode}) || s.req.Job.Sharing == cluster.ShareExclusive {
		return lintNote{}, false
	}
	want, _ := s.gpusPerNode()
	whole := want >= 8
	for i := range s.nodes {
		whole = whole || want > 0 && want == len(s.nodes[i].Inventory.GPUs)
	}
	return lintNote{
		s.directiveLine("mem"),
		"--mem=0 takes all memory of each node, so nobody else fits there though the job does not use all of " +
			"it: name what it needs, or say --exclusive",
	}, !whole
}

func lintMail(s *jobScript) (lintNote, bool) {
	if s.req == nil {
		return lintNote{}, false
	}
	j := &s.req.Job
	return lintNote{
		s.directiveLine("mail-user"), "no mail is sent without --mail-type=END,FAIL, say",
	}, j.MailUser != "" && (len(j.MailType) == 0 || slices.Equal(j.MailType, []string{"NONE"}))
}

// wideArray is how many tasks an array may have without a word about how many run at once.
const wideArray = 1000

func lintArray(s *jobScript) (lintNote, bool) {
	if s.req == nil || s.req.Job.Array == nil {
		return lintNote{}, false
	}
	a := s.req.Job.Array
	return lintNote{
		s.directiveLine("array", "-a"),
		fmt.Sprintf("%d tasks may all run at once: --array=%s%%50 keeps some of the cluster for others",
			a.Tasks.Len(), a.Text),
	}, a.Tasks.Len() > wideArray && a.Limit == 0
}

// lintTime finds jobs that get their partition's limit, unless that has a default, or they get their options by the
// command line.
func lintTime(s *jobScript) (lintNote, bool) {
	if s.req == nil || !s.options || s.req.Job.Limit != 0 {
		return lintNote{}, false
	}
	limit := "the partition's limit"
	if s.config != nil {
		for _, name := range s.req.Job.Partitions {
			if !hasPartition(s.config, name) {
				return lintNote{}, false // that is said by itself
			}
		}
		for i := range s.config.Partitions {
			p := &s.config.Partitions[i]
			if mine := slices.Contains(s.req.Job.Partitions, p.Name) || len(s.req.Job.Partitions) == 0 && p.Default; !mine {
				continue
			}
			if p.DefaultTime != 0 {
				return lintNote{}, false
			}
			if p.MaxTime == 0 || p.MaxTime == cluster.Unlimited {
				limit = "no limit at all"
			}
		}
	}
	return lintNote{
		0,
		"without --time it gets " + limit + ", and cannot start early in a gap: add #SBATCH --time=HH:MM:SS",
	}, true
}

func lintShebang(s *jobScript) (lintNote, bool) {
	return lintNote{
		1, "no #! line: muster runs it with /bin/bash, Slurm would refuse it; add #!/bin/bash",
	}, s.options && !bytes.HasPrefix(s.text, []byte("#!"))
}
