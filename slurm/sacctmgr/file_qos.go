package sacctmgr

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"dev.muster/cluster"
	"dev.muster/slurm/front"
	"dev.muster/slurm/show"
)

// namedQOS returns the names of the QOS that the lines of a file make. A QOS may preempt one that a later line makes.
func namedQOS(lines []string) (names []string) {
	for _, line := range lines {
		kind, rest, _ := strings.Cut(line, " - ")
		if parts, closed := splitQuoted(rest, ':'); closed && strings.EqualFold(strings.TrimSpace(kind), "qos") {
			names = append(names, strings.ToLower(parts[0]))
		}
	}
	return names
}

// setQOS takes a line of a QOS, as files of Slurm 25.11 and newer have them before the cluster.
func (l *loader) setQOS(n int, name string, list []front.Setting) int {
	if l.named {
		return l.m.wrong(" You need to specify all QOS before the 'Cluster - $NAME' in your file")
	}
	q := cluster.QOS{Name: name, Description: name, UsageFactor: 1}
	if old := qosNamed(l.m.books, name); old != nil {
		q = *old
		q.Limits = slices.Clone(old.Limits)
	}
	for _, s := range list {
		before := q.Description
		label, known, err := setQOSKey(&q, s)
		switch {
		case !known:
			return l.m.wrong(" Unknown option: "+s.Text, " Use keyword 'where' to modify condition",
				fmt.Sprintf(" Problem with line(%d)", n))
		case err != nil:
			return l.m.wrong(err.Error(), " Unknown option: "+s.Text, fmt.Sprintf(" Problem with line(%d)", n))
		case strings.EqualFold(before, q.Description):
			q.Description = before
		}
		if code := l.m.checkQOS(label, s); code != 0 {
			return code
		}
	}
	l.qos = append(l.qos, &q)
	return 0
}

// makeQOS makes and changes the QOS of the file. New ones come first without the QOS that they preempt, which may
// themselves be new.
func (l *loader) makeQOS() {
	var bare, whole []cluster.Change
	for _, q := range l.qos {
		old := qosNamed(l.m.books, q.Name)
		if old != nil && reflect.DeepEqual(*old, *q) {
			continue
		}
		l.told = append(l.told, front.Choose(old == nil, " Added ", " Changed ")+"QOS "+q.Name)
		if old == nil {
			n := *q
			n.Preempt = nil
			bare = append(bare, cluster.Change{QOS: &n})
		}
		if old != nil || q.Preempt != nil {
			whole = append(whole, cluster.Change{QOS: q})
		}
	}
	l.changes = slices.Concat(l.changes, bare, whole)
}

func qosNamed(b *show.Books, name string) *cluster.QOS {
	i := slices.IndexFunc(b.QOS, func(q *cluster.QOS) bool { return q.Name == name })
	if i < 0 {
		return nil
	}
	return b.QOS[i]
}
