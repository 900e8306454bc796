package adopt

import (
	"fmt"
	"strconv"
	"time"

	"dev.muster/adopt/dump"
	"dev.muster/cluster"
	"dev.muster/cluster/hostlist"
)

// columns are the places of the columns of a table that is read row by row.
type columns map[string]int

func columnsOf(t *dump.Table) columns {
	c := columns{}
	for i, name := range t.Columns {
		c[name] = i
	}
	return c
}

// row reads the values of a row. The first one that cannot be read is the reason to refuse it.
type row struct {
	at     columns
	values []dump.Value
	err    error
}

func newRow(at columns, r *dump.Row) *row {
	return &row{at: at, values: r.Values, err: r.Bad}
}

func (r *row) refuse(format string, args ...any) {
	if r.err == nil {
		r.err = fmt.Errorf(format, args...)
	}
}

// value returns a value, nil for NULL and for a column that the table lacks.
func (r *row) value(column string) []byte {
	i, ok := r.at[column]
	if !ok || i >= len(r.values) || r.values[i].Null {
		return nil
	}
	if r.values[i].TooLong {
		r.refuse("%s has more than %d bytes", column, dump.MaxValue)
	}
	return r.values[i].Text
}

// null reports whether a value is NULL, or the table lacks the column.
func (r *row) null(column string) bool {
	i, ok := r.at[column]
	return !ok || i >= len(r.values) || r.values[i].Null
}

// maxText bounds a text of a record.
const maxText = 64 << 10

func (r *row) text(column string) string {
	text := r.value(column)
	if len(text) > maxText {
		r.refuse("%s has %d bytes: the most are %d", column, len(text), maxText)
		text = text[:maxText]
	}
	return string(text)
}

// number returns a number of so many bits that is not negative.
func (r *row) number(column string, bits int) uint64 {
	text := r.value(column)
	if text == nil {
		return 0
	}
	n, err := strconv.ParseUint(string(text), 10, bits)
	if err != nil {
		r.refuse("%s is %.40q", column, text)
	}
	return n
}

func (r *row) count(column string) uint32 { return uint32(r.number(column, 32)) }

func (r *row) signed(column string) int32 {
	text := r.value(column)
	if text == nil {
		return 0
	}
	n, err := strconv.ParseInt(string(text), 10, 32)
	if err != nil {
		r.refuse("%s is %.40q", column, text)
	}
	return int32(n)
}

// maxTime bounds times: that is in the year 2514.
const maxTime = 1 << 34

// seconds returns a time in seconds since 1970.
func (r *row) seconds(column string) int64 {
	n := r.number(column, 64)
	if n > maxTime {
		r.refuse("%s is %d: that is no time", column, n)
		return 0
	}
	return int64(n)
}

func moment(seconds int64) time.Time {
	if seconds <= 0 {
		return time.Time{}
	}
	return time.Unix(seconds, 0).UTC()
}

// maxNodes bounds the nodes of a job.
const maxNodes = 1 << 16

// nodes expands a list of nodes.
func (r *row) nodes(column string) []string {
	text := r.text(column)
	if text == "" || text == "None assigned" {
		return nil
	}
	names, err := hostlist.Expand(text)
	if err != nil || len(names) > maxNodes {
		r.refuse("%s is %.64q: it has %d nodes: %v", column, text, len(names), err)
		return nil
	}
	return names
}

// shares gives each node its part of what a job or step has; the first ones have what is left over.
func shares(nodes []string, given cluster.TRESList, tasks int) []cluster.Share {
	part := func(name string, i int) int {
		n, _ := given.Count(name)
		if n > maxPart {
			return 0
		}
		all := len(nodes)
		return int(n)/all + more(i < int(n)%all)
	}
	out := make([]cluster.Share, len(nodes))
	for i, name := range nodes {
		out[i] = cluster.Share{Node: cluster.NodeName(name), MemMB: cluster.MemMB(part("mem", i)),
			Tasks: tasks/len(nodes) + more(i < tasks%len(nodes))}
		if n := part("cpu", i); n > 0 && n <= maxPerNode {
			out[i].CPUs = cluster.RangeIDSet(0, n-1)
		}
		if n := part("gres/gpu", i); n > 0 && n <= maxPerNode {
			out[i].GPUs = cluster.RangeIDSet(0, n-1)
		}
	}
	return out
}

// Bounds of what a job has, and has on one node: more is not told apart by node.
const (
	maxPart    = 1 << 40
	maxPerNode = 1 << 14
)

func more(is bool) int {
	if is {
		return 1
	}
	return 0
}
