package client

import (
	"context"
	"fmt"
	"log/slog"
	"sync"

	"dev.muster/agent/container/exchange"
	"dev.muster/agent/container/locality"
	"dev.muster/agent/hardware"
	"dev.muster/agent/measure"
	"dev.muster/agent/meter"
	"dev.muster/agent/outbox"
	"dev.muster/agent/step"
	"dev.muster/agent/sweep"
	"dev.muster/api"
	"dev.muster/cluster"
)

// New prepares a client; Run makes it work.
func New(cfg Config, logger *slog.Logger) (*Client, error) {
	images := locality.NewStore(cfg.Images)
	reports, err := outbox.OpenReports(cfg.Dir, logger)
	if err != nil {
		return nil, err
	}
	c := &Client{tables: newTables(&cfg, logger), reports: reports}
	c.link = newLink(c.tables, images)
	c.hardware = hardware.New(hardware.Config{
		Nodes: cfg.Nodes, GPUs: cfg.GPUs, Machine: cfg.Machine, Runs: cfg.Sampler != nil,
		Needed: []string{cfg.Spool, cfg.Daemon}, Servers: c.link, Log: logger,
	})
	c.gpus = sweep.NewJobGPUs(cfg.Dir, cfg.GPUs, c.tellLeaked, logger)
	c.loads = loadsOf(c)
	c.meter = meter.New(cfg.Sampler, c.loads, meterSource{c}, logger)
	c.build = &builder{tables: c.tables, hardware: c.hardware, texts: newTexts(cfg.Server)}
	c.parts = newParts(c.tables, c.hardware, c.build)
	c.steps = &steps{tables: c.tables, reports: reports, parts: c.parts, build: c.build}
	c.jobs = &jobs{
		tables: c.tables, reports: reports, link: c.link, hardware: c.hardware, gpus: c.gpus,
		steps: c.steps, parts: c.parts, build: c.build, gpusMoved: make(chan struct{}, 1),
	}
	c.layers = layersOf(&cfg, c.hardware, logger)
	c.wire()
	return c, nil
}

// tellLeaked puts into this machine's record what jobs have left on its GPUs.
func (c *Client) tellLeaked(ctx context.Context, faults []cluster.Fault) {
	c.hardware.Tell(ctx, c.hardware.First(), sweep.Cause, faults)
}

// layersOf is this machine's part in carrying layers of images from node to node.
func layersOf(cfg *Config, nodes *hardware.Nodes, log *slog.Logger) *exchange.Exchange {
	e := &exchange.Exchange{Images: cfg.Images, Server: cfg.Server, Peer: cfg.Peer, Log: log}
	if first := nodes.First(); first != "" {
		e.Addr = nodes.Inventory(first).Addr
	}
	return e
}

// wire has owners ask those above them.
func (c *Client) wire() {
	c.link.describe = c.jobs.describeNodes
	c.link.registered = c.jobs.registered
	c.link.ask = c.jobs.askWork
	c.link.take = c.jobs.take
	c.link.informed = c.informed
	c.parts.changed = c.steps.stepChanged
	c.parts.recovered = c.steps.recoverStep
}

// Run works until ctx ends. Jobs run on.
func (c *Client) Run(ctx context.Context) error {
	list, err := c.cfg.Runner.List()
	if err != nil {
		return fmt.Errorf("ask the supervisor for its steps: %w", err)
	}
	c.mu.Lock()
	if c.jobs.staged, err = outbox.OpenConfirmed(c.cfg.Dir, c.cfg.Runner.Instance()); err != nil {
		c.mu.Unlock()
		return err
	}
	for i := range list {
		c.have.Put(list[i].ID, &list[i])
		c.steps.recoverStep(&list[i])
	}
	c.mu.Unlock()
	close(c.known)
	var wg sync.WaitGroup
	wg.Go(func() { c.link.poll(ctx) })
	wg.Go(func() { c.reports.Send(ctx, c.link.reporter()) })
	wg.Go(func() { c.watch(ctx) })
	wg.Go(func() { c.jobs.act(ctx) })
	wg.Go(func() { c.parts.tell(ctx) })
	wg.Go(func() { c.parts.askParts(ctx) })
	wg.Go(func() { c.hardware.Run(ctx) })
	wg.Go(func() { measure.KeepGPUJobs(ctx, c.cfg.GPUJobs, c.gpuJobs, c.jobs.gpusMoved, c.slog) })
	wg.Go(func() { c.gpus.Watch(ctx) })
	wg.Go(func() { c.check(ctx) })
	wg.Go(func() { c.link.keepRegistered(ctx) })
	wg.Go(func() { c.meter.Run(ctx) })
	wg.Go(func() { c.measureHardware(ctx) })
	wg.Go(func() { keepVigils(ctx, c) })
	wg.Wait()
	return c.reports.Close()
}

// Retire ends the process that holds the steps of this machine, if nothing runs in it and the servers have done with
// each job that is known here: it may have news of others. It returns how many jobs run. Call it after Run.
func (c *Client) Retire(done func(cluster.JobID) bool) (running int, err error) {
	process, ok := c.cfg.Runner.(interface{ Shutdown() error })
	if !ok {
		return 0, nil // timers end with this process
	}
	list, err := c.cfg.Runner.List()
	if err != nil {
		return 0, fmt.Errorf("ask the supervisor for its steps: %w", err)
	}
	live, open := map[cluster.JobID]bool{}, false
	for i := range list {
		if list[i].State != step.Ended {
			live[list[i].ID.Job] = true
		}
		open = open || !done(list[i].ID.Job)
	}
	c.mu.Lock()
	for _, n := range c.nodes {
		for id := range n.jobs {
			open = open || !done(id)
		}
	}
	c.mu.Unlock()
	if open || len(live) > 0 {
		return len(live), nil
	}
	return 0, process.Shutdown()
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
			c.meter.Finish(&st)
			c.meter.Notice(&st)
			c.have.Put(st.ID, &st)
			c.steps.stepChanged(&st)
			c.parts.mustTell(&st)
			if st.State == step.Ended {
				c.queues.free(st.ID.Job)
			}
			c.mu.Unlock()
			c.poke()
		}
	}
}

// informed goes on with what waits for the first work.
func (c *Client) informed() {
	close(c.told)
	c.sweepFolders()
	c.meter.Soon() // what ran before
}

// Routes registers what the client of a job's first node answers.
func (c *Client) Routes(m *api.Mux) {
	create := func(ctx context.Context, who api.Caller, q api.StepRequest) (api.StepResponse, error) {
		if err := c.await(ctx, c.known, c.told); err != nil {
			return api.StepResponse{}, err
		}
		return c.steps.createStep(ctx, who, q)
	}
	api.Handle(m, api.CreateStep, create)
	api.Handle(m, api.CreateHelped, create)
	api.Handle(m, api.CreateCast, create)
	api.Handle(m, api.CreatePorts, create)
	api.Handle(m, api.SignalStep, c.steps.signalStep)
	api.Handle(m, api.UpdateStep, c.steps.updateStep)
	api.Handle(m, api.WaitStep, c.steps.waitStep)
	api.Handle(m, api.MeasureSteps, c.measureSteps)
	api.Handle(m, api.TailOutput, c.tailOutput)
	c.noticeRoutes(m)
	api.HandleTunnel(m, api.AttachStep, api.User, c.steps.checkAttach, c.steps.attachStep)
	c.steps.watchRoutes(m)
	api.Handle(m, api.AdoptSession, c.adoptSession)
	c.parts.routes(m)
	api.Handle(m, api.MeasureParts, c.measureParts)
	c.layers.Routes(m)
	c.x11Routes(m)
}
