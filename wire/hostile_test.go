package wire

import (
	"strings"
	"testing"
	"time"
)

// TestHostileJSON reads texts that are made to take long or to exhaust the stack: each is read or refused at once.
func TestHostileJSON(t *testing.T) {
	const many = 1 << 20
	for name, text := range map[string]string{
		"lists":       strings.Repeat("[", 4*many),
		"closed":      strings.Repeat("[", many) + strings.Repeat("]", many),
		"objects":     strings.Repeat(`{"a":`, many),
		"keys":        "{" + strings.Repeat(`"a":1,`, many) + `"b":2}`,
		"escapes":     `"` + strings.Repeat(`\u0041\n`, many) + `"`,
		"surrogates":  `"` + strings.Repeat(`\ud800`, many) + `"`,
		"open string": `"` + strings.Repeat("a", 4*many),
		"blanks":      strings.Repeat(" ", 4*many),
		"number":      strings.Repeat("9", 4*many),
		"exponent":    "1e" + strings.Repeat("9", many),
		"fraction":    "0." + strings.Repeat("1", many),
		"zeros":       "[" + strings.Repeat("0,", many) + "0]",
	} {
		t.Run(name, func(t *testing.T) {
			began := time.Now()
			var v any
			err := Unmarshal([]byte(text), &v)
			if took := time.Since(began); took > 5*time.Second {
				t.Errorf("%d bytes took %v: %.80v", len(text), took, err)
			}
			var s struct {
				A []struct{ B map[string]int }
			}
			if err = UnmarshalStrict([]byte(text), &s); time.Since(began) > 10*time.Second {
				t.Errorf("into a struct %d bytes took %v: %.80v", len(text), time.Since(began), err)
			}
		})
	}
}
