package front

import (
	"dev.muster/cluster"
	"dev.muster/cluster/hostlist"
	"dev.muster/slurm/data"
	"dev.muster/slurm/opt"
	"strings"
)

// ParseQuery reads the command line of a program that runs no command of the user's: options and
// other words in any order. A code of 0 or more ends the program.
func ParseQuery[T any](sys *Sys, prog opt.Prog, rows []opt.Option[T], o *T, argv []string) (rest []string, code int) {
	p := &opt.Parser[T]{Prog: prog, Permute: true, Rows: [][]opt.Option[T]{rows}}
	found, rest, err := p.Parse(argv)
	for _, f := range found {
		out := &opt.UsageError{Stdout: true}
		switch f.Row.Long {
		case "help":
			out.Lines = p.Help(prog.Name() + " " + Operands(prog))
		case "usage":
			out.Lines = p.Usage(Operands(prog))
		case "version":
			out.Lines = []string{VersionText()}
		default:
			continue
		}
		return nil, sys.Usage(out)
	}
	if err != nil {
		shorter := prog&(opt.Sacct|opt.Sstat) != 0
		return nil, sys.Usage(opt.Refusal(err, shorter))
	}
	sys.foreign.words = func() (words, given []string) {
		for _, f := range found {
			given = append(given, f.Row.Long)
		}
		words, _ = p.Without(argv, "clusters", "iterate")
		return words, given
	}
	for _, f := range append(p.Env(sys.LookupEnv), found...) {
		if f.Row.Long == "verbose" && (f.Value == "" || strings.EqualFold(f.Value, "true")) {
			sys.Verbose++
		}
		if f.Row.Set == nil {
			continue
		}
		if err := opt.Named(prog, f.Row.Long, f.Value, f.Row.Set(o, f.Value)); err != nil {
			return nil, sys.Usage(err)
		}
	}
	if k, ok := any(o).(interface{ Asked() *data.Ask }); ok {
		return rest, sys.refuses(k.Asked())
	}
	return rest, -1
}

// SlurmVersion is the Slurm whose dialect the front-ends speak.
const SlurmVersion = "22.05.8"

// VersionText answers --version.
func VersionText() string { return "slurm " + SlurmVersion + " (muster " + Version + ")" }

// SetNodes reads a host list into node names.
func SetNodes(to *[]cluster.NodeName, v string) error {
	names, err := hostlist.Expand(v)
	if err != nil {
		return opt.Errorf(opt.CodeError, "Invalid node name %s", v)
	}
	*to = nil
	for _, n := range names {
		*to = append(*to, cluster.NodeName(n))
	}
	return nil
}

// Operands is what follows a program's name: for those that submit, behind the options.
func Operands(prog opt.Prog) string {
	switch prog {
	case opt.Sacct, opt.Sinfo, opt.Squeue, opt.Sprio, opt.Sshare:
		return "[OPTIONS]"
	case opt.Sacctmgr, opt.Scontrol, opt.Sreport:
		return "[<OPTION>] [<COMMAND>]"
	case opt.Sdiag:
		return "[-M cluster] [-aritT]"
	case opt.Sstat:
		return "[<OPTION>] -j <job(.stepid)>"
	case opt.Sbcast, opt.Sgather:
		return "[OPTIONS] SOURCE DEST"
	case opt.Sattach:
		return "[options] <jobid.stepid>"
	case opt.Scrontab:
		return "[-u user] [-e | -l | -r | file]"
	case opt.Strigger:
		return "[--set | --get | --clear] [OPTIONS]"
	case opt.Swait:
		return "[OPTIONS] [jobid[_task]]"
	case opt.Seff:
		return "[Options] <Jobid>[_<arraytask>]"
	case opt.Scancel:
		return "[OPTIONS] [job_id[_array_id][.step_id]]"
	case opt.Sbatch:
		return "script [args...]"
	case opt.Srun:
		return "executable [args...]"
	}
	return "[command [args...]]"
}
