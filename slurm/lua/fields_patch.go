package lua

import (
	"reflect"

	"dev.muster/cluster"
)

// toPatch adds to a change what the script has set of it; ok is false for what a change cannot have.
func (f *field) toPatch(s *cluster.JobSpec, p *cluster.Patch) (ok bool) {
	if f.of == "" {
		return false
	}
	to := reflect.ValueOf(p).Elem().FieldByName(f.of)
	if !to.IsValid() {
		return false
	}
	from := reflect.ValueOf(s).Elem().FieldByName(f.of)
	if to.Type() == from.Type() {
		to.Set(from)
		return true
	}
	v := reflect.New(from.Type())
	v.Elem().Set(from)
	to.Set(v)
	return true
}

// fromPatch shows what a change asks.
func (f *field) fromPatch(p *cluster.Patch, s *cluster.JobSpec) {
	if f.of == "" {
		return
	}
	from := reflect.ValueOf(p).Elem().FieldByName(f.of)
	if !from.IsValid() || from.IsZero() {
		return
	}
	to := reflect.ValueOf(s).Elem().FieldByName(f.of)
	if to.Type() == from.Type() {
		to.Set(from)
		return
	}
	to.Set(from.Elem())
}

// clear takes out of a user's change what the script sets.
func (f *field) clear(p *cluster.Patch) {
	if v := reflect.ValueOf(p).Elem().FieldByName(f.of); v.IsValid() {
		v.SetZero()
	}
}
