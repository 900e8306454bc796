package sacctmgr

import (
	"slices"
	"strings"

	"dev.muster/slurm/front"
)

// filter is a condition that show alone takes: what a column of an entity says.
type filter struct {
	entity string
	least  int // letters of the key that are enough
	key    string
	column string
}

// filters are the conditions of show beside those that select what is changed, too.
func filters() []filter {
	return []filter{
		{"account", 3, "description", "Description"},
		{"account", 1, "organization", "Organization"},
		{"association", 8, "defaultqos", "DefaultQOS"},
		{"association", 2, "id", "ID"},
		{"association", 4, "parent", "ParentName"},
		{"association", 1, "qoslevel", "QOS"},
		{"qos", 2, "id", "ID"},
		{"tres", 2, "id", "ID"},
		{"tres", 2, "type", "Type"},
		{"user", 2, "adminlevel", "AdminLevel"},
		{"user", 8, "defaultaccount", "DefaultAccount"},
	}
}

// cutFilters takes the conditions that show alone has out of its words; keeps reports whether a row passes them all.
func cutFilters(entity string, args []string) (rest []string, keeps func(r *mgrRow) bool) {
	var tests []func(r *mgrRow) bool
	for _, a := range args {
		key, value, _ := strings.Cut(a, "=")
		i := slices.IndexFunc(filters(), func(f filter) bool {
			return f.entity == entity && front.IsKey(strings.ToLower(key), f.least, f.key)
		})
		if i < 0 || key == a {
			rest = append(rest, a)
			continue
		}
		tests = append(tests, columnHas(filters()[i].column, value))
	}
	return rest, func(r *mgrRow) bool {
		return !slices.ContainsFunc(tests, func(has func(*mgrRow) bool) bool { return !has(r) })
	}
}

// columnHas tests whether a column has one of the values of a list; so may what it says be one.
func columnHas(name, list string) func(r *mgrRow) bool {
	columns := mgrColumns()
	i := slices.IndexFunc(columns, func(c front.Column[mgrRow]) bool {
		return slices.Contains(strings.Fields(c.Name), name)
	})
	values := front.SplitList(strings.Trim(list, `"'`))
	return func(r *mgrRow) bool {
		texts := front.SplitList(columns[i].Of(r))
		return slices.ContainsFunc(values, func(v string) bool {
			return slices.ContainsFunc(texts, func(t string) bool { return strings.EqualFold(t, v) })
		})
	}
}
