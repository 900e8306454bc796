package submit

import (
	"bytes"
	"errors"
	"os"
	"slices"
	"strings"
	"syscall"

	"dev.muster/api"
	"dev.muster/cluster"
	"dev.muster/slurm/format"
	"dev.muster/slurm/front"
	"dev.muster/slurm/opt"
	"dev.muster/slurm/values"
)

// The site's cli_filter.lua sees the options of sbatch, srun and salloc before the job is submitted, and may set them.
// A command hears of it from the server, which refuses what has not been seen (api.SubmitRequest.Filtered): so
// clusters without such a script pay nothing. Then the command line is read again, with the defaults that the script
// sets below all else, and what it sets at last above all else.

// ErrFilter is that the script refuses.
var ErrFilter = errors.New("cli_filter plugin terminated with error")

// refilter has the script look at a request, which is then what the script made of it.
func refilter(s *front.Sys, r *Request, text string) (api.SubmitRequest, error) {
	plugins, own, script := api.CutFilter(text)
	if script != "" && OpenScript == nil {
		return api.SubmitRequest{}, runAgain(s, r)
	}
	cli, err := openScript(s, script)
	if err != nil {
		return api.SubmitRequest{}, err
	}
	site := &siteOptions{cli: cli, hash: cluster.HashBlob([]byte(text))}
	if err := site.readDefaults(s, r, plugins, own); err != nil {
		return api.SubmitRequest{}, err
	}
	anew, err := reread(s, r, site)
	if err != nil {
		return api.SubmitRequest{}, err
	}
	for k, p := range anew.Components() {
		look := func(o *front.SiteOptions) ([]front.SiteOption, string, error) { return cli.PreSubmit(o, k) }
		set, err := site.ask(s, p, look)
		if err != nil {
			return api.SubmitRequest{}, err
		}
		site.forced = append(site.forced, set...)
	}
	if len(site.forced) > 0 {
		if anew, err = reread(s, r, site); err != nil {
			return api.SubmitRequest{}, err
		}
	}
	for _, p := range anew.Components() {
		if anew.prog != opt.Srun {
			break
		}
		if p.Step.Env, err = JobEnviron(p, s.Environ); err != nil {
			return api.SubmitRequest{}, err
		}
	}
	*r = *anew
	q, code := Submission(s, r)
	if code != 0 {
		return q, ErrFilter
	}
	q.Filtered = site.hash
	return q, nil
}

// readDefaults finds what is below all else: in the order of the site's plugins, so that the last one counts. own is
// the name of the cluster.
func (site *siteOptions) readDefaults(s *front.Sys, r *Request, plugins []string, own string) error {
	for _, name := range plugins {
		if name == api.FilterUser {
			site.defaults = append(site.defaults, userDefaults(s, r, own)...)
			continue
		}
		set, err := site.ask(s, newRequest(r.prog, nil, s), site.cli.Defaults)
		if err != nil {
			return err
		}
		site.defaults = append(site.defaults, set...)
	}
	return nil
}

// openScript reads the site's script, if it has one.
func openScript(s *front.Sys, text string) (front.SiteScript, error) {
	if text == "" {
		return noScript{}, nil
	}
	return OpenScript(text, func(level, line string) { sayOfScript(s, level, line) })
}

// noScript is the script of a site that has none.
type noScript struct{}

func (noScript) Defaults(*front.SiteOptions) ([]front.SiteOption, string, error) { return nil, "", nil }
func (noScript) PreSubmit(*front.SiteOptions, int) ([]front.SiteOption, string, error) {
	return nil, "", nil
}
func (noScript) PostSubmit(int, uint32) error { return nil }

// OpenScript reads the site's script; nil in a command that starts as fast as it can, without the language.
var OpenScript func(text string, say func(level, line string)) (front.SiteScript, error)

// runAgain becomes the same command with the language of scripts. It returns only if that fails.
func runAgain(s *front.Sys, r *Request) error {
	if r.typed != nil {
		if err := inputAgain(s, r.typed); err != nil {
			return err
		}
	}
	const self = "/proc/self/exe"
	argv := append([]string{"muster", "internal", "command"}, s.Args...)
	return &os.PathError{Op: "call", Path: self, Err: syscall.Exec(self, argv, s.Environ)}
}

// inputAgain has a script that was read come by the input again.
func inputAgain(s *front.Sys, text []byte) error {
	f, err := os.CreateTemp(s.Getenv("TMPDIR"), "sbatch-")
	if err != nil {
		return err
	}
	defer f.Close()
	if err := os.Remove(f.Name()); err != nil {
		return err
	}
	if _, err := f.Write(text); err != nil {
		return err
	}
	if _, err := f.Seek(0, 0); err != nil {
		return err
	}
	return syscall.Dup3(int(f.Fd()), 0, 0)
}

// sayOfScript tells what the script logs, as Slurm's commands do: what is below the level of info is not told.
func sayOfScript(s *front.Sys, level, line string) {
	switch level {
	case "error":
		s.Say("error: lua: %s", line)
	case "info":
		s.Say("lua: %s", line)
	}
}

// ask calls a function of the script. One that fails is told of, and changes nothing; one that refuses ends the
// command.
func (site *siteOptions) ask(
	s *front.Sys, r *Request, call func(*front.SiteOptions) ([]front.SiteOption, string, error),
) ([]front.SiteOption, error) {
	set, why, err := call(shownOptions(s, r))
	if err != nil {
		s.Say("error: cli_filter/lua: %v", err)
		return set, nil
	}
	if why != "" {
		return nil, ErrFilter
	}
	return set, nil
}

// reread reads the command line again, with what the script has set.
func reread(s *front.Sys, r *Request, site *siteOptions) (*Request, error) {
	if r.typed != nil {
		s.Stdin = bytes.NewReader(r.typed)
	}
	parse := map[opt.Prog]func([]string, *front.Sys, *siteOptions) (*Request, error){
		opt.Sbatch: parseSbatch, opt.Salloc: parseSalloc, opt.Srun: parseSrun}
	return parse[r.prog](r.line, s, site)
}

// siteDefaults applies what the script sets for those who do not say.
func siteDefaults(r *Request, site *siteOptions) {
	if r.site = site; site != nil {
		beside(r, site.defaults, FromDirective)
	}
}

// siteForces applies what the script sets in any case.
func siteForces(r *Request) {
	if r.site != nil {
		beside(r, r.site.forced, FromLine)
	}
}

// beside applies what the script has set.
func beside(r *Request, list []front.SiteOption, from Source) {
	p := ParserFor(r.prog)
	for _, o := range list {
		row := p.Row(o.Long)
		if row == nil || row.On&r.prog == 0 {
			r.sys.Say("error: cli_filter/lua: %s has no option --%s", r.prog.Name(), o.Long)
			continue
		}
		value := o.Value
		if value == "set" || value == o.Long || row.Arg == opt.None {
			value = ""
		}
		found := opt.Found[Request]{Row: row, Value: value, Given: value != ""}
		if err := r.apply([]opt.Found[Request]{found}, from); err != nil {
			r.sys.Say("error: Invalid --%s specification", o.Long)
		}
	}
}

// shownOptions is the options of a request, as scripts read them.
func shownOptions(s *front.Sys, r *Request) *front.SiteOptions {
	p := ParserFor(r.prog)
	given := func() map[string]string {
		all := map[string]string{}
		for _, g := range r.Set {
			all[g.Long] = shownValue(g.Long, g.Value)
		}
		return all
	}
	get := func(long string) (string, bool) {
		for _, g := range slices.Backward(r.Set) {
			if g.Long == long {
				return shownValue(long, g.Value), true
			}
		}
		row := p.Row(long)
		switch {
		case row == nil:
			return "", false
		case row.On&r.prog == 0:
			return "invalid-context", true
		}
		return notGiven(row)
	}
	argv := r.Argv
	if r.prog == opt.Sbatch && r.Job.Command != "" {
		argv = append([]string{r.Job.Command}, r.Job.Args...)
	}
	return &front.SiteOptions{Prog: r.prog.Name(), Get: get, Given: given, Argv: argv, Env: s.Environ}
}

// shownValue is the value of an option in the form that Slurm gives scripts.
func shownValue(long, v string) string {
	switch long {
	case "time", "time-min":
		if d, ok := values.ParseTimeLimit(v); ok && d != cluster.Unlimited {
			return format.Padded(d)
		}
	case "gres":
		if list, ok := values.ParseGRES(v); ok {
			return strings.ReplaceAll(format.GRES(list), "gres:", "gres/")
		}
	case "requeue", "exclusive":
		if v == "" {
			return long
		}
	}
	if v == "" {
		return "set"
	}
	return v
}

// unsetValues are what options are that are not given, where that is not nil: NAME=VALUE, between spaces.
const unsetValues = " begin=Unknown cores-per-socket=-2 cpus-per-gpu=0 cpus-per-task=0 deadline=Unknown immediate=0 " +
	"mail-type=NONE mincpus=-1 nice=-2 nodes=1-0 ntasks=1 ntasks-per-core=-2 ntasks-per-gpu=-2 ntasks-per-node=-2 " +
	"ntasks-per-socket=-2 priority=0 profile=NotSet quiet=0 signal=0@0 sockets-per-node=-2 threads-per-core=-2 " +
	"verbose=0 core-spec=unset extra-node-info=unset gres-flags=unset kill-on-invalid-dep=unset mem-bind=unset " +
	"switches=unset thread-spec=unset exclusive=unset get-user-env=unset "

func notGiven(row *opt.Option[Request]) (string, bool) {
	if _, rest, ok := strings.Cut(unsetValues, " "+row.Long+"="); ok {
		v, _, _ := strings.Cut(rest, " ")
		return v, true
	}
	if row.Arg == opt.None {
		return "unset", true
	}
	return "", false
}
