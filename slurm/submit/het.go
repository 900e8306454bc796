package submit

import (
	"fmt"
	"slices"
	"strings"

	"dev.muster/cluster"
	"dev.muster/slurm/env"
	"dev.muster/slurm/front"
	"dev.muster/slurm/opt"
)

// Heterogeneous jobs: a lone ":" on the command line, and a line #SBATCH hetjob in a script, begin the options of the
// next component.

// inherited are the options that a component without them has from the one before it, as in Slurm. Others,
// such as those of its size and its partition, are each component's own.
var inherited = []string{"account", "begin", "chdir", "comment", "clusters", "deadline", "delay-boot",
	"dependency", "error", "exclude",
	"export", "gid", "hold", "input", "job-name", "kill-on-invalid-dep", "mcs-label", "mem", "nice",
	"no-requeue", "open-mode", "output",
	"priority", "profile", "propagate", "qos", "requeue", "reservation", "time", "time-min", "uid", "wckey"}

// sameMatter are options that speak of the same thing: who gives one inherits none of the others.
var sameMatter = [][]string{{"mem", "mem-per-cpu", "mem-per-gpu"}, {"requeue", "no-requeue"}}

// inherit gives a component what the one before it was given and it was not.
func (r *Request) inherit(from *Request) error {
	rows := map[string]*opt.Option[Request]{}
	for _, table := range ParserFor(r.prog).Rows {
		for i := range table {
			rows[table[i].Long] = &table[i]
		}
	}
	own := slices.Clone(r.Set)
	given := func(long string) bool {
		return slices.ContainsFunc(own, func(g Given) bool {
			return g.Long == long || slices.ContainsFunc(sameMatter,
				func(list []string) bool { return slices.Contains(list, long) && slices.Contains(list, g.Long) })
		})
	}
	for _, g := range from.Set {
		if slices.Contains(inherited, g.Long) && !given(g.Long) {
			one := opt.Found[Request]{Row: rows[g.Long], Value: g.Value, Given: g.Value != ""}
			if err := r.apply([]opt.Found[Request]{one}, FromDirective); err != nil {
				return err
			}
		}
	}
	return nil
}

// component adds a component to a request.
func (r *Request) component() *Request {
	p := newRequest(r.prog, nil, r.sys)
	siteDefaults(p, r.site)
	p.Job.SubmitLine = r.Job.SubmitLine
	p.Job.Kind = r.Job.Kind
	p.Job.Name = r.Job.Name
	p.Job.Command = r.Job.Command
	p.Job.Args = r.Job.Args
	if n := len(r.Parts); n > 0 {
		p.Job.Name = r.Parts[n-1].Job.Name
	}
	r.Parts = append(r.Parts, p)
	return p
}

// Components lists the components, the request itself being the first.
func (r *Request) Components() []*Request { return append([]*Request{r}, r.Parts...) }

// parseLines reads a command line whose components are separated by lone colons.
func parseLines(prog opt.Prog, argv []string) (lines [][]opt.Found[Request], rest []string, err error) {
	for {
		found, rest, err := parseLine(prog, argv)
		if err != nil {
			return nil, nil, err
		}
		if lines = append(lines, found); len(rest) == 0 || rest[0] != ":" {
			return lines, rest, nil
		}
		argv = rest[1:]
	}
}

// complete applies the environment and the command line to each component; the last component of the line stands
// for all that the script has more.
func (r *Request) complete(env []opt.Found[Request], lines [][]opt.Found[Request]) error {
	for len(r.Parts)+1 < len(lines) {
		r.component()
	}
	var before *Request
	for k, p := range r.Components() {
		if before != nil && !p.named {
			p.Job.Name = before.Job.Name
		}
		if err := p.apply(env, FromEnv); err != nil {
			return err
		}
		if err := p.apply(lines[min(k, len(lines)-1)], FromLine); err != nil {
			return err
		}
		siteForces(p)
		if before != nil {
			if err := p.inherit(before); err != nil {
				return err
			}
		}
		before = p
	}
	r.waitTogether()
	return nil
}

// waitTogether has components that were not told what to wait for wait for the same as the next one: those after it
// have inherited it.
func (r *Request) waitTogether() {
	for i, all := len(r.Parts), r.Components(); i > 0; i-- {
		j, next := &all[i-1].Job, &all[i].Job
		j.Hold = j.Hold || next.Hold
		if j.Begin.IsZero() {
			j.Begin = next.Begin
		}
		if len(j.Depends.Terms) == 0 {
			j.Depends = next.Depends
		}
	}
}

// finishParts is finish for the components after the first.
func (r *Request) finishParts() error {
	for _, p := range r.Parts {
		p.Job.Kind = r.Job.Kind
		if err := p.finish(); err != nil {
			return err
		}
		for _, n := range p.Notes {
			r.warn(n)
		}
	}
	return nil
}

// splitWords cuts srun's words at each lone colon.
func splitWords(argv []string) (parts [][]string) {
	for {
		i := slices.Index(argv, ":")
		if i < 0 {
			return append(parts, argv)
		}
		parts, argv = append(parts, argv[:i]), argv[i+1:]
	}
}

// srunWords is what srun's line says of one component.
type srunWords struct {
	found   []opt.Found[Request]
	command []string
	groups  []int
}

// ParseSrun reads srun's command line and environment. Argv is the command. In an allocation with components, there is
// one request for each component that the step runs on.
func ParseSrun(argv []string, sys *front.Sys) (*Request, error) { return parseSrun(argv, sys, nil) }

func parseSrun(argv []string, sys *front.Sys, site *siteOptions) (*Request, error) {
	inside := sys.Getenv("SLURM_JOB_ID") != "" || sys.Getenv("SLURM_JOBID") != ""
	words, err := srunComponents(argv, inside, sys)
	if err != nil {
		return nil, err
	}
	var all []*Request
	for _, w := range words {
		for _, g := range w.groups {
			part := *sys
			if inside {
				part.Environ = env.GroupEnviron(sys.Environ, g)
			}
			var before *Request
			if len(all) > 0 {
				before = all[len(all)-1]
			}
			r, err := parseSrunPart(argv, w, &part, before, site)
			if err != nil {
				return nil, err
			}
			r.sys, r.Group = sys, g
			all = append(all, r)
		}
	}
	slices.SortStableFunc(all, func(a, b *Request) int { return a.Group - b.Group })
	for k := 1; k < len(all); k++ {
		if all[k].Group == all[k-1].Group {
			return nil, all[k].fatal("Duplicate het groups in single srun not supported")
		}
	}
	all[0].Parts = all[1:]
	return all[0], nil
}

// srunComponents reads the line of each component. One without a command runs that of the next.
func srunComponents(argv []string, inside bool, sys *front.Sys) ([]srunWords, error) {
	parts := splitWords(argv)
	out := make([]srunWords, len(parts))
	var command []string
	for k := len(parts) - 1; k >= 0; k-- {
		found, rest, err := parseLine(opt.Srun, parts[k])
		if err != nil {
			return nil, err
		}
		if len(rest) > 0 {
			command = rest
		}
		w := srunWords{found, command, []int{k}}
		if text, given := lastValue(found, "het-group"); given {
			if w.groups, err = parseGroups(text); err != nil {
				return nil, err
			}
			if _, byID := lastValue(found, "jobid"); !inside && !byID {
				return nil, newRequest(opt.Srun, argv, sys).fatal("--het-group is for steps in an allocation only")
			}
		}
		out[k] = w
	}
	return out, nil
}

// parseGroups reads --het-group: "2", "0,2", "1,3-5".
func parseGroups(text string) ([]int, error) {
	set, err := cluster.ParseIDSet(strings.Trim(text, "[]"))
	if err != nil || set.Empty() || set.Max() >= cluster.MaxHetSize {
		bad := &opt.UsageError{Code: opt.CodeError}
		for one := range strings.SplitSeq(strings.Trim(text, "[]"), ",") {
			if _, err := cluster.ParseIDSet(one); err != nil {
				bad.Lines = append(bad.Lines, fmt.Sprintf("error: _parse_single_range: Invalid range: `%s'", one))
				break
			}
		}
		bad.Lines = append(bad.Lines, "error: Invalid --het-group value: "+text)
		return nil, opt.Named(opt.Srun, "", "", bad)
	}
	return slices.Collect(set.All()), nil
}

// about is the component that a refusal speaks of, as far as its text tells.
func (r *Request) about(err error) *cluster.JobSpec {
	for _, p := range r.Parts {
		if slices.ContainsFunc(p.Job.Partitions, func(name string) bool { return strings.Contains(err.Error(), "partition "+name+" ") }) {
			return &p.Job
		}
	}
	return &r.Job
}
