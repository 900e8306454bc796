package migrate

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"dev.muster/adopt/nodes"
	"dev.muster/api"
	"dev.muster/cluster"
	"dev.muster/slurm/front"
	"github.com/urfave/cli/v2"
)

// showMoves is muster adopt status.
func showMoves(c *cli.Context) error {
	j, err := openMoves(c.String("journal"), false)
	if err != nil {
		return fmt.Errorf("adopt status: %w", err)
	}
	out := front.PlainText(c.App.Writer)
	if err := printMoves(out, j.list); err != nil {
		return err
	}
	imports, err := api.Call(c.Context, &api.Client{Dial: front.DialLocal}, api.ListImports, api.AfterQuery{})
	if err != nil {
		return err
	}
	for _, i := range imports.Imports {
		fmt.Fprintf(out, "History of %s: %d jobs imported\n", i.Cluster, i.Jobs)
	}
	peers, err := slurmPeers(c)
	if err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(peers)) {
		left, err := jobsLeft(c.Context, peers[name])
		if err != nil {
			fmt.Fprintf(out, "Queue of %s: unknown: %v\n", name, err)
			continue
		}
		fmt.Fprintf(out, "Queue of %s: %d pending, %d other jobs\n", name, left["PENDING"], left["OTHER"])
	}
	return nil
}

// printMoves prints a table of nodes.
func printMoves(out io.Writer, list []*nodes.Move) error {
	if len(list) == 0 {
		_, err := fmt.Fprintln(out, "No nodes were moved. Use muster adopt nodes LIST --from NAME.")
		return err
	}
	t := tabwriter.NewWriter(out, 0, 4, 2, ' ', 0)
	fmt.Fprintln(t, "NODE\tPEER\tPHASE\tSINCE\tNOTE")
	for _, m := range list {
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\n", m.Node, m.From, m.Phase, m.Since.Local().Format(time.DateTime),
			front.Plain(m.Note))
	}
	return t.Flush()
}

// jobsLeft counts the jobs of a Slurm: those that are pending, and the others.
func jobsLeft(ctx context.Context, at *cluster.SlurmPeer) (map[string]int, error) {
	text, err := askSlurm(ctx, at, "squeue", "-h", "-a", "-o", "%T")
	if err != nil {
		return nil, err
	}
	out := map[string]int{}
	for _, state := range strings.Fields(text) {
		if state != "PENDING" {
			state = "OTHER"
		}
		out[state]++
	}
	return out, nil
}

// finishMove is muster adopt finish.
func finishMove(c *cli.Context) error {
	name := c.Args().First()
	if c.NArg() != 1 {
		return errors.New("adopt finish: name the peer; muster peer ls lists the peers")
	}
	j, err := openMoves(c.String("journal"), true)
	if err != nil {
		return fmt.Errorf("adopt finish: %w", err)
	}
	defer j.close()
	peers, err := slurmPeers(c)
	if err == nil && peers[name] == nil {
		err = fmt.Errorf("no Slurm %s is a peer; muster peer ls lists the peers", name)
	}
	if err == nil {
		err = checkFinished(c.Context, peers[name], j.list, name)
	}
	if err == nil {
		_, err = api.Call(c.Context, &api.Client{Dial: front.DialLocal}, api.RemovePeer, cluster.PeerDrop{Name: name})
	}
	if err != nil {
		return fmt.Errorf("adopt finish: %w", err)
	}
	fmt.Fprintf(c.App.Writer, `%[1]s has no jobs and no nodes left, and is not a peer any more. Next:
1. Make a last dump of its database, and import it: muster adopt import DUMP.
2. On its controller: systemctl disable --now slurmctld slurmdbd.
3. Keep its StateSaveLocation and the dump until you are sure. Then remove Slurm's packages.
`, name)
	return nil
}

// checkFinished refuses while jobs or nodes are left in a Slurm.
func checkFinished(ctx context.Context, at *cluster.SlurmPeer, list []*nodes.Move, name string) error {
	left, err := jobsLeft(ctx, at)
	if err != nil {
		return err
	}
	if n := left["PENDING"] + left["OTHER"]; n > 0 {
		return fmt.Errorf("%d jobs are left in %s: move them (muster adopt queue), or wait until they have ended",
			n, name)
	}
	text, err := askSlurm(ctx, at, "sinfo", "-h", "-a", "-N", "-o", "%N")
	if err != nil {
		return err
	}
	isMoved := func(node string) bool {
		return slices.ContainsFunc(list, func(m *nodes.Move) bool {
			return m.Node == node && m.From == name && m.Phase == nodes.Moved
		})
	}
	all := slices.Compact(slices.Sorted(slices.Values(strings.Fields(text))))
	all = slices.DeleteFunc(all, isMoved)
	if len(all) == 0 {
		return nil
	}
	shown := strings.Join(all[:min(len(all), 10)], ",")
	return fmt.Errorf("%d nodes are left in %s: %s; move them (muster adopt nodes --from %s LIST), "+
		"or delete them there", len(all), name, shown, name)
}
