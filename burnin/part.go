package burnin

import (
	"fmt"
	"strings"
	"time"

	"dev.muster/cluster"
)

// test is one run of it.
type test struct {
	Options
	serial string // of the machine
	parts  []cluster.TestedPart
}

// part is a part of the machine that has no number of its own.
func (t *test) part(kind, model string) cluster.TestedPart {
	return cluster.TestedPart{
		ID: string(t.Node) + "/" + kind, Kind: kind, Model: model, Serial: t.serial,
		Tests: []cluster.PartTest{{Verdict: cluster.BurninPassed}},
	}
}

// judge completes a part by what was found wrong with it, and what was measured.
func judge(p cluster.TestedPart, wrong []string, figures ...cluster.Figure) cluster.TestedPart {
	one := &p.Tests[0]
	one.Figures = figures
	if len(wrong) > 0 {
		one.Verdict, one.Text = cluster.BurninFailed, shorten(strings.Join(wrong, ", "))
	}
	return p
}

// untested completes a part that could not be tested.
func untested(p cluster.TestedPart, format string, args ...any) cluster.TestedPart {
	p.Tests[0].Verdict, p.Tests[0].Text = cluster.BurninUntested, shorten(fmt.Sprintf(format, args...))
	return p
}

// maxText bounds evidence, in bytes.
const maxText = 1000

func shorten(text string) string {
	if len(text) > maxText {
		text = strings.ToValidUTF8(text[:maxText-3], "") + "..."
	}
	return text
}

// Options say how much is tested.
type Options struct {
	Node   cluster.NodeName
	Load   time.Duration                              // of the CPUs, of the memory, and of the GPU programs that take a time, each
	MemMB  cluster.MemMB                              // to write and read; 0: half of what is free
	DiskMB int                                        // to write and read
	Dir    string                                     // on the disk to test
	Watch  []string                                   // the command of the GPU helper
	Find   func(name string) (path string, err error) // a program that is installed
	Say    func(format string, args ...any)           // progress
}
