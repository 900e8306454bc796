package client

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"time"

	"dev.muster/agent/step"
	"dev.muster/api"
	"dev.muster/cluster"
)

// Bounds of reading the end of an output file: it may be a pipe, or on a file system that does not answer.
const (
	tailBytes = 64 << 10
	tailTime  = 3 * time.Second
	tailers   = 8 // at a time
)

// tailing holds a place for each reader.
var tailing = make(chan struct{}, tailers)

// tailOutput reads the end of what the script of a job led here has written, with the rights of the job's user: the file
// is opened by a process of theirs.
func (c *Client) tailOutput(ctx context.Context, who api.Caller, q api.TailRequest) (out api.TailResponse, err error) {
	var j *cluster.Job
	l := &cluster.Launch{}
	hollow := false
	err = c.lead(ctx, who, q.Job, func(h *jobHere) {
		cfg, inv := c.config, c.nodes[h.node].Inventory
		j, hollow = h.job, inv.Hollow && c.cfg.Sampler == nil
		*l = cluster.Launch{Job: j, Config: &cfg, Inventory: &inv, Node: h.node}
	})
	if err != nil {
		return out, err
	}
	if j.Spec.Kind != cluster.Batch || j.Spec.Stdout == "" {
		return out, cluster.Errorf(cluster.Invalid, cluster.ErrBatchOnly, "job %d has no script, so it writes no file of its own", j.ID)
	}
	if hollow {
		return out, cluster.Errorf(cluster.Unavailable, "", "node %s is hollow and runs nothing", l.Node)
	}
	out.File = c.absolute(j.Spec.WorkDir, c.cfg.FileName(j.Spec.Stdout, l))
	select {
	case tailing <- struct{}{}:
		defer func() { <-tailing }()
	default:
		return out, cluster.Errorf(cluster.Unavailable, "", "%d readers of output are at work on node %s; try again", tailers, l.Node)
	}
	text, err := readTail(ctx, j.Spec, out.File)
	if err != nil {
		return out, err
	}
	if out.Cut = len(text) > tailBytes; out.Cut {
		text = text[len(text)-tailBytes:]
	}
	out.Text = strings.ToValidUTF8(string(text), "�")
	return out, nil
}

// readTail reads one byte more than tailBytes of the end of a file, as a user.
func readTail(ctx context.Context, s *cluster.JobSpec, file string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, tailTime)
	defer cancel()
	cmd := exec.CommandContext(ctx, "tail", "-c", strconv.Itoa(tailBytes+1), "--", file)
	cmd.Dir, cmd.Env, cmd.WaitDelay = "/", []string{"PATH=/usr/bin:/bin", "LC_ALL=C"}, time.Second
	switch own := os.Getuid(); {
	case own == 0:
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: step.Credential(s.UID, s.GID, s.Groups)}
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
	text, rerr := io.ReadAll(io.LimitReader(pipe, tailBytes+1))
	err = cmd.Wait()
	switch {
	case ctx.Err() != nil:
		return nil, cluster.Errorf(cluster.Unavailable, "", "%s could not be read in %v: is it a pipe, or its file system away?", file, tailTime)
	case err != nil && why.Len() > 0:
		return nil, cluster.Errorf(cluster.NotFound, "", "%s", strings.TrimSpace(strings.TrimPrefix(why.String(), "tail: ")))
	case err != nil || rerr != nil:
		return nil, fmt.Errorf("read %s: %w", file, errors.Join(err, rerr))
	}
	return text, nil
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
