package cli

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"strconv"

	"dev.muster/api"
	"dev.muster/cluster"
	"dev.muster/slurm/front"
	"github.com/urfave/cli/v2"
)

// Reports of jobs: how far they have come, and that they have saved a checkpoint.

// jobCommands are those that jobs call, and muster stacks.
func jobCommands() []*cli.Command {
	job := &cli.UintFlag{Name: "job", Usage: "number of the job (default: $SLURM_JOB_ID)"}
	return []*cli.Command{
		{Name: "progress", ArgsUsage: "STEP",
			Usage: "report from within a job how far it has come; muster then notices when it makes no progress any more",
			Flags: []cli.Flag{job, &cli.Int64Flag{Name: "of", Usage: "number of steps in all"},
				&cli.Float64Flag{Name: "loss", Usage: "loss of the step"}},
			Action: func(c *cli.Context) error { return reportProgress(frontEnd(), c) }},
		{Name: "checkpoint", Usage: "report from within a job what it has saved", Subcommands: []*cli.Command{
			{Name: "done", ArgsUsage: "[PATH]",
				Usage: "the job has saved a checkpoint, from which it can go on; a job that is being preempted leaves then",
				Flags: []cli.Flag{job}, Action: func(c *cli.Context) error { return saveCheckpoint(frontEnd(), c) }}}},
		{Name: "swap", ArgsUsage: "JOB NODE [REASON]",
			Usage: "replace a node of a running job by one of its spares (sbatch --spare)",
			Action: func(c *cli.Context) error {
				if c.NArg() < 2 || c.NArg() > 3 {
					return errors.New("usage: muster swap JOB NODE [REASON]")
				}
				return swapNode(plainFrontEnd(), c.Args().Get(0), c.Args().Get(1), c.Args().Get(2))
			}},
		{Name: "stacks", ArgsUsage: "JOB",
			Usage: "show where the processes of a job are in the kernel, on each of its nodes",
			Action: func(c *cli.Context) error {
				if c.NArg() != 1 {
					return errors.New("usage: muster stacks JOB")
				}
				return showStacks(plainFrontEnd(), c.Args().First())
			}},
	}
}

// jobOf is the job that a command is about.
func jobOf(c *cli.Context) (cluster.JobID, error) {
	if id := c.Uint("job"); id != 0 {
		return cluster.JobID(id), nil
	}
	id, err := strconv.ParseUint(os.Getenv("SLURM_JOB_ID"), 10, 32)
	if err != nil || id == 0 {
		return 0, errors.New("SLURM_JOB_ID names no job: call this within a job, or give --job NUMBER")
	}
	return cluster.JobID(id), nil
}

// reportProgress tells how far a job has come.
func reportProgress(sys *front.Sys, c *cli.Context) error {
	id, err := jobOf(c)
	if err != nil {
		return err
	}
	step, err := strconv.ParseInt(c.Args().First(), 10, 64)
	if err != nil || c.NArg() != 1 {
		return errors.New("usage: muster progress STEP [--of N] [--loss X] [--job NUMBER]")
	}
	q := api.ProgressRequest{Job: id, Step: step, Of: c.Int64("of")}
	if c.IsSet("loss") {
		loss := c.Float64("loss")
		q.Loss = &loss
	}
	_, err = front.Call(sys, api.ReportProgress, q)
	return err
}

// saveCheckpoint tells that a job has saved a checkpoint.
func saveCheckpoint(sys *front.Sys, c *cli.Context) error {
	id, err := jobOf(c)
	if err != nil {
		return err
	}
	if c.NArg() > 1 {
		return errors.New("usage: muster checkpoint done [PATH] [--job NUMBER]")
	}
	_, err = front.Call(sys, api.SaveCheckpoint, cluster.CheckpointDone{Job: id, Path: c.Args().First()})
	return err
}

// swapNode has a spare take the place of a node, and prints which one has.
func swapNode(sys *front.Sys, word, node, why string) error {
	id, err := strconv.ParseUint(word, 10, 32)
	if err != nil {
		return fmt.Errorf("muster swap: %q is not the number of a job", word)
	}
	q := cluster.SwapNode{Job: cluster.JobID(id), Node: cluster.NodeName(node), Why: cmp.Or(why, "by request")}
	got, err := front.Call(sys, api.SwapNode, q)
	if err != nil {
		return err
	}
	fmt.Fprintf(sys.Stdout, "node %s of job %d was replaced by %s\n", node, id, got.Node)
	return nil
}

// showStacks prints where the processes of a job are, node by node.
func showStacks(sys *front.Sys, word string) error {
	id, err := strconv.ParseUint(word, 10, 32)
	if err != nil {
		return fmt.Errorf("%q is no job: want its number", word)
	}
	ref := cluster.Ref{Job: cluster.JobID(id)}
	jobs, err := front.Call(sys, api.ListJobs, api.JobQuery{Refs: []cluster.Ref{ref}})
	if err != nil {
		return err
	}
	for _, j := range jobs.Jobs {
		if j.Alloc == nil || j.Phase == cluster.Ended {
			continue
		}
		for _, sh := range j.Alloc.Shares {
			got, err := front.Call(sys, api.ShowStacks, api.StackQuery{Job: j.ID, Node: sh.Node})
			if err != nil {
				return fmt.Errorf("node %s: %w", sh.Node, err)
			}
			fmt.Fprint(sys.Stdout, got.Text)
			if got.More > 0 {
				fmt.Fprintf(sys.Stdout, "%s: %d more processes\n", sh.Node, got.More)
			}
		}
	}
	return nil
}
