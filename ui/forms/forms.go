// Package forms carries what a form of the page asks for to sbatch, as the user who has filled it in: a process of the
// user's own runs the command, so that files are read with the user's rights, the kernel says who submits, and the
// scripts and limits of the site hold as they do in a shell.
package forms

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"dev.muster/agent/guests"
	"dev.muster/agent/step"
)

// Bounds.
const (
	MaxScript  = 256 << 10
	runTime    = 20 * time.Second // of a form, with what it waits for: the page has to answer within 30 s
	endTime    = 2 * time.Second  // for it to end once it has said all that is read
	maxAtOnce  = 64               // commands, most of which wait for files of users if there are so many
	maxOfUser  = 3                // of one user
	maxSaid    = 64 << 10         // of what one says
	maxNotes   = 20
	templateIs = 64 << 10
)

// Field is one that has an option of sbatch.
type Field struct{ Name, Label, Option, Hint string }

// Fields are those of the form, in its order.
var Fields = []Field{
	{"name", "name", "--job-name", ""},
	{"partition", "partition", "--partition", ""},
	{"account", "account", "--account", ""},
	{"qos", "QOS", "--qos", ""},
	{"nodes", "nodes", "--nodes", "1"},
	{"gpus", "GPUs a node", "--gpus-per-node", "8, or h100:8"},
	{"tasks", "tasks a node", "--ntasks-per-node", "1"},
	{"cpus", "CPUs a task", "--cpus-per-task", "1"},
	{"mem", "memory a node", "--mem", "32G"},
	{"time", "time limit", "--time", "1:30:00, or 2-00"},
	{"array", "array", "--array", "0-9%2"},
	{"folder", "folder", "--chdir", "your home"},
}

// User is as whom a command runs.
type User struct {
	Name, Home, Shell string
	UID, GID          uint32
	Groups            []uint32
}

// Commands runs front-ends.
type Commands struct {
	Program string // muster
	Socket  string // of this daemon
	guests  *guests.House
	busy    chan struct{}
	users   *PerUser
}

// NewCommands runs them for one server, in its house.
func NewCommands(program, socket string, house *guests.House) *Commands {
	return &Commands{program, socket, house, make(chan struct{}, maxAtOnce), NewPerUser(maxOfUser)}
}

// PerUser counts what each user has going on, so that nobody takes all there is.
type PerUser struct {
	most int
	mu   sync.Mutex
	has  map[uint32]int
}

// NewPerUser lets each have so many.
func NewPerUser(most int) *PerUser { return &PerUser{most: most, has: map[uint32]int{}} }

// Enter counts one more, if the user may have it; leave is to be called then.
func (p *PerUser) Enter(uid uint32) (leave func(), ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.has[uid] >= p.most {
		return nil, false
	}
	p.has[uid]++
	return func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.has[uid]--; p.has[uid] == 0 {
			delete(p.has, uid)
		}
	}, true
}

// Note is what was said of the script; of line 0: of it as a whole.
type Note struct {
	Line int
	Text string
}

// Answer is what sbatch says of a job: that it was taken, when it would start, or why it is refused.
type Answer struct {
	Job              string // the job's id
	Starts           time.Time
	CPUs             int
	Nodes, Partition string
	Refused          string
	Notes            []Note
}

// Words are the options of what was filled in.
func Words(value func(name string) string) (words []string) {
	for _, f := range Fields {
		if v := strings.TrimSpace(value(f.Name)); v != "" {
			words = append(words, f.Option+"="+v)
		}
	}
	return words
}

// Script is a script as a text field sends it, with Unix's line breaks.
func Script(text string) string {
	lines := strings.Split(text, "\r\n")
	return strings.TrimLeft(strings.TrimRight(strings.Join(lines, "\n"), "\n")+"\n", "\n")
}

// starts is what sbatch --test-only says.
var starts = regexp.MustCompile(`^sbatch: Job \d+ to start at (\S+) using (\d+) processors on nodes (\S+) ` +
	`in partition (\S+)$`)

// Try asks when a job would start, and what may be a mistake in its script.
func (c *Commands) Try(ctx context.Context, u User, words []string, script string) (a Answer) {
	ctx, cancel := context.WithTimeout(ctx, runTime)
	defer cancel()
	_, said, err := c.run(ctx, u, script, io.ReadAll, sbatch("--test-only", words, script))
	for line := range strings.Lines(said) {
		line = strings.TrimSpace(line)
		if m := starts.FindStringSubmatch(line); m != nil {
			a.Starts, _ = time.ParseInLocation("2006-01-02T15:04:05", m[1], time.Local)
			a.CPUs, _ = strconv.Atoi(m[2])
			a.Nodes, a.Partition = m[3], m[4]
		} else {
			a.say(line, err)
		}
	}
	a.fail(err)
	a.lint(c, ctx, u, words, script)
	return a
}

// sbatch is its command line. The limits of this process are the server's, and nothing that jobs should have.
func sbatch(how string, words []string, script string) []string {
	line := []string{"sbatch", how}
	if !strings.Contains(script, "--propagate") {
		line = append(line, "--propagate=NONE")
	}
	return append(line, words...)
}

// say keeps a line of sbatch: a reason if it has failed, else a note.
func (a *Answer) say(line string, err error) {
	line = strings.TrimPrefix(strings.TrimPrefix(line, "sbatch: "), "error: ")
	switch {
	case line == "":
	case err != nil:
		a.Refused = strings.TrimSpace(a.Refused + "\n" + line)
	default:
		a.Notes = append(a.Notes, Note{0, line})
	}
}

// fail keeps why a command did not run, where it has said nothing.
func (a *Answer) fail(err error) {
	if err != nil && a.Refused == "" {
		a.Refused = err.Error()
	}
}

// again is how muster lint says what sbatch has said.
const again = "sbatch refuses it: "

// remark is what muster lint says.
var remark = regexp.MustCompile(`^-(?::(\d+))?: (.*)$`)

// lint adds what may be a mistake, unless the fields have settled it.
func (a *Answer) lint(c *Commands, ctx context.Context, u User, words []string, script string) {
	out, _, _ := c.run(ctx, u, script, io.ReadAll, []string{"lint", "-"}) // what it cannot read, sbatch has spoken of
	for line := range strings.Lines(out) {
		m := remark.FindStringSubmatch(strings.TrimSpace(line))
		if m == nil || len(a.Notes) >= maxNotes || strings.Contains(a.Refused, strings.TrimPrefix(m[2], again)) {
			continue
		}
		settled := func(word string) bool {
			option, _, _ := strings.Cut(word, "=")
			return strings.Contains(m[2], option)
		}
		if slices.ContainsFunc(words, settled) {
			continue
		}
		n, _ := strconv.Atoi(m[1])
		a.Notes = append(a.Notes, Note{n, m[2]})
	}
}

// Submit hands a job over.
func (c *Commands) Submit(ctx context.Context, u User, words []string, script string) (a Answer) {
	out, said, err := c.run(ctx, u, script, number, sbatch("--parsable", words, script))
	a.Job, _, _ = strings.Cut(strings.TrimSpace(out), ";")
	if a.Job != "" { // what comes behind its number, as with --wait, says nothing of whether it was taken
		err = nil
	}
	for line := range strings.Lines(said) {
		a.say(strings.TrimSpace(line), err)
	}
	a.fail(err)
	return a
}

// number reads no further than the number of a job: with --wait the command ends with the job.
func number(r io.Reader) ([]byte, error) { return bufio.NewReader(r).ReadBytes('\n') }

// run runs a front-end, and reads from it what is to be read. A user whose command does not end although it was killed
// may have one less until then.
func (c *Commands) run(ctx context.Context, u User, input string, read func(io.Reader) ([]byte, error),
	words []string) (out, said string, err error) {
	ctx, cancel := context.WithTimeout(ctx, runTime)
	defer cancel()
	leave, ok := c.users.Enter(u.UID)
	if !ok {
		return "", "", errors.New("this form is being checked already: wait until that is over")
	}
	select {
	case c.busy <- struct{}{}:
	case <-ctx.Done():
		leave()
		return "", "", errors.New("too many forms are being checked: try again in a minute")
	}
	defer func() { <-c.busy }()
	cmd, err := c.Command(ctx, u, words)
	if err != nil {
		leave()
		return "", "", err
	}
	errs := guests.KeepBeginning(maxSaid)
	cmd.Stdin, cmd.Stderr = strings.NewReader(input), errs
	until, _ := ctx.Deadline()
	pipe, g, err := c.begin(cmd, until)
	if err != nil {
		leave()
		return "", "", fmt.Errorf("cannot run the command as %s on this server: %w", u.Name, err)
	}
	defer pipe.Close()
	go func() {
		<-g.Over()
		leave()
	}()
	got, _ := read(io.LimitReader(pipe, maxSaid)) // what it says before it fails counts too
	late := time.AfterFunc(endTime, cancel)
	defer late.Stop()
	err = g.Wait(ctx)
	if ctx.Err() != nil {
		err = errors.New("it took too long")
	}
	return string(got), errs.String(), err
}

// begin starts a command, and returns what it writes until a time.
func (c *Commands) begin(cmd *exec.Cmd, until time.Time) (pipe *os.File, g *guests.Guest, err error) {
	pipe, far, err := os.Pipe()
	if err != nil {
		return nil, nil, err
	}
	cmd.Stdout = far
	g, err = c.Start(cmd)
	err = errors.Join(err, far.Close(), pipe.SetReadDeadline(until))
	if err != nil {
		return nil, nil, errors.Join(err, pipe.Close())
	}
	return pipe, g, nil
}

// Start starts a front-end.
func (c *Commands) Start(cmd *exec.Cmd) (*guests.Guest, error) { return c.guests.Start(cmd, 0) }

// Command is a front-end as a user. The environment is what jobs of a crontab have. The folder of the program comes
// first in PATH, so that scripts find this cluster's srun also where it is not installed, or where a Slurm is.
func (c *Commands) Command(ctx context.Context, u User, words []string) (*exec.Cmd, error) {
	cmd := exec.CommandContext(ctx, c.Program, words...)
	cmd.Env = []string{"HOME=" + u.Home, "USER=" + u.Name, "LOGNAME=" + u.Name, "SHELL=" + u.Shell,
		"PATH=" + filepath.Dir(c.Program) + ":/usr/local/bin:/usr/bin:/bin", "MUSTER_SOCKET=" + c.Socket}
	cmd.Dir, cmd.WaitDelay = "/", time.Second
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	switch own := uint32(os.Getuid()); {
	case own == 0:
		cmd.SysProcAttr.Credential = step.Credential(u.UID, u.GID, u.Groups)
	case own != u.UID:
		return nil, fmt.Errorf("this server does not run as root, so nobody but its own user submits jobs here")
	}
	return cmd, nil
}
