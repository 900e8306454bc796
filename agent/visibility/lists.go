package visibility

import (
	"slices"

	"dev.muster/agent/users"
	"dev.muster/api"
	"dev.muster/cluster"
)

// Lists is what lists leave out for a caller who does not ask for everything: partitions with Hidden=YES, those whose
// AllowGroups has none of the caller's groups, and what is in such partitions alone. Operators see all.
type Lists struct {
	hidden map[string]bool           // partitions by name
	nodes  map[cluster.NodeName]bool // those of partitions: whether all these are hidden
}

// ListsOf says what lists leave out for a caller.
func ListsOf(snap *cluster.Snapshot, who api.Caller) (l Lists) {
	parts := snap.Config().Partitions
	if !slices.ContainsFunc(parts, limited) || Operates(snap, who) {
		return l
	}
	v := Scope{Snap: snap, Who: who}
	v.name()
	l = Lists{
		hidden: map[string]bool{},
		nodes:  map[cluster.NodeName]bool{},
	}
	for i := range parts {
		l.hidden[parts[i].Name] = parts[i].Hidden || !InGroups(&parts[i], v.Who.GID, v.Who.Groups)
	}
	l.mark(snap, true)
	l.mark(snap, false) // a node that one partition shows is shown
	return l
}

// mark notes the nodes of the partitions that are hidden, or of those that are not.
func (l *Lists) mark(snap *cluster.Snapshot, hidden bool) {
	for _, p := range snap.Config().Partitions {
		if l.hidden[p.Name] != hidden {
			continue
		}
		for n := range snap.PartitionNodes(&p) {
			l.nodes[n.Name] = hidden
		}
	}
}

// limited reports whether some users do not see a partition in lists.
func limited(p cluster.Partition) bool { return p.Hidden || p.AllowGroups != nil }

// Partition reports whether a partition is listed.
func (l Lists) Partition(name string) bool { return !l.hidden[name] }

// Job reports whether a job is listed: it is unless all its partitions are hidden.
func (l Lists) Job(j *cluster.Job) bool {
	return l.hidden == nil || slices.ContainsFunc(api.PartitionsOf(j), l.Partition)
}

// Node reports whether a node is listed: it is unless all its partitions are hidden.
func (l Lists) Node(name cluster.NodeName) bool { return !l.nodes[name] }

// InGroups reports whether a partition is for one of some groups.
func InGroups(p *cluster.Partition, gid uint32, groups []uint32) bool {
	own := append([]uint32{gid}, groups...)
	return p.AllowGroups == nil || slices.ContainsFunc(p.AllowGroups, func(name string) bool {
		id, ok := users.GroupID(name)
		return ok && slices.Contains(own, id)
	})
}
