// Package manual writes what muster tells of its commands elsewhere than in their own help: manuals, and completion
// for bash, zsh and fish. All of it comes from the tables by which the commands read their options; it knows nothing
// of what they do.
//
// An option's values are names of a kind (values), which muster internal names KIND asks the cluster for when they are
// typed; where it does not answer there are none. fish completes a command only if it is there, so the files of
// wrappers that nobody has linked do nothing.
package manual

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"dev.muster/slurm"
	"dev.muster/slurm/opt"
)

// Page is what a manual and a shell's completion tell of a command, which may have commands of its own.
type Page struct {
	slurm.Page
	Commands []Page
}

// Native is a page of muster's own.
func Native(name, summary, operands string, options []opt.Entry, commands ...Page) Page {
	return Page{Page: slurm.Page{Name: name, Summary: summary, Operands: operands, Options: options},
		Commands: commands}
}

// roff writes text as troff takes it literally.
func roff(text string) string {
	text = strings.NewReplacer(`\`, `\e`, "-", `\-`, "'", `\(aq`, "`", `\(ga`, "^", `\(ha`, "~", `\(ti`).Replace(text)
	if strings.HasPrefix(text, ".") {
		text = `\&` + text
	}
	return text
}

// man is the manual of a command, section 1.
func (p *Page) man() string { return p.manual(1, "User commands") }

// manual is the manual of a section.
func (p *Page) manual(chapter int, about string) string {
	var b strings.Builder
	fmt.Fprintf(&b, ".TH %s %d \"\" \"muster\" \"%s\"\n", roff(strings.ToUpper(p.Name)), chapter, about)
	fmt.Fprintf(&b, ".SH NAME\n%s \\- %s\n", roff(p.Name), roff(p.Summary))
	if chapter == 1 {
		p.manSynopsis(&b)
	}
	for i := range p.Sections {
		manSection(&b, &p.Sections[i])
	}
	p.manOthers(&b)
	return b.String()
}

// manSynopsis is how a command is called, and its options.
func (p *Page) manSynopsis(b *strings.Builder) {
	fmt.Fprintf(b, ".SH SYNOPSIS\n.B %s\n%s\n", p.Name, roff(p.Operands))
	if len(p.Words) > 0 {
		fmt.Fprintf(b, ".SH COMMANDS\n%s\n", roff(strings.Join(p.Words, ", ")))
	}
	p.manOptions(b, "SH")
	for i := range p.Commands {
		p.Commands[i].manCommand(b, p.Name)
	}
}

// manOthers names the other manuals.
func (p *Page) manOthers(b *strings.Builder) {
	b.WriteString(".SH SEE ALSO\n")
	var others []string
	for _, n := range append([]string{"muster"}, slurm.FrontEnds()...) {
		if n != p.Name {
			others = append(others, ".BR "+n+" (1)")
		}
	}
	for _, t := range topics() {
		if t.Name != p.Name {
			others = append(others, fmt.Sprintf(".BR %s (%d)", roff(t.Name), t.Chapter))
		}
	}
	b.WriteString(strings.Join(others, ",\n") + "\n")
}

// manSection is a section besides the options.
func manSection(b *strings.Builder, s *slurm.Section) {
	fmt.Fprintf(b, ".SH %s\n", roff(strings.ToUpper(s.Title)))
	for line := range strings.Lines(s.Text) {
		fmt.Fprintf(b, "%s\n", roff(strings.TrimSuffix(line, "\n")))
	}
	for _, r := range s.Rows {
		fmt.Fprintf(b, ".TP\n.B %s\n%s\n", roff(r.Word), roff(r.Means))
	}
}

// manCommand is the section of one of muster's commands, and those of its own.
func (p *Page) manCommand(b *strings.Builder, of string) {
	name := of + " " + p.Name
	fmt.Fprintf(b, ".SH %s\n.B %s\n%s\n.PP\n%s\n", roff(strings.ToUpper(name)), roff(name),
		roff(p.Operands), roff(p.Summary))
	p.manOptions(b, "SS")
	for i := range p.Commands {
		p.Commands[i].manCommand(b, name)
	}
}

func (p *Page) manOptions(b *strings.Builder, heading string) {
	group := ""
	for i, o := range p.Options {
		if i == 0 || o.Group != group {
			group = o.Group
			fmt.Fprintf(b, ".%s %s\n", heading, roff(strings.ToUpper(cmp.Or(group, "options"))))
		}
		b.WriteString(".TP\n")
		if o.Short != 0 {
			fmt.Fprintf(b, `\fB\-%c\fR, `, o.Short)
		}
		b.WriteString(`\fB\-\-` + roff(o.Long) + `\fR`)
		switch o.Arg {
		case opt.Required:
			b.WriteString(`=\fI` + roff(o.Meta) + `\fR`)
		case opt.Optional:
			b.WriteString(`[=\fI` + roff(o.Meta) + `\fR]`)
		}
		b.WriteString("\n" + roff(helpOf(o)) + "\n")
		if len(o.Env) > 0 {
			fmt.Fprintf(b, "(variable %s)\n", roff(strings.Join(o.Env, ", ")))
		}
	}
}

func helpOf(o opt.Entry) string {
	if o.Ignored != "" {
		return "accepted, no effect: " + o.Ignored
	}
	return o.Help
}

// values are the kinds of names that options take (muster internal names KIND).
var values = map[string]string{
	"partition": "partitions", "nodelist": "nodes", "exclude": "nodes", "jobid": "jobs", "job": "jobs", "jobs": "jobs",
	"account": "accounts", "accounts": "accounts", "qos": "qos", "reservation": "reservations", "gres": "gres",
	"gres-per-node": "gres", "constraint": "features", "prefer": "features", "user": "users", "users": "users",
	"licenses": "licenses", "wckey": "wckeys", "clusters": "clusters", "cluster": "clusters",
}

// namesOf is the command by which a shell finds the names that an option takes; "": it takes others.
func namesOf(option string) string {
	if kind := values[option]; kind != "" {
		return "muster internal names " + kind
	}
	return ""
}

// followed are the commands after whose words muster internal names after COMMAND WORDS knows what may come.
var followed = []string{"muster", "sacctmgr", "sattach", "scancel", "scontrol", "seff", "sstat"}

// words are the commands of a command.
func (p *Page) words() []string {
	list := slices.Clone(p.Words)
	for _, c := range p.Commands {
		list = append(list, c.Name)
	}
	return list
}

// follows reports whether names may follow besides options.
func (p *Page) follows() bool { return slices.Contains(followed, p.Name) }

// flags are the options as they are typed.
func (p *Page) flags() (list []string) {
	for _, o := range p.Options {
		word := "--" + o.Long
		if o.Arg == opt.Required {
			word += "="
		}
		list = append(list, word)
		if o.Short != 0 {
			list = append(list, "-"+string(o.Short))
		}
	}
	return list
}

// bash is the completion for bash: a function per command, called by bash-completion when the command is first typed.
func (p *Page) bash() string {
	var b strings.Builder
	name := "_muster_" + p.Name
	fmt.Fprintf(&b, "# completion of %s for bash, made from its table of options\n%s() {\n", p.Name, name)
	b.WriteString("    local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]} opt\n    COMPREPLY=()\n")
	b.WriteString("    opt=$prev\n    if [[ $cur == = ]]; then cur=; elif [[ $prev == = ]]; then ")
	b.WriteString("opt=${COMP_WORDS[COMP_CWORD-2]}; fi\n    case $opt in\n")
	for _, o := range p.Options {
		if find := namesOf(o.Long); find != "" && o.Arg == opt.Required {
			short := ""
			if o.Short != 0 {
				short = " | -" + string(o.Short)
			}
			fmt.Fprintf(&b,
				"    --%s%s) COMPREPLY=($(compgen -W \"$(%s 2>/dev/null)\" -- \"$cur\")); return ;;\n",
				o.Long, short, find)
		}
	}
	b.WriteString("    esac\n    [[ $prev == = ]] && return\n")
	b.WriteString(p.bashCases())
	b.WriteString("    [[ ${COMPREPLY[0]-} == *= ]] && compopt -o nospace 2>/dev/null\n    return 0\n}\n")
	fmt.Fprintf(&b, "complete -o default -F %s %s\n", name, p.Name)
	return b.String()
}

// bashCases are the words that may come next: for muster by the command that was typed before.
func (p *Page) bashCases() string {
	var b strings.Builder
	if p.follows() {
		b.WriteString("    if [[ $cur != -* ]]; then\n")
		fmt.Fprintf(&b, "        COMPREPLY=($(compgen -W \"$(muster internal names after %s "+
			"\"${COMP_WORDS[@]:1:COMP_CWORD-1}\" 2>/dev/null)\" -- \"$cur\"))\n", p.Name)
		b.WriteString("        [[ $COMPREPLY ]] && return\n    fi\n")
	}
	if len(p.Commands) > 0 {
		b.WriteString("    case \"${COMP_WORDS[1]-} ${COMP_WORDS[2]-}\" in\n")
		for _, c := range p.Commands {
			for _, d := range c.Commands {
				fmt.Fprintf(&b,
					"    '%s %s') [[ $COMP_CWORD -gt 2 ]] && COMPREPLY=($(compgen -W '%s' -- \"$cur\")) && return ;;\n",
					c.Name, d.Name, strings.Join(d.flags(), " "))
			}
			fmt.Fprintf(&b,
				"    '%s '*) [[ $COMP_CWORD -gt 1 ]] && COMPREPLY=($(compgen -W '%s' -- \"$cur\")) && return ;;\n",
				c.Name, strings.Join(append(c.words(), c.flags()...), " "))
		}
		b.WriteString("    esac\n")
	}
	if len(p.words()) > 0 {
		b.WriteString("    [[ $COMP_CWORD -gt 1 && $cur != -* ]] && return\n")
	}
	fmt.Fprintf(&b, "    case $cur in\n    -*) COMPREPLY=($(compgen -W '%s' -- \"$cur\")) ;;\n",
		strings.Join(p.flags(), " "))
	if len(p.words()) > 0 {
		fmt.Fprintf(&b, "    *) COMPREPLY=($(compgen -W '%s' -- \"$cur\")) ;;\n", strings.Join(p.words(), " "))
	}
	b.WriteString("    esac\n")
	return b.String()
}

// zshText is text inside a word of _arguments that is quoted by '.
func zshText(text string) string {
	return strings.NewReplacer("'", `'\''`, `\`, `\\`, "[", `\[`, "]", `\]`, ":", `\:`).Replace(text)
}

// zsh is the completion for zsh.
func (p *Page) zsh() string {
	var b strings.Builder
	fmt.Fprintf(&b, "#compdef %s\n# made from its table of options\n_arguments -s -S", p.Name)
	for _, o := range p.Options {
		arg, tail := "", ""
		if o.Arg != opt.None {
			find := "_default"
			if cmd := namesOf(o.Long); cmd != "" {
				find = "{compadd -- $(" + cmd + " 2>/dev/null)}"
			}
			arg, tail = "=", ":"+zshText(o.Meta)+":"+find
			if o.Arg == opt.Optional {
				arg, tail = "=-", ":"+tail
			}
		}
		help := "[" + zshText(helpOf(o)) + "]"
		fmt.Fprintf(&b, " \\\n  '--%s%s%s%s'", o.Long, arg, help, tail)
		if o.Short != 0 {
			short := ""
			switch o.Arg {
			case opt.Required:
				short = "+"
			case opt.Optional:
				short = "-"
			}
			fmt.Fprintf(&b, " \\\n  '-%c%s%s%s'", o.Short, short, help, tail)
		}
	}
	after := "muster internal names after " + p.Name + " $words[2,CURRENT-1] 2>/dev/null"
	switch {
	case len(p.words()) > 0 && p.follows():
		fmt.Fprintf(&b, " \\\n  '1:command:(%s)' '*:name:{compadd -- $(%s)}'\n", strings.Join(p.words(), " "), after)
	case len(p.words()) > 0:
		fmt.Fprintf(&b, " \\\n  '1:command:(%s)' '*::: :_default'\n", strings.Join(p.words(), " "))
	case p.follows():
		fmt.Fprintf(&b, " \\\n  '*:name:{compadd -- $(%s)}'\n", after)
	default:
		b.WriteString(" \\\n  '*::: :_default'\n")
	}
	return b.String()
}

// fishText is text quoted by '.
func fishText(text string) string {
	return "'" + strings.NewReplacer(`\`, `\\`, "'", `\'`).Replace(text) + "'"
}

// fish is the completion for fish.
func (p *Page) fish() string {
	var b strings.Builder
	fmt.Fprintf(&b, "# completion of %s for fish, made from its table of options\n", p.Name)
	p.fishOptions(&b, p.Name, "")
	if words := p.words(); len(words) > 0 {
		fmt.Fprintf(&b, "complete -c %s -n __fish_use_subcommand -f -a %s\n", p.Name,
			fishText(strings.Join(words, " ")))
	}
	if p.follows() {
		find := "(muster internal names after " + p.Name + " (commandline -opc)[2..-1] 2>/dev/null)"
		fmt.Fprintf(&b, "complete -c %s -f -a %s\n", p.Name, fishText(find))
	}
	for _, c := range p.Commands {
		when := "__fish_seen_subcommand_from " + c.Name
		if words := c.words(); len(words) > 0 {
			fmt.Fprintf(&b, "complete -c %s -n %s -f -a %s\n", p.Name, fishText(when),
				fishText(strings.Join(words, " ")))
		}
		c.fishOptions(&b, p.Name, when)
		for _, d := range c.Commands {
			d.fishOptions(&b, p.Name, when+"; and __fish_seen_subcommand_from "+d.Name)
		}
	}
	return b.String()
}

func (p *Page) fishOptions(b *strings.Builder, name, when string) {
	for _, o := range p.Options {
		fmt.Fprintf(b, "complete -c %s", name)
		if when != "" {
			b.WriteString(" -n " + fishText(when))
		}
		if o.Short != 0 {
			fmt.Fprintf(b, " -s %s", fishText(string(o.Short)))
		}
		b.WriteString(" -l " + fishText(o.Long))
		if o.Arg == opt.Required {
			b.WriteString(" -r")
			if find := namesOf(o.Long); find != "" {
				b.WriteString(" -f -a " + fishText("("+find+" 2>/dev/null)"))
			}
		}
		b.WriteString(" -d " + fishText(helpOf(o)) + "\n")
	}
}
