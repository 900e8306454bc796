// Package client is client mode: it registers this machine's nodes, pulls the whole set of work
// they should do, makes it so through a step.Runner, manages the steps of jobs that are led here,
// and reports what happened. It holds nothing that the supervisor and the outbox do not.
package client

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"reflect"
	"sync"
	"time"

	"dev.muster/agent/container/locality"
	"dev.muster/agent/machine"
	"dev.muster/agent/measure"
	"dev.muster/agent/outbox"
	"dev.muster/agent/step"
	"dev.muster/agent/usage"
	"dev.muster/api"
	"dev.muster/cluster"
	"dev.muster/gpu"
)

// Config says how a client runs.
type Config struct {
	Dir    string // for the outbox and the supervisor; its owner's alone
	Spool  string // for scripts, which their users must be able to read
	Nodes  []machine.Node
	Server *api.Client
	Runner step.Runner
	// Peer calls the client of another node, by address; nil where there is no network.
	Peer        func(addr string) *api.Client
	api.Dialect        // what tasks, files and scripts are told
	Images      string // the folder of unpacked images
	// ImageDisk is how many bytes those may take; 0: half of their file system.
	ImageDisk int64
	Program   Program
	PIDEnv    string // variable that holds a task's own process id
	// MountEnv is the variable by which the program for new private folders learns where they are.
	MountEnv string
	Daemon   string // address that front-ends inside jobs use
	// GPUs watches those of this machine, which is the only node then; nil for hollow nodes.
	GPUs *gpu.Watcher
	// GPUJobs is a folder for a file of each GPU with the numbers of its jobs; empty: none.
	GPUJobs string
	// Machine looks at this machine's other parts; nil for hollow nodes.
	Machine *machine.Machine
	// SampleSpan is the time for which what the nodes do is told as one sample; 0: a minute.
	SampleSpan time.Duration
	// Sampler measures what the steps of Runner use; nil where these are no processes.
	Sampler *usage.Sampler
}

// Client is client mode.
type Client struct {
	cfg       Config
	slog      *slog.Logger
	nodes     map[cluster.NodeName]*node
	order     []cluster.NodeName
	gpusMoved chan struct{} // poked when the jobs of this machine have changed
	wakeup    chan struct{}
	known     chan struct{} // closed once the supervisor's steps are known here
	told      chan struct{} // closed once the servers have said what to do

	telling chan struct{} // something was added to untold

	link     *link
	reports  *reports
	hardware *hardware
	gpus     *gpusOfJobs
	meter    *meter
	texts    *texts
	sisters  *sisters
	images   *locality.Store // what the folder of images has

	mu      sync.Mutex // guards everything below and nodes' content
	config  cluster.Config
	confAt  uint64        // index of config
	nextJob cluster.JobID // one more than the highest number of a job that the servers had given, as far as they said
	have    step.Table
	held    map[heldKey]*heldParts // not begun: other nodes of the step are not ready
	staged  *outbox.Confirmed      // gangs led here whose confirmation is kept
	steps   map[cluster.StepID]*liveStep
	untold  map[step.ID]bool // ended parts of steps that another client leads and has not heard of
	arrived chan struct{}    // closed and replaced when work has arrived
	stuckMu sync.Mutex       // for telling what can not be killed: held before mu
	freed   chan struct{}    // closed and replaced when a step or a job ends: who waits for it looks again
}

type node struct {
	name     cluster.NodeName
	index    uint64 // of the work
	jobCPUs  int    // that jobs can have, as the servers say
	jobs     map[cluster.JobID]*jobHere
	rebooted time.Time // the reboot that was begun here
}

// New prepares a client; Run makes it work.
func New(cfg Config, logger *slog.Logger) (*Client, error) {
	images := locality.NewStore(cfg.Images)
	c := &Client{cfg: cfg, slog: logger, images: images,
		nodes:  map[cluster.NodeName]*node{},
		wakeup: make(chan struct{}, 1),
		known:  make(chan struct{}), told: make(chan struct{}),
		have:  step.Table{},
		steps: map[cluster.StepID]*liveStep{}, freed: make(chan struct{}),
		untold:  map[step.ID]bool{},
		held:    map[heldKey]*heldParts{},
		arrived: make(chan struct{}), telling: make(chan struct{}, 1),
		gpusMoved: make(chan struct{}, 1)}
	var err error
	if c.reports, err = openReports(&c.cfg, images, logger); err != nil {
		return nil, err
	}
	for _, n := range cfg.Nodes {
		c.nodes[n.Name] = &node{name: n.Name, jobs: map[cluster.JobID]*jobHere{}}
		c.order = append(c.order, n.Name)
	}
	c.link = newLink(c)
	c.hardware = newHardware(&c.cfg, c.slog, c.link)
	c.gpus = newGPUsOfJobs(&c.cfg, c.hardware, c.slog)
	c.meter = newMeter(c)
	c.texts = newTexts(cfg.Server)
	c.sisters = newSisters(cfg.Peer, c.local)
	return c, nil
}

// Run works until ctx ends. Jobs run on.
func (c *Client) Run(ctx context.Context) error {
	list, err := c.cfg.Runner.List()
	if err != nil {
		return fmt.Errorf("ask the supervisor for its steps: %w", err)
	}
	c.mu.Lock()
	if c.staged, err = outbox.OpenConfirmed(c.cfg.Dir, c.cfg.Runner.Instance()); err != nil {
		c.mu.Unlock()
		return err
	}
	for i := range list {
		c.have.Put(list[i].ID, &list[i])
		c.recoverStep(&list[i])
	}
	c.mu.Unlock()
	close(c.known)
	var wg sync.WaitGroup
	wg.Go(func() { c.link.poll(ctx) })
	wg.Go(func() { c.reports.send(ctx) })
	wg.Go(func() { c.watch(ctx) })
	wg.Go(func() { c.act(ctx) })
	wg.Go(func() { c.tell(ctx) })
	wg.Go(func() { c.askParts(ctx) })
	wg.Go(func() { c.hardware.watchGPUs(ctx) })
	wg.Go(func() { measure.KeepGPUJobs(ctx, c.cfg.GPUJobs, c.gpuJobs, c.gpusMoved, c.slog) })
	wg.Go(func() { c.hardware.watchMachine(ctx) })
	wg.Go(func() { c.gpus.watchLeft(ctx) })
	wg.Go(func() { c.hardware.watchPorts(ctx) })
	wg.Go(func() { c.hardware.watchClock(ctx) })
	wg.Go(func() { c.check(ctx) })
	wg.Go(func() { c.link.keepRegistered(ctx) })
	wg.Go(func() { c.meter.run(ctx) })
	wg.Go(func() { c.measureHardware(ctx) })
	wg.Wait()
	return c.reports.close()
}

func (c *Client) poke() {
	select {
	case c.wakeup <- struct{}{}:
	default:
	}
}

// describeNodes is what the nodes are registered with.
func (c *Client) describeNodes(names []cluster.NodeName, again bool,
	asked map[cluster.NodeName][]cluster.Held) api.RegisterRequest {
	q := api.RegisterRequest{Seen: map[cluster.NodeName]*api.Seen{}}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, name := range names {
		inv, detected := c.hardware.of(name)
		if c.cfg.GPUs != nil {
			inv.GPUs = detected
		}
		q.Nodes = append(q.Nodes, cluster.NodeUp{
			Name: name, Inventory: inv, Seq: c.reports.box.Seq(name), Again: again, Scored: true,
		})
		if held, ok := asked[name]; ok || !again {
			q.Seen[name] = c.seen(name, held, ok)
		}
	}
	return q
}

// registered takes what the servers answer to that.
func (c *Client) registered(q api.RegisterRequest, r api.RegisterResponse) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.config, c.confAt = r.Config, r.Index
	c.beginAnew(r.Anew)
	c.hardware.tellHindrances(&c.config)
	for _, sent := range q.Nodes {
		gpus, other := r.GPUs[sent.Name]
		if !other {
			gpus = sent.Inventory.GPUs
		}
		c.hardware.numbered(sent.Name, gpus)
	}
}

// askWork says which work is known here.
func (c *Client) askWork() api.WorkRequest {
	c.mu.Lock()
	defer c.mu.Unlock()
	q := api.WorkRequest{Nodes: map[cluster.NodeName]uint64{}, Config: c.confAt}
	for _, name := range c.order {
		q.Nodes[name] = c.nodes[name].index
	}
	return q
}

// informed goes on with what waits for the first work.
func (c *Client) informed() {
	close(c.told)
	c.sweepFolders()
	c.meter.soon() // what ran before
}

// take replaces what the nodes should do by what the servers say.
func (c *Client) take(ctx context.Context, w api.Work) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if w.Config != nil {
		if c.cfg.GPUs != nil && !reflect.DeepEqual(c.config.GRES, w.Config.GRES) {
			c.link.again() // what the machine has is compared with other lines now
		}
		c.config, c.confAt = *w.Config, w.ConfigIndex
		c.hardware.tellHindrances(&c.config)
	}
	c.nextJob = max(c.nextJob, w.NextJob)
	named, fresh := map[outbox.Attempt]bool{}, map[cluster.NodeName]uint64{} // which attempts; of which nodes, as of which index of the log
	for _, nw := range w.Nodes {
		n, ok := c.nodes[nw.Node]
		if !ok {
			continue
		}
		n.index, fresh[nw.Node] = nw.Index, nw.Index
		n.jobCPUs = cmp.Or(nw.JobCPUs, c.hardware.inventory(nw.Node).CPUs)
		c.reboot(n, nw.Reboot)
		old := n.jobs
		n.jobs = wanted(nw, old, c.reports.isOver, c.reports.begun, named)
		c.tellAgain(n)
		if boards := c.freshBoards(n, old); len(boards) > 0 {
			go c.gpus.note(ctx, boards) // ends with ctx or the answer
		}
		select {
		case c.gpusMoved <- struct{}{}:
		default:
		}
		for _, h := range n.jobs {
			h.staged = c.staged.Has(outbox.Attempt{Job: h.job.ID, Attempt: h.job.Attempt, Node: nw.Node})
		}
		for _, p := range nw.Peers {
			c.sisters.learn(p)
		}
	}
	if len(fresh) > 0 {
		c.catchUp(fresh, named)
	}
	if len(w.Nodes) > 0 {
		close(c.arrived)
		c.arrived = make(chan struct{})
		c.poke()
	}
}

// catchUp forgets of nodes what the servers name no more, and looks for parts that were lost or must be told of.
// Called with mu held.
func (c *Client) catchUp(fresh map[cluster.NodeName]uint64, named map[outbox.Attempt]bool) {
	c.staged.Forget(fresh, named)
	c.settleParts(fresh, named)
	c.reports.forget(fresh, named)
}

// wanted is what a node should do, as the servers say, with what is known here of each attempt.
func wanted(nw api.NodeWork, old map[cluster.JobID]*jobHere, isOver func(outbox.Attempt) bool,
	begun, named map[outbox.Attempt]bool) map[cluster.JobID]*jobHere {
	fresh := map[cluster.JobID]*jobHere{}
	for _, j := range nw.Jobs {
		key := outbox.Attempt{Job: j.ID, Attempt: j.Attempt, Node: nw.Node}
		named[key] = true
		if isOver(key) && j.Phase != cluster.Ending {
			continue // the servers will know soon
		}
		h := old[j.ID]
		if h == nil || h.job.Attempt != j.Attempt {
			h = newHere(nw.Node, j)
			if begun[key] {
				h.launch = confirmedBefore
			}
		}
		h.job, h.sisters = j, nil
		for _, o := range nw.Sisters {
			if j.Het != nil && o.Het.ID == j.Het.ID && o.ID != j.ID {
				h.sisters = append(h.sisters, o)
			}
		}
		fresh[j.ID] = h
	}
	return fresh
}

// watch takes the runner's news.
func (c *Client) watch(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case st, ok := <-c.cfg.Runner.Changes():
			if !ok {
				return
			}
			c.mu.Lock()
			c.meter.finish(&st)
			c.meter.notice(&st)
			c.have.Put(st.ID, &st)
			c.stepChanged(&st)
			c.mustTell(&st)
			if st.State == step.Ended {
				c.free()
			}
			c.mu.Unlock()
			c.poke()
		}
	}
}
