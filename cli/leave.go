package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"syscall"
	"time"

	"github.com/urfave/cli/v2"

	"dev.muster/agent"
	"dev.muster/agent/trust"
	"dev.muster/api"
	"dev.muster/cluster"
	"dev.muster/packaging"
)

// Checks before a machine becomes a member of a cluster, and before it leaves.

// tokenEnv is the variable with the join token.
const tokenEnv = "MUSTER_TOKEN"

// tokenFlags are the ways to give a join token.
func tokenFlags() []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{Name: "token", Usage: "join token from muster token create", EnvVars: []string{tokenEnv}},
		&cli.StringFlag{
			Name: "token-file", Usage: "file that holds the join token",
			EnvVars: []string{"MUSTER_TOKEN_FILE"},
		},
	}
}

// maxToken bounds what is read of a file that holds a token.
const maxToken = 64 << 10

// joinToken is the join token of a command line, of the environment or of a file; "" where none is given. It is
// removed from the environment.
func joinToken(c *cli.Context) (string, error) {
	text, path := strings.Clone(c.String("token")), c.String("token-file") // the environment is overwritten
	if err := forgetVariable(tokenEnv); err != nil {
		fmt.Fprintln(os.Stderr, "muster: the token stays in this process's environment:", err)
	}
	if path == "" {
		return text, nil
	}
	if text != "" {
		return "", fmt.Errorf("--token and --token-file %s: give one of them", path)
	}
	f, err := os.Open(path)
	if err != nil {
		return "", fmt.Errorf("--token-file: %w", err)
	}
	defer f.Close()
	raw, err := io.ReadAll(io.LimitReader(f, maxToken))
	if err != nil {
		return "", fmt.Errorf("--token-file: %w", err)
	}
	if text = strings.TrimSpace(string(raw)); text == "" {
		return "", fmt.Errorf("--token-file %s: the file is empty; it holds what muster token create prints", path)
	}
	return text, nil
}

// checkJoin refuses what would keep a machine from joining, as far as the machine itself can tell.
func checkJoin(cfg agent.Config) error {
	if _, err := trust.ParseToken(cfg.Token); err != nil {
		return err
	}
	return checkPort(cfg.Bind)
}

// checkPort refuses an address where something else listens.
func checkPort(bind string) error {
	tcp, err := net.Listen("tcp", bind)
	if err == nil {
		err = tcp.Close()
	}
	if err == nil {
		var udp net.PacketConn
		if udp, err = net.ListenPacket("udp", bind); err == nil {
			err = udp.Close()
		}
	}
	if errors.Is(err, syscall.EADDRINUSE) {
		return fmt.Errorf("something else listens at %s (ss -lntup shows what): stop it, or choose another port with --bind",
			bind)
	}
	return err
}

// leaveTime bounds what is asked of the cluster before muster is removed.
const leaveTime = 20 * time.Second

// mayLeave refuses to remove muster from a member of a group of servers, and from a node that jobs have. With purge
// the machine leaves its cluster, so that its name is free.
func mayLeave(ctx context.Context, purge, dry bool) error {
	name, role, err := agent.Membership(packaging.StateDir)
	if err != nil || name == "" {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, leaveTime)
	defer cancel()
	if role == cluster.RoleServer {
		if err := lastServer(ctx, name); err != nil {
			return err
		}
	}
	if err := withoutJobs(ctx, name); err != nil && !purge {
		return err
	}
	if !purge || dry || role == cluster.RoleServer {
		return nil
	}
	if err := agent.Leave(ctx, packaging.StateDir); err != nil {
		fmt.Fprintf(os.Stderr,
			"muster: the cluster could not be told that %s leaves (%v): muster node revoke %s, on a server, frees its name\n",
			name, err, name)
	}
	return nil
}

// lastServer refuses a server that others form a group with. One that nobody answers is taken for alone.
func lastServer(ctx context.Context, name string) error {
	c := local()
	defer c.Close()
	r, err := api.Call(ctx, c, api.ListMembers, api.Empty{})
	if err != nil || len(r.Servers) < 2 {
		return nil
	}
	for _, s := range r.Servers {
		if s.Name == name {
			return fmt.Errorf("server %s is one of a group of %d, which would go on counting it: muster server leave %s first",
				name, len(r.Servers), name)
		}
	}
	return nil
}

// withoutJobs refuses a node that jobs have, whether or not a process of theirs runs on it now.
func withoutJobs(ctx context.Context, name string) error {
	c := local()
	defer c.Close()
	r, err := api.Call(ctx, c, api.ListJobs, api.JobQuery{Nodes: []cluster.NodeName{cluster.NodeName(name)},
		Brief:  true,
		Phases: []cluster.Phase{cluster.Starting, cluster.Running, cluster.Suspended, cluster.Ending}})
	if err != nil || len(r.Jobs) == 0 {
		return nil // StopSteps looks for processes
	}
	var ids []string
	for _, j := range r.Jobs {
		ids = append(ids, fmt.Sprint(j.ID))
	}
	return fmt.Errorf("node %s is one of the nodes of job %s: drain it first (scontrol update nodename=%s state=drain reason=...), or end what runs with --purge",
		name, strings.Join(ids, ", "), name)
}
