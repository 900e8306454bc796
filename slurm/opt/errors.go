package opt

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// The exit codes of a refused command line.
const (
	CodeUsage = 255 // getopt and "Invalid --x specification"
	CodeError = 1   // plain numbers, conflicts, files, and what the server would refuse
)

// UsageError ends a front-end before it has done anything: the lines to print and the
// exit code. --help is one too, with Stdout and code 0.
type UsageError struct {
	Lines  []string
	Code   int
	Stdout bool // the lines are an answer, not a complaint
	// Refused marks what Slurm's server would refuse: the user's SLURM_EXIT_ERROR is the code then.
	Refused bool
}

// Error joins the lines.
func (e *UsageError) Error() string { return strings.Join(e.Lines, "\n") }

// Errorf makes a UsageError of one line. A text that starts with "error: " or "fatal: "
// gets the program's name before it; see Named.
func Errorf(code int, format string, args ...any) *UsageError {
	return &UsageError{Code: code, Lines: []string{fmt.Sprintf(format, args...)}}
}

// Answer ends a program with lines that it was asked for, such as the list of its fields.
func Answer(lines ...string) *UsageError { return &UsageError{Lines: lines, Stdout: true} }

// SetClusters reads the names of -M; of none there is no cluster, as Slurm says.
func SetClusters(v string, dst *string) error {
	if *dst = v; v != "" {
		return nil
	}
	return &UsageError{Code: CodeError, Lines: []string{
		"error: No cluster '' known by database.",
		"error: '' can't be reached now, or it is an invalid entry for --cluster.  " +
			"Use 'sacctmgr list clusters' to see available clusters.",
	}}
}

// Errors that the functions of a table may return instead of a text of their own.
var (
	// ErrSpec stands for "Invalid --NAME specification" (255).
	ErrSpec error = plain("invalid specification")
	// ErrNumber stands for `Invalid numeric value "V" for --NAME.` (1).
	ErrNumber error = plain("invalid numeric value")
)

type plain string

func (p plain) Error() string { return string(p) }

// Refused is an error that Slurm's server would find: only its reason is known here.
type Refused string

// Error is the reason.
func (r Refused) Error() string { return string(r) }

// Named makes of err, which an option's Set returned for value, what is to be printed:
// the text of ErrSpec and ErrNumber, and the program's name where it belongs.
func Named(prog Prog, long, value string, err error) error {
	var u *UsageError
	switch {
	case err == nil:
		return nil
	case errors.Is(err, ErrSpec):
		u = Errorf(CodeUsage, "error: Invalid --%s specification", long)
	case errors.Is(err, ErrNumber):
		u = Errorf(CodeError, "error: Invalid numeric value \"%s\" for --%s.", value, long)
	case errors.As(err, &u):
	default:
		return err
	}
	named := &UsageError{Code: u.Code, Stdout: u.Stdout, Refused: u.Refused, Lines: make([]string, len(u.Lines))}
	for i, l := range u.Lines {
		if strings.HasPrefix(l, "error: ") || strings.HasPrefix(l, "fatal: ") {
			l = prog.Name() + ": " + l
		}
		named.Lines[i] = l
	}
	return named
}

// Refuse words a server's refusal as the program's user sees it.
func Refuse(prog Prog, testOnly bool, reason string) *UsageError {
	what := prog.Name() + ": error: Unable to allocate resources"
	switch {
	case testOnly:
		what = "allocation failure"
	case prog == Sbatch:
		what = "sbatch: error: Batch job submission failed"
	case prog == Salloc:
		what = "salloc: error: Job submit/allocate failed"
	}
	e := Errorf(CodeError, "%s: %s", what, reason)
	e.Refused = true
	return e
}

// Refusal words an error of Parse as the programs do that run nothing: their exit code is 1, and some print the first
// line alone. An answer stays one.
func Refusal(err error, short bool) error {
	u, ok := err.(*UsageError)
	if !ok || u.Stdout {
		return err
	}
	lines := u.Lines
	if short {
		lines = lines[:1]
	}
	return &UsageError{Code: CodeError, Lines: lines}
}

// Number reads a whole number as C's strtol does: an optional sign, then digits, and
// nothing after them. It is cut to the range of an int32 as Slurm does.
func Number(s string) (int, bool) {
	s = strings.TrimLeft(s, " \t")
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil && !errors.Is(err, strconv.ErrRange) {
		return 0, false
	}
	return int(min(max(n, -1<<31), 1<<31-1)), true
}
