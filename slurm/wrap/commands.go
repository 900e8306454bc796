package wrap

import (
	"fmt"

	"dev.muster/slurm/front"
)

// Command is one wrapper.
type Command struct {
	Name, Summary string
	Run           func(sys *front.Sys, argv []string) int
	Operands      string // the kind of names that follow (muster internal names); "": files, or nothing
}

// Commands lists the wrappers. They are not linked by the installer: other programs may have these names.
func Commands() []Command {
	return []Command{
		{"qsub", "submit a PBS script", qsub, ""},
		{"qstat", "list jobs and queues as PBS does", qstat, "alljobs"},
		{"qdel", "end jobs as PBS does", qdel, "jobs"},
		{"qhold", "hold jobs as PBS does", qhold, "jobs"},
		{"qrls", "release jobs as PBS does", qrls, "jobs"},
		{"qalter", "change jobs as PBS does", qalter, "jobs"},
		{"qrerun", "requeue jobs as PBS does", qrerun, "jobs"},
		{"qsig", "send signals to jobs as PBS does", qsig, "jobs"},
		{"pbsnodes", "list and mark nodes as PBS does", pbsnodes, "nodes"},
		{"bsub", "submit an LSF job", bsub, ""},
		{"bjobs", "list jobs as LSF does", bjobs, "alljobs"},
		{"bkill", "end jobs as LSF does", bkill, "jobs"},
		{"bhosts", "list nodes as LSF does", bhosts, "nodes"},
		{"lsid", "tell the cluster's name as LSF does", lsid, ""},
		{"smail", "mail about a job with what it used (MailProg)", smail, ""},
		{"sjstat", "list nodes and running jobs, as Slurm's script does", sjstat, ""},
		{"sjobexitmod", "change the exit code that history has of a job", sjobexitmod, "jobs"},
	}
}

// KeyMakers lists munge's commands that make its key. The installer links them where no other program has these names,
// so that copied guides and roles, which begin by making a key, go on to their next step.
func KeyMakers() []Command {
	const summary = "does nothing: muster needs no munge key"
	return []Command{
		{"create-munge-key", summary, noKey, ""},
		{"mungekey", summary, noKey, ""},
	}
}

// noKey prints why there is no key to make, whatever the options are.
func noKey(sys *front.Sys, _ []string) int {
	fmt.Fprintf(sys.Stdout, "%s: muster needs no munge key: its servers and nodes have certificates of their own "+
		"(muster token)\n", sys.Prog)
	return 0
}

// Call runs the wrapper. Those of others know no --help and --version, so these are answered here.
func (c Command) Call(sys *front.Sys, argv []string) int {
	switch {
	case len(argv) == 1 && argv[0] == "--help":
		fmt.Fprintf(sys.Stdout,
			"%s: %s\n\nIts options are those of the command whose name it has. "+
				"One that cannot be done is\n"+
				"refused, with what does it here: sbatch --help, squeue --help and scontrol --help.\n",
			c.Name, c.Summary)
		return 0
	case len(argv) == 1 && argv[0] == "--version":
		fmt.Fprintln(sys.Stdout, front.VersionText())
		return 0
	}
	return c.Run(sys, argv)
}
