package sacctmgr

import (
	"slices"
	"testing"

	"dev.muster/cluster"
	"dev.muster/slurm/show"
)

// TestFilters: conditions on columns are cut out of its words, and a row must pass all of them.
func TestFilters(t *testing.T) {
	row := mgrRow{
		account: &cluster.Account{Name: "ml", Organization: "Research", Description: "machine learning"},
		books:   &show.Books{},
	}
	for _, c := range []struct {
		words []string
		rest  []string
		keeps bool
	}{
		{nil, nil, true},
		{[]string{"where", "organization=research"}, []string{"where"}, true},
		{[]string{"organization=other,research"}, nil, true},
		{[]string{"org=other"}, nil, false},
		{[]string{"org=research", "description=x"}, nil, false},
		{[]string{`description="machine learning"`, "format=org"}, []string{"format=org"}, true},
		{[]string{"ml", "type=cpu"}, []string{"ml", "type=cpu"}, true},
	} {
		rest, chosen := cutFilters("account", c.words)
		if !slices.Equal(rest, c.rest) || chosen.keeps(&row) != c.keeps {
			t.Errorf("%q: left %q, keeps %v", c.words, rest, chosen.keeps(&row))
		}
	}
	for _, f := range filters() {
		if columnHas(f.column, "no such")(&mgrRow{books: &show.Books{}}) {
			t.Errorf("%s of %s: an empty row has it", f.key, f.entity)
		}
	}
}
