package adopt

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"dev.muster/cluster"
	"dev.muster/cluster/hostlist"
	"dev.muster/wire"
)

// resvRow is one time of a reservation.
type resvRow struct {
	place
	cluster.ResvSpan
	nodes, tres, assocs string
}

// resvFlags are the flags of a reservation by their bits. The others say how it came about.
var resvFlags = map[uint]cluster.ResvFlags{
	0: cluster.ResvMaint, 2: cluster.ResvDaily, 4: cluster.ResvWeekly, 6: cluster.ResvIgnoreJobs,
	8: cluster.ResvAnyNodes, 10: cluster.ResvStatic, 12: cluster.ResvPartNodes, 14: cluster.ResvOverlap,
	15: cluster.ResvSpecNodes, 16: cluster.ResvFirstCores, 17: cluster.ResvTimeFloat, 18: cluster.ResvReplace,
	19: cluster.ResvAllNodes, 21: cluster.ResvWeekday, 23: cluster.ResvWeekend, 25: cluster.ResvFlex,
	29: cluster.ResvNoHold, 30: cluster.ResvReplaceDown, 32: cluster.ResvMagnetic, 35: cluster.ResvHourly,
	39: cluster.ResvUserDelete,
}

// resv reads a time of a reservation.
func (a *accounting) resv(p place, r *row, to *own) func() {
	row := &resvRow{
		place:  p,
		nodes:  r.plain("nodelist"),
		tres:   r.plain("tres"),
		assocs: r.plain("assoclist"),
		ResvSpan: cluster.ResvSpan{
			Name: r.name("resv_name", false),
			From: r.seconds("time_start"),
			To:   r.seconds("time_end"),
		},
	}
	flags := r.number("flags", 64)
	for bit, flag := range resvFlags {
		if flags>>bit&1 != 0 {
			row.Flags |= flag
		}
	}
	return func() {
		a.resvs++
		to.resvRows = append(to.resvRows, row)
	}
}

// reservations yields the reservations that were over when the dump was made.
func (s *Source) reservations(yield func(wire.RawMessage) error, refuse func(Refused) error) error {
	for _, row := range s.own.resvRows {
		text, err := s.resvText(row)
		if err == nil {
			err = yield(text)
		} else {
			err = refuse(Refused{
				Table: row.table,
				Row:   row.row,
				Name:  "reservation " + row.Name,
				Why:   err.Error(),
			})
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// errNotOver says that a reservation is not history.
var errNotOver = errors.New("it was not over when the dump was made: create it with scontrol")

// resvText makes the record of a time of a reservation.
func (s *Source) resvText(row *resvRow) (wire.RawMessage, error) {
	if row.To > int64(s.own.newest) {
		return nil, errNotOver
	}
	span := row.ResvSpan
	names, err := hostlist.Expand(row.nodes)
	if err != nil || len(names) > maxNodes {
		return nil, fmt.Errorf("nodelist is %.64q: it has %d nodes: %w", row.nodes, len(names), err)
	}
	for _, name := range names {
		span.Nodes = append(span.Nodes, cluster.NodeName(name))
	}
	for item := range strings.FieldsFuncSeq(row.tres, isComma) {
		id, count, _ := strings.Cut(item, "=")
		n, err := strconv.ParseUint(count, 10, 63)
		if err != nil || s.tres[id] == "" {
			return nil, fmt.Errorf("tres has %.40q", item)
		}
		span.TRES = cluster.AddAmounts(span.TRES, []cluster.Amount{{TRES: s.tres[id], N: float64(n)}}, 1)
	}
	for id := range strings.FieldsFuncSeq(row.assocs, isComma) {
		number := strings.TrimPrefix(id, "-")
		minus := id[:len(id)-len(number)]
		span.Accounts = withName(span.Accounts, minus, s.own.accounts[number])
		span.Users = withName(span.Users, minus, s.own.users[number])
	}
	text, err := wire.Marshal(&span)
	if err == nil {
		err = cluster.CheckImportedResv(&span, len(text))
	}
	return text, err
}

func isComma(c rune) bool { return c == ',' }

// withName adds a name to a list in order, unless it is empty or there.
func withName(list []string, minus, name string) []string {
	i, there := slices.BinarySearch(list, minus+name)
	if there || name == "" {
		return list
	}
	return slices.Insert(list, i, minus+name)
}
