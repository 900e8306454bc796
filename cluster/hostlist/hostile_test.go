package hostlist

import (
	"strings"
	"testing"
	"time"
)

// TestHostileLists expands lists that are made to take long or to fill the memory: each ends at once.
func TestHostileLists(t *testing.T) {
	for name, list := range map[string]string{
		"many brackets":      "a" + strings.Repeat("[1]", 1<<20),
		"many wide brackets": "a" + strings.Repeat("[0-9]", 1<<20),
		"long names":         strings.Repeat("a", 1<<20) + "[1-1000000]",
		"open brackets":      strings.Repeat("[", 1<<22),
		"closed brackets":    strings.Repeat("]", 1<<22),
		"bad parts":          "a[" + strings.Repeat("1,", 1<<20) + "x]",
		"commas":             strings.Repeat(",", 1<<22),
		"text and brackets":  strings.Repeat("a[1]", 1<<20),
		"huge range":         "a[1-999999999999999999]",
		"many ranges":        strings.Repeat("a[1-1000000],", 1<<16),
	} {
		t.Run(name, func(t *testing.T) {
			began := time.Now()
			names, err := Expand(list)
			if took := time.Since(began); took > 5*time.Second || len(names) > MaxNames {
				t.Errorf("%d bytes took %v: %d names, %.80v", len(list), took, len(names), err)
			}
		})
	}
}
