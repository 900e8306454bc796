package data

import (
	"slices"
	"strings"
	"sync/atomic"
)

// Member is what stands at a path of an object: a field's name, or several with points between. One with neither Of nor
// By is unset in every record: muster has no such thing.
type Member[T any] struct {
	Path string
	Of   func(*T) Value
	// By with Arg is in the place of Of where several members differ in a name alone: functions that capture
	// nothing are laid out by the compiler.
	By  func(*T, string) Value
	Arg string
}

// Table makes objects of one schema from records.
type Table[T any] struct {
	Schema  string
	Members []Member[T]
	// More makes members that stand in no literal; nil: there are none.
	More func() []Member[T]
	// Also is what muster's own answers have besides, when no version was asked for.
	Also []Member[T]

	plans [Newest - Oldest + 1]atomic.Pointer[plan[T]]
}

// plan is a table as one version writes it: texts that are always the same, with values between.
type plan[T any] struct {
	parts []part[T]
	end   string
}

type part[T any] struct {
	before string
	typ    *Type
	of     func(*T) Value
}

// plan makes the plan of a version, once.
func (t *Table[T]) plan(s *Schemas) *plan[T] {
	at := &t.plans[s.Version-Oldest]
	if p := at.Load(); p != nil {
		return p
	}
	m := planner[T]{schemas: s, members: t.members()}
	if typ := s.Type(t.Schema); typ != nil {
		m.object(typ, "")
	}
	m.plan.end = string(m.text)
	at.Store(&m.plan)
	return &m.plan
}

// members are all of them.
func (t *Table[T]) members() []Member[T] {
	if t.More == nil {
		return t.Members
	}
	return append(t.More(), t.Members...)
}

// planner makes a plan.
type planner[T any] struct {
	schemas  *Schemas
	members  []Member[T]
	plan     plan[T]
	text     []byte
	unfilled []string
}

func (m *planner[T]) object(t *Type, prefix string) {
	m.text = append(m.text, '{')
	for i := range t.Fields {
		f := &t.Fields[i]
		if i > 0 {
			m.text = append(m.text, ',')
		}
		m.text = append(appendText(m.text, f.Name), ':')
		m.field(f.Type, prefix+f.Name)
	}
	m.text = append(m.text, '}')
}

func (m *planner[T]) field(t *Type, path string) {
	k := slices.IndexFunc(m.members, func(x Member[T]) bool { return x.Path == path })
	below := t.Form == Object && slices.ContainsFunc(m.members,
		func(x Member[T]) bool { return strings.HasPrefix(x.Path, path+".") })
	switch {
	case k >= 0:
		x, of := m.members[k], m.members[k].Of
		if x.By != nil {
			of = func(v *T) Value { return x.By(v, x.Arg) }
		}
		if of == nil {
			m.text = Unset.append(m.text, m.schemas, t)
			return
		}
		m.plan.parts = append(m.plan.parts, part[T]{string(m.text), t, of})
		m.text = nil
	case below, t.Form == Object && t.Ref == "":
		m.object(t, path+".")
	default:
		m.unfilled = append(m.unfilled, path)
		m.text = appendZero(m.text, t)
	}
}

// Unfilled lists the fields of a version that the table has no member for.
func (t *Table[T]) Unfilled(version int) []string {
	m := planner[T]{schemas: Load(version), members: t.members()}
	if typ := m.schemas.Type(t.Schema); typ != nil {
		m.object(typ, "")
	}
	return m.unfilled
}

// Unknown lists the members that no version has a field for.
func (t *Table[T]) Unknown() (paths []string) {
	for _, x := range t.members() {
		if !slices.ContainsFunc(Versions(), func(v string) bool {
			s := Load(Oldest + slices.Index(Versions(), v))
			return s.Type(t.Schema).find(strings.Split(x.Path, ".")) != nil
		}) {
			paths = append(paths, x.Path)
		}
	}
	return paths
}

// find is the type at a path below an object.
func (t *Type) find(path []string) *Type {
	for _, name := range path {
		if t == nil {
			return nil
		}
		k := slices.IndexFunc(t.Fields, func(f Field) bool { return f.Name == name })
		if k < 0 {
			return nil
		}
		t = t.Fields[k].Type
	}
	return t
}

// Append writes a record behind b.
func (t *Table[T]) Append(b []byte, s *Schemas, v *T) []byte {
	p := t.plan(s)
	for i := range p.parts {
		part := &p.parts[i]
		b = append(b, part.before...)
		val := part.of(v)
		b = val.append(b, s, part.typ)
	}
	return append(b, p.end...)
}

// AppendOwn writes a record with what muster says besides.
func (t *Table[T]) AppendOwn(b []byte, s *Schemas, v *T) []byte {
	b = t.Append(b, s, v)
	for _, m := range t.Also {
		val := m.Of(v)
		b = append(appendText(append(b[:len(b)-1], ','), m.Path), ':')
		b = append(val.append(b, s, &Type{Form: List, Of: &Type{}}), '}')
	}
	return b
}

// records is a list of records of one table.
type records[T any] struct {
	table *Table[T]
	list  []T
}

func (r records[T]) append(b []byte, s *Schemas, t *Type) []byte {
	if t.Form != List { // one record
		if len(r.list) == 0 {
			return appendZero(b, t)
		}
		return r.table.Append(b, s, &r.list[0])
	}
	b = append(b, '[')
	for i := range r.list {
		if i > 0 {
			b = append(b, ',')
		}
		b = r.table.Append(b, s, &r.list[i])
	}
	return append(b, ']')
}

// Records is a list of objects.
func Records[T any](t *Table[T], list []T) Value {
	return Value{kind: isNested, nested: records[T]{t, list}}
}

// record is one record of a table; nil is an object of zeros.
type record[T any] struct {
	table *Table[T]
	v     *T
}

func (r record[T]) append(b []byte, s *Schemas, t *Type) []byte {
	if r.v == nil && t.Form != List {
		return appendZero(b, t)
	}
	if t.Form != List {
		return r.table.Append(b, s, r.v)
	}
	b = append(b, '[')
	if r.v != nil {
		b = r.table.Append(b, s, r.v)
	}
	return append(b, ']')
}

// Record is one object; nil is an object of zeros.
func Record[T any](t *Table[T], v *T) Value {
	return Value{kind: isNested, nested: record[T]{t, v}}
}

// raw is JSON that is written as it is.
type raw string

func (r raw) append(b []byte, _ *Schemas, _ *Type) []byte {
	return append(b, r...)
}

// Raw is JSON that is written as it is.
func Raw(text string) Value {
	return Value{kind: isNested, nested: raw(text)}
}
