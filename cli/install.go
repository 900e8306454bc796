package cli

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"dev.muster/agent"
	"dev.muster/agent/step"
	"dev.muster/api"
	"dev.muster/cluster"
	"dev.muster/packaging"
	"dev.muster/slurm"
	"github.com/urfave/cli/v2"
)

// fromEnv is the address of the server from which install.sh has fetched this program.
const fromEnv = "MUSTER_FROM"

// readyTime is how long an installation waits for its machine to be in the cluster.
const readyTime = 90 * time.Second

// maxScript bounds what is read of an install script.
const maxScript = 1 << 20

func installCommand() *cli.Command {
	common := []cli.Flag{
		&cli.StringFlag{
			Name: "prefix", Value: "/usr/local", Usage: "install the program, its links and manuals below this folder",
		},
		&cli.StringFlag{
			Name:  "root",
			Usage: "install into this folder as if it were /, for images; nothing is started",
		},
		&cli.BoolFlag{Name: "dry-run", Usage: "show the steps without doing them"},
		&cli.BoolFlag{Name: "verbose", Aliases: []string{"v"}, Usage: "with --dry-run: list each file"},
	}
	flags := append([]cli.Flag{
		&cli.StringSliceFlag{
			Name:  "join",
			Usage: "address of a server to join (default: the one that served install.sh)",
		},
		&cli.StringFlag{Name: "node", Usage: "this machine's name in the cluster (default: its host name)"},
		&cli.StringFlag{
			Name:  "bind",
			Usage: "let the daemon listen on ADDRESS:PORT (default: port " + agent.DefaultPort + " on all addresses)",
		},
		&cli.StringFlag{Name: "advertise", Usage: "address of this machine for others (default: detected)"},
		&cli.StringFlag{Name: "conf", Usage: "slurm.conf that the daemon applies"},
		&cli.BoolFlag{
			Name:  "replace-slurm",
			Usage: "replace the commands and units of an installed Slurm",
		},
		&cli.BoolFlag{Name: "no-start", Usage: "do not start the daemon"},
	}, append(tokenFlags(), common...)...)
	role := func(name, usage string, more ...cli.Flag) *cli.Command {
		return &cli.Command{Name: name, Usage: usage, Flags: append(more, flags...),
			Action: func(c *cli.Context) error {
				if c.NArg() > 0 {
					return fmt.Errorf("unexpected argument: %s; muster install %s takes only options", c.Args().First(), name)
				}
				return install(c, name)
			}}
	}
	return &cli.Command{Name: "install",
		Usage:     "install or upgrade muster on this machine and join a cluster",
		ArgsUsage: "client|server|login",
		Flags: append([]cli.Flag{
			&cli.BoolFlag{Name: "uninstall", Usage: "remove muster from this machine"},
			&cli.BoolFlag{
				Name:  "purge",
				Usage: "with --uninstall: also remove the configuration and data, and end running jobs",
			},
		}, common...),
		Subcommands: []*cli.Command{
			role(packaging.Server, "a member of the server group; without a token the first one", &cli.BoolFlag{
				Name: "and-client", Usage: "also run jobs on this machine",
			}),
			role(packaging.Client, "a compute node"),
			role(packaging.Login, "a login host, where users work and no jobs run"),
		},
		Action: func(c *cli.Context) error {
			if !c.Bool("uninstall") || c.NArg() > 0 {
				return errors.New("say what this machine becomes: muster install client, server or login; or --uninstall")
			}
			i, err := newInstaller(c, "")
			if err != nil {
				return err
			}
			i.MayLeave = func(ctx context.Context, purge bool) error { return mayLeave(ctx, purge, i.DryRun) }
			return i.Uninstall(c.Context, c.Bool("purge"))
		}}
}

// newInstaller is what all installations have in common.
func newInstaller(c *cli.Context, role string) (*packaging.Installer, error) {
	root, prefix := c.String("root"), filepath.Clean(c.String("prefix"))
	if os.Getuid() != 0 && root == "" && !c.Bool("dry-run") {
		return nil, errors.New("only root can install muster")
	}
	if !filepath.IsAbs(prefix) || prefix == "/" || strings.ContainsAny(prefix, " \t\n%$\\\"'") {
		return nil, fmt.Errorf("--prefix %s: want a path like /usr/local", prefix)
	}
	if root != "" {
		var err error
		if root, err = filepath.Abs(root); err != nil {
			return nil, err
		}
	}
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	if own := filepath.Dir(filepath.Dir(self)); role == "" && root == "" && !c.IsSet("prefix") && packaging.Installed(own) {
		prefix = own // remove what this program is a part of
	}
	_, err = os.Stat("/run/systemd/system") // as sd_booted(3)
	return &packaging.Installer{Role: role, Root: root, Prefix: prefix, Source: self,
		FrontEnds: slurm.FrontEnds(), MoreNames: slurm.KeyMakers(), Files: manuals(), DryRun: c.Bool("dry-run"), Verbose: c.Bool("verbose"),
		Out:     os.Stdout,
		Systemd: err == nil, Command: command, StopSteps: func(force bool) error { return stopSteps(self, force) }}, nil
}

// command runs a program and gives its output, which is the error if it fails.
func command(ctx context.Context, name string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		return out.String(), fmt.Errorf("%s %s: %w: %s", name, strings.Join(args, " "), err,
			strings.TrimSpace(errs.String()))
	}
	return out.String(), nil
}

// stopSteps ends the supervisor of this machine's steps.
func stopSteps(self string, force bool) error {
	dir := filepath.Join(packaging.StateDir, "client")
	r, err := step.Open(dir, []string{self, "internal", "supervisor", "--dir", dir})
	if err != nil {
		return err
	}
	list, err := r.List()
	live := 0
	for _, s := range list {
		if s.State != step.Ended {
			live++
		}
	}
	if err != nil || live > 0 && !force {
		if err == nil {
			err = fmt.Errorf("%d steps of jobs run here: drain this node first, or end them with --purge", live)
		}
		return errors.Join(err, r.Close())
	}
	return r.Shutdown()
}

// daemonOptions are those options of an installation that the daemon must be given every time.
func daemonOptions(c *cli.Context) string {
	var list []string
	for _, n := range []string{"node", "bind", "advertise", "conf"} {
		if v := c.String(n); v != "" {
			list = append(list, "--"+n, v)
		}
	}
	if c.Bool("and-client") {
		list = append(list, "--and-client")
	}
	return strings.Join(list, " ")
}

// install installs muster for a role, joins and starts.
func install(c *cli.Context, role string) error {
	token, err := joinToken(c)
	if err != nil {
		return err
	}
	i, err := newInstaller(c, role)
	if err != nil {
		return err
	}
	i.ReplaceSlurm, i.NoStart, i.Options = c.Bool("replace-slurm"), c.Bool("no-start"), daemonOptions(c)
	_, member, err := membership(i.Root, role)
	if err != nil {
		return err
	}
	from := os.Getenv(fromEnv)
	join := addresses(c.StringSlice("join"))
	if len(join) == 0 && from != "" {
		join = []string{from}
	}
	alone := token == "" && len(c.StringSlice("join")) == 0 && from == ""
	founds := !member && alone && role == packaging.Server
	i.Member = func() bool { return member }
	switch {
	case member:
	case founds:
		bind := cmp.Or(c.String("bind"), ":"+agent.DefaultPort)
		i.Check = func() error { return checkPort(bind) }
	case i.Root == "":
		if err := joins(c, i, role, token, join); err != nil {
			return err
		}
	}
	i.Ready = func(ctx context.Context) error { return ready(ctx, role) }
	if err := i.Install(c.Context); err != nil {
		return err
	}
	return sayInstalled(c, i, role, founds)
}

// sayInstalled tells what this machine has become, where muster runs by now.
func sayInstalled(c *cli.Context, i *packaging.Installer, role string, founds bool) error {
	if i.DryRun || i.Root != "" || i.NoStart || !i.Systemd {
		return nil
	}
	name, _, err := membership(i.Root, role)
	if err != nil {
		return err
	}
	fmt.Printf("muster: %s is in the cluster as a %s\n", name, role)
	if founds {
		return printTokens(c.Context, c.Bool("and-client"))
	}
	return nil
}

// joins has the installer join a cluster.
func joins(c *cli.Context, i *packaging.Installer, role, token string, join []string) error {
	if token == "" || len(join) == 0 {
		return fmt.Errorf("this machine is in no cluster yet: give --join ADDRESS and --token TOKEN, or --token-file FILE; muster token create --install, on a server, prints the whole command")
	}
	cfg := agent.Config{Server: role == packaging.Server, Login: role == packaging.Login,
		Dir: packaging.StateDir, NodeName: cluster.NodeName(c.String("node")),
		Bind: cmp.Or(c.String("bind"), ":"+agent.DefaultPort), Advertise: c.String("advertise"), Join: join,
		Token: token}
	i.Check = func() error { return checkJoin(cfg) }
	i.Joins = "join the cluster by " + strings.Join(join, ", ")
	i.Join = func(ctx context.Context) error { _, err := agent.Join(ctx, cfg); return err }
	return nil
}

// membership says whether this machine has joined already; as something else is an error.
func membership(root, role string) (string, bool, error) {
	if root != "" {
		return "", false, nil
	}
	name, has, err := agent.Membership(packaging.StateDir)
	want := map[string]cluster.Role{
		packaging.Server: cluster.RoleServer, packaging.Client: cluster.RoleNode,
		packaging.Login: cluster.RoleLogin,
	}[role]
	if err == nil && name != "" && has != want {
		err = fmt.Errorf("this machine joined as a %s; to make it a %s, uninstall with --purge first, and revoke %s on a server (muster node revoke %s)",
			has, role, name, name)
	}
	return name, name != "", err
}

// ready waits until the local daemon's machine is in the cluster and serves.
func ready(ctx context.Context, role string) error {
	ctx, cancel := context.WithTimeout(ctx, readyTime)
	defer cancel()
	name, _, err := agent.Membership(packaging.StateDir)
	for {
		if err == nil && name == "" {
			name, _, err = agent.Membership(packaging.StateDir)
		}
		if name != "" {
			if err = inCluster(ctx, role, name); err == nil {
				return nil
			}
		}
		select {
		case <-time.After(100 * time.Millisecond):
		case <-ctx.Done():
			return cmp.Or(err, ctx.Err())
		}
	}
}

// inCluster asks the local daemon whether a member is there as what it should be.
func inCluster(ctx context.Context, role, name string) error {
	c := local()
	defer c.Close()
	if role == packaging.Client {
		r, err := api.Call(ctx, c, api.ListNodes, api.NodeQuery{Names: []cluster.NodeName{cluster.NodeName(name)}})
		if err != nil {
			return err
		}
		for _, n := range r.Nodes {
			if string(n.Name) == name && n.Up && !n.Quiet {
				return nil
			}
		}
		return fmt.Errorf("node %s has not registered yet", name)
	}
	r, err := api.Call(ctx, c, api.ListMembers, api.Empty{})
	if err != nil || role == packaging.Login {
		return err
	}
	leader, in := false, false
	for _, s := range r.Servers {
		leader, in = leader || s.Leader, in || s.Name == name && s.Voter
	}
	if !leader || !in {
		return fmt.Errorf("server %s is not a voting member of its group yet", name)
	}
	return nil
}

// printTokens tells who has founded a cluster how other machines join.
func printTokens(ctx context.Context, andClient bool) error {
	fmt.Println("muster: this is a new cluster. For a day, other machines join it by these commands, as root:")
	var servers []api.Server
	for _, k := range []api.TokenRequest{
		{Role: cluster.RoleNode, Uses: 10_000}, {Role: cluster.RoleServer, Uses: 10},
		{Role: cluster.RoleLogin, Uses: 100},
	} {
		c := local()
		r, err := api.Call(ctx, c, api.CreateToken, k)
		c.Close()
		if err != nil {
			return err
		}
		fmt.Printf("\n# a %s:\n", k.Role.Machine())
		words := k.Role.Word()
		if andClient && k.Role == cluster.RoleServer {
			words += " --and-client" // as the first one
		}
		if err := printInstall(ctx, os.Stdout, r, words); err != nil {
			return err
		}
		servers = r.Servers
	}
	printFirstSteps(servers, andClient)
	return nil
}

// printFirstSteps tells whoever has founded a cluster where to look, and what to try.
func printFirstSteps(servers []api.Server, andClient bool) {
	host := "THIS-MACHINE"
	if len(servers) > 0 {
		if h, _, err := net.SplitHostPort(servers[0].Addr); err == nil {
			host = h
		}
	}
	job := "srun hostname, once a compute node has joined"
	if andClient {
		job = "srun hostname"
	}
	fmt.Printf(`
page         http://%s/ shows jobs, users and nodes to all who reach that port
             (StatusPage=login in /etc/muster/muster.conf asks for a login; TLS: docs/page.md)
log in there muster ui prints a link
first job    %s
how it is    muster status; journalctl -u muster-server has the log
`, net.JoinHostPort(host, agent.DefaultWebPort), job)
}

// printInstall prints the command that installs muster and joins by a token. It holds the SHA-256 of the script
// that the server gives out, and that the one of the program: whoever copies the command need not trust the
// network.
func printInstall(ctx context.Context, w io.Writer, r api.TokenResponse, words string) error {
	var last error = errors.New("no server is known")
	for _, s := range r.Servers {
		text, err := fetchScript(ctx, s.Addr)
		if err != nil {
			last = err
			continue
		}
		sum := sha256.Sum256([]byte(strings.TrimRight(text, "\n") + "\n"))
		_, err = fmt.Fprintf(w, `s=$(curl -fsSL http://%s%s) && [ "$(printf '%%s\n' "$s" | sha256sum)" = "%s  -" ] && printf '%%s\n' "$s" | sh -s -- %s --token %s`+"\n",
			s.Addr, packaging.ScriptPath, hex.EncodeToString(sum[:]), words, r.Text)
		return err
	}
	return fmt.Errorf("no server gives out the install script: %w", last)
}

// fetchScript reads the install script that this server gives out at its address. It is asked on this machine, not
// over a network.
func fetchScript(ctx context.Context, addr string) (string, error) {
	if !ownAddress(addr) {
		return "", fmt.Errorf("%s is another machine", addr)
	}
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	q, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+addr+packaging.ScriptPath, nil)
	if err != nil {
		return "", err
	}
	r, err := (&http.Client{Transport: &http.Transport{Proxy: nil}}).Do(q)
	if err != nil {
		return "", err
	}
	defer r.Body.Close()
	text, err := io.ReadAll(io.LimitReader(r.Body, maxScript))
	if err == nil && r.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", addr, r.Status)
	}
	return string(text), err
}

// ownAddress reports whether an address is one of this machine's.
func ownAddress(addr string) bool {
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return false
	}
	ip := net.ParseIP(host)
	if ip == nil {
		ips, err := net.LookupIP(host)
		if err != nil || len(ips) == 0 {
			return false
		}
		ip = ips[0]
	}
	own, err := net.InterfaceAddrs()
	if err != nil {
		return false
	}
	for _, a := range own {
		if n, ok := a.(*net.IPNet); ok && (n.IP.Equal(ip) || n.IP.IsLoopback() && ip.IsLoopback()) {
			return true
		}
	}
	return false
}
