package cluster

import "slices"

// NodeCreate makes nodes known that have not registered yet. When they do, they are what they find
// themselves to be.
type NodeCreate struct {
	Nodes []Node `json:"nodes" text:"-"`
}

func (*NodeCreate) kind() string { return "node_create" }

// maxNodes bounds the nodes of a cluster.
const maxNodes = 100_000

func (c *NodeCreate) apply(t *tx) (any, error) {
	if err := firstError(
		refuseIf(!t.by.Operator(),
			Denied, ErrUser, "only operators may create nodes"),
		refuseIf(t.NodeCount()+len(c.Nodes) > maxNodes,
			Conflict, ErrTooBig, "a cluster has %d nodes at most", maxNodes),
	); err != nil {
		return nil, err
	}
	for _, d := range c.Nodes {
		if !slices.Contains([]Expected{ExpectedCloud, ExpectedFuture, ExpectedExternal}, d.Expected) {
			return nil, Errorf(Invalid, ErrNodeState,
				"node %s: Only State=FUTURE, CLOUD, or EXTERNAL allowed for nodes created by scontrol", d.Name)
		}
		if _, twice := t.nodes.Get(d.Name); twice {
			return nil, Errorf(Conflict, "", "there is a node %s already", d.Name)
		}
		n := Node{
			Name:      d.Name,
			Order:     t.nextOrder(),
			Inventory: d.Inventory,
			Expected:  d.Expected,
			Comment:   d.Comment,
		}
		n.beExternal(t.at)
		t.putNode(&n)
		t.events = append(t.events, Event{Node: &n})
	}
	t.powerDeclared()
	return nil, nil
}

// NodeDelete forgets nodes that have no jobs and whose clients are gone. One that is declared by the
// configuration comes back when that is activated again.
type NodeDelete struct {
	Nodes []NodeName `json:"nodes"`
}

func (*NodeDelete) kind() string { return "node_delete" }

func (c *NodeDelete) apply(t *tx) (any, error) {
	if !t.by.Operator() {
		return nil, Errorf(Denied, ErrUser, "only operators may delete nodes")
	}
	declared := t.config.Declared
	for _, name := range c.Nodes {
		n, ok := t.nodes.Get(name)
		if !ok {
			return nil, Errorf(NotFound, ErrNodeName, "node %s does not exist", name)
		}
		if err := firstError(
			refuseIf(len(t.Load(name).Jobs) > 0,
				Conflict, ErrBusy, "node %s has jobs: drain it and wait, or cancel them", name),
			refuseIf(n.Up && n.Expected != ExpectedExternal,
				Conflict, "",
				"node %s is up and would come back at once: end its client first, or muster node revoke %s",
				name, n.Owner),
		); err != nil {
			return nil, err
		}
		t.deleteNode(n)
		t.forgetTested(name)
		t.events = append(t.events, Event{Gone: name})
		declared = slices.DeleteFunc(slices.Clone(declared), func(d Node) bool { return d.Name == name })
	}
	if len(declared) != len(t.config.Declared) {
		cfg := *t.config
		old := t.config
		cfg.Declared = declared
		t.putConfig(&cfg)
		return nil, t.noteConfig("", c.kind(), old)
	}
	return nil, nil
}
