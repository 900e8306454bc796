package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"text/tabwriter"
	"time"

	"dev.muster/agent"
	"dev.muster/api"
	"dev.muster/cluster"
	"dev.muster/durable"
	"github.com/urfave/cli/v2"
)

func snapshotCommands() []*cli.Command {
	file := func(c *cli.Context) (string, error) {
		if c.NArg() != 1 {
			return "", fmt.Errorf("muster snapshot %s: name one file", c.Command.Name)
		}
		return c.Args().First(), nil
	}
	return []*cli.Command{
		{Name: "save", Usage: "on a server: save the cluster's state, keys and history", ArgsUsage: "FILE",
			Flags: []cli.Flag{&cli.BoolFlag{Name: "force",
				Usage: "overwrite an existing file"}}, Action: func(c *cli.Context) error {
				path, err := file(c)
				if err != nil {
					return err
				}
				if _, err := os.Lstat(path); err == nil && !c.Bool("force") {
					return fmt.Errorf("%s is there already: choose another name, or replace it with --force", path)
				}
				return save(c.Context, path)
			}},
		{Name: "inspect", Usage: "verify a snapshot and summarize its contents", ArgsUsage: "FILE",
			Action: func(c *cli.Context) error {
				path, err := file(c)
				if err != nil {
					return err
				}
				b := newBar("reading")
				a, err := agent.Inspect(path, b.move)
				b.end()
				if err != nil {
					return err
				}
				return table(func(w *tabwriter.Writer) { inspect(w, &a) })
			}},
		{Name: "restore",
			Usage:     "create a first server's data folder from a snapshot; the other servers must join again",
			ArgsUsage: "FILE",
			Flags: []cli.Flag{dataFlag(), &cli.StringFlag{Name: "node",
				Usage: "the server's name (default: the host name)"}}, Action: func(c *cli.Context) error {
				path, err := file(c)
				if err != nil {
					return err
				}
				name := c.String("node")
				if name == "" {
					if name, err = os.Hostname(); err != nil {
						return err
					}
				}
				b := newBar("restoring")
				a, err := agent.Restore(path, c.String("data"), name, b.move)
				b.end()
				if err != nil {
					return err
				}
				fmt.Printf("restored %d jobs as of %s into %s\nstart it: muster server --data %[3]s --node %s\n",
					a.Jobs, a.At.Local().Format(time.DateTime), c.String("data"), name)
				return nil
			}},
	}
}

// save fetches the cluster from this machine's server. The file appears when it is whole.
func save(ctx context.Context, path string) error {
	conn, err := api.Tunnel(ctx, local(), api.SaveCluster, "muster-save", api.Empty{})
	if err != nil {
		return err
	}
	defer conn.Close()
	part := path + ".part"
	f, err := os.OpenFile(part, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	defer os.Remove(part)
	b := newBar("saving")
	_, err = io.Copy(io.MultiWriter(f, b), conn)
	b.end()
	if err := errors.Join(err, f.Sync(), f.Close()); err != nil {
		return fmt.Errorf("save into %s: %w", path, err)
	}
	b = newBar("checking")
	a, err := agent.Inspect(part, b.move)
	b.end()
	if err != nil {
		return err
	}
	if err := durable.Rename(part, path); err != nil {
		return err
	}
	fmt.Printf("saved %s and the history up to index %d\n", count(int(a.Jobs), "job"), a.Index)
	return nil
}

func inspect(w io.Writer, a *agent.Archive) {
	phases := map[cluster.Phase]int{}
	for j := range a.State.Jobs() {
		phases[j.Phase]++
	}
	members := map[cluster.Role]int{}
	for m := range a.State.MemberList() {
		if m.Revoked.IsZero() {
			members[m.Role]++
		}
	}
	fmt.Fprintf(w, "saved\t%s by %s (%s)\n", a.At.Local().Format(time.DateTime), a.Server, a.Version)
	fmt.Fprintf(w, "cluster\t%s\n", a.Cluster)
	fmt.Fprintf(w, "index\t%d\n", a.Index)
	fmt.Fprintf(w, "jobs\t%d: %d pending, %d running, %d ending, %d ended\n", a.Jobs, phases[cluster.Pending],
		phases[cluster.Starting]+phases[cluster.Running]+phases[cluster.Suspended], phases[cluster.Ending], phases[cluster.Ended])
	fmt.Fprintf(w, "nodes\t%d\n", a.Nodes)
	fmt.Fprintf(w, "members\t%d servers, %d compute nodes, %d login hosts\n", members[cluster.RoleServer],
		members[cluster.RoleNode], members[cluster.RoleLogin])
	fmt.Fprintf(w, "state\t%d bytes\nhistory\t%d bytes\n", a.ArchiveHead.State.Bytes, a.History.Bytes)
}
