package cli

import (
	"log/slog"
	"os"

	"dev.muster/gpu"
	"github.com/urfave/cli/v2"
)

// gpuCommand prints what a client would find on this machine.
func gpuCommand() *cli.Command {
	return &cli.Command{Name: "gpu", Usage: "list this machine's GPUs and their faults",
		Action: func(c *cli.Context) error {
			self, err := os.Executable()
			if err != nil {
				return err
			}
			w := gpu.NewWatcher([]string{self, "internal", "gpu-helper"}, 0, slog.New(slog.DiscardHandler))
			scan, faults, err := w.Look(c.Context)
			if err != nil {
				return err
			}
			return gpu.Table(os.Stdout, scan, faults)
		}}
}
