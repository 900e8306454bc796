package submit

import (
	"strings"

	"dev.muster/cluster"
	"dev.muster/slurm/front"
	"dev.muster/slurm/opt"
	"dev.muster/slurm/values"
)

// ParserFor is the parser of a program's options, as its tables have them.
func ParserFor(prog opt.Prog) *opt.Parser[Request] {
	return &opt.Parser[Request]{
		Prog: prog,
		Rows: [][]opt.Option[Request]{
			optionsAtoE, optionsFtoN, optionsOtoZ, optionsNewer, optionsOfFields(), optionsContainer, optionsOwn,
		},
	}
}

// fromEnv finds the options that variables set. A request by the REST interface has none, of its program's.
func fromEnv(prog opt.Prog, sys *front.Sys) []opt.Found[Request] {
	if len(sys.Environ) == 0 {
		return nil
	}
	return ParserFor(prog).Env(sys.LookupEnv)
}

// parseLine reads the command line and answers --help, --usage and --version.
func parseLine(prog opt.Prog, argv []string) ([]opt.Found[Request], []string, error) {
	p := ParserFor(prog)
	found, rest, err := p.Parse(argv)
	for _, f := range found {
		out := &opt.UsageError{Stdout: true}
		switch f.Row.Long {
		case "help":
			out.Lines = p.Help(synopsis(prog))
		case "usage":
			out.Lines = p.Usage(front.Operands(prog))
		case "version":
			out.Lines = []string{front.VersionText()}
		default:
			continue
		}
		return nil, nil, out
	}
	return found, rest, err
}

func synopsis(prog opt.Prog) string {
	return prog.Name() + " [OPTIONS...] " + front.Operands(prog)
}

func newRequest(prog opt.Prog, argv []string, sys *front.Sys) *Request {
	r := &Request{Job: cluster.JobSpec{Layout: &cluster.Layout{}}, sys: sys, prog: prog, line: argv}
	r.Job.SubmitLine = keptLine(strings.Join(append([]string{sys.Prog}, argv...), " "))
	r.Job.UID, r.Job.GID = sys.UID, sys.GID
	return r
}

// parseSrunPart makes of what srun's line gives for one component, and of the environment, a request.
func parseSrunPart(argv []string, w srunWords, sys *front.Sys, before *Request, site *siteOptions) (*Request, error) {
	r := newRequest(opt.Srun, argv, sys)
	siteDefaults(r, site)
	env := fromEnv(opt.Srun, sys)
	if err := r.apply(env, FromEnv); err != nil {
		return nil, err
	}
	if err := r.apply(w.found, FromLine); err != nil {
		if len(w.command) == 0 && values.IsBindHelp(err) { // it is looked at last
			return nil, r.fatal("No command given to execute.")
		}
		return nil, err
	}
	siteForces(r)
	if before != nil && r.Client.JobID == 0 {
		if err := r.inherit(before); err != nil {
			return nil, err
		}
	}
	r.Job.Kind = cluster.SrunJob
	if err := r.checkMPI(); err != nil {
		return nil, err
	}
	if len(w.command) == 0 {
		return nil, r.fatal("No command given to execute.")
	}
	r.Argv = w.command
	if err := r.finish(); err != nil {
		return nil, err
	}
	if err := r.finishStep(); err != nil {
		return nil, err
	}
	return r, checkAsync(r)
}

// ParseSalloc reads salloc's command line and environment. Argv is the command, empty
// for the user's shell.
func ParseSalloc(argv []string, sys *front.Sys) (*Request, error) { return parseSalloc(argv, sys, nil) }

func parseSalloc(argv []string, sys *front.Sys, site *siteOptions) (*Request, error) {
	r := newRequest(opt.Salloc, argv, sys)
	siteDefaults(r, site)
	lines, rest, err := parseLines(opt.Salloc, argv)
	if err != nil {
		return nil, err
	}
	if err := r.complete(fromEnv(opt.Salloc, sys), lines); err != nil {
		return nil, err
	}
	r.Job.Kind = cluster.Allocation
	r.Argv = rest
	if err := r.finish(); err != nil {
		return nil, err
	}
	return r, r.finishParts()
}

// lastValue returns the value an option was given last.
func lastValue(found []opt.Found[Request], long string) (value string, ok bool) {
	for _, f := range found {
		if f.Row.Long == long {
			value, ok = f.Value, true
		}
	}
	return value, ok
}
