package cli

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"dev.muster/agent"
	"dev.muster/agent/burst"
	"dev.muster/agent/client"
	"dev.muster/agent/machine"
	"dev.muster/agent/webpage"
	"dev.muster/cli/demo"
	"dev.muster/cli/farm"
	"dev.muster/cli/look"
	"dev.muster/cli/mcphost"
	"dev.muster/cli/nodetest"
	"dev.muster/cli/watch"
	"dev.muster/cluster"
	"dev.muster/packaging"
	"dev.muster/slurm"
	"dev.muster/slurm/conf"
	"dev.muster/slurm/front"
	"dev.muster/slurm/lua"
	"github.com/urfave/cli/v2"
)

// app is all of muster's own commands; page makes the status page of a server.
func app(page webpage.Maker) *cli.App {
	a := &cli.App{
		Name: "muster", Usage: "a workload manager for GPU clusters", Version: front.Version, HideHelpCommand: true,
		Commands: []*cli.Command{
			{Name: "dev", Usage: "start a single-machine cluster for evaluation and testing", Flags: daemonFlags(""),
				Action: func(c *cli.Context) error { return daemon(c, page, true, true) }},
			{Name: "server", Usage: "run a member of the server group", Flags: daemonFlags(":" + agent.DefaultPort),
				Action:      func(c *cli.Context) error { return daemon(c, page, true, c.Bool("and-client")) },
				Subcommands: serverCommands()},
			{Name: "client", Usage: "run a compute node or a login host", Flags: daemonFlags(":" + agent.DefaultPort),
				Action: func(c *cli.Context) error { return daemon(c, nil, false, !c.Bool("login")) }},
			{Name: "token", Usage: "create, list and revoke join tokens", Subcommands: tokenCommands()},
			{Name: "jwt", Usage: "manage user tokens (scontrol token): list and rotate keys, revoke tokens",
				Subcommands: jwtCommands()},
			{Name: "peer", Usage: "manage peer clusters (-M): invite, add, list and remove them",
				Subcommands: peerCommands()},
			{
				Name: "snapshot", Usage: "save, inspect and restore the whole cluster",
				Subcommands: snapshotCommands(),
			},
			{Name: "node", Usage: "manage the members of the cluster", Subcommands: memberCommands()},
			adoptCommand(),
			mcphost.Command(toolWorld),
		},
	}
	a.Commands = append(a.Commands, noticesCommand(), simCommand(), gpuCommand(), installCommand(), configCommand(), debugCommand(),
		asker("why", "[--json] JOB|NODE",
			"say why a job waits, or died, with numbers, or what holds a node", look.Fit(look.Why)),
		asker("pam-adopt", "[action_no_jobs=deny|ignore] …",
			"for pam_exec: put a session into the job that its user has on this node, or refuse it",
			runAdopt),
		asker(slurmdName, "-C|-G|-V", "print this machine as a line of slurm.conf (-C), or its GPUs (-G)", runSlurmd),
		asker("lint", "FILE… | --submit [OPTIONS] SCRIPT",
			"look at scripts for sbatch and configuration files, and say what may well be a mistake", runLint),
		asker("health", "[--json] [NODES]",
			"list nodes that need attention, and what to do; exit code 1 if some do", look.Health),
		asker("burnin", "[--seconds N] NODES | --fabric NODES | --show [NODES|UUID|SERIAL …]",
			"test nodes under load, each by a job that goes after all others, or the network between them; show results",
			nodetest.Main))
	a.Commands = append(a.Commands, imageCommand(), watch.Command(frontEnd))
	a.Commands = slices.Concat(a.Commands, lookCommands(), jobCommands(), farm.Commands())
	for _, name := range slices.Concat(slurm.FrontEnds(), slurm.Wrappers()) {
		a.Commands = append(a.Commands, &cli.Command{Name: name, Usage: slurm.Summary(name), SkipFlagParsing: true})
	}
	return a
}

// asker is a command of muster's own that asks as the front-ends do.
func asker(name, args, usage string, run func(*front.Sys, []string) int) *cli.Command {
	return &cli.Command{Name: name, Usage: usage, ArgsUsage: args, SkipFlagParsing: true,
		Action: func(c *cli.Context) error {
			return exit(run(frontEnd(), c.Args().Slice()))
		}}
}

// managers are the commands that become process managers of MPI.
func managers(self string) map[cluster.Manager][]string {
	return map[cluster.Manager][]string{
		cluster.ManagerPMI2: {self, "internal", "pmi"},
		cluster.ManagerPMIx: {self, "internal", "pmix"},
	}
}

// defaultDir is where a daemon keeps what it has: root's, or one of the user's own.
func defaultDir() string {
	if os.Getuid() == 0 {
		return "/var/lib/muster"
	}
	home, _ := os.UserHomeDir()
	return filepath.Join(home, ".muster")
}

func dataFlag() cli.Flag {
	return &cli.StringFlag{Name: "data", Value: defaultDir(), Usage: "data folder"}
}

func daemonFlags(bind string) []cli.Flag {
	socket := "/run/muster/muster.sock"
	if os.Getuid() != 0 {
		socket = filepath.Join(defaultDir(), "muster.sock")
	}
	return append(tokenFlags(), []cli.Flag{
		dataFlag(),
		&cli.StringFlag{
			Name: "socket", Value: socket,
			Usage: "local socket; commands use MUSTER_SOCKET to find another one",
		},
		&cli.StringFlag{
			Name:  "conf",
			Usage: "slurm.conf to apply; client: or this machine's properties as on a NodeName line, e.g. \"Feature=h100 Topology=rack7\"",
		},
		&cli.StringFlag{Name: "node", Usage: "this machine's name in the cluster (default: its host name)"},
		&cli.StringFlag{
			Name: "bind", Value: bind,
			Usage: "listen for other members on ADDRESS:PORT; empty: this process is the whole cluster",
		},
		&cli.StringFlag{Name: "rest-socket",
			Usage: "server: Unix socket for the REST API, which is on the page's port too"},
		&cli.StringFlag{
			Name: "http", Value: agent.WebAuto,
			Usage: "server: address of the page and metrics, ADDRESS:PORT, none, or auto (7480, with --bind)",
		},
		&cli.StringFlag{Name: "advertise", Usage: "address of this machine for others (default: detected)"},
		&cli.StringSliceFlag{Name: "join", Usage: "address of a server to join; needed only the first time"},
		&cli.BoolFlag{Name: "login", Usage: "client: run as a login host, which runs no jobs"},
		&cli.BoolFlag{Name: "and-client", Usage: "server: also run jobs on this machine"},
		&cli.DurationFlag{
			Name: "dead-server-after", Value: 72 * time.Hour,
			Usage: "remove a server that has been unreachable for this long",
		},
		&cli.Uint64Flag{
			Name:  "snapshot-every",
			Usage: "server: compact the log after this many entries (default: a few thousand)",
		},
		&cli.StringFlag{
			Name:  "hollow",
			Usage: "simulate nodes instead, e.g. 8x16c64g8gpu:h100, or conf for the nodes of --conf",
		},
		&cli.StringFlag{
			Name:  "hollow-prefix",
			Usage: "prefix of the names of simulated nodes, e.g. rack1- (default: node- or gpu-node-)",
		},
		&cli.BoolFlag{Name: "hollow-exec", Usage: "run the steps of simulated nodes as real processes on this machine"},
		&cli.BoolFlag{
			Name:  "hollow-load",
			Usage: "simulate GPU load on simulated nodes while jobs hold them; some GPUs stay idle",
		},
		&cli.DurationFlag{
			Name: "hollow-time", Value: time.Second,
			Usage: "run time of a simulated step without --hollow-exec",
		},
		imageDiskFlag(), imageSizeFlag(), demo.Flag(),
		&cli.DurationFlag{
			Name: "gpu-every", Value: 10 * time.Second,
			Usage: "how often to check this machine's GPUs and ports",
		},
		&cli.DurationFlag{Name: "sample-span", Value: time.Minute, Hidden: true,
			Usage: "time span of one usage sample of this machine and its jobs"},
		&cli.StringFlag{
			Name:  "gpu-metrics",
			Usage: "serve GPU metrics under dcgm-exporter's names, with the job, on ADDRESS:PORT (default: off)",
		},
		&cli.StringFlag{
			Name:  "gpu-jobs",
			Usage: "folder for one file per GPU with its jobs, for dcgm-exporter --hpc-job-mapping-dir",
		},
		&cli.StringFlag{
			Name: "sysfs", Value: "/sys",
			Usage: "sysfs folder of this machine's InfiniBand and RoCE devices",
		},
		&cli.StringFlag{Name: "log-level", Value: "info", Usage: "debug, info, warn or error"},
	}...)
}

func daemon(c *cli.Context, page webpage.Maker, serve, clientMode bool) error {
	if !serve && c.String("bind") == "" {
		return errors.New("a client needs a network: give --bind ADDRESS:PORT")
	}
	notifySocket := os.Getenv(notifyEnv)
	if err := os.Unsetenv(notifyEnv); err != nil { // it is no business of what the daemon starts
		return err
	}
	ctx, stop := signal.NotifyContext(c.Context, os.Interrupt, syscall.SIGTERM)
	defer stop()
	level := agent.LogLevel
	if err := level.UnmarshalText([]byte(c.String("log-level"))); err != nil {
		return fmt.Errorf("--log-level %s: want debug, info, warn or error", c.String("log-level"))
	}
	token, err := joinToken(c)
	if err != nil {
		return err
	}
	dir, err := filepath.Abs(c.String("data"))
	if err != nil {
		return err
	}
	if err := forgetCommands(dir); err != nil {
		return fmt.Errorf("remove expired tokens: %w", err)
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	cfg := agent.Config{Server: serve, Client: clientMode, Dir: dir, Socket: c.String("socket"), Version: front.Version,
		NodeName: cluster.NodeName(c.String("node")), Bind: c.String("bind"),
		Advertise: c.String("advertise"), Join: addresses(c.StringSlice("join")),
		Token: token, Login: c.Bool("login"), DeadAfter: c.Duration("dead-server-after"),
		SnapshotEvery: c.Uint64("snapshot-every"), Images: agent.ImageLimits{Disk: imageDisk(c), Size: imageSize(c)},
		Hollow:  agent.HollowConfig{Exec: c.Bool("hollow-exec"), Time: c.Duration("hollow-time")},
		Dialect: slurm.Dialect{},
		Web: agent.WebConfig{Addr: c.String("http"), Page: page, RESTSocket: c.String("rest-socket"),
			Tools: mcphost.Web(toolWorld)},
		Program: client.Program{
			Cast:   []string{self, "internal", "cast"},
			Around: []string{self, "internal", "task"}, Managers: managers(self),
			Names: slurm.FrontEnds(), Account: accountOf},
		Hooks:  agent.Hooks{Socket: c.String("socket"), Front: self},
		PIDEnv: "SLURM_TASK_PID", MountEnv: "SLURM_JOB_MOUNT_SRC", Supervisor: []string{self, "internal", "supervisor"},
		GPU: agent.GPUConfig{Helper: []string{self, "internal", "gpu-helper"}, Every: c.Duration("gpu-every"),
			Metrics: c.String("gpu-metrics"), Jobs: c.String("gpu-jobs"), Hollow: c.Bool("hollow-load")},
		Sysfs: c.String("sysfs"), SampleSpan: c.Duration("sample-span"),
		Log: slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: level}))}
	cfg.Hooks.Filter = &lua.Filter{Log: cfg.Log}
	cfg.Hooks.Burst = &burst.Caller{Program: []string{self, "internal", "burst"}, Log: cfg.Log, Environ: []string{
		"PATH=" + filepath.Dir(self) + ":/usr/sbin:/usr/bin:/sbin:/bin", "MUSTER_SOCKET=" + cfg.Socket}}
	cfg.Fatal = func(err error) {
		fmt.Fprintln(os.Stderr, "muster:", err)
		os.Exit(1)
	}
	if err := configure(c, &cfg); err != nil {
		return err
	}
	if serve && cfg.Bind != "" {
		cfg.Plain = packaging.NewDepot(filepath.Join(dir, filepath.Base(packaging.DownloadDir)), cfg.Log)
	}
	cfg.Founded = func(addr string) { welcome(ctx, &cfg, addr) }
	cfg.Started = func() {
		fmt.Fprintf(os.Stderr, "muster: ready at %s\n", cfg.Socket)
		if err := notify(notifySocket); err != nil {
			cfg.Log.Warn("systemd could not be told that the daemon is ready", "err", err)
		}
	}
	if err := agent.Run(ctx, cfg); err != nil && !errors.Is(err, context.Canceled) {
		return err
	}
	return nil
}

// configure reads --conf and --hollow.
func configure(c *cli.Context, cfg *agent.Config) error {
	var declared []cluster.Node
	path := c.String("conf")
	switch {
	case path == "":
	case !cfg.Server && strings.Contains(path, "="):
		if _, notes := conf.Line(path, cluster.Inventory{}); len(notes) > 0 {
			return fmt.Errorf("--conf %q: %s", path, strings.Join(notes, "; "))
		}
		cfg.Say = func(inv cluster.Inventory) cluster.Inventory {
			inv, _ = conf.Line(path, inv)
			return inv
		}
	default:
		loaded, notes, err := conf.Load(path)
		if err != nil {
			return err
		}
		for _, n := range notes {
			fmt.Fprintln(os.Stderr, "muster:", n)
		}
		declared, cfg.Load = loaded.Declared, func() (*cluster.Config, []string, error) { return conf.Load(path) }
		if len(cfg.Join) == 0 && (cfg.Token != "" || !cfg.Server) { // else this server founds a cluster
			cfg.Join = addresses(conf.Controllers(loaded))
		}
	}
	switch h := c.String("hollow"); {
	case h == "conf" && cfg.Load != nil:
		for _, n := range declared {
			machine.Hollow(&n.Inventory)
			cfg.Hollow.Nodes = append(cfg.Hollow.Nodes, machine.Node{Name: n.Name, Inventory: n.Inventory})
		}
	case h == "conf":
		return errors.New("--hollow conf needs --conf FILE")
	case h != "":
		nodes, err := machine.ParseHollow(h)
		if err != nil {
			return err
		}
		if prefix := c.String("hollow-prefix"); prefix != "" {
			for i := range nodes {
				name := string(nodes[i].Name)
				name = prefix + name[strings.LastIndex(name, "-")+1:]
				nodes[i].Name, nodes[i].Inventory.Host = cluster.NodeName(name), name
			}
		}
		cfg.Hollow.Nodes = nodes
	}
	if cfg.GPU.Hollow {
		machine.NameGPUs(cfg.Hollow.Nodes)
	}
	return demo.Apply(c, cfg)
}

// accountOf is where a user lives, and with which shell.
func accountOf(uid uint32) (home, shell string) {
	u, _ := front.UserByID(uid)
	return u.Home, u.Shell
}
