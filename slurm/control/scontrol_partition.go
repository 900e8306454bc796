package control

import (
	"errors"
	"slices"
	"strings"

	"dev.muster/api"
	"dev.muster/cluster"
	"dev.muster/slurm/conf"
	"dev.muster/slurm/front"
)

// partitionComplaint is what is said of a value that a key does not take.
func partitionComplaint(key string, s front.Setting, err error) (lines []string, alone bool) {
	lines = []string{misread + s.Text, "scontrol: error: Request aborted"}
	if unused := conf.UnusedKey(""); errors.As(err, &unused) {
		lines = []string{
			"scontrol: error: Update of this parameter is not supported: " + s.Text + "\n",
			"scontrol: error: Request aborted",
		}
		return append(lines, refusal("partition", key)...), false
	}
	if k := conf.FindPartitionKey(key); k != nil && k.Complaint != "" {
		text := strings.NewReplacer("%k", k.Name, "%v", s.Value, "%s", s.Text).Replace(k.Complaint)
		lines, alone = strings.Split(text, "\n"), k.Alone
	}
	if errors.Is(err, conf.ErrNotClosed) {
		lines = append(lines, "scontrol: error: "+err.Error())
	}
	return lines, alone
}

// partitionWords applies keys to a partition. It answers with a complaint, lines of text; alone: nothing is said
// behind it.
func partitionWords(p *cluster.Partition, list []front.Setting) (bad []string, alone bool) {
	for _, s := range list {
		key := conf.FullPartitionKey(s.Key)
		switch {
		case s.Bare:
			return []string{misread + s.Text + aborted}, false
		case s.Key == "partitionname" || s.Key == "partition":
			p.Name = s.Value
			continue
		case key == "allocnodes" && strings.EqualFold(s.Value, "all"):
			continue // they are
		}
		if err := conf.SetPartitionKey(p, key, s.Value); err != nil {
			return partitionComplaint(key, s, err)
		}
	}
	return nil, false
}

// setPartition stores a partition.
func (c *control) setPartition(p cluster.Partition, what string) int {
	if _, err := front.Call(c.sys, api.SetPartition, cluster.PartitionSet{Partition: p}); err != nil {
		return c.failed(err, "", what)
	}
	return 0
}

// updatePartition changes one partition.
func (c *control) updatePartition(who front.Setting, rest []front.Setting) int {
	old, err := c.partition(who.Value)
	p := deref(old)
	if bad, alone := partitionWords(&p, append([]front.Setting{who}, rest...)); bad != nil {
		if !alone {
			bad = append(bad, updateError+noError)
		}
		return c.complain(bad...)
	}
	switch {
	case len(rest) == 0:
		return c.complain(noChanges)
	case err != nil:
		return c.failed(err, "", updateError)
	case old == nil:
		return c.complain(updateError + badPartition)
	}
	return c.setPartition(p, updateError)
}

// partition is one of the configuration; nil: there is none.
func (c *control) partition(name string) (*cluster.Partition, error) {
	r, err := c.cluster()
	if err != nil {
		return nil, err
	}
	i := slices.IndexFunc(r.Config.Partitions, func(p cluster.Partition) bool { return p.Name == name })
	if i < 0 {
		return nil, nil
	}
	return &r.Config.Partitions[i], nil
}
