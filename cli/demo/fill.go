package demo

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/urfave/cli/v2"

	"dev.muster/acct"
	"dev.muster/agent"
	"dev.muster/agent/machine"
	"dev.muster/api"
	"dev.muster/cluster"
	"dev.muster/wire"
)

// Flag is the option of the daemon that asks for a past.
func Flag() cli.Flag {
	return &cli.DurationFlag{
		Name: "hollow-history",
		Usage: "give a new cluster of simulated nodes a past of this length, of jobs of a cluster called \"" +
			Cluster + "\"",
	}
}

// mostPast bounds the option.
const mostPast = 7 * 24 * time.Hour

// Apply has a daemon make the past that its options ask for.
func Apply(c *cli.Context, cfg *agent.Config) error {
	back := c.Duration("hollow-history")
	switch {
	case back == 0:
		return nil
	case back < time.Hour || back > mostPast:
		return fmt.Errorf("--hollow-history %s: give a time from 1h to %s", back, mostPast)
	case len(cfg.Hollow.Nodes) == 0 || !cfg.Server || !cfg.Client:
		return errors.New("--hollow-history is for simulated nodes: use it with muster dev --hollow NODES")
	}
	socket := cfg.Socket
	past := Past{Nodes: cfg.Hollow.Nodes, Back: back, Server: &api.Client{
		Dial: func(ctx context.Context) (api.Conn, error) { return (&net.Dialer{}).DialContext(ctx, "unix", socket) },
	}}
	cfg.Hollow.Past = past.Fill
	return nil
}

// seed is that of the past: everybody sees the same one.
const seed = 7

// Past fills the history of a new cluster with a day, or as long as is asked for.
type Past struct {
	Nodes []machine.Node
	Back  time.Duration
	// Server is the daemon whose history it is.
	Server *api.Client
}

// Fill imports the jobs, whose numbers are below those of jobs to come, and keeps the samples of the overview's curves.
// A cluster that has had jobs, or this past, is left as it is.
func (p *Past) Fill(ctx context.Context, db *acct.DB, snap *cluster.Snapshot) error {
	partition := snap.DefaultPartition()
	if partition == nil || snap.NextID > snap.Config().FirstJobID {
		return nil
	}
	now := time.Now().Truncate(time.Minute)
	day := Make(p.Nodes, partition.Name, now.Add(-p.Back), now, seed)
	cmd := cluster.ImportHistory{Gap: 1, Import: cluster.Import{
		Cluster: Cluster, Release: 2605, Source: Cluster, Over: true,
	}}
	for _, j := range day.Jobs {
		text, err := wire.Marshal(j)
		if err != nil {
			return fmt.Errorf("simulate a past: %w", err)
		}
		cmd.Jobs = append(cmd.Jobs, text)
		cmd.Import.Highest = max(cmd.Import.Highest, j.ID)
	}
	cmd.Import.Passed = int64(len(day.Jobs))
	if _, err := api.Call(ctx, p.Server, api.ImportHistory, cmd); err != nil {
		return fmt.Errorf("simulate a past: %w", err)
	}
	for _, m := range day.Minutes {
		if err := acct.PastOf(db).Add(ctx, m.At, m.Samples); err != nil {
			return fmt.Errorf("simulate a past: %w", err)
		}
	}
	return nil
}
