package cli

import (
	"fmt"
	"slices"
	"strings"

	"dev.muster/slurm"
	"github.com/urfave/cli/v2"
)

// group is a part of the list of commands that muster --help prints.
type group struct {
	title string
	names []string
}

// groups has each command once, in the order in which people meet them.
func groups() []group {
	return []group{
		{"use the cluster", []string{"logs", "watch", "why", "samples", "stacks", "swap", "lint"}},
		{"in a job", []string{"progress", "checkpoint", "farm"}},
		{"look at it", []string{"status", "top", "health", "idle", "report", "events", "sql", "ui"}},
		{"run a cluster", []string{"dev", "install", "server", "client", "node", "token", "jwt", "peer", "config",
			"snapshot", "adopt", "burnin", "image", "gpu", "debug", "notices"}},
		{"plan one", []string{"sim"}},
		{"for other programs", []string{"mcp", "slurmd", "pam-adopt", "farm-worker"}},
		{"as in Slurm", slurm.FrontEnds()},
		{"as in PBS, LSF and Slurm's contributions", slurm.Wrappers()},
	}
}

const (
	helpHead = `muster, a workload manager for GPU clusters (%s)

  muster COMMAND --help   what a command does, and its options
  man muster              all of it; docs/README.md lists the pages

`
	helpExamples = `for example
  muster dev                    a cluster on this machine
  sbatch train.sbatch           submit a script; muster is called as Slurm is
  muster why 17                 why job 17 waits, or died
  muster logs -f 17             what it writes, from any machine
  muster top                    jobs and GPUs, live
`
)

// helpText lists the commands by what one does with them.
func helpText(a *cli.App) string {
	var b strings.Builder
	fmt.Fprintf(&b, helpHead, a.Version)
	for _, g := range groups() {
		fmt.Fprintf(&b, "%s\n", g.title)
		for _, name := range g.names {
			i := slices.IndexFunc(a.Commands, func(c *cli.Command) bool { return c.Name == name })
			usage, _, _ := strings.Cut(a.Commands[i].Usage, ": muster ") // the example is in its own help
			for k, line := range wrap(usage, helpWidth-helpIndent) {
				if k > 0 {
					name = ""
				}
				fmt.Fprintf(&b, "  %-*s%s\n", helpIndent-2, name, line)
			}
		}
		b.WriteString("\n")
	}
	b.WriteString(helpExamples)
	return b.String()
}

const (
	helpWidth  = 80
	helpIndent = 16
)

// wrap breaks a text into lines of a width, between words.
func wrap(text string, width int) (lines []string) {
	line := ""
	for _, w := range strings.Fields(text) {
		if line != "" && len(line)+1+len(w) > width {
			lines, line = append(lines, line), ""
		}
		line = strings.TrimPrefix(line+" "+w, " ")
	}
	return append(lines, line)
}
