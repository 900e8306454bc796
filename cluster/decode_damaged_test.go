package cluster

import (
	"bytes"
	"encoding/json"
	"slices"
	"testing"
)

// lacking gives every JSON object that is a given one without one of its members, at any depth.
func lacking(v any, give func()) {
	switch v := v.(type) {
	case []any:
		for _, e := range v {
			lacking(e, give)
		}
	case map[string]any:
		for name, old := range v {
			delete(v, name)
			give()
			v[name] = old
			lacking(old, give)
		}
	}
}

// TestDecodeLacking takes each member of each record out of a snapshot, in turn: what is left is read, or refused,
// and never ends the process.
func TestDecodeLacking(t *testing.T) {
	newest := linesOf(readGolden(t, generations(t)-1, "snapshot"))
	refused, read := 0, 0
	for i, line := range newest {
		var record any
		if err := json.Unmarshal(line, &record); err != nil {
			t.Fatal(err)
		}
		lacking(record, func() {
			less, err := json.Marshal(record)
			if err != nil {
				t.Fatal(err)
			}
			text := unlines(slices.Concat(newest[:i], [][]byte{less}, newest[i+1:]))
			if _, err := Decode(bytes.NewReader(text)); err != nil {
				refused++
			} else {
				read++
			}
		})
	}
	t.Logf("%d refused, %d read", refused, read)
	if refused == 0 || read == 0 {
		t.Error("nothing was tried")
	}
}
