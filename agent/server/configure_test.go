package server

import (
	"slices"
	"testing"
)

// TestCountEffectless: settings without effect are counted, and mistakes are told again.
func TestCountEffectless(t *testing.T) {
	for _, c := range []struct {
		name        string
		notes, want []string
	}{
		{"none", []string{"F:2: Weigth is no key"}, []string{"F:2: Weigth is no key"}},
		{
			"two beside a mistake",
			[]string{"F:1: BcastAddr on a node has no effect yet", "F:2: Weigth is no key", "F:3: x has no effect: y"},
			[]string{"F:2: Weigth is no key",
				"the file is as it was, and 2 of its settings have no effect: muster config check FILE names them"},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := countEffectless(c.notes); !slices.Equal(got, c.want) {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
}
