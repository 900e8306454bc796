package lookup

import (
	"testing"

	"dev.muster/cluster"
)

// TestRef: ids are read as squeue writes them.
func TestRef(t *testing.T) {
	for text, want := range map[string]*cluster.Ref{
		"56": {Job: 56}, "56_0": {Job: 56, Tasks: cluster.NewIDSet(0)}, "56_17": {Job: 56, Tasks: cluster.NewIDSet(17)},
		"61+0": {Job: 61, Part: 1}, "61+1": {Job: 61, Part: 2}, "0": nil, "x": nil, "": nil, "56_": nil, "56_x": nil,
		"56_[1-3]": nil, "61+": nil, "61+999": nil, "-1": nil, "56_1+1": nil, "4294967296": nil,
	} {
		got, ok := Ref(text)
		if ok != (want != nil) || ok && (got.Job != want.Job || got.Part != want.Part || !got.Tasks.Equal(want.Tasks)) {
			t.Errorf("%q: %+v, %v", text, got, ok)
		}
	}
}
