package wire

import (
	"encoding"
	"reflect"
	"strings"
	"sync"
	"time"
)

// plan is how a type is written and read. enc gets an addressable value (but for pointers and
// interfaces); dec gets a settable one, with the decoder at the first byte of the value.
type plan struct {
	enc func(b []byte, v reflect.Value) ([]byte, error)
	dec func(d *decoder, v reflect.Value) error
}

// plans are made once per type and kept: reflect.Type → *plan.
var plans sync.Map

func planOf(t reflect.Type) *plan {
	if p, ok := plans.Load(t); ok {
		return p.(*plan)
	}
	made := making{}
	p := made.plan(t)
	for t, p := range made { // all are complete now, those of types that contain themselves too
		plans.LoadOrStore(t, p)
	}
	return p
}

// making are the plans that one call of planOf makes.
type making map[reflect.Type]*plan

func (m making) plan(t reflect.Type) *plan {
	if p, ok := plans.Load(t); ok {
		return p.(*plan)
	}
	p := m[t]
	if p == nil {
		p = &plan{}
		m[t] = p
		m.byKind(p, t)
		byMethods(p, t)
	}
	return p
}

// byKind plans for what the type is made of.
func (m making) byKind(p *plan, t reflect.Type) {
	switch t.Kind() {
	case reflect.Bool:
		p.enc, p.dec = encodeBool, decodeBool
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		p.enc, p.dec = encodeInt, decodeInt
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Uintptr:
		p.enc, p.dec = encodeUint, decodeUint
	case reflect.Float32, reflect.Float64:
		p.enc, p.dec = encodeFloat, decodeFloat
	case reflect.String:
		p.enc, p.dec = encodeText, decodeText
	case reflect.Interface:
		p.enc, p.dec = encodeInterface, decodeInterface
	case reflect.Pointer:
		s := pointer{m.plan(t.Elem())}
		p.enc, p.dec = s.encode, s.decode
	case reflect.Array:
		s := list{m.plan(t.Elem())}
		p.enc, p.dec = s.encode, s.decodeArray
	case reflect.Slice:
		s := list{m.plan(t.Elem())}
		p.enc, p.dec = s.encodeSlice, s.decodeSlice
		if t.Elem().Kind() == reflect.Uint8 {
			p.enc, p.dec = encodeBytes, s.decodeBytes
		}
	case reflect.Map:
		s := mapping{m.plan(t.Elem()), reflect.PointerTo(t.Key()).Implements(reflect.TypeFor[encoding.TextUnmarshaler]())}
		p.enc, p.dec = s.encode, s.decode
	case reflect.Struct:
		s := m.structure(t)
		p.enc, p.dec = s.encode, s.decode
	default:
		refuse(p, "cannot encode or decode a "+t.String())
	}
}

// byMethods plans for types that know themselves.
func byMethods(p *plan, t reflect.Type) {
	if t.Kind() == reflect.Pointer || t.Kind() == reflect.Interface {
		return // what is behind them decides
	}
	ptr := reflect.PointerTo(t)
	switch {
	case t == reflect.TypeFor[time.Time]():
		p.enc, p.dec = encodeTime, decodeTime
		return
	case ptr.Implements(reflect.TypeFor[Appender]()):
		p.enc = encodeAppender
	case ptr.Implements(reflect.TypeFor[Marshaler]()):
		p.enc = encodeMarshaler
	case ptr.Implements(reflect.TypeFor[encoding.TextMarshaler]()):
		p.enc = encodeTextMarshaler
	}
	switch {
	case ptr.Implements(reflect.TypeFor[Unmarshaler]()):
		p.dec = decodeUnmarshaler
	case ptr.Implements(reflect.TypeFor[encoding.TextUnmarshaler]()):
		p.dec = decodeTextUnmarshaler
	}
}

func refuse(p *plan, why string) {
	p.enc = func([]byte, reflect.Value) ([]byte, error) { return nil, &Error{Offset: -1, Text: why} }
	p.dec = func(d *decoder, _ reflect.Value) error { return &Error{Offset: d.at, Text: why} }
}

// structure is the plan of a struct: its fields in the order in which they are written.
type structure struct {
	fields []field
	byName map[string]int
	refuse string // why the type cannot be written or read
}

type field struct {
	name   string
	key    string // as written: "name":
	first  int    // index of the field in the struct
	rest   []int  // and inside of embedded structs
	omit   func(reflect.Value) bool
	offset uintptr // in the outermost struct
	zero   uintptr // this many zeros there tell that omit is true; 0: nothing is left out
	shared bool    // equal texts may become one pointer
	*plan
}

func (f *field) of(v reflect.Value) reflect.Value {
	v = v.Field(f.first)
	for _, i := range f.rest {
		v = v.Field(i)
	}
	return v
}

func (m making) structure(t reflect.Type) *structure {
	s := &structure{byName: map[string]int{}}
	for _, f := range m.fields(t, s) {
		if k, ok := s.byName[f.name]; !ok {
			s.byName[f.name] = len(s.fields)
			s.fields = append(s.fields, f)
		} else if len(s.fields[k].rest) == len(f.rest) {
			s.refuse = "two fields of " + t.String() + " are named " + f.name
		}
	}
	return s
}

// fields lists the fields of t and, in their place, those of embedded structs; what an outer field
// of the same name hides is left out.
func (m making) fields(t reflect.Type, s *structure) []field {
	var list []field
	outer := map[string]bool{}
	for i := range t.NumField() {
		sf := t.Field(i)
		tag := sf.Tag.Get("json")
		name, options, _ := strings.Cut(tag, ",")
		if tag == "-" || !sf.IsExported() && !sf.Anonymous {
			continue
		}
		if sf.Anonymous && name == "" {
			switch {
			case sf.Type.Kind() == reflect.Struct:
				for _, f := range m.fields(sf.Type, s) {
					f.first, f.rest, f.offset = i, append([]int{f.first}, f.rest...), f.offset+sf.Offset
					list = append(list, f)
				}
				continue
			case sf.Type.Kind() == reflect.Pointer:
				s.refuse = t.String() + " embeds a pointer"
			}
		}
		if !sf.IsExported() {
			continue
		}
		if name == "" {
			name = sf.Name
		}
		f := field{name: name, key: string(appendString(nil, name)) + ":", first: i, offset: sf.Offset, plan: m.plan(sf.Type),
			shared: sf.Tag.Get("wire") == "shared" && sf.Type.Kind() == reflect.Pointer}
		for option := range strings.SplitSeq(options, ",") {
			switch option {
			case "omitempty":
				f.omit = either(f.omit, emptyOf(sf.Type))
			case "omitzero":
				f.omit = either(f.omit, zeroOf(sf.Type))
			case "string":
				s.refuse = t.String() + " uses the tag option string"
			}
		}
		if f.omit != nil {
			f.zero = sf.Type.Size()
		}
		outer[name] = true
		list = append(list, f)
	}
	kept := list[:0]
	for _, f := range list {
		if len(f.rest) == 0 || !outer[f.name] {
			kept = append(kept, f)
		}
	}
	return kept
}

func either(a, b func(reflect.Value) bool) func(reflect.Value) bool {
	if a == nil || b == nil {
		if a == nil {
			return b
		}
		return a
	}
	return func(v reflect.Value) bool { return a(v) || b(v) }
}

// emptyOf says what omitempty leaves out, nil if nothing.
func emptyOf(t reflect.Type) func(reflect.Value) bool {
	switch t.Kind() {
	case reflect.Map, reflect.Slice, reflect.String:
		return func(v reflect.Value) bool { return v.Len() == 0 }
	case reflect.Array, reflect.Struct: // but for [0]T, which nobody writes
		return nil
	}
	return reflect.Value.IsZero
}

type zeroer interface{ IsZero() bool }

// zeroOf says what omitzero leaves out: what calls itself zero, or the zero value.
func zeroOf(t reflect.Type) func(reflect.Value) bool {
	know := reflect.TypeFor[zeroer]()
	switch {
	case t.Kind() == reflect.Pointer && t.Implements(know):
		return func(v reflect.Value) bool { return v.IsNil() || v.Interface().(zeroer).IsZero() }
	case t.Kind() != reflect.Interface && reflect.PointerTo(t).Implements(know):
		return func(v reflect.Value) bool { return v.Addr().Interface().(zeroer).IsZero() }
	}
	return reflect.Value.IsZero
}
