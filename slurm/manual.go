package slurm

import (
	"dev.muster/slurm/control"
	"dev.muster/slurm/front"
	"dev.muster/slurm/opt"
	"dev.muster/slurm/sacctmgr"
	"dev.muster/slurm/submit"
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
