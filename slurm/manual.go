package slurm

import (
	"strings"

	"dev.muster/slurm/control"
	"dev.muster/slurm/front"
	"dev.muster/slurm/opt"
	"dev.muster/slurm/sacctmgr"
	"dev.muster/slurm/submit"
	"dev.muster/slurm/wrap"
)

// Page is what a manual and a shell's completion tell of a front-end.
type Page struct {
	Name, Summary string
	Operands      string // what follows the name
	Options       []opt.Entry
	Words         []string // commands that it takes
	Sections      []Section
}

// Pages are those of all front-ends, out of the tables that they read their command lines by.
func Pages() (list []Page) {
	for _, f := range frontEnds() {
		p := Page{Name: f.name, Summary: f.summary}
		p.Operands, p.Options = f.page()
		p.Sections = sections(f.name)
		switch f.name {
		case "scontrol":
			p.Words = control.ScontrolVerbs()
		case "sacctmgr":
			p.Words = sacctmgr.Verbs()
		}
		list = append(list, p)
	}
	return list
}

// Wrapper is what a shell's completion tells of a wrapper.
type Wrapper struct {
	Name     string
	Operands string // the kind of names that it is called with; "": files, or nothing
	Options  []WrapperOption
}

// WrapperOption is one of its options, with one dash.
type WrapperOption struct {
	Flag, Means string
	Arg         bool
	Becomes     string // the option of sbatch that it is; "": it is more than one
	Names       string // the kind of names that it takes, where sbatch has no such option
}

// WrapperPages are those of all wrappers, out of the tables that they read their command lines by.
func WrapperPages() (list []Wrapper) {
	for _, c := range wrap.Commands() {
		w := Wrapper{Name: c.Name, Operands: c.Operands}
		for _, o := range wrap.OptionTexts(c.Name) {
			flag, _, arg := strings.Cut(strings.TrimPrefix(o.Word, "-"), " ")
			one := WrapperOption{Flag: flag, Means: o.Means, Arg: arg, Names: o.Names}
			if word, ok := strings.CutPrefix(o.Means, "sbatch --"); ok && arg {
				one.Becomes, _, _ = strings.Cut(word, "=")
			}
			w.Options = append(w.Options, one)
		}
		list = append(list, w)
	}
	return list
}

// submitPage describes a command that submits.
func submitPage(prog opt.Prog) func() (string, []opt.Entry) {
	return func() (string, []opt.Entry) {
		return "[OPTIONS...] " + front.Operands(prog), submit.ParserFor(prog).Describe()
	}
}

// queryPage describes a command of which rows are the options.
func queryPage[T any](prog opt.Prog, rows []opt.Option[T]) func() (string, []opt.Entry) {
	return func() (string, []opt.Entry) {
		p := &opt.Parser[T]{Prog: prog, Rows: [][]opt.Option[T]{rows}}
		return front.Operands(prog), p.Describe()
	}
}
