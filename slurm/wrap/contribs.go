package wrap

import (
	"bufio"
	"fmt"
	"os"
	"slices"
	"strings"

	"dev.muster/cluster"
	"dev.muster/slurm/format"
	"dev.muster/slurm/front"
	"dev.muster/slurm/show"
)

// Slurm's contributed commands.

// mailers are the programs that send a mail, in the order of search.
var mailers = [...]string{"/bin/mail", "/usr/bin/mail", "/usr/bin/mailx"}

// smail is a MailProg: smail -s SUBJECT WHO sends the subject, and of a job that has ended what it used.
func smail(sys *front.Sys, argv []string) int {
	if len(argv) != 3 || argv[0] != "-s" {
		fmt.Fprintln(sys.Stderr,
			"Usage: smail -s SUBJECT RECIPIENT  (as MailProg of slurm.conf; the body is what seff tells of the job)")
		return 1
	}
	id := sys.Getenv("SLURM_JOB_ID")
	if id == "" {
		_, rest, _ := strings.Cut(argv[1], "Job_id=")
		id = rest[:len(rest)-len(strings.TrimLeft(rest, "0123456789_"))]
	}
	body := ""
	if id != "" && strings.Contains(argv[1], " Ended") || strings.Contains(argv[1], " Failed") {
		body, _ = output(sys, nil, "seff", id)
	}
	program := sys.Getenv("SMAIL_MAILER")
	for _, m := range mailers {
		if program == "" && front.Executable(m) {
			program = m
		}
	}
	if program == "" {
		return failed(sys, fmt.Errorf("no mail program: install mailx, or name one by SMAIL_MAILER"))
	}
	return feed(sys, body+"\n", program, "-s", argv[1], argv[2])
}

// feed runs a program with a text as its input.
func feed(sys *front.Sys, text, program string, args ...string) int {
	r, w, err := os.Pipe()
	if err != nil {
		return failed(sys, err)
	}
	p, err := os.StartProcess(program, append([]string{program}, args...), &os.ProcAttr{Env: sys.Environ,
		Files: []*os.File{r, os.Stdout, os.Stderr}})
	r.Close()
	if err == nil {
		_, _ = w.WriteString(text)
	}
	w.Close()
	if err != nil {
		return failed(sys, fmt.Errorf("%s: %s", program, front.PlainError(err)))
	}
	st, err := p.Wait()
	if err != nil || !st.Success() {
		return 1
	}
	return 0
}

// sjstat lists nodes by kind, and jobs.
func sjstat(sys *front.Sys, argv []string) int {
	var only, verbose bool
	type line struct{}
	_, err := parse(&line{}, []row[line]{{"c", false, func(*line, string) error { only = true; return nil }},
		{"r", false, func(*line, string) error { return nil }}, {"v", false, func(*line,
			string) error {
			verbose = true
			return nil
		}}}, argv)
	if err != nil {
		return failed(sys, err)
	}
	resp, err := nodes(sys, nil)
	if err != nil {
		return failed(sys, err)
	}
	out := bufio.NewWriter(sys.Stdout)
	defer out.Flush()
	out.WriteString("\nScheduling pool data:\n-------------------------------------------------------------\n" +
		"Pool        Memory  Cpus  Total Usable   Free  Other Traits  \n" + strings.Repeat("-", 61) + "\n")
	for _, p := range resp.Partitions {
		type kind struct {
			mem           cluster.MemMB
			cpus          int
			traits        string
			all, up, free int
		}
		var kinds []kind
		for i := range resp.Nodes {
			n := &resp.Nodes[i]
			if !p.All && !slices.Contains(p.Nodes, n.Name) {
				continue
			}
			k := kind{mem: n.Inventory.MemMB, cpus: n.Inventory.CPUs, traits: strings.Join(n.Inventory.Features, ",")}
			at := slices.IndexFunc(kinds, func(x kind) bool {
				return x.mem == k.mem && x.cpus == k.cpus && x.traits == k.traits
			})
			if at < 0 {
				at, kinds = len(kinds), append(kinds, k)
			}
			state := pbsNodeState(n)
			kinds[at].all++
			kinds[at].up += front.BoolInt(state == "free" || state == "job-exclusive")
			kinds[at].free += front.BoolInt(state == "free" && n.Load.CPUs.Empty())
		}
		for _, k := range kinds {
			fmt.Fprintf(out, "%-11s %5dMb %5d %6d %6d %6d  %s\n", p.Name+front.Choose(p.Default, "*", ""), k.mem,
				k.cpus, k.all, k.up, k.free, k.traits)
		}
	}
	if only {
		return 0
	}
	rows, _, err := jobs(sys, picked{phases: live})
	if err != nil {
		return failed(sys, err)
	}
	rule := strings.Repeat("-", 99) + "\n"
	out.WriteString("\nRunning job data:\n" + rule +
		"JobID    User      Procs Pool      Status      Used  Master/Other\n" + rule)
	for i := range rows {
		sjLine(out, &rows[i], verbose)
	}
	return 0
}

func sjLine(out *bufio.Writer, r *show.JobRow, verbose bool) {
	where := r.Reason()
	if r.Alloc != nil {
		where = r.FirstNode()
		if verbose {
			where = r.Nodes()
		}
	}
	fmt.Fprintf(out, "%-8s %-8.8s %6d %-9.9s %-9.9s %7s  %s\n", r.ShownID(), r.Spec.User, r.NumCPUs(), r.Partition(),
		r.State.Short, format.Duration(r.Elapsed()), where)
}

// sjobexitmod changes a job's derived exit code and comment in history: sacctmgr does it.
func sjobexitmod(sys *front.Sys, argv []string) int {
	var code, reason string
	var list bool
	type line struct{}
	rest, err := parse(&line{}, []row[line]{{"e", true, func(_ *line, v string) error { code = v; return nil }},
		{"r", true, func(_ *line, v string) error { reason = v; return nil }}, {"l", false, func(*line,
			string) error {
			list = true
			return nil
		}},
		{"c", true, refuse[line]("there is one cluster")}}, argv)
	switch {
	case err != nil:
		return failed(sys, err)
	case list:
		return failed(sys, fmt.Errorf("-l: sacct -X -o jobid,derivedexitcode,comment lists them"))
	case len(rest) != 1 || code == "" && reason == "":
		fmt.Fprintln(sys.Stderr, "Usage: sjobexitmod [-e EXIT_CODE] [-r REASON] JOB")
		return 1
	}
	words := []string{"-i", "modify", "job", "where", "jobid=" + rest[0], "set"}
	if code != "" {
		words = append(words, "derivedexitcode="+code)
	}
	if reason != "" {
		words = append(words, "comment="+reason)
	}
	return as(sys, "sacctmgr", words...)
}
