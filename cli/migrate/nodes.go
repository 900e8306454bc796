package migrate

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"dev.muster/adopt/nodes"
	"dev.muster/cluster/hostlist"
	"dev.muster/slurm/front"
	"dev.muster/slurm/values"
	"github.com/urfave/cli/v2"
)

// NodeCommands returns the commands that move nodes between a running Slurm and muster.
func NodeCommands() []*cli.Command {
	journal := &cli.StringFlag{Name: "journal", Value: defaultJournal,
		Usage: "keep the state of moving nodes in `FILE`"}
	every := &cli.DurationFlag{Name: "every", Value: 5 * time.Second,
		Usage: "look again after this time while nodes wait"}
	seconds := &cli.IntFlag{Name: "burnin", Value: 30,
		Usage: "test each part of a node for `SECONDS` before it takes jobs"}
	steps := func(join, leave string) []cli.Flag {
		return []cli.Flag{journal, every, seconds,
			&cli.StringFlag{Name: "join", Usage: "run `COMMAND` with sh to " + join},
			&cli.StringFlag{Name: "leave", Usage: "run `COMMAND` with sh to " + leave}}
	}
	return []*cli.Command{
		{
			Name: "nodes",
			Usage: "move nodes to muster: drain them in Slurm, wait until they are empty, stop slurmd, join " +
				"them, test them, and let them take jobs",
			ArgsUsage: "[LIST]",
			Description: "Run it as root. If it ends early, run it again: it continues with all moves of the " +
				"journal. Without LIST, it only continues. Commands get the node's name as $NODE and must be " +
				"repeatable.\n" +
				"Exit codes: 0, all nodes were moved; 1, some were not.",
			Flags: append(steps("join $NODE to muster (default: the installer, over ssh)",
				"stop slurmd of $NODE (default: systemctl disable --now slurmd, over ssh)"),
				&cli.StringFlag{Name: "from", Usage: "move from the peer `NAME` (muster peer add --slurm)"},
				&cli.StringFlag{Name: "at", Usage: "begin to drain at `TIME`, written as for sbatch --begin"}),
			Action: moveNodes,
		},
		{
			Name: "return",
			Usage: "move nodes back to Slurm: drain them in muster, stop its daemon, start slurmd, " +
				"resume them",
			ArgsUsage: "LIST",
			Flags: steps("start slurmd of $NODE (default: systemctl enable --now slurmd, over ssh)",
				"stop muster of $NODE (default: muster install --uninstall, over ssh)"),
			Action: returnNodes,
		},
		{
			Name: "status", Usage: "show the phase of each moved node, imported history, and jobs left in Slurm",
			Flags: []cli.Flag{journal}, Action: showMoves,
		},
		{
			Name: "finish", Usage: "check that no jobs and nodes are left in Slurm, and remove the peer",
			ArgsUsage: "NAME", Flags: []cli.Flag{journal}, Action: finishMove,
		},
	}
}

// expandNodes reads the list of nodes of a command line.
func expandNodes(c *cli.Context) ([]string, error) {
	words, err := takeFlags(c)
	if err != nil {
		return nil, err
	}
	list, err := hostlist.Expand(strings.Join(words, ","))
	if err != nil {
		return nil, err
	}
	isOdd := func(name string) bool {
		odd := func(r rune) bool { return !strings.ContainsRune(nameLetters, r) }
		return name == "" || name[0] == '-' || strings.ContainsFunc(name, odd)
	}
	if i := slices.IndexFunc(list, isOdd); i >= 0 {
		return nil, fmt.Errorf("%q is not the name of a node", list[i])
	}
	return list, nil
}

// nameLetters are the characters of names of nodes.
const nameLetters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-."

// moveNodes is muster adopt nodes.
func moveNodes(c *cli.Context) error {
	list, err := expandNodes(c)
	if err != nil {
		return fmt.Errorf("adopt nodes: %w", err)
	}
	begin := time.Time{}
	if text := c.String("at"); text != "" {
		at, _, ok := values.ParseWhen(text, time.Now())
		if !ok {
			return fmt.Errorf("adopt nodes: --at: %q is not a time; use HH:MM or YYYY-MM-DDTHH:MM", text)
		}
		begin = at
	}
	if len(list) > 0 && c.String("from") == "" {
		return errors.New("adopt nodes: name the Slurm with --from NAME; muster peer ls lists the peers")
	}
	return changeMoves(c, "nodes", func(j *moves) error {
		for _, name := range list {
			switch old := j.find(name); {
			case old == nil:
				j.list = append(j.list, &nodes.Move{Node: name, From: c.String("from"), Phase: nodes.Planned,
					Since: time.Now(), At: begin, Join: c.String("join"), Leave: c.String("leave")})
			case old.Phase == nodes.Returned:
				*old = nodes.Move{Node: name, From: c.String("from"), Phase: nodes.Planned,
					Since: time.Now(), At: begin, Join: c.String("join"), Leave: c.String("leave")}
			case old.Back():
				return fmt.Errorf("node %s returns to Slurm: it is %s; finish that first (muster adopt nodes)",
					name, old.Phase)
			}
		}
		return nil
	})
}

// returnNodes is muster adopt return.
func returnNodes(c *cli.Context) error {
	list, err := expandNodes(c)
	if err == nil && len(list) == 0 {
		err = errors.New("name the nodes")
	}
	if err != nil {
		return fmt.Errorf("adopt return: %w", err)
	}
	return changeMoves(c, "return", func(j *moves) error {
		for _, name := range list {
			m := j.find(name)
			switch {
			case m == nil:
				return fmt.Errorf("node %s was not moved; muster adopt status lists the nodes", name)
			case !m.Back():
				m.Phase, m.Since, m.Join, m.Leave = nodes.Leaving, time.Now(), c.String("join"), c.String("leave")
			}
		}
		return nil
	})
}

// changeMoves changes the journal, and then takes steps until no node can go on.
func changeMoves(c *cli.Context, name string, change func(*moves) error) error {
	j, err := openMoves(c.String("journal"), true)
	if err != nil {
		return fmt.Errorf("adopt %s: %w", name, err)
	}
	defer j.close()
	w := newNodeWorld(c)
	if err = change(j); err == nil {
		err = w.check(j.list)
	}
	if err == nil {
		err = j.save()
	}
	left := 0
	if err == nil {
		left, err = w.runMoves(j, c.Duration("every"))
	}
	if err != nil {
		return fmt.Errorf("adopt %s: %w", name, err)
	}
	if left > 0 {
		return cli.Exit("", 1)
	}
	return nil
}

// runMoves takes steps until all moves are over or have failed, and returns how many have failed. The journal is on
// the disk before the next step.
func (w *nodeWorld) runMoves(j *moves, every time.Duration) (failed int, err error) {
	bad := map[*nodes.Move]bool{}
	for {
		waiting := false
		for _, m := range j.list {
			for !m.Done() && !bad[m] {
				moved, err := nodes.Step(w, m, time.Now())
				if err != nil {
					bad[m] = true
				}
				if err := j.save(); err != nil {
					return len(bad), err
				}
				if moved || err != nil {
					fmt.Fprintf(w.out, "%s: %s%s\n", m.Node, m.Phase, front.Prefixed(": ", m.Note))
				}
				if !moved {
					break
				}
			}
			waiting = waiting || !m.Done() && !bad[m]
		}
		if !waiting {
			return len(bad), nil
		}
		select {
		case <-w.ctx.Done():
			return len(bad), w.ctx.Err()
		case <-time.After(every):
		}
	}
}
