package cluster

import (
	"reflect"
	"strings"
	"testing"
	"time"
)

// TestMaxSpecBytes: what a user's jobs ask for besides scripts and environments stays within bounds, too: the servers
// keep it in memory and in the log.
func TestMaxSpecBytes(t *testing.T) {
	w := newWorld(t, 1)
	cfg := *w.s.Config()
	cfg.Keys = map[string]string{"maxuserscriptbytes": "3M"}
	w.ok(root, &Configure{Config: &cfg})
	asking := func(by Identity, bytes int) *JobSpec {
		return &JobSpec{Layout: &Layout{}, Name: "job", UID: by.UID, Args: []string{strings.Repeat("x", bytes)}}
	}
	check := func(what string, spec *JobSpec, want bool) {
		t.Helper()
		if err := CheckNew(w.s.Snapshot(), spec); (err == nil) != want {
			t.Errorf("%s: %v", what, err)
		}
	}
	check("too large by itself", asking(alice, 3<<20), false)
	check("large", asking(alice, 1<<20), true)
	for range 2 {
		w.ok(alice, &Submit{Spec: asking(alice, 1<<20)})
	}
	id := w.ok(alice, &Submit{Spec: asking(alice, 10)}).Result.(JobID)
	check("too large with the others", asking(alice, 1<<20), false)
	check("small", asking(alice, 1000), true)
	check("another user's", asking(bob, 1<<20), true)
	change := func(nodes int, want bool) {
		t.Helper()
		list := make([]NodeName, nodes)
		for i := range list {
			list[i] = "n0"
		}
		err := Check(w.s.Snapshot(), &UpdateJob{Ref: Ref{Job: id}, Patch: Patch{Exclude: &list}})
		if (err == nil) != want {
			t.Errorf("a change of %d nodes: %v", nodes, err)
		}
	}
	change(100, true)
	change(50_000, false)
	change(1_000_000, false)
	many := Layout{PerNode: make([]GRES, maxKinds+1)}
	if err := CheckStep(&StepSpec{Layout: many}, 1); err == nil {
		t.Error("a step of any number of generic resources is taken")
	}
}

// TestSpecBytes: every text and list in what jobs ask for counts.
func TestSpecBytes(t *testing.T) {
	var fill func(spec *JobSpec, v reflect.Value, path string)
	fill = func(spec *JobSpec, v reflect.Value, path string) {
		before := spec.bytes()
		switch v.Kind() {
		case reflect.String:
			v.SetString(strings.Repeat("x", 100))
		case reflect.Slice:
			v.Set(reflect.MakeSlice(v.Type(), 100, 100))
			if v.Type().Elem().Kind() == reflect.Struct {
				fill(spec, v.Index(0), path)
			}
		case reflect.Pointer:
			if v.Set(reflect.New(v.Type().Elem())); v.Elem().Kind() == reflect.Struct {
				fill(spec, v.Elem(), path)
			}
			return
		case reflect.Struct:
			for i := range v.NumField() {
				if f := v.Type().Field(i); f.IsExported() && v.Type() != reflect.TypeFor[time.Time]() {
					fill(spec, v.Field(i), path+"."+f.Name)
				}
			}
			return
		default:
			return
		}
		blob := v.Type() == reflect.TypeFor[BlobHash]() // whose text counts by itself
		if got := spec.bytes(); got < before+100 && !blob {
			t.Errorf("%s counts %d bytes", path, got-before)
		}
	}
	spec := &JobSpec{}
	fill(spec, reflect.ValueOf(spec).Elem(), "JobSpec")
}
