package cluster

import (
	"slices"
)

// PartitionSet replaces (or adds) one partition, or deletes it.
type PartitionSet struct {
	Partition Partition `json:"partition"`
	Delete    bool      `json:"delete,omitempty"`
}

func (*PartitionSet) kind() string { return "partition_set" }

func (c *PartitionSet) apply(t *tx) (any, error) {
	if !t.by.Operator() {
		return nil, Errorf(Denied, ErrUser, "only operators may change partitions")
	}
	cfg := *t.config
	old := t.config
	cfg.Partitions = slices.Clone(cfg.Partitions)
	i := slices.IndexFunc(cfg.Partitions, func(p Partition) bool { return p.Name == c.Partition.Name })
	switch {
	case c.Delete && i < 0:
		return nil, Errorf(NotFound, ErrPartition, "partition %s does not exist", c.Partition.Name)
	case c.Delete:
		cfg.Partitions = slices.Delete(cfg.Partitions, i, i+1)
	case i < 0:
		cfg.Partitions = append(cfg.Partitions, c.Partition)
	default:
		cfg.Partitions[i] = c.Partition
	}
	if c.Partition.Default && !c.Delete {
		for k := range cfg.Partitions {
			cfg.Partitions[k].Default = cfg.Partitions[k].Name == c.Partition.Name
		}
	}
	t.putConfig(&cfg)
	t.gather()
	t.requeueAll(old.Partitions)
	if overTimesDiffer(&cfg, old) {
		t.touch(slices.Collect(t.Jobs())...) // their clocks depend on it
	}
	return nil, t.noteConfig("", c.kind(), old)
}

// overTimesDiffer reports whether jobs of some partition may run on for another time after their limit.
func overTimesDiffer(a, b *Config) bool {
	same := func(x, y Partition) bool {
		if x.OverTimeLimit == nil || y.OverTimeLimit == nil {
			return x.Name == y.Name && x.OverTimeLimit == y.OverTimeLimit
		}
		return x.Name == y.Name && *x.OverTimeLimit == *y.OverTimeLimit
	}
	return a.OverTimeLimit != b.OverTimeLimit || !slices.EqualFunc(a.Partitions, b.Partitions, same)
}

// Configure replaces the whole configuration and declares its nodes.
type Configure struct {
	Config *Config `json:"config" text:"-"`
	// How it came to that, for the history of the configuration: see ConfigChange.
	How string `json:"how,omitempty"`
	// Onto is the number of the last change that the proposer knew of: if there is a later one nothing is done; 0:
	// whatever is there.
	Onto int `json:"onto,omitempty"`
}

func (*Configure) kind() string { return "configure" }

func (c *Configure) apply(t *tx) (any, error) {
	if err := firstError(
		refuseIf(!t.by.Operator(),
			Denied, ErrUser, "only operators may configure the cluster"),
		refuseIf(c.Config == nil || c.Config.FirstJobID < 1 || c.Config.MaxJobID <= c.Config.FirstJobID,
			Invalid, "", "job numbers must begin above 0 and end above where they begin"),
	); err != nil {
		return nil, err
	}
	if k := len(t.configs); c.Onto > 0 && k > 0 && t.configs[k-1].N != c.Onto {
		last := t.configs[k-1]
		return nil, Errorf(Conflict, "",
			"%s has changed the configuration meanwhile (%s, number %d): look at it and try again", last.By,
			last.How, last.N)
	}
	cfg := *c.Config
	old := t.config
	t.putConfig(&cfg)
	t.gather()
	if err := t.noteConfig(c.How, c.kind(), old); err != nil {
		return nil, err
	}
	if cfg.MinJobAge != old.MinJobAge || overTimesDiffer(&cfg, old) {
		t.touch(slices.Collect(t.Jobs())...) // their clocks depend on it
	}
	if cfg.Enforce.Associations {
		t.openBooks() // root's jobs need an association too
	}
	openChannels(t)
	t.requeueAll(old.Partitions)
	t.reprioritize(old)
	if t.NextID < cfg.FirstJobID {
		keepOld(t, &t.NextID)
		t.NextID = cfg.FirstJobID
	}
	for _, d := range cfg.Declared {
		old, ok := t.nodes.Get(d.Name)
		if !ok {
			d.Order = t.nextOrder()
			d.beExternal(t.at)
			t.putNode(&d)
			continue
		}
		n := *old
		said := &d.Inventory
		n.Inventory.Weight = said.Weight
		n.Inventory.Topology = said.Topology
		n.Inventory.Features = said.Features
		n.Inventory.Inactive = nil
		n.Inventory.SpecCPUs = said.SpecCPUs
		n.Inventory.SpecMemMB = said.SpecMemMB
		t.putNode(&n)
	}
	c.shareAnew(t)
	t.powerDeclared()
	happened(t, TriggerReconfig)
	return nil, nil
}

// shareAnew gives the nodes the shares of GPUs and the counted resources that the configuration now has for them.
func (c *Configure) shareAnew(t *tx) {
	lines := map[NodeName]*Inventory{}
	for i := range t.config.Declared {
		d := &t.config.Declared[i]
		lines[d.Name] = &d.Inventory
	}
	for _, n := range slices.Collect(t.Nodes()) {
		said := t.config.declaredWith(n.Name, lines[n.Name])
		if slices.Equal(said.shared, n.Inventory.Shared) {
			continue
		}
		now := *n
		now.Inventory.Shared = said.shared
		t.putNode(&now)
	}
}

func (t *tx) putConfig(c *Config) {
	old := t.config
	t.config = c
	t.scale = nil
	t.onUndo(func() { t.config, t.scale = old, nil })
	if !c.countsAs(old) {
		t.retally()
	}
}
