package opt

import (
	"slices"
	"strings"
)

// Entry is an option as manuals and completion tell of it.
type Entry struct {
	Long    string
	Short   byte // 0: none
	Arg     ArgKind
	Meta    string // the argument's name
	Help    string
	Ignored string   // why it has no effect
	Env     []string // variables that stand for it
	Group   string   // the heading it stands under
}

// Describe lists the options of a program that are no other spellings of others, by heading and name.
func (p *Parser[T]) Describe() (list []Entry) {
	for g := Run; g <= Other; g++ {
		from, title := len(list), groupTitles[g]
		if g == Run && p.Prog&All == 0 {
			title = "Options"
		}
		p.each(func(o *Option[T]) bool {
			if o.Group == g && o.listed() {
				list = append(list, p.entry(o, title))
			}
			return true
		})
		slices.SortStableFunc(list[from:], func(a, b Entry) int { return strings.Compare(a.Long, b.Long) })
	}
	return list
}

// listed reports whether an option is told of.
func (o *Option[T]) listed() bool { return !o.Hidden && o.Alias == "" }

func (p *Parser[T]) entry(o *Option[T], title string) Entry {
	e := Entry{
		Long:    o.Long,
		Short:   p.shortOf(o),
		Arg:     o.Arg,
		Meta:    o.Meta,
		Help:    o.Help,
		Ignored: o.Ignored,
		Group:   title,
	}
	if e.Arg != None && e.Meta == "" {
		e.Meta = "value"
	}
	for word := range strings.SplitSeq(o.Env, " ") {
		if name := p.EnvName(word); name != "" {
			e.Env = append(e.Env, name)
		}
	}
	return e
}
