// Package mcphost runs the tools of the Model Context Protocol (package mcp) in a process: on standard input and
// output for the user who calls it (Serve), and at a path of a server's port for the users of tokens (Web).
package mcphost

import (
	"context"
	"io"
	"os"
	"os/signal"
	"syscall"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/urfave/cli/v2"

	"dev.muster/api"
	"dev.muster/cli/mcp"
	"dev.muster/slurm/front"
)

// Command is muster mcp.
func Command(world func() *mcp.World) *cli.Command {
	return &cli.Command{
		Name:  "mcp",
		Usage: "serve the Model Context Protocol on standard input and output, for an AI agent that acts as you",
		Action: func(c *cli.Context) error {
			ctx, stop := signal.NotifyContext(c.Context, os.Interrupt, syscall.SIGTERM)
			defer stop()
			return Serve(ctx, world(), os.Stdin, os.Stdout)
		},
	}
}

// Serve serves an agent until its input ends.
func Serve(ctx context.Context, w *mcp.World, in io.ReadCloser, out io.WriteCloser) error {
	w.Query, w.Modules = ask, modules
	own := front.RealSys("muster")
	own.Dial = front.DialLocal
	own.ByToken(func(_ context.Context, urls string) (api.Conn, error) { return front.Through("reach", urls) })
	w.Sys = func(prog string, in io.Reader, out, errs io.Writer) *front.Sys {
		s := *own
		s.Prog, s.Stdin, s.Stdout, s.Stderr = prog, in, out, errs
		return &s
	}
	err := mcp.New(w).Run(ctx, &sdk.IOTransport{Reader: in, Writer: out})
	if ctx.Err() != nil {
		return nil
	}
	return err
}
