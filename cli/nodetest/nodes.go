package nodetest

import (
	"flag"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"dev.muster/api"
	"dev.muster/cluster"
	"dev.muster/cluster/hostlist"
	"dev.muster/slurm/front"
)

// burninLimit is the time limit of a test's job, where its partition allows so much.
const burninLimit = 2 * time.Hour

// words are the options of a command line.
type words struct {
	*flag.FlagSet
	wrong error // about the value of an option
}

func newWords() *words {
	w := &words{FlagSet: flag.NewFlagSet("", flag.ContinueOnError)}
	w.SetOutput(io.Discard)
	return w
}

// value has a function take the value of an option.
func (w *words) value(name string, take func(string) error) {
	w.Func(name, "", func(text string) error {
		if err := take(text); err != nil {
			w.wrong = fmt.Errorf("--%s %s: %w", name, text, err)
		}
		return w.wrong
	})
}

// parse reads a command line, and returns the exit code if it is wrong.
func (w *words) parse(s *front.Sys, argv []string, usage string) int {
	err := w.Parse(argv)
	if w.wrong != nil {
		return s.Fail("%v", w.wrong)
	}
	if err != nil {
		fmt.Fprintln(s.Stderr, usage)
		return 2
	}
	return 0
}

// namedNodes finds the nodes of a list, or returns the exit code.
func namedNodes(s *front.Sys, list string) ([]api.NodeInfo, int) {
	names, err := hostlist.Expand(list)
	if err != nil {
		return nil, s.Fail("%s: %v", list, err)
	}
	var q api.NodeQuery
	for _, n := range names {
		q.Names = append(q.Names, cluster.NodeName(n))
	}
	resp, err := front.Call(s, api.ListNodes, q)
	if err != nil {
		return nil, s.Failed(err)
	}
	if len(resp.Missing) > 0 {
		return nil, s.Fail("there is no node %s; see sinfo", front.NodeText(resp.Missing))
	}
	return resp.Nodes, 0
}

// inService reports whether a node can run jobs.
func inService(n *api.NodeInfo) bool {
	return n.Up && !n.Down && !n.Drain && !n.Failing
}

// mayTest refuses users who are not operators.
func mayTest(s *front.Sys) int {
	_, err := front.Call(s, api.ListTokens, api.Empty{}) // as only operators may
	if s.UID != 0 && front.IsKind(err, cluster.ErrAccess) {
		return s.Fail("only operators may test nodes: what a user's test finds would count for nothing")
	}
	return 0
}

// shellWord quotes a text for the shell.
func shellWord(text string) string { return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'" }

// partitionOf is the partition that suits the test of some nodes best, nil if none has all of them: one that gives all
// of the nodes' CPUs, for as long as a test may take, and of these the default one.
func partitionOf(all []cluster.Partition, nodes ...cluster.NodeName) *cluster.Partition {
	var best *cluster.Partition
	for i := range all {
		p := &all[i]
		if !holds(p, nodes) {
			continue
		}
		if best == nil || suitsTest(p) > suitsTest(best) {
			best = p
		}
	}
	return best
}

// holds reports whether a partition that is up has all of some nodes.
func holds(p *cluster.Partition, nodes []cluster.NodeName) bool {
	lacks := slices.ContainsFunc(nodes, func(n cluster.NodeName) bool {
		return !p.All && !slices.Contains(p.Nodes, n)
	})
	return p.State == cluster.PartitionUp && !lacks
}

// suitsTest rates a partition for the test of a whole node.
func suitsTest(p *cluster.Partition) (points int) {
	for i, good := range [...]bool{p.Default, burninTime(p) == burninLimit, !p.LimitsCPUs()} {
		if good {
			points += 1 << i
		}
	}
	return points
}

// burninTime returns the time limit of a test in a partition. A job whose limit exceeds MaxTime would never start.
func burninTime(p *cluster.Partition) time.Duration {
	if p.MaxTime <= 0 {
		return burninLimit
	}
	return min(burninLimit, p.MaxTime)
}

func minutes(d time.Duration) string { return strconv.Itoa(int(d / time.Minute)) }
