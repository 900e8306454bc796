// Package cli is muster's own commands, which speak no Slurm: the daemons, installing and members, why, health, lint,
// status, top, sql and burnin. It may know all that is below it, and nothing but package main stands on it. Begin with
// daemon.go, which lists the commands; commands.go has how all of them read their words.
package cli

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"dev.muster/agent/webpage"
	"dev.muster/api"
	"dev.muster/cluster"
	"dev.muster/slurm/front"
	"dev.muster/slurm/opt"
	"github.com/urfave/cli/v2"
)

// Rules of all of muster's own commands that the library does not have: options may stand behind
// arguments, a word that means nothing is refused with the one that it resembles, and an error is one line.

// Main runs one of muster's own commands and returns its exit code; page makes the status page of a server.
func Main(args []string, page webpage.Maker) int {
	if len(args) > 0 && filepath.Base(args[0]) == slurmdName { // called by a link of that name
		args = append([]string{"muster", slurmdName}, args[1:]...)
	}
	if err := runNative(args, page); err != nil {
		fmt.Fprintln(os.Stderr, "muster:", explain(err))
		return 1
	}
	return 0
}

// runNative runs one of muster's own commands.
func runNative(args []string, page webpage.Maker) error {
	return runApp(app(page), args)
}

// runApp runs the command that a line names.
func runApp(a *cli.App, args []string) error {
	a.CustomAppHelpTemplate = strings.ReplaceAll(helpText(a), "{{", "{ {")
	a.Action = func(c *cli.Context) error {
		if c.NArg() == 0 {
			return cli.ShowAppHelp(c)
		}
		return unknownCommand("muster", c.Args().First(), a.Commands)
	}
	a.OnUsageError = oneLine(nil)
	for _, c := range a.Commands {
		tame(c, "muster")
	}
	return a.Run(append(args[:1:1], optionsFirst(a.Commands, args[1:])...))
}

// tame has a command and those below it refuse what they do not know.
func tame(c *cli.Command, above string) {
	name := above + " " + c.Name
	c.OnUsageError = oneLine(c)
	for _, s := range c.Subcommands {
		tame(s, name)
	}
	run := c.Action
	if c.SkipFlagParsing || c.ArgsUsage != "" {
		return
	}
	c.Action = func(ctx *cli.Context) error {
		switch {
		case ctx.NArg() > 0:
			return unknownCommand(name, ctx.Args().First(), c.Subcommands)
		case run == nil:
			return fmt.Errorf("%s: say what to do: %s", strings.TrimPrefix(name, "muster "),
				strings.Join(commandNames(c.Subcommands), ", "))
		}
		return run(ctx)
	}
}

func commandNames(list []*cli.Command) (names []string) {
	for _, c := range list {
		if c.Name != "help" { // which the library adds to each
			names = append(names, c.Name)
		}
	}
	return names
}

// unknownCommand refuses a word where a command should be.
func unknownCommand(name, word string, known []*cli.Command) error {
	names := commandNames(known)
	if len(names) == 0 {
		return fmt.Errorf("%s takes options only, not %q: %s --help lists them",
			strings.TrimPrefix(name, "muster "), word, name)
	}
	typed := strings.TrimPrefix(name+" "+word, "muster ")
	if near := opt.Nearest(word, names); near != "" {
		return fmt.Errorf("there is no command %q: do you mean %s %s?", typed, name, near)
	}
	return fmt.Errorf("there is no command %q: %s --help lists them", typed, name)
}

// oneLine makes an error about options one line, without the whole help before it.
func oneLine(c *cli.Command) cli.OnUsageErrorFunc {
	return func(_ *cli.Context, err error, _ bool) error {
		word, isUnknown := strings.CutPrefix(err.Error(), "flag provided but not defined: ")
		if !isUnknown || c == nil {
			return err
		}
		word = strings.TrimLeft(word, "-")
		hint := ""
		if near := opt.Nearest(word, flagNames(c)); near != "" {
			hint = ": do you mean --" + near + "?"
		}
		return fmt.Errorf("%s has no option --%s%s", strings.TrimPrefix(c.HelpName, "muster "), word,
			cmp.Or(hint, ": "+c.HelpName+" --help lists them"))
	}
}

func flagNames(c *cli.Command) (names []string) {
	for _, f := range c.Flags {
		names = append(names, f.Names()...)
	}
	return names
}

// optionsFirst moves all options behind the last command and before its arguments. There the library applies or refuses
// each one; it would drop an option that precedes a subcommand. Words after -- stay there. A command that reads its own
// options gets its words unchanged.
func optionsFirst(known []*cli.Command, args []string) []string {
	var flags []cli.Flag
	var out, options []string
	for len(args) > 0 {
		if args[0] != "--" && strings.HasPrefix(args[0], "-") {
			n := wordsOfOption(flags, args)
			options, args = append(options, args[:n]...), args[n:]
			continue
		}
		i := slices.IndexFunc(known, func(c *cli.Command) bool { return slices.Contains(c.Names(), args[0]) })
		switch {
		case i < 0 && out == nil:
			return append(options, args...) // an unknown command: whatever is behind it is not what matters
		case i < 0:
			return append(out, behindOptions(flags, append(options, args...))...)
		}
		c := known[i]
		out, args = append(out, args[0]), args[1:]
		if len(out) == 1 { // muster's own options, before any command
			out, options = append(options, out...), nil
		}
		if c.SkipFlagParsing {
			return slices.Concat(out, options, args)
		}
		flags, known = flagsBelow(c), c.Subcommands
	}
	return append(out, options...)
}

// flagsBelow are the options of a command and of those below it.
func flagsBelow(c *cli.Command) []cli.Flag {
	flags := slices.Clone(c.Flags)
	for _, s := range c.Subcommands {
		flags = append(flags, flagsBelow(s)...)
	}
	return flags
}

// behindOptions puts the arguments of one command behind its options.
func behindOptions(flags []cli.Flag, args []string) []string {
	var options, operands []string
	for len(args) > 0 {
		switch {
		case args[0] == "--":
			return slices.Concat(options, []string{"--"}, operands, args[1:])
		case strings.HasPrefix(args[0], "-") && args[0] != "-":
			n := wordsOfOption(flags, args)
			options, args = append(options, args[:n]...), args[n:]
		default:
			operands, args = append(operands, args[0]), args[1:]
		}
	}
	return append(options, operands...)
}

// wordsOfOption is how many words the option at the beginning takes: two, where its value is a word of its own.
func wordsOfOption(flags []cli.Flag, args []string) int {
	name := strings.TrimLeft(args[0], "-")
	if strings.Contains(name, "=") || len(args) == 1 {
		return 1
	}
	for _, f := range flags {
		d, ok := f.(cli.DocGenerationFlag)
		if ok && d.TakesValue() && slices.Contains(f.Names(), name) {
			return 2
		}
	}
	return 1
}

// explain says what to do about an error that every command may meet.
func explain(err error) string {
	var e *api.Error
	if errors.Is(err, api.ErrUnreachable) || errors.As(err, &e) && e.Kind == cluster.ErrAway {
		return front.NoDaemon(os.Getenv)
	}
	return err.Error()
}
