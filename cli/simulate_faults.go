package cli

import (
	"cmp"
	"errors"
	"text/tabwriter"

	"dev.muster/sched/faults"
	"github.com/urfave/cli/v2"
)

// faultFlags are those of muster sim that are about faults.
func faultFlags() []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{Name: "faults",
			Usage: "simulate one training job that meets the faults of a `TABLE` instead of replaying a TRACE: " +
				"llama3, or a file with the columns cause, count, effect (gpu, node, hang, crash)"},
		&cli.StringFlag{Name: "assume", Usage: "with --faults: assume `NAME=VALUE,...` of " + faults.Names()},
	}
}

// simulateFaults compares how much of its time a job trains, with and without spares.
func simulateFaults(c *cli.Context, traces []string) error {
	if len(traces) > 0 || c.String("from") != "" {
		return errors.New("--faults simulates one job; give a trace, --from accounting or --faults")
	}
	plan := faults.Usual()
	causes, err := faults.Load(c.String("faults"))
	if err := cmp.Or(err, plan.Set(c.String("assume"))); err != nil {
		return err
	}
	ways, sums, err := faults.Compare(plan, causes)
	if err != nil {
		return err
	}
	return table(func(w *tabwriter.Writer) { faults.Print(w, ways, sums) })
}
