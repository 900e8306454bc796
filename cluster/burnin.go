package cluster

import (
	"slices"
	"strings"
	"time"
)

// BurninVerdict is how a part did in an acceptance test.
type BurninVerdict string

// The verdicts.
const (
	BurninPassed   BurninVerdict = "passed"
	BurninFailed   BurninVerdict = "failed"
	BurninUntested BurninVerdict = "not tested" // what would test it is not installed
)

// Bounds of what is kept of acceptance tests.
const (
	maxBurninParts  = 128     // of one node's test
	maxBurninFigure = 32      // of one part's test
	maxBurninText   = 1 << 10 // bytes of evidence
	maxTestedParts  = 500_000 // of the cluster
	keptPartTests   = 3       // of each part
)

// burninCause is the cause of the faults that acceptance tests find.
const burninCause = "burnin"

// Figure is something that a test measured.
type Figure struct {
	Name  string  `json:"name"`
	Value float64 `json:"value"`
	Unit  string  `json:"unit,omitempty"` // GB/s, C, %; empty: a count
}

// PartTest is what came of one test of one part.
type PartTest struct {
	At      time.Time     `json:"at"` // when it ended
	Node    NodeName      `json:"node"`
	Job     JobID         `json:"job,omitempty"`
	Verdict BurninVerdict `json:"verdict"`
	Text    string        `json:"text,omitempty"` // the evidence, or why it was not tested
	Figures []Figure      `json:"figures,omitempty"`
}

// TestedPart is a part of a machine with its tests. It is known by its own number, so that its tests go with it to
// another node.
type TestedPart struct {
	ID     string `json:"id"`   // UUID of a GPU; NODE/memory, NODE/disk …: of what has no number of its own
	Kind   string `json:"kind"` // gpu, cpu, memory, disk, links, fabric
	Model  string `json:"model,omitempty"`
	Serial string `json:"serial,omitempty"` // of the part, else of its machine
	// Tests are the latest ones, the newest first; a part here is last where that was.
	Tests []PartTest `json:"tests"`
}

// BurninDone tells what an acceptance test found on a node. Each part has one test in it.
type BurninDone struct {
	Node  NodeName     `json:"node"`
	Parts []TestedPart `json:"parts" text:"-"`
}

func (*BurninDone) kind() string { return "burnin_done" }

func (c *BurninDone) apply(t *tx) (any, error) {
	old, ok := t.nodes.Get(c.Node)
	if err := firstError(
		refuseIf(!t.by.Operator() && !(ok && t.by.NodeRoot && old.Owner == string(t.by.Node)),
			Denied, ErrUser,
			"only operators may tell of tests, and root of a machine of those of the node that it is"),
		refuseIf(!ok,
			NotFound, ErrNodeName, "node %s does not exist", c.Node),
	); err != nil {
		return nil, err
	}
	if err := c.check(t); err != nil {
		return nil, err
	}
	n := *old
	list := slices.DeleteFunc(slices.Clone(n.faultsDrainedFor()), func(f Fault) bool {
		return f.Cause == burninCause && slices.ContainsFunc(c.Parts,
			func(p TestedPart) bool {
				return p.ID == f.Part && p.Tests[0].Verdict != BurninUntested
			})
	})
	for _, p := range c.Parts {
		test := p.Tests[0]
		test.At = t.at
		test.Node = c.Node
		p.Tests = append([]PartTest{test}, pastTests(t, p.ID, &test)...)
		putValue(t, t.tested, p.ID, &p)
		if test.Verdict == BurninFailed {
			list = append(list, p.fault(test.Text))
			n.troubled(troubleDrain, t.at)
		}
	}
	n.drainFor(t, list)
	t.putNode(&n)
	t.events = append(t.events, Event{Node: &n})
	return nil, nil
}

// pastTests are those of a part that are kept beside a new one.
func pastTests(t *tx, part string, now *PartTest) []PartTest {
	before, ok := t.tested.Get(part)
	if !ok {
		return nil
	}
	past := before.Tests
	if past[0].Job == now.Job && past[0].Node == now.Node && now.Job != 0 {
		past = past[1:] // told again, or the job was begun again
	}
	return past[:min(len(past), keptPartTests-1)]
}

// check refuses what does not name its parts or is too much.
func (c *BurninDone) check(t *tx) error {
	if len(c.Parts) > maxBurninParts || t.tested.Len()+len(c.Parts) > maxTestedParts {
		return Errorf(Conflict, ErrTooBig, "a test has %d parts at most, and a cluster %d", maxBurninParts,
			maxTestedParts)
	}
	for i := range c.Parts {
		p := &c.Parts[i]
		if p.ID == "" || len(p.ID) > maxBurninText || len(p.Tests) != 1 {
			return Errorf(Invalid, "", "part %d (%q) of the test of node %s: want an id and one test", i, p.ID, c.Node)
		}
		if err := firstError(
			refuseIf(slices.ContainsFunc(c.Parts[:i], func(o TestedPart) bool { return o.ID == p.ID }),
				Invalid, "", "part %s of the test of node %s is there twice", p.ID, c.Node),
			refuseIf(len(p.Tests[0].Text) > maxBurninText || len(p.Tests[0].Figures) > maxBurninFigure,
				Invalid, ErrTooBig,
				"part %s of the test of node %s: want at most %d bytes of text and %d figures", p.ID,
				c.Node, maxBurninText, maxBurninFigure),
			refuseIf(!slices.Contains([]BurninVerdict{BurninPassed, BurninFailed, BurninUntested}, p.Tests[0].Verdict),
				Invalid, "", "part %s of the test of node %s: the verdict %q is not known", p.ID,
				c.Node, p.Tests[0].Verdict),
		); err != nil {
			return err
		}
	}
	return nil
}

// fault is what keeps jobs off the node of a part that has failed.
func (p *TestedPart) fault(evidence string) Fault {
	f := Fault{
		Kind:   FaultSystem,
		Part:   p.ID,
		Cause:  burninCause,
		Text:   "burnin: " + evidence,
		Action: FaultDrain,
	}
	if p.Kind == "gpu" {
		f.Kind = FaultGPU
	}
	return f
}

// Tested lists the parts whose last test was on one of some nodes, or that are named themselves by id or serial
// number; all if nothing is named.
func (t *tables) Tested(names []string) (out []*TestedPart) {
	for p := range valuesOf(t.tested) {
		own := []string{p.ID, string(p.Tests[0].Node)}
		if p.Serial != "" {
			own = append(own, p.Serial)
		}
		named := func(name string) bool { return slices.Contains(own, name) }
		if len(names) == 0 || slices.ContainsFunc(names, named) {
			out = append(out, p)
		}
	}
	return out
}

// forgetTested drops the tests of what is known by a node's name when that is deleted; GPUs may come back elsewhere.
func (t *tx) forgetTested(name NodeName) {
	for _, p := range t.Tested([]string{string(name)}) {
		if strings.HasPrefix(p.ID, string(name)+"/") {
			dropValue(t, t.tested, p.ID)
		}
	}
}
