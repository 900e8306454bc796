package e2e

import (
	"strings"
	"testing"
)

// TestNodeFeatures: of a node's available features some are active, or none; a list that is empty clears.
func TestNodeFeatures(t *testing.T) {
	t.Parallel()
	d := startDev(t, "--hollow", "1x8c16g")
	for _, c := range []struct{ change, available, active string }{
		{"availablefeatures=a,b", "a,b", "a,b"},
		{"activefeatures=a", "a,b", "a"},
		{"activefeatures=", "a,b", "(null)"},
		{"availablefeatures=c,d activefeatures=c", "c,d", "c"},
		{"availablefeatures= activefeatures=", "(null)", "(null)"},
	} {
		d.must("scontrol", append([]string{"update", "nodename=node-001"}, strings.Fields(c.change)...)...)
		shown := d.must("scontrol", "show", "node", "node-001")
		if !strings.Contains(shown, "AvailableFeatures="+c.available+"\n") || !strings.Contains(shown, "ActiveFeatures="+c.active+"\n") {
			t.Errorf("%s: want %s available and %s active:\n%s", c.change, c.available, c.active, shown)
		}
	}
	if _, errs, code := d.run("scontrol", "update", "nodename=node-001", "activefeatures=z"); code == 0 || !strings.Contains(errs, "not subset") {
		t.Errorf("a feature that is not available: exit code %d, %s", code, errs)
	}
}
