package submit

import (
	"slices"
	"strconv"
	"strings"

	"dev.muster/slurm/front"
	"dev.muster/slurm/opt"
)

// Messages of sbatch, srun and salloc with -v, in Slurm's words where scripts look for them. Only what truly
// happens is told: there are no plugins to load, and no messages between srun and daemons as Slurm has them.

// sources name where an option came from.
var sources = [...]string{FromDirective: "the script", FromEnv: "the environment", FromLine: "the command line"}

// valueForm gives the value of an option another form than that in which it was written.
type valueForm struct {
	long string
	form func(r *Request, v string) string
}

// valueForms are the options that Slurm shows in a form of its own; a flag is "set", all others are shown as written. A
// function: nothing is laid out at start.
func valueForms() []valueForm {
	return []valueForm{
		{"time", func(r *Request, _ string) string { return front.SpanText(r.Job.Limit) }},
		{"time-min", func(r *Request, _ string) string { return front.SpanText(r.Job.LimitMin) }},
		{"delay-boot", func(r *Request, _ string) string { return front.SpanText(r.Job.DelayBoot) }},
		{"begin", func(r *Request, _ string) string { return front.Stamp(r.Job.Begin) }},
		{"deadline", func(r *Request, _ string) string { return front.Stamp(r.Job.Deadline) }},
		{"gres", func(_ *Request, v string) string { return "gres:" + strings.ReplaceAll(v, ",", ",gres:") }},
		{"exclusive", orWord("exclusive")},
		{"oversubscribe", orWord("oversubscribe")},
		{"requeue", orWord("requeue")},
		{"no-requeue", orWord("no-requeue")},
		{"bell", orWord("bell-always")},
		{"no-bell", orWord("bell-never")},
		{"kill-on-bad-exit", orWord("1")},
		{"kill-command", orWord("TERM")},
		{"immediate", orWord("1")},
		{"x11", orWord("all")},
		{"open-mode", func(_ *Request, v string) string { return v[:min(1, len(v))] }},
		{"verbose", func(r *Request, _ string) string { return strconv.Itoa(r.verbose) }},
	}
}

// orWord is the form of an option whose argument may be left out.
func orWord(word string) func(*Request, string) string {
	return func(_ *Request, v string) string {
		if v == "" {
			return word
		}
		return v
	}
}

// valueText is how an option that was given is shown.
func valueText(r *Request, g Given) string {
	for _, f := range valueForms() {
		if f.long == g.Long {
			return f.form(r, g.Value)
		}
	}
	if row := ParserFor(r.prog).Row(g.Long); row == nil || row.Arg == opt.None {
		return "set"
	}
	return g.Value
}

// tellOptions tells what the active options are, for each component; with -vv where each came from.
func tellOptions(s *front.Sys, r *Request) {
	for _, p := range r.Components() {
		s.Verbose = max(s.Verbose, p.verbose)
	}
	s.Verbose -= r.Client.Quiet
	if !s.Tells(front.Told) {
		return
	}
	for _, p := range r.Components() {
		last := map[string]Given{}
		for _, g := range p.Set {
			last[g.Long] = g
		}
		names := make([]string, 0, len(last))
		for name := range last {
			names = append(names, name)
		}
		slices.Sort(names)
		line := strings.Repeat("-", 20)
		s.Say("defined options")
		s.Say("%s %s", line, line)
		for _, name := range names {
			s.Say("%-20s: %s", name, valueText(p, last[name]))
		}
		s.Say("%s %s", line, line)
		s.Say("end of defined options")
		for _, name := range names {
			s.Tell(front.Debug, "--%s is from %s", name, sources[last[name].From])
		}
	}
	for _, l := range r.Job.Rlimits {
		s.Tell(front.Debug, "propagating RLIMIT_%s=%d", l.Name, l.Soft)
	}
	s.Tell(front.Debug, "propagating UMASK=%04o", r.Job.Umask)
}

// setVerbose counts -v; a variable names how many.
func setVerbose(r *Request, v string) error {
	n := 1
	if k, ok := opt.Number(v); ok && r.from == FromEnv {
		n = k
	}
	r.verbose += n
	return nil
}

// notQuiet refuses -v beside -Q.
func notQuiet(r *Request) error {
	if r.verbose > 0 && r.Client.Quiet > 0 {
		return opt.Named(r.prog, "", "", opt.Errorf(opt.CodeError,
			"error: don't specify both --verbose (-v) and --quiet (-Q)"))
	}
	return nil
}
