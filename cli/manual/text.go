package manual

import (
	"cmp"
	"fmt"
	"strings"

	"dev.muster/slurm/opt"
)

// Text returns the manual page of a command as plain text.
func (p *Page) Text() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%[1]s - %[2]s\nusage: %[1]s %[3]s\n", p.Name, p.Summary, p.Operands)
	p.textOptions(&b)
	for i := range p.Sections {
		s := &p.Sections[i]
		fmt.Fprintf(&b, "\n%s\n", strings.ToUpper(s.Title))
		if s.Text != "" {
			b.WriteString(s.Text + "\n")
		}
		for _, r := range s.Rows {
			fmt.Fprintf(&b, "  %s: %s\n", r.Word, r.Means)
		}
	}
	for i := range p.Commands {
		b.WriteString("\n" + p.Commands[i].Text())
	}
	return b.String()
}

func (p *Page) textOptions(b *strings.Builder) {
	group := ""
	for i, o := range p.Options {
		if i == 0 || o.Group != group {
			group = o.Group
			fmt.Fprintf(b, "\n%s\n", strings.ToUpper(cmp.Or(group, "options")))
		}
		name := "--" + o.Long
		if o.Short != 0 {
			name = fmt.Sprintf("-%c, %s", o.Short, name)
		}
		switch o.Arg {
		case opt.Required:
			name += "=" + o.Meta
		case opt.Optional:
			name += "[=" + o.Meta + "]"
		}
		fmt.Fprintf(b, "  %s: %s\n", name, helpOf(o))
	}
}

// Find returns the text of a page, or without a name the list of pages.
func Find(pages []Page, name string) (text string, ok bool) {
	var list strings.Builder
	for i := range pages {
		p := &pages[i]
		if p.Name == name {
			return p.Text(), true
		}
		list.WriteString(p.Name + ": " + p.Summary + "\n")
	}
	return list.String(), name == ""
}
