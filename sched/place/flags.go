package place

import "dev.muster/cluster"

// Flags is what a job asks for by yes or no, of all that decides where it fits: a bit for each row of flagRows.
type Flags uint32

// The flags.
const (
	contiguous      Flags = 1 << iota // its nodes follow each other
	spread                            // over as many nodes as there are
	fewestNodes                       // of a range of nodes it takes the fewest
	sameBlock                         // all segments in one higher block
	separateBlocks                    // no two segments in one base block
	overcommit                        // tasks share CPUs
	fillsSockets                      // one socket is filled before the next (-m x:block)
	anyDistribution                   // as the site has it
	externally                        // another manager runs it, also on nodes that have no client
	nodesAtLeast                      // the number of nodes is the least: its tasks may need more
)

// flagRows are how a job asks for each.
var flagRows = [...]struct {
	flag  Flags
	asked func(*cluster.JobSpec) bool
	// option is the one that asks for it, where it is about how a job's nodes lie: reasons why a job waits name it.
	option string
	// without takes it back from a job that waits; nil: nothing does.
	without func() cluster.Patch
}{
	{contiguous, func(s *cluster.JobSpec) bool { return s.Contiguous }, "contiguous",
		func() cluster.Patch { return cluster.Patch{Contiguous: new(bool)} }},
	{spread, func(s *cluster.JobSpec) bool { return s.Spread }, "", nil},
	{fewestNodes, func(s *cluster.JobSpec) bool { return s.UseMinNodes }, "", nil},
	{sameBlock, func(s *cluster.JobSpec) bool { return s.ConsolidateSegments }, "", nil},
	{separateBlocks, func(s *cluster.JobSpec) bool { return s.SpreadSegments }, "", nil},
	{overcommit, func(s *cluster.JobSpec) bool { return s.Overcommit }, "", nil},
	{externally, func(s *cluster.JobSpec) bool { return s.Kind == cluster.External }, "", nil},
	{fillsSockets, func(s *cluster.JobSpec) bool { return FillsSockets(s.Distribution) }, "", nil},
	{nodesAtLeast, func(s *cluster.JobSpec) bool {
		return s.MaxNodes == 0 && s.MinNodes > 0 && s.Tasks > s.MinNodes
	}, "", nil},
	{anyDistribution, func(s *cluster.JobSpec) bool { return s.Distribution == "" }, "", nil},
}

// FlagsOf is what a spec asks for by yes or no.
func FlagsOf(spec *cluster.JobSpec) (flags Flags) {
	for i := range flagRows {
		if flagRows[i].asked(spec) {
			flags |= flagRows[i].flag
		}
	}
	return flags
}

func (f Flags) has(flag Flags) bool { return f&flag != 0 }

// layoutOptions are the options among a job's flags that say how its nodes are to lie.
func (f Flags) layoutOptions() (names []string) {
	for i := range flagRows {
		if row := &flagRows[i]; row.option != "" && f.has(row.flag) {
			names = append(names, "--"+row.option)
		}
	}
	return names
}

// Dropped is a flag that a job could do without: its option, and the change that takes it back.
type Dropped struct {
	Option string
	Patch  cluster.Patch
}

// Droppable are the flags that a job could do without.
func Droppable(spec *cluster.JobSpec) (list []Dropped) {
	for i := range flagRows {
		if row := &flagRows[i]; row.without != nil && row.asked(spec) {
			list = append(list, Dropped{row.option, row.without()})
		}
	}
	return list
}
