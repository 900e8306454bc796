package wire

import (
	"encoding"
	"reflect"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// plan is how a type is written and read. enc gets an addressable value (but for pointers and
// interfaces); dec gets a settable one, with the decoder at the first byte of the value.
type plan struct {
	enc  func(b []byte, v reflect.Value) ([]byte, error)
	dec  func(d *decoder, v reflect.Value) error
	zero func(v reflect.Value) bool // the type's own IsZero, if it has one
}

// plans are made once per type and kept: reflect.Type → *plan.
var plans sync.Map

func planOf(t reflect.Type) *plan {
	if p, ok := plans.Load(t); ok {
		return p.(*plan)
	}
	p := &plan{}
	byKind(p, t)
	if t.PkgPath() != "" || t.Kind() == reflect.Struct { // nothing else has methods
		byMethods(p, t)
	}
	kept, _ := plans.LoadOrStore(t, p)
	return kept.(*plan)
}

// lazy is the plan of what a type consists of, made when a value first needs it: a front-end uses
// few of the types that its requests could hold.
type lazy struct {
	t    reflect.Type
	made atomic.Pointer[plan]
}

func (l *lazy) plan() *plan {
	p := l.made.Load()
	if p == nil {
		p = planOf(l.t)
		l.made.Store(p)
	}
	return p
}

// byKind plans for what the type is made of.
func byKind(p *plan, t reflect.Type) {
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
		s := &pointer{lazy{t: t.Elem()}}
		p.enc, p.dec = s.encode, s.decode
	case reflect.Array:
		s := &list{lazy{t: t.Elem()}}
		p.enc, p.dec = s.encode, s.decodeArray
	case reflect.Slice:
		s := &list{lazy{t: t.Elem()}}
		p.enc, p.dec = s.encodeSlice, s.decodeSlice
		if t.Elem().Kind() == reflect.Uint8 {
			p.enc, p.dec = encodeBytes, s.decodeBytes
		}
	case reflect.Map:
		s := &mapping{
			lazy{t: t.Elem()},
			reflect.PointerTo(t.Key()).Implements(reflect.TypeFor[encoding.TextUnmarshaler]()),
		}
		p.enc, p.dec = s.encode, s.decode
	case reflect.Struct:
		s := newStructure(t)
		p.enc, p.dec = s.encode, s.decode
	default:
		why := "cannot encode or decode a " + t.String()
		p.enc = func([]byte, reflect.Value) ([]byte, error) { return nil, &Error{Offset: -1, Text: why} }
		p.dec = func(d *decoder, _ reflect.Value) error { return d.fail(why) }
	}
}

// byMethods plans for types that know themselves. Pointers and interfaces leave it to what is
// behind them.
func byMethods(p *plan, t reflect.Type) {
	if t == reflect.TypeFor[time.Time]() {
		p.enc, p.dec, p.zero = encodeTime, decodeTime, ownZero
		return
	}
	ptr := reflect.PointerTo(t)
	if t.Kind() == reflect.Interface || ptr.NumMethod() == 0 {
		return
	}
	switch {
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
	if ptr.Implements(reflect.TypeFor[zeroer]()) {
		p.zero = ownZero
	}
}

type zeroer interface{ IsZero() bool }

func ownZero(v reflect.Value) bool { return v.Addr().Interface().(zeroer).IsZero() }

// structure is the plan of a struct: its fields in the order in which they are written.
type structure struct {
	fields  []*field
	retired []string // names of fields that the type once had
	refuse  string   // why the type cannot be written or read
	behind  int      // which field is an embedded pointer, -1: none
}

// behindOf is the struct that the embedded pointer of v leads to. Where there is none yet, v gets one if it is to
// be filled.
func (s *structure) behindOf(v reflect.Value, fill bool) reflect.Value {
	if s.behind < 0 {
		return v
	}
	p := v.Field(s.behind)
	if p.IsNil() {
		made := reflect.New(p.Type().Elem())
		if fill {
			p.Set(made)
		}
		p = made
	}
	return p.Elem()
}

type field struct {
	name      string
	key       string // as written: "name":
	lazy             // of the field's type
	behind    bool   // it is in what the embedded pointer leads to; the numbers below are of that
	first     int    // index of the field in the struct
	rest      []int  // and inside of embedded structs
	omitEmpty bool
	omitZero  bool
	offset    uintptr // in the outermost struct
	zero      uintptr // this many zeros there tell that the field is left out; 0: it never is
	shared    bool    // equal texts may become one pointer
}

// depth tells in how many embedded structs the field is.
func (f *field) depth() int {
	if f.behind {
		return len(f.rest) + 1
	}
	return len(f.rest)
}

func (f *field) of(v reflect.Value) reflect.Value {
	v = v.Field(f.first)
	for _, i := range f.rest {
		v = v.Field(i)
	}
	return v
}

// omits reports whether a value that is not all zeros is left out.
func (f *field) omits(v reflect.Value) bool {
	if f.omitEmpty {
		switch v.Kind() {
		case reflect.Map, reflect.Slice, reflect.String:
			if v.Len() == 0 {
				return true
			}
		case reflect.Float32, reflect.Float64: // -0
			if v.IsZero() {
				return true
			}
		}
	}
	if !f.omitZero {
		return false
	}
	if v.Kind() == reflect.Pointer {
		if z, ok := v.Interface().(zeroer); ok {
			return z.IsZero()
		}
	}
	if own := f.plan().zero; own != nil {
		return own(v)
	}
	return v.IsZero()
}

// newStructure lists the fields of t and, in their place, those of embedded structs; what an outer
// field of the same name hides is left out.
func newStructure(t reflect.Type) *structure {
	s := &structure{behind: -1}
	all := s.collect(make([]*field, 0, t.NumField()), t, true)
	at := make(map[string]int, len(all)) // the least deep of each name
	for i, f := range all {
		k, ok := at[f.name]
		if !ok || f.depth() < all[k].depth() {
			at[f.name] = i
		} else if f.depth() == all[k].depth() {
			s.refuse = "two fields of " + t.String() + " are named " + f.name
		}
	}
	if len(at) == len(all) {
		s.fields = all
		return s
	}
	for i, f := range all {
		if at[f.name] == i {
			s.fields = append(s.fields, f)
		}
	}
	return s
}

func (s *structure) collect(list []*field, t reflect.Type, outermost bool) []*field {
	for i := range t.NumField() {
		sf := t.Field(i)
		if names := sf.Tag.Get("retired"); names != "" {
			s.retired = append(s.retired, strings.Split(names, ",")...)
		}
		tag := sf.Tag.Get("json")
		name, options, _ := strings.Cut(tag, ",")
		embedded := sf.Anonymous && name == ""
		switch {
		case tag == "-":
		case embedded && sf.Type.Kind() == reflect.Struct:
			list = s.embed(list, &sf)
		case embedded && sf.Type.Kind() == reflect.Pointer:
			list = s.embedPointer(list, t, &sf, outermost)
		case sf.IsExported():
			list = append(list, s.field(t, &sf, name, options))
		}
	}
	return list
}

// embed lists the fields of an embedded struct in its place.
func (s *structure) embed(list []*field, sf *reflect.StructField) []*field {
	from := len(list)
	list = s.collect(list, sf.Type, false)
	for _, f := range list[from:] {
		f.rest = append([]int{f.first}, f.rest...)
		f.first = sf.Index[0]
		f.offset += sf.Offset
	}
	return list
}

// embedPointer lists the fields of what an embedded pointer leads to. A type has one such pointer at most.
func (s *structure) embedPointer(list []*field, t reflect.Type, sf *reflect.StructField, outermost bool) []*field {
	only := outermost && s.behind < 0
	toStruct := sf.IsExported() && sf.Type.Elem().Kind() == reflect.Struct
	if !only || !toStruct {
		s.refuse = t.String() + " embeds a pointer"
		return list
	}
	from := len(list)
	list = s.collect(list, sf.Type.Elem(), false)
	s.behind = sf.Index[0]
	for _, f := range list[from:] {
		f.behind = true
	}
	return list
}

// field makes a field from its declaration in t.
func (s *structure) field(t reflect.Type, sf *reflect.StructField, name, options string) *field {
	if name == "" {
		name = sf.Name
	}
	f := &field{name: name, key: string(append(appendString(make([]byte, 0, len(name)+3), name), ':')),
		lazy: lazy{t: sf.Type}, first: sf.Index[0], offset: sf.Offset}
	f.shared = sf.Type.Kind() == reflect.Pointer && sf.Tag.Get("wire") == "shared"
	for option := range strings.SplitSeq(options, ",") {
		switch option {
		case "omitempty":
			f.omitEmpty = sf.Type.Kind() != reflect.Struct && sf.Type.Kind() != reflect.Array // which are never empty
		case "omitzero":
			f.omitZero = true
		case "string":
			s.refuse = t.String() + " uses the tag option string"
		}
	}
	if f.omitEmpty || f.omitZero {
		f.zero = sf.Type.Size()
	}
	return f
}

// Marshaler is a type that writes its own JSON.
type Marshaler interface{ MarshalJSON() ([]byte, error) }

// Appender is a type that writes its own JSON behind what is there: one value, without spaces. Unlike
// a Marshaler's it is not looked at again.
type Appender interface {
	AppendJSON(dst []byte) ([]byte, error)
}

// Unmarshaler is a type that reads its own JSON; it must copy what it keeps.
type Unmarshaler interface{ UnmarshalJSON([]byte) error }
