package cli

import (
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
			Usage: "say how the cluster is and what needs attention; exit code 1 if no majority of the servers is up or some server is down",
			Flags: []cli.Flag{&cli.BoolFlag{Name: "json", Usage: "print JSON"},
				&cli.BoolFlag{
					Name: "watch", Aliases: []string{"w"},
					Usage: "print it again when something changes, until Ctrl-C",
				}},
			Action: func(c *cli.Context) error {
				if c.Bool("watch") {
					return exit(look.WatchStatus(c.Context, frontEnd(), c.Bool("json")))
				}
				return exit(look.Status(frontEnd(), c.Bool("json")))
			}},
		{Name: "top", Usage: "show jobs and the use of GPUs, live; once where the output is no terminal",
			Flags: []cli.Flag{
				&cli.StringFlag{
					Name: "sort", Value: look.TopSorts()[0],
					Usage: "order of jobs: " + strings.Join(look.TopSorts(), ", "),
				},
			},
			Action: func(c *cli.Context) error { return exit(look.Top(frontEnd(), c.String("sort"))) }},
		logsCommand(),
		{Name: "sql",
			Usage:     "ask history in SQL, for operators: muster sql 'SELECT account, sum(seconds * gpus) / 3600.0 FROM runs GROUP BY account'",
			ArgsUsage: "QUESTION",
			Flags: []cli.Flag{&cli.BoolFlag{Name: "tables", Usage: "list what there is to ask about"},
				&cli.BoolFlag{Name: "csv", Usage: "print CSV"},
				&cli.BoolFlag{Name: "json", Usage: "print JSON: a list of rows, cells by column"},
				&cli.BoolFlag{Name: "noheader", Usage: "no line of headers"}},
			Action: func(c *cli.Context) error {
				o := sqlOptions{
					Tables: c.Bool("tables"), CSV: c.Bool("csv"), JSON: c.Bool("json"),
					NoHeader: c.Bool("noheader"), Words: c.Args().Slice(),
				}
				return exit(runSQL(frontEnd(), o))
			}},
		eventsCommand(),
		{Name: "samples", ArgsUsage: "JOB|NODE",
			Usage: "show what a job, or a node, and its GPUs did, minute by minute: also what sbatch --profile asks to keep",
			Flags: []cli.Flag{&cli.StringFlag{Name: "node", Usage: "of one of the job's nodes alone"},
				&cli.BoolFlag{Name: "csv", Usage: "print CSV"},
				&cli.DurationFlag{Name: "since",
					Usage: "so long ago and later, e.g. 2h (default: all of a job, a day of a node)"}},
			Action: func(c *cli.Context) error {
				if c.Args().Len() != 1 {
					return errors.New("usage: muster samples [--node NODE] [--since TIME] [--csv] JOB|NODE")
				}
				o := samplesOptions{What: c.Args().First(), Node: c.String("node"), CSV: c.Bool("csv"),
					Since: c.Duration("since")}
				return exit(runSamples(frontEnd(), o))
			}},
		{Name: "idle", Usage: "list jobs whose GPUs do nothing (below 5 %): whose, where and since when",
			Flags: []cli.Flag{&cli.DurationFlag{Name: "for",
				Usage: "for so long, e.g. 10m (default: the IdleGPUTime of the partition, 30 minutes)"}},
			Action: func(c *cli.Context) error { return exit(runIdle(frontEnd(), c.Duration("for"))) }},
		{Name: "ui",
			Usage: "print a link that opens a session of yours on the page of the cluster, once, within five minutes",
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

func exit(code int) error {
	if code != 0 {
		return cli.Exit("", code)
	}
	return nil
}

func logsCommand() *cli.Command {
	return &cli.Command{
		Name:      "logs",
		Usage:     "print what a job's script, or a task of a step, has written, and follow it (-f), from any machine",
		ArgsUsage: "JOB",
		Flags: []cli.Flag{
			&cli.BoolFlag{Name: "follow", Aliases: []string{"f"}, Usage: "go on until the job has ended"},
			&cli.BoolFlag{Name: "err", Usage: "standard error, where it is a file of its own"},
			&cli.IntFlag{Name: "lines", Aliases: []string{"n"}, Value: -1, DefaultText: "all",
				Usage: "only the last lines"},
			&cli.StringFlag{Name: "step", Usage: "a step of srun, by its `NUMBER`; batch is the script"},
			&cli.IntFlag{Name: "task", Value: -1, DefaultText: "the first", Usage: "a task of it, by its `RANK`"},
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
