package sacctmgr

import (
	"slices"
	"strings"

	"dev.muster/slurm/front"
)

// filter is a condition on what a column of an entity says.
type filter struct {
	entity string
	least  int // letters of the key that are enough
	key    string
	column string
	assoc  bool // the column is one of an association, not of the record itself
}

// filters are the conditions beside those that name what is meant.
func filters() []filter {
	return []filter{
		{"account", 3, "description", "Description", false},
		{"account", 1, "organization", "Organization", false},
		{"account", 4, "parent", "ParentName", true},
		{"account", 1, "qoslevel", "QOS", true},
		{"account", 8, "defaultqos", "DefaultQOS", true},
		{"association", 8, "defaultqos", "DefaultQOS", true},
		{"association", 2, "id", "ID", true},
		{"association", 4, "parent", "ParentName", true},
		{"association", 1, "qoslevel", "QOS", true},
		{"qos", 3, "description", "Description", false},
		{"qos", 2, "id", "ID", false},
		{"qos", 8, "preemptmode", "PreemptMode", false},
		{"tres", 2, "id", "ID", false},
		{"tres", 1, "name", "Name", false},
		{"tres", 2, "type", "Type", false},
		{"user", 2, "adminlevel", "AdminLevel", false},
		{"user", 8, "defaultaccount", "DefaultAccount", false},
		{"user", 8, "defaultqos", "DefaultQOS", true},
		{"user", 1, "qoslevel", "QOS", true},
	}
}

// test is a condition on a column.
type test func(r *mgrRow) bool

func pass(tests []test, r *mgrRow) bool {
	return !slices.ContainsFunc(tests, func(has test) bool { return !has(r) })
}

// choice is what conditions on columns select, of records and of their associations.
type choice struct{ records, places []test }

// keeps reports whether a row passes all conditions.
func (c *choice) keeps(r *mgrRow) bool { return pass(c.records, r) && pass(c.places, r) }

// cutFilters takes the conditions on columns out of the words of a command.
func cutFilters(entity string, args []string) (rest []string, c choice) {
	for _, a := range args {
		key, value, _ := strings.Cut(a, "=")
		i := slices.IndexFunc(filters(), func(f filter) bool {
			return f.entity == entity && front.IsKey(strings.ToLower(key), f.least, f.key)
		})
		if i < 0 || key == a {
			rest = append(rest, a)
			continue
		}
		has := columnHas(filters()[i].column, value)
		if filters()[i].assoc {
			c.places = append(c.places, has)
		} else {
			c.records = append(c.records, has)
		}
	}
	return rest, c
}

// columnHas tests whether a column has one of the values of a list; so may what it says be one. Resources also go by
// their full names.
func columnHas(name, list string) test {
	columns := mgrColumns()
	i := slices.IndexFunc(columns, func(c front.Column[mgrRow]) bool {
		return slices.Contains(strings.Fields(c.Name), name)
	})
	values := front.SplitList(strings.Trim(list, `"'`))
	return func(r *mgrRow) bool {
		texts := front.SplitList(columns[i].Of(r))
		if r.tres != "" {
			texts = append(texts, r.tres)
		}
		return slices.ContainsFunc(values, func(v string) bool {
			return slices.ContainsFunc(texts, func(t string) bool { return strings.EqualFold(t, v) })
		})
	}
}
