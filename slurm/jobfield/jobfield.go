// Package jobfield is the table of what a job is asked by: each field of a job by the names that Slurm's interfaces
// have for it. One row gives an option its update, its column, its members in JSON and its field in scripts of Lua, if
// its value is a text, a count or a flag. Where a value is more than that, the interface has a row of its own for it,
// and the one here has no name for that interface, or (options, keys) the name alone, for requests of the REST
// interface.
//
// It knows names and where a field stands; how values are read and written is the interfaces' own.
package jobfield

import (
	"reflect"
	"sync"
	"unsafe"

	"dev.muster/cluster"
	"dev.muster/slurm/opt"
)

// Form is what kind of value a field has: in the first three all interfaces read and write it, the others are ways in
// which a request of the REST interface says it.
type Form uint8

// The forms.
const (
	Text Form = iota
	Count
	Flag

	Array
	GPUs
	GRES
	Keep // a node's failure ends it, or not
	Memory
	OpenMode
	Requeue
	Shared
	Time
)

// Row is a field of a job. A name that is empty: the interface does not have it, or has a row of its own for it.
type Row struct {
	Of     string // the field of cluster.JobSpec, and of cluster.Patch if it can be changed
	Form   Form
	Option string  // of sbatch, srun and salloc, without its dashes
	New    *Option // of an option that Slurm 22.05 does not have; those that it has are rows of slurm/submit
	Key    string  // of scontrol update job
	Column Column  // of squeue
	Member string  // of a job in answers in JSON
	Word   string  // among the flags of a job in such answers
	Asked  string  // the member of a job in requests of the REST interface
	Lua    string  // of job_desc in scripts
}

// Option is how an option is described.
type Option struct {
	Env   string
	Group opt.Group
	Meta  string
	Help  string
}

// Column is a column of squeue: its letter, if it has one, the name of -O, and what stands above it.
type Column struct {
	Code byte
	Long string
	Head string
}

// In returns what finds a row's field in a spec. Its name is looked up once, when it is first asked for; after that a
// list of thousands of jobs reads it as fast as if it had been named in the code.
func In[T any](r *Row) func(*cluster.JobSpec) *T {
	where := sync.OnceValue(func() place { return placeOf(r.Of, reflect.TypeFor[T]()) })
	return func(s *cluster.JobSpec) *T { return (*T)(where().of(s)) }
}

// place is where a spec has a field: itself, or in the layout that it shares with others.
type place struct {
	offset uintptr // bytes from the begin of the spec, or of the layout
	shared bool
}

// placeOf panics if a spec has no field of that name and type.
func placeOf(name string, want reflect.Type) place {
	spec := reflect.TypeFor[cluster.JobSpec]()
	f, ok := spec.FieldByName(name)
	if !ok || f.Type != want {
		panic("jobfield: a job has no field " + name + " of type " + want.String())
	}
	if len(f.Index) == 1 {
		return place{offset: f.Offset}
	}
	around := spec.Field(f.Index[0])
	if around.Type.Kind() == reflect.Pointer {
		return place{offset: offsetIn(around.Type.Elem(), f.Index[1:]), shared: true}
	}
	return place{offset: around.Offset + offsetIn(around.Type, f.Index[1:])}
}

// offsetIn is where a struct has a field, in itself or in structs that are part of it.
func offsetIn(t reflect.Type, index []int) (offset uintptr) {
	for _, k := range index {
		f := t.Field(k)
		offset += f.Offset
		t = f.Type
	}
	return offset
}

// of is the field of a spec.
func (p place) of(s *cluster.JobSpec) unsafe.Pointer {
	if p.shared {
		return unsafe.Add(unsafe.Pointer(s.Layout), p.offset)
	}
	return unsafe.Add(unsafe.Pointer(s), p.offset)
}

// Changes reports whether the row's field can be changed once a job is submitted.
func (r *Row) Changes() bool {
	_, ok := reflect.TypeFor[cluster.Patch]().FieldByName(r.Of)
	return ok
}

// Change is where a patch has a row's field.
func Change[T any](r *Row, p *cluster.Patch) **T {
	return reflect.ValueOf(p).Elem().FieldByName(r.Of).Addr().Interface().(**T)
}
