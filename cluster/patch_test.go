package cluster

import (
	"reflect"
	"slices"
	"testing"
)

// TestPatchFields: each field of a change has a step of its own, or replaces the field of a job that has its name; and
// what only pending jobs can have changed has a place in the order in which it is told.
func TestPatchFields(t *testing.T) {
	rules := []string{"requeue"} // follows once the job has its place
	for _, step := range patchSteps {
		rules = append(rules, step.rule)
	}
	patch, spec := reflect.TypeFor[Patch](), reflect.TypeFor[JobSpec]()
	for _, f := range reflect.VisibleFields(patch) {
		if f.Anonymous {
			continue
		}
		t.Run(f.Name, func(t *testing.T) {
			if what := f.Tag.Get("pending"); what != "" && !slices.Contains(pendingOrder[:], what) {
				t.Errorf("pendingOrder lacks %q", what)
			}
			if rule := f.Tag.Get("rule"); rule != "" {
				if !slices.Contains(rules, rule) {
					t.Errorf("no step of patchSteps has the rule %q", rule)
				}
				return
			}
			to, ok := spec.FieldByName(f.Name)
			if !ok {
				t.Fatal("it has no rule, and JobSpec no field of that name")
			}
			if f.Type != to.Type && f.Type != reflect.PointerTo(to.Type) {
				t.Errorf("it is a %s, and that of JobSpec a %s", f.Type, to.Type)
			}
		})
	}
}
