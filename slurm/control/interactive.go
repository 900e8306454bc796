package control

import (
	"bufio"
	"os"
	"strings"

	"dev.muster/slurm/front"
)

// Without a command, scontrol reads commands from its input, one per line, and keeps what the settings among
// them say (oneliner, details …) for those that follow.

// interactive reads commands until the input or one of them ends it. The exit code is 1 where any has failed.
func interactive(c *control) int {
	in := bufio.NewScanner(c.sys.Stdin)
	file, isFile := c.sys.Stdin.(*os.File)
	typed := isFile && front.IsTerminal(file)
	code := 0
	var last []string
	for !c.ended {
		_, _ = c.out.WriteString("scontrol: ")
		_ = c.out.Flush()
		if !in.Scan() {
			_, _ = c.out.WriteString("\n")
			return code
		}
		if !typed { // as readline does, so that what a command prints begins a line
			_, _ = c.out.WriteString(in.Text() + "\n")
			_ = c.out.Flush()
		}
		words := commandWords(in.Text())
		switch {
		case len(words) == 0:
			continue
		case len(words) == 1 && words[0] == "!!":
			words = last
		}
		c.conf = nil // it may be another one by now
		code = max(code, readCommand(c, words))
		last = words
	}
	return code
}

// readCommand runs a command that was read, or one that "!!" repeats: there may be none yet.
func readCommand(c *control, words []string) int {
	if len(words) == 0 {
		return 1
	}
	return c.command(words)
}

// commandWords takes a line apart at blanks that are not between quotes. The quotes stay, as in Slurm.
func commandWords(line string) []string {
	var quote rune
	return strings.FieldsFunc(line, func(r rune) bool {
		switch {
		case quote != 0:
			if r == quote {
				quote = 0
			}
			return false
		case r == '"' || r == '\'':
			quote = r
			return false
		}
		return r == ' ' || r == '\t'
	})
}

// settings are the verbs that change how those after them are answered. As the only command they change nothing.
func settings() []verb {
	return []verb{
		{"all", 2, 0, func(c *control, _ []string) int { c.all = true; return 0 }},
		{"hide", 2, 0, func(c *control, _ []string) int { c.all = false; return 0 }},
		{"cluster", 2, 0, otherCluster},
		{"details", 1, 0, setting("details", func(c *control) { c.details = true })},
		{"oneliner", 1, 0, setting("oneliner", func(c *control) { c.oneLine = true })},
		{"quiet", 4, 0, setting("quiet", func(c *control) { c.quiet = true })},
		{"verbose", 4, 0, func(c *control, args []string) int {
			if len(args) > 0 {
				return c.complain("too many arguments for verbose keyword")
			}
			return 0
		}},
		{"exit", 2, 0, setting("exit", func(c *control) { c.ended = true })},
		{"quit", 4, 0, setting("quit", func(c *control) { c.ended = true })},
	}
}

// setting is a verb without arguments. exit and quit end also where they have some.
func setting(name string, set func(*control)) func(*control, []string) int {
	return func(c *control, args []string) int {
		if len(args) == 0 || name == "exit" || name == "quit" {
			set(c)
		}
		if len(args) > 0 {
			return c.complain("too many arguments for keyword:" + name)
		}
		return 0
	}
}

// otherCluster is cluster [NAME]: commands from now on go there, without a name to this one. A name that is not
// known ends scontrol, as in Slurm.
func otherCluster(c *control, args []string) int {
	if c.near == nil {
		c.near = c.sys
	}
	if len(args) == 0 {
		c.sys = c.near
		return 0
	}
	there, code := c.near.To(args[0])
	if code >= 0 {
		c.ended = true
		return code
	}
	c.sys = there
	return 0
}
