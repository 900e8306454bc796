// Package wrap is the commands of other workload managers, PBS and LSF, and Slurm's contributed ones, as thin
// wrappers: each option is a row that says which words of sbatch, scancel or scontrol it becomes, or why there is
// none. It stands on the front-ends that it calls. Begin with this file, then pbs_submit.go.
package wrap

import (
	"bytes"
	"fmt"
	"io"
	"strconv"
	"strings"

	"dev.muster/slurm/control"
	"dev.muster/slurm/front"
	"dev.muster/slurm/launch"
	"dev.muster/slurm/report"
	"dev.muster/slurm/sacctmgr"
	"dev.muster/slurm/submit"
)

// row is one option of a wrapper, T what a command line asks for.
type row[T any] struct {
	flag string // -N is "N", -oo "oo"
	arg  bool
	set  func(*T, string) error
}

// refuse is an option that cannot be done, with the way out.
func refuse[T any](wayOut string) func(*T, string) error {
	return func(*T, string) error { return fmt.Errorf("has no counterpart here: %s", wayOut) }
}

// parse reads options up to the first word that is none; a word of several letters counts before single ones.
func parse[T any](o *T, rows []row[T], argv []string) (rest []string, err error) {
	for len(argv) > 0 {
		word := argv[0]
		if len(word) < 2 || word[0] != '-' {
			return argv, nil
		}
		if argv = argv[1:]; word == "--" {
			return argv, nil
		}
		if argv, err = option(o, rows, word[1:], argv); err != nil {
			return nil, err
		}
	}
	return nil, nil
}

// option applies one word; letters that take no argument may stand together.
func option[T any](o *T, rows []row[T], word string, argv []string) ([]string, error) {
	for word != "" {
		r, value := find(rows, word)
		switch {
		case r == nil:
			return nil, fmt.Errorf("invalid option -- '%s'", word)
		case r.arg && value == "" && len(argv) == 0:
			return nil, fmt.Errorf("option requires an argument -- '%s'", r.flag)
		case r.arg && value == "":
			value, argv = argv[0], argv[1:]
		}
		word = ""
		if !r.arg {
			value, word = "", value
		}
		if err := r.set(o, value); err != nil {
			return nil, fmt.Errorf("-%s: %w", r.flag, err)
		}
	}
	return argv, nil
}

// find is the row of a word, or of its first letter; the rest is then its argument, or more letters.
func find[T any](rows []row[T], word string) (*row[T], string) {
	for i := range rows {
		if rows[i].flag == word {
			return &rows[i], ""
		}
	}
	for i := range rows {
		if rows[i].flag == word[:1] {
			return &rows[i], word[1:]
		}
	}
	return nil, ""
}

// as runs another front-end in this one's place.
func as(sys *front.Sys, prog string, argv ...string) int {
	own := *sys
	own.Prog = prog
	switch prog {
	case "sbatch":
		return submit.Sbatch(&own, argv)
	case "srun":
		return launch.Srun(&own, argv)
	case "scancel":
		return control.Scancel(&own, argv)
	case "seff":
		return report.Seff(&own, argv)
	case "sacctmgr":
		return sacctmgr.Run(&own, argv)
	}
	return control.Scontrol(&own, argv)
}

// output runs another front-end and keeps what it prints.
func output(sys *front.Sys, in io.Reader, prog string, argv ...string) (text string, code int) {
	var b bytes.Buffer
	own := *sys
	own.Stdout, own.Stdin = &b, in
	code = as(&own, prog, argv...)
	return strings.TrimSpace(b.String()), code
}

// failed prints why a wrapper does nothing.
func failed(sys *front.Sys, err error) int {
	text, _ := front.ErrorText(err)
	fmt.Fprintf(sys.Stderr, "%s: %s\n", sys.Prog, text)
	return 1
}

// jobIDs are job numbers without the server's name behind them: 42.host, 42[].host.
func jobIDs(words []string) (ids []string, err error) {
	for _, w := range words {
		id, _, _ := strings.Cut(w, ".")
		id = strings.TrimSuffix(id, "[]")
		if base, task, ok := strings.Cut(strings.TrimSuffix(id, "]"), "["); ok {
			id = base + "_" + task
		}
		if _, ok := front.ParseTarget(id); !ok {
			return nil, fmt.Errorf("illegally formed job identifier: %s", w)
		}
		ids = append(ids, id)
	}
	if len(ids) == 0 {
		return nil, fmt.Errorf("name a job")
	}
	return ids, nil
}

// clock writes seconds as sbatch takes them: MINUTES:SECONDS.
func clock(seconds int) string {
	return strconv.Itoa(seconds/60) + ":" + fmt.Sprintf("%02d", seconds%60)
}

// shells are interpreters whose scripts can have variables put in front.
const shells = " sh bash dash ash ksh mksh zsh "

// isShell reports whether a script's interpreter reads sh's words.
func isShell(script string) bool {
	line, _, _ := strings.Cut(script, "\n")
	words := strings.Fields(strings.TrimPrefix(line, "#!"))
	if len(words) > 1 && strings.HasSuffix(words[0], "/env") {
		words = words[1:]
	}
	if len(words) == 0 {
		return false
	}
	return strings.Contains(shells, " "+words[0][strings.LastIndexByte(words[0], '/')+1:]+" ")
}

// withPrologue puts lines behind a script's first one; a script without one is bash's, or that of shell.
func withPrologue(script, shell, lines string) string {
	if !strings.HasPrefix(script, "#!") {
		if shell == "" {
			shell = "/bin/bash"
		}
		script = "#!" + shell + "\n" + script
	}
	if !isShell(script) {
		return script
	}
	first, rest, _ := strings.Cut(script, "\n")
	return first + "\n" + leading(rest, lines)
}

// leading puts lines behind the comments that a script begins with: sbatch reads its directives there.
func leading(text, lines string) string {
	at := 0
	for line := range strings.SplitAfterSeq(text, "\n") {
		if t := strings.TrimSpace(line); t != "" && t[0] != '#' {
			break
		}
		at += len(line)
	}
	head := text[:at]
	if head != "" && !strings.HasSuffix(head, "\n") {
		head += "\n"
	}
	return head + lines + text[at:]
}

// readScript reads a file, or standard input without one.
func readScript(sys *front.Sys, file string) (string, error) {
	if file == "" {
		text, err := io.ReadAll(io.LimitReader(sys.Stdin, submit.MaxScript))
		return string(text), err
	}
	text, err := front.ReadFileLimited(file, submit.MaxScript)
	if err != nil {
		return "", fmt.Errorf("script file %s cannot be loaded: %s", file, front.PlainError(err))
	}
	return string(text), nil
}

// hostFile writes a file with the name of a node for each task there, once it is named by a variable.
const hostFile = `( set -- $(scontrol show hostnames "$SLURM_JOB_NODELIST")
for c in $(echo "$SLURM_TASKS_PER_NODE" | tr , ' '); do
n=${c%%(*}; r=1; case $c in *x*) r=${c##*x}; r=${r%)};; esac
while [ $r -gt 0 ]; do i=0; while [ $i -lt $n ]; do echo "$1"; i=$((i+1)); done; shift; r=$((r-1)); done
done ) `
