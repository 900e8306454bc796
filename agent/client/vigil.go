package client

import (
	"bytes"
	"context"
	"errors"
	"hash/fnv"
	"slices"
	"strconv"
	"sync"
	"time"

	"dev.muster/agent/backoff"
	"dev.muster/agent/ras"
	"dev.muster/api"
	"dev.muster/cluster"
	"dev.muster/pmi/sockowner"
)

// The client of a job's first node looks after what the job itself cannot tell: whether NCCL misses ranks, and whether
// the file changes by which the job says that it has saved a checkpoint.

const (
	vigilTime = 30 * time.Second // between looks at the file of a job
	rasBase   = 256 << 10        // bytes of an answer of NCCL's RAS, and for each of the job's GPUs
	rasPerGPU = 2 << 10
)

// vigils are the jobs that are looked after, by attempt, and what ends that.
type vigils map[cluster.JobID]vigil

type vigil struct {
	attempt int
	stop    context.CancelFunc
}

// keepVigils looks after the jobs that are led here, until ctx ends.
func keepVigils(ctx context.Context, c *Client) {
	if c.cfg.Sampler == nil {
		return // nothing runs here
	}
	open := vigils{}
	var all sync.WaitGroup
	defer all.Wait()
	for backoff.Sleep(ctx, ras.Every) {
		jobs := jobsToWatch(c)
		for id, v := range open {
			if j := jobs[id]; j == nil || j.Attempt != v.attempt {
				v.stop()
				delete(open, id)
			}
		}
		for id, j := range jobs {
			if _, known := open[id]; known {
				continue
			}
			one, stop := context.WithCancel(ctx)
			open[id] = vigil{j.Attempt, stop}
			if j.Spec.Survives().CheckpointFile != "" {
				all.Go(func() { watchCheckpoint(one, c, j) })
			}
			if gpusOf(j) > 0 {
				all.Go(func() { watchRAS(one, c, j) })
			}
		}
	}
}

// jobsToWatch are the jobs that run and are led here, and have something that can be looked at.
func jobsToWatch(c *Client) map[cluster.JobID]*cluster.Job {
	c.mu.Lock()
	defer c.mu.Unlock()
	out := map[cluster.JobID]*cluster.Job{}
	for _, name := range c.order {
		for id, h := range c.nodes[name].jobs {
			j := h.job
			ledHere := j.Phase == cluster.Running &&
				!h.isOver() &&
				j.Alloc.Shares[0].Node == name
			if !ledHere {
				continue
			}
			watchable := gpusOf(j) > 0 ||
				j.Spec.Survives().CheckpointFile != ""
			if watchable {
				out[id] = j
			}
		}
	}
	return out
}

// gpusOf is how many GPUs a job has.
func gpusOf(j *cluster.Job) (n int) {
	for i := range j.Alloc.Shares {
		n += j.Alloc.Shares[i].GPUs.Len()
	}
	return n
}

// watchRAS asks the job's processes, as long as it runs, and tells the servers if it hangs.
func watchRAS(ctx context.Context, c *Client, j *cluster.Job) {
	watch := ras.Watch{After: hangAfter(c, j)}
	most := int64(rasBase + rasPerGPU*gpusOf(j))
	asked := ras.Job{Addr: cluster.RASAddr(j), UID: j.Spec.UID, Most: most, Owner: sockowner.Of}
	for backoff.Sleep(ctx, ras.Every) {
		report, err := asked.Ask(ctx)
		if err != nil {
			if !errors.Is(err, ras.ErrNone) {
				c.slog.Debug("NCCL's RAS could not be asked", "job", j.ID, "err", err)
			}
			continue
		}
		found := watch.Look(report, time.Now())
		if found == nil {
			continue
		}
		q := api.NodeHang{Job: j.ID, Attempt: j.Attempt, Text: found.Text, Host: found.Host}
		if _, err := api.Call(ctx, c.cfg.Server, api.TellHang, q); err != nil && ctx.Err() == nil {
			c.slog.Warn("a hang could not be told to the servers", "job", j.ID, "err", err)
		}
	}
}

// hangAfter is how long a job may rest before it hangs: by its own rule, or that of its partition.
func hangAfter(c *Client, j *cluster.Job) time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	text := j.Spec.Survives().Hang
	for i := range c.config.Partitions {
		if p := &c.config.Partitions[i]; text == "" && p.Name == j.Alloc.Partition {
			text = p.Hang
		}
	}
	rule, _ := cluster.ParseHangRule(text) // the servers have checked it
	return rule.After
}

// watchCheckpoint tells the servers whenever the file of a job changes by which it says that it has saved a checkpoint.
// The file is read with the rights of the job's user.
func watchCheckpoint(ctx context.Context, c *Client, j *cluster.Job) {
	last, known := uint64(0), false
	for {
		now, text, err := readCheckpoint(ctx, c, j)
		changed := err == nil &&
			known &&
			now != last
		if changed {
			err = tellCheckpoint(ctx, c, j, text)
		}
		if err == nil || !known { // what could not be told is told at the next look
			last, known = now, true
		}
		if !backoff.Sleep(ctx, vigilTime) {
			return
		}
	}
}

// tellCheckpoint tells the servers that a job has saved a checkpoint.
func tellCheckpoint(ctx context.Context, c *Client, j *cluster.Job, name string) error {
	q := api.NodeCheckpoint{Job: j.ID, Attempt: j.Attempt, Path: name}
	_, err := api.Call(ctx, c.cfg.Server, api.TellCheckpoint, q)
	if err != nil {
		c.slog.Warn("a checkpoint could not be told to the servers", "job", j.ID, "err", err)
	}
	return err
}

// readCheckpoint reads the end of a job's file, and returns what tells one state of it from another, and how the
// checkpoint is called: the file, and its content where that is a short line.
func readCheckpoint(ctx context.Context, c *Client, j *cluster.Job) (sum uint64, text string, err error) {
	w := written{}
	l := &cluster.Launch{Job: j, Node: j.Alloc.Shares[0].Node}
	if err := w.on(c, l, j.Spec.WorkDir, j.Spec.Survives().CheckpointFile, true, cluster.BatchStep); err != nil {
		return 0, "", err
	}
	leave, ok := tailing.take(j.Spec.UID)
	if !ok {
		return 0, "", errBusy
	}
	defer leave()
	end, start, err := w.Read(ctx, nil, false)
	if err != nil {
		return 0, "", err
	}
	h := fnv.New64a()
	_, _ = h.Write(strconv.AppendInt(end, start, 10))
	return h.Sum64(), checkpointName(w.Path, end), nil
}

// errBusy: others read files of the user now.
var errBusy = errors.New("too many files are read now")

// maxContent bounds the content that stands in the name of a checkpoint.
const maxContent = 64

// checkpointName is the file, and its content where that is a short line.
func checkpointName(path string, content []byte) string {
	odd := func(b byte) bool { return b < ' ' || b > '~' }
	content = bytes.TrimRight(content, "\r\n\t ")
	if len(content) == 0 || len(content) > maxContent || slices.ContainsFunc(content, odd) {
		return path
	}
	return path + ": " + string(content)
}
