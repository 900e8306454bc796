// Package agent is the process: it opens the local socket, starts server mode, client mode or
// both, and ends when they have ended.
package agent

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"dev.muster/acct"
	"dev.muster/agent/cgroup"
	"dev.muster/agent/client"
	"dev.muster/agent/container"
	"dev.muster/agent/container/enroot"
	"dev.muster/agent/machine"
	"dev.muster/agent/server"
	"dev.muster/agent/step"
	"dev.muster/agent/supervisor"
	"dev.muster/agent/trust"
	"dev.muster/agent/usage"
	"dev.muster/api"
	"dev.muster/cluster"
	"dev.muster/consensus"
	"dev.muster/gpu"
	"github.com/hashicorp/raft"
)

// Run runs the process until ctx ends. Jobs run on.
func Run(ctx context.Context, cfg Config) error {
	if err := os.MkdirAll(cfg.Dir, 0o755); err != nil {
		return fmt.Errorf("make data folder: %w", err)
	}
	unlock, err := lockDir(cfg.Dir)
	if err != nil {
		return err
	}
	defer unlock()
	name, err := cfg.name()
	if err != nil {
		return err
	}
	var n *network
	if cfg.Bind != "" {
		if n, err = openNetwork(ctx, cfg, name); err != nil {
			return err
		}
	}
	ln, err := listen(cfg.Socket, cfg.callers(os.Geteuid()))
	if err != nil {
		return err
	}
	mux := api.NewMux()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var wg sync.WaitGroup
	run := func(what string, f func(context.Context) error) {
		wg.Go(func() {
			if err := f(ctx); err != nil && ctx.Err() == nil {
				cancel(fmt.Errorf("%s: %w", what, err))
			}
		})
	}
	var state func() *cluster.Snapshot // as the server of this process has it
	if cfg.Server {
		SpendMemory()
		s, err := newServer(cfg, name, n)
		if err != nil {
			return errors.Join(err, ln.Close())
		}
		state = s.Snapshot
		s.Routes(mux)
		peerRoutes(mux, s)
		run("server", s.Run)
		as := &handler{mux: mux, log: cfg.Log, ctx: ctx, gateway: n.way()}
		inner := serveInner(ctx, as, s)
		run("page", func(ctx context.Context) error {
			return serveWeb(ctx, &cfg, n, s, withREST(&cfg, s, as, inner, s.Pages(as.callAs)))
		})
		run("REST", func(ctx context.Context) error { return serveRESTSocket(ctx, &cfg, s, as, inner) })
	}
	if cfg.Client {
		c, err := newClient(ctx, cfg, n)
		if err != nil {
			cancel(err)
		} else {
			c.Routes(mux)
			run("client", c.Run)
			run("health checks", func(ctx context.Context) error { return serveHealth(ctx, &cfg, c) })
			if cfg.Server && n == nil { // this process is the whole cluster
				defer retire(c, state, &cfg)
			}
			run("GPU metrics", func(ctx context.Context) error { return serveGPUs(ctx, &cfg, c.GPUMetrics) })
		}
	}
	run("debug", func(ctx context.Context) error { return serveDebug(ctx, cfg.Socket+DebugSuffix, cfg.Log) })
	run("socket", func(ctx context.Context) error { return serve(ctx, fair(ln), mux, n.way(), cfg.Log) })
	if n != nil {
		servePorts(run, n, mux, &cfg)
	}
	if cfg.Started != nil {
		cfg.Started()
	}
	wg.Wait()
	if cause := context.Cause(ctx); !errors.Is(cause, context.Canceled) {
		return cause
	}
	return nil
}

// retire ends the supervisor of a client that has ended, unless jobs need it, and says so if they do.
func retire(c *client.Client, state func() *cluster.Snapshot, cfg *Config) {
	snap := state()
	jobs, err := c.Retire(func(id cluster.JobID) bool {
		j, known := snap.Job(id)
		return known && (j.Phase == cluster.Ended || j.Phase == cluster.Pending)
	})
	if err != nil {
		cfg.Log.Warn("the supervisor goes on", "err", err)
	}
	if jobs > 0 {
		fmt.Fprintf(os.Stderr, "muster: jobs that keep running: %d; to manage or cancel them, "+
			"start muster dev again with --data %s\n", jobs, cfg.Dir)
	}
}

// servePorts answers other members and whoever joins.
func servePorts(run func(what string, f func(context.Context) error), n *network, mux *api.Mux, cfg *Config) {
	members, joiners := n.port.kinds[trust.ProtoAPI], n.port.kinds[trust.ProtoJoin]
	run("port", func(ctx context.Context) error { return serve(ctx, members, mux, n.gateway, cfg.Log) })
	run("port", func(ctx context.Context) error { return serveJoiners(ctx, joiners, mux, n.gateway, cfg.Log) })
	if n.port.plain != nil {
		run("port", func(ctx context.Context) error { return servePlain(ctx, n.port.plain, cfg.Plain, cfg.Log) })
	}
	run("network", n.Run)
}

func newServer(cfg Config, name string, n *network) (*server.Server, error) {
	hist, err := acct.Open(filepath.Join(cfg.Dir, "acct"), cfg.Log)
	if err != nil {
		return nil, fmt.Errorf("open history: %w", err)
	}
	logDir := filepath.Join(cfg.Dir, "raft")
	sc := server.Config{Name: name, Version: cfg.Version, Load: cfg.Load, DeadAfter: cfg.DeadAfter,
		Hooks: cfg.Hooks, Dialect: cfg.Dialect, Page: cfg.Web.Page, Past: cfg.Hollow.Past,
		Log: consensus.Config{Dir: logDir, ID: name, Addr: name, Bootstrap: true, SnapshotEvery: cfg.SnapshotEvery}}
	if cfg.Fatal != nil {
		sc.Log.Fatal = func(err error) { cfg.Fatal(withWayOut(err, cfg.Dir, name)) }
	}
	if n == nil {
		_, trans := raft.NewInmemTransport(raft.ServerAddress(name))
		return server.New(sc, trans, hist, cfg.Log)
	}
	trans := n.serverConfig(&sc)
	s, err := server.New(sc, trans, hist, cfg.Log)
	if err != nil {
		return nil, withWayOut(err, cfg.Dir, sc.Name)
	}
	n.attach(s)
	return s, nil
}

// withWayOut adds what to do to an error that only another log ends.
func withWayOut(err error, dir, name string) error {
	if !errors.Is(err, consensus.ErrDamaged) && !errors.Is(err, consensus.ErrLost) {
		return err
	}
	return fmt.Errorf("%w. The cluster goes on where a majority of its servers does; have this one replaced: there muster server leave %s and "+
		"muster node revoke %s, then empty %s here and join again with a token (muster token create --role server). "+
		"Where no majority is left, restore what was saved (muster snapshot restore)", err, name, name, dir)
}

// renew makes a supervisor from before an upgrade execute the new program, its jobs running on.
func renew(r *step.Remote, cfg Config) error {
	stale, err := r.Stale(cfg.Supervisor[0])
	if err != nil || !stale {
		return err
	}
	if err := r.Upgrade(cfg.Supervisor[0]); err != nil {
		return fmt.Errorf("upgrade the supervisor: %w", err)
	}
	cfg.Log.Info("the supervisor was upgraded in place")
	return nil
}

func newClient(ctx context.Context, cfg Config, n *network) (*client.Client, error) {
	nodes := cfg.Hollow.Nodes
	var gpus *gpu.Watcher
	var here *machine.Machine
	dir := filepath.Join(cfg.Dir, "client")
	if len(nodes) == 0 {
		inv, err := machine.Detect(os.TempDir())
		if err != nil {
			return nil, err
		}
		gpus = gpu.NewWatcher(cfg.GPU.Helper, cfg.GPU.Every, cfg.Log)
		machine.SetGPUs(&inv, gpus.First(ctx))
		if here, err = machine.New(os.DirFS(cfg.Sysfs), cfg.Dir, dir+".ports", cfg.GPU.Every); err != nil {
			return nil, err
		}
		if err := here.Look(&inv, time.Now()); err != nil {
			cfg.Log.Warn("the machine could not be looked at", "err", err)
		}
		name := cfg.NodeName
		if name == "" {
			name = cluster.NodeName(inv.Host)
		}
		nodes = []machine.Node{{Name: name, Inventory: inv}}
	}
	if cfg.Say != nil {
		nodes = slices.Clone(nodes)
		for i := range nodes {
			nodes[i].Inventory = cfg.Say(nodes[i].Inventory)
		}
	}
	var runner step.Runner
	var sampler *usage.Sampler
	if len(cfg.Hollow.Nodes) > 0 && !cfg.Hollow.Exec {
		runner = supervisor.NewTimers(func(step.Spec) (time.Duration, cluster.ExitStatus) { return cfg.Hollow.Time, cluster.ExitStatus{} })
	} else {
		r, err := step.Open(dir, append(slices.Clone(cfg.Supervisor), "--dir", dir))
		if err != nil {
			return nil, fmt.Errorf("open the supervisor: %w", err)
		}
		if err := renew(r, cfg); err != nil {
			cfg.Log.Warn("the supervisor goes on with its old program", "err", err)
		}
		runner, sampler = r, usage.NewSampler(dir)
	}
	for i := range nodes {
		nodes[i].SetHostName = cfg.Hollow.Exec && os.Getuid() == 0 && len(cfg.Hollow.Nodes) > 0
		nodes[i].Inventory.Version = cfg.Version
		if n != nil {
			nodes[i].Inventory.Addr = n.addr
			nodes[i].Inventory.Interface = machine.Interface(n.addr)
		}
		nodes[i].Inventory.Isolation = cgroup.Isolation()
	}
	site := enroot.Read(enroot.Dir())
	images := container.StoreOf(site, usualImages(cfg.Dir))
	for _, n := range site.Notes() {
		cfg.Log.Info("containers: " + n)
	}
	near := nearby(cfg.Socket)
	cc := client.Config{Dir: dir, Spool: filepath.Join(cfg.Dir, "spool"), Nodes: nodes, Server: near, Runner: runner,
		Dialect: cfg.Dialect, Program: cfg.Program, PIDEnv: cfg.PIDEnv, MountEnv: cfg.MountEnv, Daemon: cfg.Socket,
		Images: images, ImageDisk: cfg.Images.Disk, ImageSize: cfg.Images.Size, GPUs: gpus, GPUJobs: cfg.GPU.Jobs,
		HollowLoad: cfg.GPU.Hollow,
		Machine:    here, Sampler: sampler, SampleSpan: cfg.SampleSpan}
	if n != nil {
		cc.Peer = n.nodes.at
	}
	c, err := client.New(cc, cfg.Log)
	if err == nil && n != nil {
		n.gateway.relay.local = c.Leads
	}
	return c, err
}

// ImagesIn is where a daemon of that data folder keeps the images of containers.
func ImagesIn(dir string) string {
	return container.StoreOf(enroot.Read(enroot.Dir()), usualImages(dir))
}

func usualImages(dir string) string { return filepath.Join(dir, "containers") }
