package cli

import (
	"errors"
	"fmt"
	"text/tabwriter"
	"time"

	"dev.muster/api"
	"dev.muster/cluster"
	"dev.muster/slurm/front"
	"dev.muster/wire"
	"github.com/urfave/cli/v2"
)

// eventsCommand is muster events.
func eventsCommand() *cli.Command {
	return &cli.Command{
		Name:  "events",
		Usage: "show the audit trail: who changed what, and from where; users see only their own changes",
		Flags: []cli.Flag{
			&cli.BoolFlag{Name: "audit", Usage: "show the audit trail (required)"},
			&cli.StringFlag{Name: "user", Usage: "show only changes by this user"},
			&cli.StringFlag{
				Name: "action", Usage: "show only actions that begin with this text, e.g. job or \"node drain\"",
			},
			&cli.StringFlag{Name: "object", Usage: "show only objects that contain this text, e.g. \"job 12\""},
			&cli.DurationFlag{Name: "since", Usage: "show only changes at most this old, e.g. 24h"},
			&cli.IntFlag{Name: "last", Usage: "show at most this many changes, the latest ones"},
			&cli.BoolFlag{Name: "json", Usage: "print one JSON object per change"},
		},
		Action: func(c *cli.Context) error {
			if !c.Bool("audit") || c.Args().Present() {
				return errors.New("usage: muster events --audit [options]")
			}
			q := api.AuditQuery{
				User: c.String("user"), Action: c.String("action"), Object: c.String("object"), Last: c.Int("last"),
			}
			if age := c.Duration("since"); age > 0 {
				q.Since = time.Now().Add(-age)
			}
			return exit(runAudit(frontEnd(), q, c.Bool("json")))
		},
	}
}

// runAudit prints the audit trail. It returns the exit code.
func runAudit(sys *front.Sys, q api.AuditQuery, json bool) int {
	resp, err := front.Call(sys, api.ListAudit, q)
	if err != nil {
		return sys.Fail("%s", err.Error())
	}
	if json {
		for _, a := range resp.Changes {
			text, err := wire.Marshal(a)
			if err != nil {
				return sys.Fail("%s", err.Error())
			}
			fmt.Fprintf(sys.Stdout, "%s\n", text)
		}
		return 0
	}
	t := tabwriter.NewWriter(sys.Stdout, 0, 8, 2, ' ', 0)
	fmt.Fprintln(t, "TIME\tUSER\tORIGIN\tACTION\tOBJECT\tOLD\tNEW")
	for _, a := range resp.Changes {
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\t%s\n", a.At.Local().Format("2006-01-02T15:04:05"),
			a.By, a.Origin, a.Action, cluster.PlainLine(a.Object),
			cluster.PlainLine(a.Old), cluster.PlainLine(a.New))
	}
	if err := t.Flush(); err != nil {
		return sys.Fail("%s", err.Error())
	}
	if resp.Own {
		fmt.Fprintf(sys.Stderr, "%s: these are your own changes; operators see those of all users\n", sys.Prog)
	}
	return 0
}
