package cli

import (
	"errors"
	"os"
	"path/filepath"
	"strings"

	"dev.muster/cli/manual"
	"dev.muster/packaging"
	"dev.muster/slurm"
	"dev.muster/slurm/opt"
	"github.com/urfave/cli/v2"
)

// manuals are the manuals and the completion of all commands, out of the tables of their options.
func manuals() []packaging.File {
	a := app(nil)
	var commands []manual.Page
	for _, c := range a.Commands {
		if !slurm.IsFrontEnd(c.Name) { // those have pages of their own
			commands = append(commands, nativePage(c))
		}
	}
	return manual.Files(manual.Native(a.Name, a.Usage, "COMMAND [OPTIONS]", nil, commands...))
}

// nativePage tells of one of muster's own commands.
func nativePage(c *cli.Command) manual.Page {
	var options []opt.Entry
	for _, f := range c.Flags {
		e := opt.Entry{Long: f.Names()[0]}
		if d, ok := f.(cli.DocGenerationFlag); ok {
			e.Help, e.Env = d.GetUsage(), d.GetEnvVars()
			if d.TakesValue() {
				e.Arg, e.Meta = opt.Required, e.Long
			}
		}
		options = append(options, e)
	}
	operands := c.ArgsUsage
	if len(c.Flags) > 0 {
		operands = strings.TrimSpace("[OPTIONS] " + operands)
	}
	var commands []manual.Page
	for _, s := range c.Subcommands {
		commands = append(commands, nativePage(s))
	}
	return manual.Native(c.Name, c.Usage, operands, options, commands...)
}

// WriteFiles writes what packages hold besides the program below a folder: muster internal files DIR.
func WriteFiles(dir string) error {
	for _, f := range manuals() {
		if err := writeFile(filepath.Join(dir, f.Path), f.Text); err != nil {
			return err
		}
	}
	units, err := packaging.Units("/usr/bin/muster")
	if err != nil {
		return err
	}
	for _, u := range units {
		if err := writeFile(filepath.Join(dir, "systemd", u.Name), u.Text); err != nil {
			return err
		}
	}
	env, err := packaging.Environment("")
	return errors.Join(err, writeFile(filepath.Join(dir, "muster.env"), env))
}

func writeFile(p, text string) error {
	return errors.Join(os.MkdirAll(filepath.Dir(p), 0o755), os.WriteFile(p, []byte(text), 0o644))
}
