// Package cron is scrontab: a crontab whose lines are jobs. Its options in the file are those of sbatch, which reads
// them.
package cron

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"

	"dev.muster/api"
	"dev.muster/cluster"
	"dev.muster/slurm/front"
	"dev.muster/slurm/opt"
	"dev.muster/slurm/submit"
)

// crontabLine is what scrontab's line asks for.
type crontabLine struct {
	user               string
	edit, list, remove bool
	verbose            bool
}

type scrontabOption = opt.Option[crontabLine]

// ScrontabOptions are the options of scrontab.
var ScrontabOptions = []scrontabOption{
	{Long: "edit", Short: 'e', On: opt.Scrontab, Help: "edit the crontab", Set: func(o *crontabLine,
		_ string) error {
		o.edit = true
		return nil
	}},
	{Long: "list", Short: 'l', On: opt.Scrontab, Help: "list the crontab", Set: func(o *crontabLine,
		_ string) error {
		o.list = true
		return nil
	}},
	{Long: "remove", Short: 'r', On: opt.Scrontab, Help: "delete the crontab",
		Set: func(o *crontabLine, _ string) error { o.remove = true; return nil }},
	{Long: "user", Short: 'u', Arg: opt.Required, On: opt.Scrontab, Meta: "user", Help: "whose crontab",
		Set: func(o *crontabLine, v string) error { o.user = v; return nil }},
	{Long: "verbose", Short: 'v', On: opt.Scrontab, Help: "more messages",
		Set: func(o *crontabLine, _ string) error { o.verbose = true; return nil }},
	{Long: "version", Short: 'V', On: opt.Scrontab, Group: opt.HelpGroup, Help: "print the version"},
	{Long: "help", On: opt.Scrontab, Group: opt.HelpGroup, Help: "print this"},
	{Long: "usage", On: opt.Scrontab, Group: opt.HelpGroup, Help: "print a short help"},
}

const scrontabUsage = `usage:	scrontab [-u user] file
	scrontab [-u user] [ -e | -l | -r | -v]
	-e	Edit user's crontab (default action if stdin is a TTY)
	-l	List user's crontab
	-r	Delete user's crontab
	-u	User to edit crontab for
`

// crontabExample is what is edited where there is no crontab.
const crontabExample = `# min hour day-of-month month day-of-week command; options of sbatch in lines #SCRON before it
#SCRON --time=10
#0 3 * * * $HOME/nightly.sh
`

// Scrontab lists, replaces and edits crontabs, whose lines are jobs.
func Scrontab(sys *front.Sys, argv []string) int {
	var o crontabLine
	rest, code := front.ParseQuery(sys, opt.Scrontab, ScrontabOptions, &o, argv)
	if code >= 0 {
		return code
	}
	if len(rest) > 1 || front.BoolInt(o.edit)+front.BoolInt(o.list)+front.BoolInt(o.remove)+len(rest) > 1 {
		_, _ = io.WriteString(sys.Stderr, scrontabUsage)
		return 1
	}
	uid, ok := crontabUser(sys, o.user)
	switch {
	case !ok:
		return fatalCron(sys, "Invalid user: "+o.user)
	case o.list:
		return listCrontab(sys, uid)
	case o.remove:
		_, err := front.Call(sys, api.PutCrontab, api.CrontabRequest{UID: uid})
		return cronDone(sys, err)
	case len(rest) == 1 && rest[0] != "-":
		return putFile(sys, uid, rest[0])
	case len(rest) == 1, !o.edit && !onTerminal(sys):
		return putInput(sys, uid)
	}
	return editCrontab(sys, uid)
}

// crontabUser is whose crontab it is: the caller's, if nobody is named.
func crontabUser(sys *front.Sys, name string) (uid uint32, ok bool) {
	if name == "" {
		return sys.UID, true
	}
	u, ok := front.LookupUser(name)
	return u.UID, ok
}

// putFile replaces the crontab by a file.
func putFile(sys *front.Sys, uid uint32, file string) int {
	text, err := front.ReadFileLimited(file, submit.MaxScript)
	if err != nil {
		return fatalCron(sys, "failed to open "+file)
	}
	return putCrontab(sys, uid, text)
}

// putInput replaces the crontab by what comes by the input.
func putInput(sys *front.Sys, uid uint32) int {
	text, err := io.ReadAll(io.LimitReader(sys.Stdin, submit.MaxScript))
	if err != nil {
		return fatalCron(sys, front.PlainError(err))
	}
	return putCrontab(sys, uid, text)
}

func fatalCron(sys *front.Sys, text string) int {
	sys.Say("fatal: %s", text)
	return 1
}

// cronDone words the refusal of a call about a crontab.
func cronDone(sys *front.Sys, err error) int {
	if err == nil {
		return 0
	}
	var e *api.Error
	text, _ := front.ErrorText(err)
	switch {
	case front.IsKind(err, cluster.ErrDisabled):
		return fatalCron(sys, "scrontab is disabled on this cluster")
	case errors.As(err, &e) && strings.HasPrefix(e.Hint, "line"):
		fmt.Fprintf(sys.Stdout,
			"There was an issue with the job submission on %s\nThe error code return was: %s\n"+
				"The error message was: %s\n",
			e.Hint, text, e.Message)
		return 1
	}
	return fatalCron(sys, "slurm_request_crontab failed: "+text)
}

func listCrontab(sys *front.Sys, uid uint32) int {
	r, err := front.Call(sys, api.ShowCrontab, api.CrontabQuery{UID: uid})
	if err != nil {
		return cronDone(sys, err)
	}
	if len(r.Text) == 0 {
		u, _ := front.UserByID(uid)
		fmt.Fprintf(sys.Stdout, "no crontab for %s\n", u.Name)
		return 1
	}
	_, _ = sys.Stdout.Write(r.Text)
	return 0
}

// editCrontab has the user's editor change the crontab, until there is nothing wrong with it or the user gives up.
func editCrontab(sys *front.Sys, uid uint32) int {
	if !onTerminal(sys) {
		return fatalCron(sys, "Standard input is not a TTY")
	}
	r, err := front.Call(sys, api.ShowCrontab, api.CrontabQuery{UID: uid})
	if err != nil {
		return cronDone(sys, err)
	}
	before := []byte(cmp.Or(string(r.Text), crontabExample))
	file, after, err := edited(sys, before)
	if err != nil {
		return fatalCron(sys, front.PlainError(err))
	}
	if bytes.Equal(before, after) {
		fmt.Fprintln(sys.Stdout, "scrontab: no changes made")
		_ = os.Remove(file)
		return 0
	}
	code := putCrontab(sys, uid, after)
	if code != 0 { // what was refused is kept
		sys.Say("what was written is in %s: mend it there, then scrontab %s", file, file)
		return code
	}
	_ = os.Remove(file)
	return 0
}

// errEditor is that the user's editor says that it failed.
var errEditor = errors.New("editor returned non-zero exit code")

// edited has the user's editor change a text in a file, which is there afterwards if it was changed.
func edited(sys *front.Sys, before []byte) (file string, after []byte, err error) {
	f, err := os.CreateTemp(sys.Getenv("TMPDIR"), "scrontab-")
	if err != nil {
		return "", nil, err
	}
	_, err = f.Write(before)
	if err := errors.Join(err, f.Close()); err != nil {
		return "", nil, errors.Join(err, os.Remove(f.Name()))
	}
	if !runEditor(sys, f.Name()) {
		return "", nil, errors.Join(errEditor, os.Remove(f.Name()))
	}
	after, err = front.ReadFileLimited(f.Name(), submit.MaxScript)
	return f.Name(), after, err
}

func onTerminal(sys *front.Sys) bool {
	f, ok := sys.Stdin.(*os.File)
	return ok && front.IsTerminal(f)
}

// runEditor runs the user's editor with a file.
func runEditor(sys *front.Sys, file string) bool {
	editor := cmp.Or(sys.Getenv("VISUAL"), sys.Getenv("EDITOR"), "vi")
	argv := []string{"/bin/sh", "-c", editor + ` "$1"`, "sh", file}
	p, err := os.StartProcess(argv[0], argv, &os.ProcAttr{Env: sys.Environ, Files: []*os.File{os.Stdin, os.Stdout,
		os.Stderr}})
	if err != nil {
		return false
	}
	st, err := p.Wait()
	return err == nil && st.Success()
}

// putCrontab replaces the crontab by a text.
func putCrontab(sys *front.Sys, uid uint32, text []byte) int {
	q := api.CrontabRequest{UID: uid, Text: text}
	user, _ := front.UserByID(uid)
	jobs, bad := readCrontab(sys, user, string(text))
	if bad != "" {
		sys.Say("error: %s", bad)
		fmt.Fprintln(sys.Stdout, "There are errors in your crontab.")
		return 1
	}
	q.Jobs = jobs
	_, err := front.Call(sys, api.PutCrontab, q)
	return cronDone(sys, err)
}

// crontabReader reads a crontab: variables, options for the next line, and where those begin.
type crontabReader struct {
	sys     *front.Sys
	user    front.User
	vars    map[string]string
	options []string
	said    string // the lines with options, as written
	first   int
	jobs    []api.CrontabJob
}

// readCrontab makes jobs of the lines of a crontab, or says what is wrong with it.
func readCrontab(sys *front.Sys, user front.User, text string) ([]api.CrontabJob, string) {
	r := crontabReader{sys: sys, user: user, vars: map[string]string{}}
	for i, line := range strings.Split(text, "\n") {
		if bad := r.line(i+1, strings.TrimSpace(line)); bad != "" {
			return nil, bad
		}
	}
	return r.jobs, ""
}

func (r *crontabReader) line(n int, line string) string {
	options, isOptions := strings.CutPrefix(line, "#SCRON")
	switch {
	case isOptions:
		r.first = cmp.Or(r.first, n)
		words, unclosed := submit.SplitDirective(options)
		if bad := refusedCron(words); unclosed != "" || bad != "" {
			return "Invalid option found in #SCRON line: " + bad + unclosed
		}
		r.options, r.said = append(r.options, words...), r.said+line+"\n"
		return ""
	case line == "", line[0] == '#':
		return ""
	}
	if name, value, ok := strings.Cut(line, "="); ok && isVariable(name) {
		r.vars[name] = strings.Trim(value, `"'`)
		return ""
	}
	e, bad := cronEntryOf(line)
	if bad != "" {
		return bad
	}
	e.command = r.expand(e.command)
	return r.job(n, e)
}

// refusedCron is the first word of a #SCRON line that a job of a crontab cannot have, or that is no option.
func refusedCron(words []string) string {
	found, rest, err := submit.ParserFor(opt.Sbatch).Parse(words)
	if err != nil || len(rest) > 0 {
		return strings.Join(words, " ")
	}
	refused := []string{"array", "wrap", "begin", "wait", "test-only", "parsable", "help", "usage", "version", "uid",
		"gid", "clusters"}
	for _, f := range found {
		if slices.Contains(refused, f.Row.Long) {
			return "--" + f.Row.Long + front.Choose(f.Given, "="+f.Value, "")
		}
	}
	return ""
}

func isVariable(name string) bool {
	return name != "" && (name[0] < '0' || name[0] > '9') && strings.Trim(strings.ToUpper(name),
		"ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_") == ""
}

// cronEntry is a line with a job: when it runs, in words and in five fields, and the command.
type cronEntry struct{ said, when, command string }

func cronEntryOf(line string) (e cronEntry, bad string) {
	if line[0] == '@' {
		word, rest, _ := strings.Cut(strings.ReplaceAll(line, "\t", " "), " ")
		if e.when = cluster.CronNamed(word); e.when == "" {
			return e, "invalid @ line"
		}
		return cronEntry{word, e.when, strings.TrimSpace(rest)}, ""
	}
	rest := line
	var fields []string
	for range 5 {
		i := strings.IndexAny(rest, " \t")
		if i < 0 {
			return e, "bad " + cronFieldNames()[min(len(fields), 4)] + " specification"
		}
		fields, rest = append(fields, rest[:i]), strings.TrimLeft(rest[i:], " \t")
	}
	when := strings.Join(fields, " ")
	if _, err := cluster.ParseCron(when); err != nil {
		return e, err.Error()
	}
	return cronEntry{when, when, rest}, ""
}

func cronFieldNames() []string { return []string{"minute", "hour", "day", "month", "day"} }

// expand puts the file's variables into a command; others stay for the job's shell.
func (r *crontabReader) expand(command string) string {
	var b strings.Builder
	for i := 0; i < len(command); i++ {
		end := i + 1
		for end < len(command) && isVariable(command[i+1:end+1]) {
			end++
		}
		value, known := r.vars[command[i+1:end]]
		if command[i] != '$' || !known {
			b.WriteByte(command[i])
			continue
		}
		b.WriteString(value)
		i = end - 1
	}
	return b.String()
}

// job makes a job of a line with the options before it. The environment of who calls does not count.
func (r *crontabReader) job(n int, e cronEntry) string {
	if e.command == "" {
		return "no command on line " + strconv.Itoa(n)
	}
	own := *r.sys
	own.Environ = []string{"HOME=" + r.user.Home, "USER=" + r.user.Name, "LOGNAME=" + r.user.Name,
		"SHELL=" + r.user.Shell, front.JobPath("/usr/local/bin:/usr/bin:/bin")}
	own.UID, own.GID = r.user.UID, r.user.GID
	own.Getwd = func() (string, error) { return r.user.Home, nil }
	argv := append([]string{"--job-name=" + strings.Fields(e.command)[0], "--requeue"}, r.options...)
	req, err := submit.ParseSbatch(append(argv, "--wrap="+e.command), &own)
	if err != nil {
		return err.Error()
	}
	q, code := submit.Submission(&own, req)
	if code != 0 {
		return "line " + strconv.Itoa(n) + " is refused"
	}
	q.Script = []byte("#!/bin/sh\n# This job was submitted through scrontab\n" + r.said +
		"# crontab time request was: '" + e.said + "'\n" + e.command + "\n")
	q.Spec.Cron, q.Spec.UID, q.Spec.GID = &cluster.Cron{When: e.when}, r.user.UID, r.user.GID
	r.jobs = append(r.jobs, api.CrontabJob{Submit: q, First: cmp.Or(r.first, n), Last: n})
	r.options, r.said, r.first = nil, "", 0
	return ""
}
