package cli

import (
	"slices"
	"strings"
	"testing"

	"github.com/urfave/cli/v2"
)

// TestOptionsFirst: options of muster's own commands may stand anywhere.
func TestOptionsFirst(t *testing.T) {
	for line, want := range map[string]string{
		"node reclaim gpu1 --in 2m":       "node reclaim --in 2m gpu1",
		"node reclaim --in=2m gpu1":       "node reclaim --in=2m gpu1",
		"token revoke -- -odd":            "token revoke -- -odd",
		"install --dry-run client --node": "install client --dry-run --node",
		"install --root /x server":        "install server --root /x",
		"install --token t server":        "install server --token t",
		"server --socket /s members":      "server members --socket /s",
		"install --help server":           "install server --help",
		"--version status":                "--version status",
		"install client --and-client x":   "install client --and-client x",
		"why 3 --json":                    "why 3 --json", // it reads them itself
		"squeue -t pd":                    "squeue -t pd",
		"statsu --json":                   "statsu --json",
		"server members":                  "server members",
		"sql question --csv":              "sql --csv question",
		"status":                          "status",
	} {
		if got := strings.Join(optionsFirst(app(nil).Commands, strings.Fields(line)), " "); got != want {
			t.Errorf("%s: %s, want %s", line, got, want)
		}
	}
}

// TestOptionsOfParents gives each option of each command before and behind each command below it: it takes effect, or it
// is refused.
func TestOptionsOfParents(t *testing.T) {
	tried := 0
	var visit func(words []string, c *cli.Command)
	visit = func(words []string, c *cli.Command) {
		words = append(slices.Clone(words), c.Name)
		for _, sub := range c.Subcommands {
			for _, option := range c.Flags {
				tried++
				tryOption(t, words, sub.Name, option)
			}
			visit(words, sub)
		}
	}
	for _, c := range app(nil).Commands {
		visit(nil, c)
	}
	if tried < 30 {
		t.Errorf("only %d were tried", tried)
	}
}

// tryOption gives an option before a command, and behind it.
func tryOption(t *testing.T, parents []string, name string, option cli.Flag) {
	t.Helper()
	given := "--" + option.Names()[0]
	if option.(cli.DocGenerationFlag).TakesValue() {
		given += "=" + sampleOf(option)
	}
	before := slices.Concat([]string{"muster"}, parents, []string{given, name})
	behind := slices.Concat([]string{"muster"}, parents, []string{name, given})
	for _, line := range [][]string{before, behind} {
		isSet := false
		a := app(nil)
		record(a.Commands, func(c *cli.Context) error {
			isSet = c.IsSet(option.Names()[0]) && slices.Contains(c.LocalFlagNames(), option.Names()[0])
			return nil
		})
		err := runApp(a, line)
		if err == nil && !isSet || err != nil && !strings.Contains(err.Error(), "has no option --"+option.Names()[0]) {
			t.Errorf("%s: set %v, %v", strings.Join(line, " "), isSet, err)
		}
	}
}

// sampleOf is a value that an option takes.
func sampleOf(option cli.Flag) string {
	switch option.(type) {
	case *cli.IntFlag, *cli.Int64Flag, *cli.UintFlag, *cli.Float64Flag:
		return "1"
	case *cli.DurationFlag:
		return "1s"
	}
	return "x"
}

// record has all commands do the same.
func record(list []*cli.Command, do cli.ActionFunc) {
	for _, c := range list {
		c.Action = do
		record(c.Subcommands, do)
	}
}

// TestUnknownWords: a word that means nothing is refused with the one that it resembles, and nothing is begun.
func TestUnknownWords(t *testing.T) {
	for line, want := range map[string]string{
		"statsu":              `there is no command "statsu": do you mean muster status?`,
		"foo":                 `there is no command "foo": muster --help lists them`,
		"server membres":      `there is no command "server membres": do you mean muster server members?`,
		"dev foo":             `dev takes options only, not "foo": muster dev --help lists them`,
		"client --login xx":   `client takes options only, not "xx": muster client --help lists them`,
		"status --jsn":        "status has no option --jsn: do you mean --json?",
		"server members --x":  "server members has no option --x: muster server members --help lists them",
		"peer":                "peer: say what to do: invite, add, ls, rm",
		"token":               "token: say what to do: create, list, revoke",
		"token create --uses": "flag needs an argument: -uses",
	} {
		if err := runNative(append([]string{"muster"}, strings.Fields(line)...), nil); err == nil || err.Error() != want {
			t.Errorf("%s: %v, want %s", line, err, want)
		}
	}
}

// TestHelp: muster --help has each command in one group, within the width of a terminal.
func TestHelp(t *testing.T) {
	seen := map[string]int{}
	for _, g := range groups() {
		for _, name := range g.names {
			seen[name]++
		}
	}
	a := app(nil)
	for _, c := range a.Commands {
		if seen[c.Name] != 1 {
			t.Errorf("command %s is in %d groups of muster --help", c.Name, seen[c.Name])
		}
	}
	if len(seen) != len(a.Commands) {
		t.Errorf("the groups have %d commands, there are %d", len(seen), len(a.Commands))
	}
	for line := range strings.Lines(helpText(a)) {
		if len(strings.TrimSuffix(line, "\n")) > helpWidth {
			t.Errorf("wider than %d: %s", helpWidth, line)
		}
	}
}
