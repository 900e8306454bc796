package slurm

import (
	"errors"
	"fmt"
	"strings"

	"dev.muster/slurm/opt"
	"dev.muster/wire"
)

// say prints a line with the program's name, as Slurm's commands do.
func (s *Sys) say(format string, args ...any) {
	fmt.Fprintf(s.Stderr, s.Prog+": "+format+"\n", args...)
}

// fail prints an error with the program's name and returns the exit code for it.
func (s *Sys) fail(format string, args ...any) int {
	if s.Prog == ownProg {
		s.say(format, args...)
		return 1
	}
	s.say("error: "+format, args...)
	return s.errorExit()
}

// ownProg is the name of the program in messages of muster's own commands.
const ownProg = "muster"

// failed prints why a call of one of muster's own commands failed.
func (s *Sys) failed(err error) int {
	if isUnreachable(err) {
		return s.fail("%s", NoDaemon(s.Getenv))
	}
	return s.fail("%v", err)
}

// errorExit is the exit code of an error that is not the command line's nor a task's: 1, or what SLURM_EXIT_ERROR says to
// the programs that submit.
func (s *Sys) errorExit() int {
	if s.Prog != "sbatch" && s.Prog != "salloc" && s.Prog != "srun" {
		return 1
	}
	if n, ok := opt.Number(s.Getenv("SLURM_EXIT_ERROR")); ok && n != 0 {
		return n & 0xff
	}
	return 1
}

// json prints a value as JSON; it returns the exit code.
func (s *Sys) json(v any) int {
	text, err := wire.AppendIndent(nil, v, "", "  ")
	if err == nil {
		_, err = s.Stdout.Write(append(text, '\n'))
	}
	if err != nil {
		return s.fail("%v", err)
	}
	return 0
}

// usage prints what a refused or answered command line says, and returns its exit code.
func (s *Sys) usage(err error) int {
	var u *opt.UsageError
	if !errors.As(err, &u) {
		return s.fail("%v", err)
	}
	out := s.Stderr
	if u.Stdout {
		out = s.Stdout
	}
	fmt.Fprintln(out, strings.Join(u.Lines, "\n"))
	if u.Refused {
		return s.errorExit()
	}
	return u.Code
}
