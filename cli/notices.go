package cli

import (
	"io"

	"dev.muster/packaging"
	"github.com/urfave/cli/v2"
)

// noticesCommand prints the licenses of the software that muster contains.
func noticesCommand() *cli.Command {
	return &cli.Command{Name: "notices", Usage: "print the licenses of the third-party software in muster",
		Action: func(c *cli.Context) error {
			_, err := io.WriteString(c.App.Writer, packaging.Notices)
			return err
		}}
}
