package client

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"dev.muster/agent/step"
	"dev.muster/api"
	"dev.muster/cluster"
)

// Bounds of reading the end of an output file: it may be a pipe, or on a file system that does not answer.
const (
	tailBytes = 64 << 10
	tailTime  = 3 * time.Second
	holdTries = 20 // for more to be written, holdPause seconds apart
	holdPause = "0.4"
	tailers   = 8   // at a time
	holders   = 100 // of those that wait for more
)

// tailing holds a place for each reader, holding one for each that waits for more.
var tailing, holding = make(chan struct{}, tailers), make(chan struct{}, holders)

// written is the file that a job's script writes, or has written.
type written struct {
	spec *cluster.JobSpec
	node cluster.NodeName
	path string // as the script sees it
	own  string // what lies there for the job alone, on this machine; "" if it is the machine's own file
	rest string // of path, below own
}

// writtenBy finds what a job writes that is led here, or was: the output of its script, or of a task of a step.
func (c *Client) writtenBy(ctx context.Context, who api.Caller, q api.TailRequest) (w written, err error) {
	if err := c.await(ctx, c.known, c.told); err != nil {
		return w, err
	}
	led, here, err := partOf(ctx, c, who, q)
	if err != nil {
		return w, err
	}
	if q.Step != nil {
		return w, w.byStep(c, led, q, here)
	}
	return w, w.byScript(c, led.Job, q, here)
}

// partOf finds a job, and its step, that a node here takes part in, or took; here: it has not ended.
func partOf(ctx context.Context, c *Client, who api.Caller, q api.TailRequest) (led api.LedResponse, here bool,
	err error) {
	c.mu.Lock()
	h, refused := jobOnNode(c, who, q)
	c.mu.Unlock()
	switch {
	case refused == nil && q.Step == nil:
		return api.LedResponse{Job: h.job}, !h.done, nil
	case refused != nil && (refused.Code != cluster.NotFound || who.Role == cluster.RoleNode):
		return led, false, refused // no node speaks for users whose jobs have ended
	}
	led, err = api.Call(ctx, c.cfg.Server, api.LedJob, api.LedQuery{Job: q.Job, Node: q.Node, Step: q.Step})
	switch {
	case err != nil:
		return led, false, err
	case who.UID != led.Job.Spec.UID && !who.Operator():
		return led, false, cluster.Errorf(cluster.Denied, cluster.ErrAccess, "job %d belongs to user %s", q.Job,
			led.Job.Spec.User)
	}
	return led, refused == nil && !h.done, nil
}

// jobOnNode finds a job on the node that is asked, or on its first. Called with mu held.
func jobOnNode(c *Client, who api.Caller, q api.TailRequest) (*jobHere, *api.Error) {
	if q.Node == "" {
		return c.jobKeptHere(q.Job, who)
	}
	if n := c.nodes[q.Node]; n != nil && n.jobs[q.Job] != nil {
		return jobFor(c, n.jobs[q.Job], who)
	}
	return nil, cluster.Errorf(cluster.NotFound, cluster.ErrJobID, "job %d does not run on %s", q.Job, q.Node)
}

// byScript is what the script of a job writes.
func (w *written) byScript(c *Client, j *cluster.Job, q api.TailRequest, here bool) error {
	if j.Spec.Kind != cluster.Batch || j.Spec.Stdout == "" {
		return cluster.Errorf(cluster.Invalid, cluster.ErrBatchOnly,
			"job %d has no script, so it writes no file of its own; its steps may (--step)", j.ID)
	}
	name := j.Spec.Stdout
	if q.Errors && j.Spec.Stderr != "" {
		name = j.Spec.Stderr
	}
	l := &cluster.Launch{Job: j, Node: j.Alloc.Shares[0].Node}
	return w.on(c, l, j.Spec.WorkDir, name, here, cluster.BatchStep)
}

// byStep is what a task of a step writes.
func (w *written) byStep(c *Client, led api.LedResponse, q api.TailRequest, here bool) error {
	j, st := led.Job, led.Step
	if st == nil {
		return cluster.Errorf(cluster.NotFound, "",
			"job %d has no step %d, or the servers are of an earlier version", j.ID, *q.Step)
	}
	name, all := st.Files.Name(q.Errors)
	if name == "" {
		return cluster.Errorf(cluster.Conflict, "", "%s", st.Goes(j))
	}
	node, local, ok := st.Task(q.Task)
	if !ok {
		return cluster.Errorf(cluster.NotFound, "", "step %d.%d has no task %d", j.ID, *q.Step, q.Task)
	}
	l := &cluster.Launch{Job: j, Node: st.Shares[node].Node, NodeID: node, Step: st, Rank: q.Task, LocalRank: local,
		Ranks: st.Ranks()}
	if all {
		l = &cluster.Launch{Job: j, Node: cmp.Or(q.Node, j.Alloc.Shares[0].Node), Step: st}
	}
	return w.on(c, l, st.Files.WorkDir, name, here, *q.Step)
}

// on finds the file of a name on the node of a launch, which is to be one of this client's.
func (w *written) on(c *Client, l *cluster.Launch, dir, name string, here bool, number int) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	j := l.Job
	w.spec, w.node = j.Spec, l.Node
	n, ok := c.nodes[w.node]
	if !ok {
		return cluster.Errorf(cluster.NotFound, "", "node %s, which had a part of job %d, is no more here", w.node,
			j.ID)
	}
	if n.Inventory.Hollow && c.cfg.Sampler == nil {
		return cluster.Errorf(cluster.Unavailable, "", "node %s is hollow and runs nothing", w.node)
	}
	l.Config, l.Inventory = &c.config, &n.Inventory
	w.path = filepath.Clean(c.absolute(dir, c.cfg.FileName(name, l)))
	id := step.ID{Job: j.ID, Attempt: j.Attempt, Node: w.node}
	if number >= 0 {
		id.Step = number
	}
	return w.locate(c.private(n, id, l), here, id)
}

// locate finds a file that lies in one of the folders which the job has, or had, for itself.
func (w *written) locate(p *step.Private, here bool, id step.ID) error {
	if p == nil {
		return nil
	}
	dir, at := p.Holder(id, w.path)
	switch {
	case dir == "":
		return nil
	case !here:
		return cluster.Errorf(cluster.NotFound, "", "%s lay in the job's own %s, which went with the job", w.path, dir)
	case at == "":
		return cluster.Errorf(cluster.Unavailable, "", "%s lies in memory that only the job sees; srun --jobid %d --overlap tail %[1]s shows it", w.path, id.Job)
	}
	w.own, w.rest = at, strings.TrimPrefix(w.path, dir+"/")
	return nil
}

// tailOutput reads the end of what the script of a job led here writes, or has written, or a part of it, with the
// rights of the job's user: the file is opened by a process of theirs.
func (c *Client) tailOutput(ctx context.Context, who api.Caller, q api.TailRequest) (out api.TailResponse, err error) {
	w, err := c.writtenBy(ctx, who, q)
	if out.File = w.path; err != nil {
		return out, err
	}
	places := tailing
	if q.Hold {
		places = holding
	}
	select {
	case places <- struct{}{}:
		defer func() { <-places }()
	default:
		return out, cluster.Errorf(cluster.Unavailable, "",
			"%d readers of output are at work on node %s; try again", cap(places), w.node)
	}
	text, err := w.read(ctx, q, &out)
	if err != nil {
		return out, err
	}
	out.Cut, out.End = out.Start > 0, out.Start+int64(len(text))
	if q.Raw {
		out.Bytes = text
		return out, nil
	}
	out.Text = strings.ToValidUTF8(string(text), "�")
	return out, nil
}

// readScript prints the offset of a part of the file $1, and that part: from $2, or if that is negative the end,
// $3 bytes at most. If there is nothing it looks $4 times again, and prints nothing if there still is nothing.
const readScript = `s=$(stat -Lc %s -- "$1") || exit 1
f=$2
[ "$f" -ge 0 ] || f=$((s - $3))
[ "$f" -ge 0 ] && [ "$f" -le "$s" ] || f=0
n=$4
while [ "$n" -gt 0 ] && [ "$s" -eq "$f" ]; do sleep "$5"; n=$((n - 1)); s=$(stat -Lc %s -- "$1") || exit 1; done
[ "$s" -ge "$f" ] || f=0
echo "$f"
[ "$4" -gt 0 ] && [ "$s" -eq "$f" ] || tail -c "+$((f + 1))" -- "$1" | head -c "$3"`

// read reads what is asked for of the file, as the job's user, tailBytes at most.
func (w *written) read(ctx context.Context, q api.TailRequest, out *api.TailResponse) ([]byte, error) {
	s, file, name := w.spec, w.path, w.path
	var own []*os.File
	if w.own != "" { // users can not get to it by its name
		dir, err := os.OpenFile(w.own, unix.O_PATH|unix.O_DIRECTORY, 0)
		if err != nil {
			return nil, fmt.Errorf("read %s: %w", file, err)
		}
		defer dir.Close()
		own, name = []*os.File{dir}, "/proc/self/fd/3/"+w.rest // the first of the files that are handed on
	}
	from, tries, within := int64(-1), 0, tailTime
	if q.From != nil {
		from = max(*q.From, 0)
	}
	if q.Hold {
		tries, within = holdTries, holdTries*time.Second/2+tailTime
	}
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	cmd := exec.CommandContext(ctx, "sh", "-c", readScript, "sh", name, strconv.FormatInt(from, 10),
		strconv.Itoa(tailBytes),
		strconv.Itoa(tries), holdPause)
	cmd.ExtraFiles = own
	cmd.Dir, cmd.Env, cmd.WaitDelay = "/", []string{"PATH=/usr/bin:/bin", "LC_ALL=C"}, time.Second
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // all of them end together
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	switch own := os.Getuid(); {
	case own == 0:
		cmd.SysProcAttr.Credential = step.Credential(s.UID, s.GID, s.Groups)
	case uint32(own) != s.UID:
		return nil, cluster.Errorf(cluster.Denied, cluster.ErrAccess, "the client of this node is not root's: it reads only files of user %d", own)
	}
	var why strings.Builder
	cmd.Stderr = &limited{&why, 1 << 10}
	pipe, err := cmd.StdoutPipe()
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", file, err)
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start tail to read %s: %w", file, err)
	}
	text, rerr := io.ReadAll(io.LimitReader(pipe, tailBytes+32))
	err = cmd.Wait()
	switch {
	case ctx.Err() != nil:
		return nil, cluster.Errorf(cluster.Unavailable, "", "%s could not be read in %v: is it a pipe, or its file system away?", file, tailTime)
	case err != nil && why.Len() > 0:
		return nil, cluster.Errorf(cluster.NotFound, "", "%s", strings.ReplaceAll(readError(why.String()), name, file))
	case err != nil || rerr != nil:
		return nil, fmt.Errorf("read %s: %w", file, errors.Join(err, rerr))
	case why.Len() > 0:
		return nil, cluster.Errorf(cluster.NotFound, "", "%s", strings.ReplaceAll(readError(why.String()), name, file))
	}
	first, text, _ := bytes.Cut(text, []byte{'\n'})
	if out.Start, err = strconv.ParseInt(string(first), 10, 64); err != nil {
		return nil, fmt.Errorf("read %s: %w", file, err)
	}
	return text, nil
}

// readError is what the programs that read a file say of it, without their names.
func readError(text string) string {
	line, _, _ := strings.Cut(text, "\n")
	line = strings.TrimPrefix(strings.TrimPrefix(line, "tail: "), "stat: ")
	return strings.TrimSpace(strings.Replace(line, "cannot statx", "cannot open", 1))
}

// limited writes no more than so many bytes and swallows the rest.
type limited struct {
	w    io.Writer
	left int
}

func (l *limited) Write(b []byte) (int, error) {
	n := min(len(b), l.left)
	l.left -= n
	if _, err := l.w.Write(b[:n]); err != nil {
		return 0, err
	}
	return len(b), nil
}
