package cli

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"

	"dev.muster/agent"
	"dev.muster/slurm/front"
	"github.com/urfave/cli/v2"
)

// profiles are the kinds of profiles; those that are timed take as long as --seconds says.
var profiles = []struct {
	name  string
	timed bool
}{
	{"allocs", false}, {"block", false}, {"goroutine", false}, {"heap", false}, {"mutex", false},
	{"profile", true}, {"threadcreate", false}, {"trace", true},
}

// debugCommand looks into the daemon of this machine.
func debugCommand() *cli.Command {
	names := make([]string, len(profiles))
	for i, p := range profiles {
		names[i] = p.name
	}
	return &cli.Command{Name: "debug", Usage: "inspect this machine's daemon", Subcommands: []*cli.Command{
		{Name: "pprof",
			Usage:     "write a profile of the daemon for go tool pprof (trace: for go tool trace): " + strings.Join(names, ", "),
			ArgsUsage: "KIND",
			Flags: []cli.Flag{&cli.StringFlag{
				Name: "output", Aliases: []string{"o"},
				Usage: "file to write to (default: standard output)",
			},
				&cli.IntFlag{Name: "seconds", Value: 30, Usage: "duration of a CPU profile or trace"},
				&cli.BoolFlag{
					Name:  "text",
					Usage: "print text instead of the tool's format; not for profile and trace",
				}},
			Action: pprofOf},
	}}
}

func pprofOf(c *cli.Context) error {
	i := slices.IndexFunc(profiles, func(p struct {
		name  string
		timed bool
	}) bool {
		return c.NArg() == 1 && p.name == c.Args().First()
	})
	if i < 0 {
		return fmt.Errorf("usage: muster debug pprof [-o FILE] [--seconds N] [--text] KIND; %s", c.Command.Usage)
	}
	q := url.Values{}
	if profiles[i].timed {
		q.Set("seconds", strconv.Itoa(c.Int("seconds")))
	} else if c.Bool("text") {
		q.Set("debug", "2")
	}
	client := &http.Client{
		Transport: &http.Transport{
			DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) { return dialDebug(ctx) },
		},
	}
	req, err := http.NewRequestWithContext(c.Context, http.MethodGet,
		"http://muster/debug/pprof/"+profiles[i].name+"?"+q.Encode(), nil)
	if err != nil {
		return err
	}
	resp, err := client.Do(req)
	if err != nil {
		return fmt.Errorf("profile %s: %w (root and the daemon's own user may ask, where a daemon runs)",
			profiles[i].name, err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(io.LimitReader(resp.Body, 1<<10))
		return fmt.Errorf("profile %s: %s: %s", profiles[i].name, resp.Status, strings.TrimSpace(string(text)))
	}
	to := c.App.Writer
	if name := c.String("output"); name != "" {
		f, err := os.Create(name)
		if err != nil {
			return err
		}
		defer f.Close()
		to = f
	}
	_, err = io.Copy(to, resp.Body)
	return err
}

// dialDebug reaches the daemon's socket for profiles, beside the one that front-ends find.
func dialDebug(ctx context.Context) (conn net.Conn, err error) {
	for _, s := range front.Sockets(os.Getenv) {
		if conn, err = (&net.Dialer{}).DialContext(ctx, "unix", s+agent.DebugSuffix); err == nil {
			return conn, nil
		}
	}
	return nil, err
}
