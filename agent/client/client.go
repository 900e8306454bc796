// Package client is client mode: it registers this machine's nodes, pulls the whole set of work
// they should do, makes it so through a step.Runner, manages the steps of jobs that are led here,
// and reports what happened. It holds nothing that the supervisor and the outbox do not.
package client

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"slices"
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

// workHold is how long one poll for work stays open.
const workHold = time.Minute

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
	box       *outbox.Box
	journal   *outbox.Journal
	nodes     map[cluster.NodeName]*node
	order     []cluster.NodeName
	gpusMoved chan struct{} // poked when the jobs of this machine have changed
	wakeup    chan struct{}
	known     chan struct{} // closed once the supervisor's steps are known here
	told      chan struct{} // closed once the servers have said what to do

	telling chan struct{} // something was added to untold
	anew    chan struct{} // the nodes are to be registered again

	registering sync.Mutex

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
	held    map[heldKey]*heldParts    // not begun: other nodes of the step are not ready
	begun   map[outbox.Attempt]bool   // attempts that an earlier life of this client confirmed
	staged  *outbox.Confirmed         // gangs led here whose confirmation is kept
	over    map[outbox.Attempt]uint64 // attempts that are finished here → index from which the servers know
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
	box, err := outbox.Open(cfg.Dir)
	if err != nil {
		return nil, err
	}
	ended, err := outbox.OpenJournal(cfg.Dir)
	if err != nil {
		return nil, errors.Join(err, box.Close())
	}
	c := &Client{cfg: cfg, slog: logger, images: locality.NewStore(cfg.Images),
		box: box, journal: ended, nodes: map[cluster.NodeName]*node{},
		wakeup: make(chan struct{}, 1),
		known:  make(chan struct{}), told: make(chan struct{}),
		have: step.Table{}, over: map[outbox.Attempt]uint64{},
		steps: map[cluster.StepID]*liveStep{}, freed: make(chan struct{}),
		untold:  map[step.ID]bool{},
		held:    map[heldKey]*heldParts{},
		arrived: make(chan struct{}), telling: make(chan struct{}, 1), anew: make(chan struct{}, 1),
		gpusMoved: make(chan struct{}, 1)}
	c.hardware = newHardware(&c.cfg, c.slog, c.registerAnew)
	c.gpus = newGPUsOfJobs(&c.cfg, c.slog, c.tellLeft)
	c.meter = newMeter(c)
	c.texts = newTexts(cfg.Server)
	c.sisters = newSisters(cfg.Peer, c.local)
	for _, n := range cfg.Nodes {
		c.nodes[n.Name] = &node{name: n.Name, jobs: map[cluster.JobID]*jobHere{}}
		c.order = append(c.order, n.Name)
	}
	c.begun = confirmedBy(box.Pending())
	for _, r := range box.Pending() {
		c.settle(r)
	}
	return c, nil
}

// settle notes what reports on their way say is over, so that it is not begun again.
func (c *Client) settle(r cluster.Report) {
	for _, u := range r.Updates {
		if u.Kind.Final() {
			c.over[outbox.Attempt{Job: u.Job, Attempt: u.Attempt, Node: r.Node}] = 0
		}
	}
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
	wg.Go(func() { c.poll(ctx) })
	wg.Go(func() { c.send(ctx) })
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
	wg.Go(func() { c.tellHardware(ctx) })
	wg.Go(func() { c.meter.run(ctx) })
	wg.Go(func() { c.measureHardware(ctx) })
	wg.Wait()
	return errors.Join(c.box.Close(), c.journal.Close())
}

func (c *Client) poke() {
	select {
	case c.wakeup <- struct{}{}:
	default:
	}
}

func (c *Client) register(ctx context.Context, names []cluster.NodeName, again bool) error {
	c.registering.Lock() // what was found last is told last
	defer c.registering.Unlock()
	ask, err := c.registerOnce(ctx, names, again, nil)
	if err == nil && len(ask) > 0 {
		_, err = c.registerOnce(ctx, names, again, ask)
	}
	return err
}

// registerOnce makes one call, and tells what servers ask then whose state was brought back from a file.
func (c *Client) registerOnce(ctx context.Context, names []cluster.NodeName, again bool,
	asked map[cluster.NodeName][]cluster.Held) (
	map[cluster.NodeName][]cluster.Held, error) {
	q := api.RegisterRequest{Seen: map[cluster.NodeName]*api.Seen{}}
	c.mu.Lock()
	for _, name := range names {
		inv, detected := c.hardware.of(name)
		if c.cfg.GPUs != nil {
			inv.GPUs = detected
		}
		q.Nodes = append(q.Nodes, cluster.NodeUp{
			Name: name, Inventory: inv, Seq: c.box.Seq(name), Again: again, Scored: true,
		})
		if held, ok := asked[name]; ok || !again {
			q.Seen[name] = c.seen(name, held, ok)
		}
	}
	c.mu.Unlock()
	r, err := api.Call(ctx, c.cfg.Server, api.RegisterNodes, q)
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
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
	c.mu.Unlock()
	return r.Ask, nil
}

// registerAnew has the nodes registered again, with what they are now.
func (c *Client) registerAnew() {
	select {
	case c.anew <- struct{}{}:
	default:
	}
}

// tellHardware registers the nodes again when they have changed, until the servers know.
func (c *Client) tellHardware(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-c.anew:
		}
		for wait := time.Duration(0); ; {
			err := c.register(ctx, c.order, true)
			if err == nil {
				break
			}
			c.slog.Debug("registering again failed", "err", err)
			if !pause(ctx, &wait) {
				return
			}
		}
	}
}

// poll keeps one call for work open.
func (c *Client) poll(ctx context.Context) {
	var wait time.Duration
	missing, informed := slices.Clone(c.order), false
	for ctx.Err() == nil {
		if len(missing) > 0 {
			if err := c.register(ctx, missing, false); err != nil {
				c.slog.Debug("registering failed", "err", err)
				if !pause(ctx, &wait) {
					return
				}
				continue
			}
		}
		c.mu.Lock()
		q := api.WorkRequest{Nodes: map[cluster.NodeName]uint64{}, Hold: workHold, Config: c.confAt, Gather: true}
		for _, name := range c.order {
			q.Nodes[name] = c.nodes[name].index
		}
		c.mu.Unlock()
		q.Images = c.images.Keys(time.Now())
		w, err := api.Call(ctx, c.cfg.Server, api.GetWork, q)
		if err == nil {
			err = w.Spread()
		}
		if err != nil {
			c.slog.Debug("asking for work failed", "err", err)
			if !pause(ctx, &wait) {
				return
			}
			continue
		}
		wait, missing = 0, w.Unknown
		c.take(ctx, w)
		if !informed && len(w.Nodes) > 0 {
			informed = true
			close(c.told)
			c.sweepFolders()
			c.meter.soon() // what ran before
		}
	}
}

// take replaces what the nodes should do by what the servers say.
func (c *Client) take(ctx context.Context, w api.Work) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if w.Config != nil {
		if c.cfg.GPUs != nil && !reflect.DeepEqual(c.config.GRES, w.Config.GRES) {
			c.registerAnew() // what the machine has is compared with other lines now
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
		n.jobs = wanted(nw, old, c.over, c.begun, named)
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
	for key, index := range c.over {
		if at, ok := fresh[key.Node]; ok && index != 0 && index < at && !named[key] {
			delete(c.over, key)
		}
	}
}

// wanted is what a node should do, as the servers say, with what is known here of each attempt.
func wanted(nw api.NodeWork, old map[cluster.JobID]*jobHere, over map[outbox.Attempt]uint64,
	begun, named map[outbox.Attempt]bool) map[cluster.JobID]*jobHere {
	fresh := map[cluster.JobID]*jobHere{}
	for _, j := range nw.Jobs {
		key := outbox.Attempt{Job: j.ID, Attempt: j.Attempt, Node: nw.Node}
		named[key] = true
		if _, over := over[key]; over && j.Phase != cluster.Ending {
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

// confirmedBy lists the attempts that reports on their way say are begun.
func confirmedBy(reports []cluster.Report) map[outbox.Attempt]bool {
	begun := map[outbox.Attempt]bool{}
	for _, r := range reports {
		for _, u := range r.Updates {
			if u.Kind == cluster.NodeReady {
				begun[outbox.Attempt{Job: u.Job, Attempt: u.Attempt, Node: r.Node}] = true
			}
		}
	}
	return begun
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

// report hands updates of a node to the outbox, which keeps them until the servers have them.
func (c *Client) report(n cluster.NodeName, updates ...cluster.Update) {
	r, err := c.box.Put(n, updates)
	if err != nil {
		c.slog.Error("a report could not be kept", "node", n, "err", err)
	}
	if err := c.journal.Put(n, updates); err != nil {
		c.slog.Error("what ended here could not be kept", "node", n, "err", err)
	}
	c.settle(r)
}

// send delivers the outbox.
func (c *Client) send(ctx context.Context) {
	var wait time.Duration
	var told []string // which images there are
	for {
		reports := c.box.Pending()
		if len(reports) == 0 {
			select {
			case <-c.box.More:
				continue
			case <-ctx.Done():
				return
			}
		}
		q, images := api.ReportRequest{Reports: reports}, c.images.Keys(time.Now())
		if !slices.Equal(images, told) {
			q.Images = images
		}
		r, err := api.Call(ctx, c.cfg.Server, api.ReportWork, q)
		var e *api.Error
		if err != nil && !(errors.As(err, &e) && e.Code == cluster.NotFound) {
			c.slog.Debug("reporting failed", "err", err)
			if !pause(ctx, &wait) {
				return
			}
			continue
		}
		wait, told = 0, images
		if err := c.box.Ack(reports); err != nil {
			c.slog.Error("the outbox could not be written", "err", err)
		}
		c.mu.Lock()
		for _, rep := range reports {
			for _, u := range rep.Updates {
				key := outbox.Attempt{Job: u.Job, Attempt: u.Attempt, Node: rep.Node}
				if _, ok := c.over[key]; ok && u.Kind.Final() {
					c.over[key] = max(r.Index, 1)
				}
			}
		}
		c.mu.Unlock()
	}
}
