package supervisor

import (
	"testing"

	"dev.muster/agent/step"
	"dev.muster/cluster"
)

// TestExternalStep: the supervisor opens the files of a step of sessions by itself as long as that names none.
func TestExternalStep(t *testing.T) {
	for _, c := range []struct {
		name string
		spec step.Spec
		want bool
	}{
		{"as the daemon makes it", step.Spec{Own: true, Dir: "/", Tasks: []step.Task{{}}}, true},
		{"by its number alone", step.Spec{Dir: "/", Tasks: []step.Task{{}}}, false},
		{"with a folder", step.Spec{Own: true, Dir: "/home/bob", Tasks: []step.Task{{}}}, false},
		{"with a file", step.Spec{
			Own: true, Dir: "/", Tasks: []step.Task{{Stdout: step.IO{Kind: step.File, Path: "/x"}}},
		}, false},
	} {
		c.spec.ID.Step, c.spec.UID, c.spec.GID = cluster.ExternStep, 1000, 1000
		u := &userFiles{l: &launcher{sup: &supervisor{root: true}}, r: &run{id: c.spec.ID, spec: c.spec}}
		if got := u.isLocal(); got != c.want {
			t.Errorf("%s: opened by the supervisor: %t", c.name, got)
		}
	}
}
