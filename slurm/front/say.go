package front

import (
	"errors"
	"fmt"
	"strings"

	"dev.muster/slurm/opt"
	"dev.muster/wire"
)

// Say prints a line with the program's name, as Slurm's commands do.
func (s *Sys) Say(format string, args ...any) {
	fmt.Fprintf(s.Stderr, s.Prog+": "+format+"\n", args...)
}

// Fail prints an error with the program's name and returns the exit code for it.
func (s *Sys) Fail(format string, args ...any) int {
	if s.Prog == ownProg {
		s.Say(format, args...)
		return 1
	}
	s.Say("error: "+format, args...)
	return s.ErrorExit()
}

// ownProg is the name of the program in messages of muster's own commands.
const ownProg = "muster"

// Failed prints why a call of one of muster's own commands failed.
func (s *Sys) Failed(err error) int {
	if IsUnreachable(err) {
		return s.Fail("%s", NoDaemon(s.Getenv))
	}
	return s.Fail("%v", err)
}

// ErrorExit is the exit code of an error that is not the command line's nor a task's: 1, or what SLURM_EXIT_ERROR
// says to the programs that submit.
func (s *Sys) ErrorExit() int {
	if s.Prog != "sbatch" && s.Prog != "salloc" && s.Prog != "srun" {
		return 1
	}
	if n, ok := opt.Number(s.Getenv("SLURM_EXIT_ERROR")); ok && n != 0 {
		return n & 0xff
	}
	return 1
}

// JSON prints a value as JSON; it returns the exit code.
func (s *Sys) JSON(v any) int {
	text, err := wire.AppendIndent(nil, v, "", "  ")
	if err == nil {
		_, err = s.Stdout.Write(append(text, '\n'))
	}
	if err != nil {
		return s.Fail("%v", err)
	}
	return 0
}

// Usage prints what a refused or answered command line says, and returns its exit code.
func (s *Sys) Usage(err error) int {
	var u *opt.UsageError
	if !errors.As(err, &u) {
		return s.Fail("%v", err)
	}
	out := s.Stderr
	if u.Stdout {
		out = s.Stdout
	}
	if text := strings.Join(u.Lines, "\n"); text != "" {
		fmt.Fprintln(out, text)
	}
	if u.Refused {
		return s.ErrorExit()
	}
	return u.Code
}
