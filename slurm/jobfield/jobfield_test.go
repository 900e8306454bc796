package jobfield

import (
	"reflect"
	"testing"

	"dev.muster/cluster"
)

// TestRows: each row names a field of a job, of the type that its form says; a name is given once.
func TestRows(t *testing.T) {
	types := map[Form]reflect.Type{
		Text: reflect.TypeFor[string](), Count: reflect.TypeFor[int](), Flag: reflect.TypeFor[bool](),
	}
	spec := reflect.TypeFor[cluster.JobSpec]()
	seen := map[string]bool{}
	for i := range Rows {
		r := &Rows[i]
		t.Run(r.Option+r.Key+r.Asked, func(t *testing.T) {
			if r.Of == "" {
				if r.Member+r.Word+r.Lua+r.Column.Long != "" || r.New != nil {
					t.Error("an interface reads or writes it, but it has no field")
				}
				return
			}
			f, ok := spec.FieldByName(r.Of)
			if !ok {
				t.Fatalf("a job has no field %s", r.Of)
			}
			if f.Type != types[r.Form] {
				t.Errorf("%s is a %s, which is not its form", r.Of, f.Type)
			}
			if seen[r.Of] {
				t.Errorf("%s has two rows", r.Of)
			}
			seen[r.Of] = true
		})
	}
}

// TestIn: each row's field is found where it is, also in the layout and in what else a spec embeds.
func TestIn(t *testing.T) {
	spec := &cluster.JobSpec{Layout: &cluster.Layout{}}
	v := reflect.ValueOf(spec).Elem()
	for i := range Rows {
		r := &Rows[i]
		if r.Of == "" {
			continue
		}
		t.Run(r.Of, func(t *testing.T) {
			var at any
			switch r.Form {
			case Text:
				at = In[string](r)(spec)
			case Count:
				at = In[int](r)(spec)
			case Flag:
				at = In[bool](r)(spec)
			}
			if want := v.FieldByName(r.Of).Addr().Interface(); at != want {
				t.Errorf("at %p, want %p", at, want)
			}
		})
	}
}
