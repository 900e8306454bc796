package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"text/tabwriter"
	"time"

	"dev.muster/agent"
	"dev.muster/api"
	"dev.muster/cli/look"
	"dev.muster/cluster"
	"dev.muster/cluster/hostlist"
	"dev.muster/durable"
	"dev.muster/slurm/front"
	"github.com/urfave/cli/v2"
)

// local is the client of this machine's daemon.
func local() *api.Client { return &api.Client{Dial: front.DialLocal} }

// addresses adds the default port where none is given.
func addresses(list []string) []string {
	var out []string
	for _, a := range list {
		for _, one := range strings.Split(a, ",") {
			if _, _, err := net.SplitHostPort(one); err != nil {
				one = net.JoinHostPort(strings.Trim(one, "[]"), agent.DefaultPort)
			}
			out = append(out, one)
		}
	}
	return out
}

// joinFile has the commands by which other machines join a new cluster, in its first server's data folder.
const joinFile = "join-commands"

// joinLife is how long the tokens in them are good.
const joinLife = 24 * time.Hour

// welcome shows whoever has founded a cluster how other machines join. The commands hold tokens: they are printed on a
// terminal only. A log may have other readers, so there they go into a file of root's.
func welcome(ctx context.Context, cfg *agent.Config, addr string) {
	text := joinCommands(ctx, cfg.Socket, addr)
	if front.IsTerminal(os.Stderr) {
		fmt.Fprint(os.Stderr, "muster: this is a new cluster. For a day, others can join it:\n"+text+
			"muster: muster token create makes further tokens.\n")
		return
	}
	file := filepath.Join(cfg.Dir, joinFile)
	if err := durable.Swap(file, []byte(text), 0o600); err != nil {
		cfg.Log.Error("the commands for joining could not be written", "err", err)
	} else {
		fmt.Fprintf(os.Stderr, "muster: this is a new cluster; for a day, others join it by the commands in %s\n", file)
	}
	fmt.Fprintln(os.Stderr,
		"muster: muster token create --install --role client (or server, or login) prints how others join it")
}

// forgetCommands removes the commands for joining once their tokens have expired.
func forgetCommands(dir string) error {
	file := filepath.Join(dir, joinFile)
	info, err := os.Stat(file)
	if errors.Is(err, fs.ErrNotExist) || err == nil && time.Since(info.ModTime()) < joinLife {
		return nil
	}
	if err != nil {
		return err
	}
	return os.Remove(file)
}

// joinCommands makes two tokens and returns the commands that use them.
func joinCommands(ctx context.Context, socket, addr string) string {
	c := &api.Client{
		Dial: func(ctx context.Context) (api.Conn, error) { return (&net.Dialer{}).DialContext(ctx, "unix", socket) },
	}
	defer c.Close()
	text := func(role cluster.Role, uses int) string {
		r, err := api.Call(ctx, c, api.CreateToken, api.TokenRequest{Role: role, Uses: uses, Life: joinLife})
		if err != nil {
			return fmt.Sprintf("(%v)", err)
		}
		return r.Text
	}
	return fmt.Sprintf(`muster:   a server:       muster server --join %[1]s --token %[2]s
muster:   a client:       muster client --join %[1]s --token %[3]s
`, addr, text(cluster.RoleServer, 10), text(cluster.RoleNode, 10_000))
}

func table(print func(*tabwriter.Writer)) error {
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	print(w)
	return w.Flush()
}

func tokenCommands() []*cli.Command {
	return []*cli.Command{
		{Name: "create", Usage: "create and print a join token", Flags: []cli.Flag{
			&cli.StringFlag{
				Name: "role", Value: cluster.RoleNode.Word(),
				Usage: "role of the members that join with it: server, client or login",
			},
			&cli.IntFlag{Name: "uses", Value: 1, Usage: "allow this many machines to join with the token"},
			&cli.DurationFlag{Name: "expires", Value: 24 * time.Hour, Usage: "how long the token is valid"},
			&cli.BoolFlag{Name: "hollow", Usage: "allow the member to simulate nodes of any name"},
			&cli.BoolFlag{Name: "replace", Usage: "allow the member to take the name of an existing one"},
			&cli.BoolFlag{
				Name:  "install",
				Usage: "print the command that installs muster on a machine and joins it, instead of the token",
			},
		}, Action: func(c *cli.Context) error {
			r, err := api.Call(c.Context, local(), api.CreateToken, api.TokenRequest{Role: roleOf(c.String("role")),
				Uses: c.Int("uses"),
				Life: c.Duration("expires"), Hollow: c.Bool("hollow"), Replace: c.Bool("replace")})
			if err != nil {
				return err
			}
			if c.Bool("install") {
				return printInstall(c.Context, os.Stdout, r, r.Token.Role.Word())
			}
			fmt.Println(r.Text)
			return nil
		}},
		{Name: "list", Usage: "list the join tokens", Action: func(c *cli.Context) error {
			r, err := api.Call(c.Context, local(), api.ListTokens, api.Empty{})
			if err != nil {
				return err
			}
			return table(func(w *tabwriter.Writer) {
				fmt.Fprintln(w, "TOKEN\tROLE\tUSES LEFT\tEXPIRES\tMADE BY")
				for _, k := range r.Tokens {
					fmt.Fprintf(w, "%s\t%s\t%d\t%s\t%d\n", k.ID, k.Role.Word(), k.Uses,
						k.Expires.Local().Format(time.DateTime), k.By)
				}
			})
		}},
		{Name: "revoke", Usage: "revoke a join token; existing members are not affected",
			ArgsUsage: "TOKEN",
			Action: func(c *cli.Context) error {
				id := c.Args().First()
				if p := strings.Split(id, "."); len(p) == 4 { // the whole text was given
					id = p[2]
				}
				_, err := api.Call(c.Context, local(), api.RevokeToken, cluster.TokenRevoke{ID: id})
				return err
			}},
	}
}

// roleOf is the role of a word that people use for it. The server refuses other words.
func roleOf(word string) cluster.Role {
	if word == cluster.RoleNode.Word() {
		return cluster.RoleNode
	}
	return cluster.Role(word)
}

func serverCommands() []*cli.Command {
	named := func(e api.Endpoint[api.ServerRequest, api.Empty]) cli.ActionFunc {
		return func(c *cli.Context) error {
			_, err := api.Call(c.Context, local(), e, api.ServerRequest{Name: c.Args().First()})
			return err
		}
	}
	return []*cli.Command{
		{Name: "members", Usage: "list the servers and their state", Action: func(c *cli.Context) error {
			r, err := api.Call(c.Context, local(), api.ListMembers, api.Empty{})
			if err != nil {
				return err
			}
			return table(func(w *tabwriter.Writer) {
				fmt.Fprintln(w, "SERVER\tADDRESS\tVERSION\tSTATE")
				for _, s := range r.Servers {
					state := "catching up, no vote yet"
					switch {
					case !s.Silent.IsZero():
						state = "silent since " + s.Silent.Local().Format(time.TimeOnly)
					case s.Leader:
						state = "leads"
					case s.Voter:
						state = "follows"
					}
					fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", s.Name, s.Addr, cmp.Or(r.Versions[s.Name], "-"), state)
				}
				if late := look.WithoutVote(r.Servers); late != "" {
					fmt.Fprintln(w, late)
				}
				if older := olderServers(r); len(older) > 0 {
					fmt.Fprintf(w,
						"an upgrade is under way: the log stays as the oldest version writes it until %s %s upgraded too\n",
						strings.Join(older, ", "), map[bool]string{true: "is", false: "are"}[len(older) == 1])
				}
				if age := r.Now.Sub(r.Heard); age > 2*time.Second {
					fmt.Fprintf(w, "no leader for %v: the data of this server may be that old\n",
						age.Round(time.Second))
				}
			})
		}},
		{Name: "leave", Usage: "remove a server from the group", ArgsUsage: "SERVER",
			Action: func(c *cli.Context) error {
				if c.NArg() != 1 {
					return fmt.Errorf("name the server; muster server members shows them")
				}
				return named(api.RemoveServer)(c)
			}},
		{
			Name: "transfer", Usage: "transfer leadership to another server", ArgsUsage: "[SERVER]",
			Action: named(api.TransferLead),
		},
	}
}

func memberCommands() []*cli.Command {
	return []*cli.Command{
		{Name: "list", Usage: "list all members", Action: func(c *cli.Context) error {
			r, err := api.Call(c.Context, local(), api.ListMembers, api.Empty{})
			if err != nil {
				return err
			}
			return table(func(w *tabwriter.Writer) {
				fmt.Fprintln(w, "MEMBER\tROLE\tADDRESS\tVERSION\tJOINED\tREVOKED")
				for _, m := range r.Members {
					revoked := ""
					if !m.Revoked.IsZero() {
						revoked = m.Revoked.Local().Format(time.DateTime)
					}
					fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\n", m.Name, m.Role, m.Addr,
						cmp.Or(r.Versions[m.Name], "-"), m.Joined.Local().Format(time.DateTime), revoked)
				}
			})
		}},
		{Name: "reclaim",
			Usage:     "drain nodes that their provider reclaims: warn their jobs and requeue them in time",
			ArgsUsage: "NODES",
			Flags: []cli.Flag{&cli.DurationFlag{
				Name: "in", Value: 2 * time.Minute, Usage: "time until the nodes are gone",
			},
				&cli.StringFlag{Name: "reason", Usage: "reason of the nodes (default: reclaimed by its provider)"}},
			Action: reclaim},
		{Name: "revoke", Usage: "revoke a member's certificate",
			ArgsUsage: "MEMBER",
			Action: func(c *cli.Context) error {
				_, err := api.Call(c.Context, local(), api.RevokeMember, cluster.MemberRevoke{Name: c.Args().First()})
				return err
			}},
	}
}

// reclaim is muster node reclaim NODES: what a hook calls that hears of the end of a spot machine, on a server or
// on the machine.
func reclaim(c *cli.Context) error {
	names, err := hostlist.Expand(c.Args().First())
	if err != nil || len(names) == 0 || c.NArg() != 1 || c.Duration("in") < 0 {
		return fmt.Errorf("usage: muster node reclaim [--in 2m] [--reason TEXT] NODES, with nodes as gpu[001-004]")
	}
	q := cluster.NodeSet{Action: cluster.NodeReclaim, Grace: c.Duration("in")}
	for _, n := range names {
		q.Nodes = append(q.Nodes, cluster.NodeName(n))
	}
	if why := c.String("reason"); why != "" {
		q.Reason = &why
	}
	_, err = api.Call(c.Context, local(), api.SetNodes, q)
	return err
}

// olderServers are those that do not know a level of the log which another one knows. One that has just joined has not
// said which it knows.
func olderServers(r api.MembersResponse) (names []string) {
	newest := r.Level
	for _, s := range r.Servers {
		newest = max(newest, s.Level)
	}
	for _, s := range r.Servers {
		if s.Level > 0 && s.Level < newest {
			names = append(names, s.Name)
		}
	}
	return names
}
