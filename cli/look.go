package cli

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"strings"

	"dev.muster/api"
	"dev.muster/cli/look"
	"dev.muster/slurm/front"
	"github.com/urfave/cli/v2"
)

// lookCommands are those that show the cluster as a whole.
func lookCommands() []*cli.Command {
	return []*cli.Command{
		{Name: "status",
			Usage: "show cluster status and problems; exit with 1 if a server is down or the servers have no majority",
			Flags: []cli.Flag{&cli.BoolFlag{Name: "json", Usage: "print JSON"},
				&cli.BoolFlag{
					Name: "watch", Aliases: []string{"w"},
					Usage: "print again on every change, until Ctrl-C",
				}},
			Action: func(c *cli.Context) error {
				if c.Bool("watch") {
					return exit(look.WatchStatus(c.Context, frontEnd(), c.Bool("json")))
				}
				return exit(look.Status(frontEnd(), c.Bool("json")))
			}},
		{Name: "top", Usage: "show jobs and GPU utilization, live on a terminal, otherwise once",
			Flags: []cli.Flag{
				&cli.StringFlag{
					Name: "sort", Value: look.TopSorts()[0],
					Usage: "sort jobs by " + strings.Join(look.TopSorts(), ", "),
				},
			},
			Action: func(c *cli.Context) error { return exit(look.Top(frontEnd(), c.String("sort"))) }},
		logsCommand(),
		{Name: "sql",
			Usage:     "query the job history in SQL (operators only): muster sql 'SELECT account, sum(seconds * gpus) / 3600.0 FROM runs GROUP BY account'",
			ArgsUsage: "QUESTION",
			Flags: []cli.Flag{&cli.BoolFlag{Name: "tables", Usage: "list the tables and their columns"},
				&cli.BoolFlag{Name: "csv", Usage: "print CSV"},
				&cli.BoolFlag{Name: "json", Usage: "print JSON: one object per row"},
				&cli.BoolFlag{Name: "noheader", Usage: "omit the header line"}},
			Action: func(c *cli.Context) error {
				o := sqlOptions{
					Tables: c.Bool("tables"), CSV: c.Bool("csv"), JSON: c.Bool("json"),
					NoHeader: c.Bool("noheader"), Words: c.Args().Slice(),
				}
				return exit(runSQL(plainFrontEnd(), o))
			}},
		eventsCommand(),
		{Name: "samples", ArgsUsage: "JOB|NODE",
			Usage: "show the usage of a job or node and its GPUs per minute, with samples of sbatch --profile",
			Flags: []cli.Flag{&cli.StringFlag{Name: "node", Usage: "only this node of the job"},
				&cli.BoolFlag{Name: "csv", Usage: "print CSV"},
				&cli.DurationFlag{Name: "since",
					Usage: "how far back to start, e.g. 2h (default: the whole job, or one day of a node)"}},
			Action: func(c *cli.Context) error {
				if c.Args().Len() != 1 {
					return errors.New("usage: muster samples [--node NODE] [--since TIME] [--csv] JOB|NODE")
				}
				o := samplesOptions{What: c.Args().First(), Node: c.String("node"), CSV: c.Bool("csv"),
					Since: c.Duration("since")}
				return exit(runSamples(plainFrontEnd(), o))
			}},
		{Name: "idle", Usage: "list jobs with idle GPUs (below 5 % utilization), with user, nodes and duration",
			Flags: []cli.Flag{&cli.DurationFlag{Name: "for",
				Usage: "minimum idle time, e.g. 10m (default: IdleGPUTime of the partition, 30 minutes)"}},
			Action: func(c *cli.Context) error { return exit(look.Idle(plainFrontEnd(), c.Duration("for"))) }},
		{Name: "report", ArgsUsage: "[day | week | month]",
			Usage: "print what GPUs were used for, what was lost to which cause, hangs, bad nodes and idle GPUs",
			Action: func(c *cli.Context) error {
				return exit(look.Report(plainFrontEnd(), cmp.Or(strings.Join(c.Args().Slice(), " "), "week")))
			}},
		{Name: "ui",
			Usage: "print a link that logs you in to the cluster's page; it works once, within five minutes",
			Action: func(c *cli.Context) error {
				cl := local()
				defer cl.Close()
				r, err := api.Call(c.Context, cl, api.CreateLogin, api.Empty{})
				if err != nil {
					return fmt.Errorf("no link could be made: %w", err)
				}
				fmt.Println(r.URL)
				fmt.Fprintf(os.Stderr,
					"muster: good for one login until %s; whoever has the link can use it\n",
					r.Expires.Local().Format("15:04:05"))
				return nil
			}},
	}
}

// frontEnd is the surroundings of a command that asks the local daemon.
func frontEnd() *front.Sys {
	sys := front.RealSys("muster")
	sys.Dial = front.DialLocal
	return sys
}

// plainFrontEnd is one whose texts do not control the terminal that shows them.
func plainFrontEnd() *front.Sys {
	sys := frontEnd()
	sys.Stdout = front.PlainText(sys.Stdout)
	return sys
}

func exit(code int) error {
	if code != 0 {
		return cli.Exit("", code)
	}
	return nil
}

func logsCommand() *cli.Command {
	return &cli.Command{
		Name:      "logs",
		Usage:     "print the output of a job's script or of a step's task, from any machine",
		ArgsUsage: "JOB",
		Flags: []cli.Flag{
			&cli.BoolFlag{Name: "follow", Aliases: []string{"f"}, Usage: "follow the output until the job ends"},
			&cli.BoolFlag{Name: "err", Usage: "print standard error, if it has its own file"},
			&cli.IntFlag{Name: "lines", Aliases: []string{"n"}, Value: -1, DefaultText: "all",
				Usage: "print only this many last lines"},
			&cli.StringFlag{Name: "step", Usage: "print a step, by its `NUMBER`; batch is the script"},
			&cli.IntFlag{Name: "task", Value: -1, DefaultText: "the first", Usage: "print one task, by its `RANK`"},
		},
		Action: func(c *cli.Context) error {
			if c.NArg() != 1 {
				return errors.New("logs: say of which job: muster logs JOB")
			}
			opt := look.LogOptions{Follow: c.Bool("follow"), Errors: c.Bool("err"), Lines: c.Int("lines"),
				Job: c.Args().First(), Step: c.String("step"), Task: c.Int("task")}
			return exit(look.Logs(frontEnd(), opt))
		},
	}
}
