package cli

import (
	"cmp"
	"errors"
	"fmt"
	"text/tabwriter"
	"time"

	"dev.muster/api"
	"dev.muster/cli/migrate"
	"dev.muster/cluster"
	"github.com/urfave/cli/v2"
)

// peerCommands are what operators say of other clusters.
func peerCommands() []*cli.Command {
	root := &cli.BoolFlag{Name: "root", Usage: "let the peer's root act as root here (default: it has no rights)"}
	return []*cli.Command{
		{Name: "invite", Usage: "print a token with which the named cluster becomes a peer",
			ArgsUsage: "NAME", Flags: []cli.Flag{root},
			Action: func(c *cli.Context) error {
				if c.NArg() != 1 {
					return errors.New("name the cluster that is to become a peer: its ClusterName")
				}
				q := api.PeerInvitation{Name: c.Args().First(), Root: c.Bool("root")}
				r, err := api.Call(c.Context, local(), api.InvitePeer, q)
				if err == nil {
					fmt.Println(r.Token)
				}
				return err
			}},
		{Name: "add",
			Usage:     "become a peer of the cluster that created the token, or add a running Slurm (--slurm)",
			ArgsUsage: "URL[,URL…] | --slurm NAME [--via ssh HOST]",
			Flags: append(migrate.PeerFlags(), root,
				&cli.StringFlag{Name: "token", Usage: "token that muster peer invite printed on the other cluster",
					EnvVars: []string{"MUSTER_PEER_TOKEN"}},
				&cli.StringFlag{Name: "own", Usage: "where this cluster's servers answer others, http://HOST:7480,…; " +
					"the server's own page if left out"}),
			Action: func(c *cli.Context) error {
				if c.IsSet("slurm") {
					return migrate.AddPeer(c)
				}
				if c.NArg() != 1 || c.String("token") == "" {
					return errors.New("say where the other cluster answers and what token it gave: " +
						"muster peer add --token TOKEN http://HOST:7480")
				}
				q := api.PeerRequest{URLs: c.Args().First(), Token: c.String("token"),
					Own: c.String("own"), Root: c.Bool("root")}
				r, err := api.Call(c.Context, local(), api.AddPeer, q)
				if err == nil {
					fmt.Println(r.Name)
				}
				return err
			}},
		{Name: "ls", Usage: "list the peers", Action: func(c *cli.Context) error {
			r, err := api.Call(c.Context, local(), api.ListPeers, api.Empty{})
			if err != nil {
				return err
			}
			return table(func(w *tabwriter.Writer) {
				fmt.Fprintln(w, "CLUSTER\tWHERE\tMAY ASK\tROOT\tSINCE")
				for _, p := range r.Peers {
					fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\n", p.Name, cmp.Or(migrate.PeerPlace(&p), "-"),
						yesNo(p.Asks), yesNo(p.Root), p.Made.Local().Format(time.DateTime))
				}
			})
		}},
		{Name: "rm", Usage: "remove a peer: its token and requests are rejected from now on", ArgsUsage: "NAME",
			Action: func(c *cli.Context) error {
				_, err := api.Call(c.Context, local(), api.RemovePeer, cluster.PeerDrop{Name: c.Args().First()})
				return err
			}},
	}
}

func yesNo(yes bool) string {
	if yes {
		return "yes"
	}
	return "no"
}
