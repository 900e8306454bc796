package env

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"

	"dev.muster/cluster"
)

// File is where one of the three standard files of a batch job is. A pending array's keeps %A and %a.
func File(j *cluster.Job, fd int) string {
	s := j.Spec
	pattern := [...]string{s.Stdin, s.Stdout, cmp.Or(s.Stderr, s.Stdout)}[fd]
	if pattern == "" {
		switch {
		case fd == 0:
			return "/dev/null"
		case s.Array != nil:
			pattern = "slurm-%A_%a.out"
		default:
			pattern = "slurm-%j.out"
		}
	}
	if j.ArrayID == 0 || j.Task >= 0 {
		l := &cluster.Launch{Job: j}
		if j.Alloc != nil {
			l.Node = j.Alloc.Shares[0].Node
		}
		pattern = FileName(pattern, l)
	}
	if strings.HasPrefix(pattern, "/") {
		return pattern
	}
	return s.WorkDir + "/" + pattern
}

// files tells where a batch job's output goes.
func (e *list) files(j *cluster.Job) {
	if !j.RunsScript() {
		return
	}
	e.set("SLURM_JOB_STDIN", File(j, 0))
	e.set("SLURM_JOB_STDOUT", File(j, 1))
	if j.Spec.Stderr != "" {
		e.set("SLURM_JOB_STDERR", File(j, 2))
	}
}

// NoTask is what %a shows outside an array.
const NoTask = 4294967294

// taskNumber is a job's number in its array.
func taskNumber(j *cluster.Job) int {
	if j.Task == cluster.TaskAny {
		return NoTask
	}
	return j.Task
}

// maxName bounds an expanded name, in bytes: the kernel opens none that is as long. A name of %x two thousand times
// would be megabytes else, and no prolog can be executed with a variable of more than 128 KiB.
const maxName = 4096

// FileName expands the patterns of an output name: %A %a %b %j %J %N %n %s %t %u %x %%, with a
// width for padding. A backslash anywhere switches expansion off for the whole name. A longer name is cut at maxName
// bytes: no such file can be opened.
func FileName(pattern string, l *cluster.Launch) string {
	if strings.Contains(pattern, `\`) {
		return strings.ReplaceAll(pattern, `\`, "")
	}
	var b strings.Builder
	for i := 0; i < len(pattern) && b.Len() < maxName; i++ {
		if pattern[i] != '%' || i+1 == len(pattern) {
			b.WriteByte(pattern[i])
			continue
		}
		k := len(pattern) - len(strings.TrimLeft(pattern[i+1:], "0123456789"))
		width, _ := strconv.Atoi(pattern[i+1 : k])
		text, ok := "", false
		if k < len(pattern) {
			text, ok = expand(pattern[k], min(width, 10), l)
		}
		if !ok {
			b.WriteByte('%')
			continue
		}
		b.WriteString(text)
		i = k
	}
	return b.String()[:min(b.Len(), maxName)]
}

func expand(c byte, width int, l *cluster.Launch) (string, bool) {
	pad := func(n int) (string, bool) { return fmt.Sprintf("%0*d", width, n), true }
	j := l.Job
	switch c {
	case '%':
		return "%", true
	case 'j':
		return pad(int(j.ID))
	case 'A':
		if j.ArrayID != 0 {
			return pad(int(j.ArrayID))
		}
		return pad(int(j.ID))
	case 'a':
		return pad(taskNumber(j))
	case 'b':
		return pad(taskNumber(j) % 10)
	case 'J':
		if l.Step == nil {
			return pad(int(j.ID))
		}
		return fmt.Sprintf("%d.%d", j.ID, l.Step.ID.Step), true
	case 's':
		if l.Step == nil {
			return "batch", true
		}
		return pad(l.Step.ID.Step)
	case 't':
		return pad(l.Rank)
	case 'n':
		return pad(l.NodeID)
	case 'N':
		return string(l.Node), true
	case 'u':
		return j.Spec.User, true
	case 'x':
		return j.Spec.Name, true
	}
	return "", false
}
