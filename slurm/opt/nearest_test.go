package opt

import "testing"

// TestNearest: letters left out, put in, changed or swapped; short words have to be nearer than long ones.
func TestNearest(t *testing.T) {
	words := []string{"status", "members", "partition", "high", "top", "json"}
	for typed, want := range map[string]string{
		"statsu": "status", "membres": "members", "partion": "partition", "hihg": "high", "HIGH": "high",
		"tpo": "top", "foo": "", "jsn": "json", "x": "", "nothing": "",
	} {
		if got := Nearest(typed, words); got != want {
			t.Errorf("%s: %q, want %q", typed, got, want)
		}
	}
}
