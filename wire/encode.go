package wire

import (
	"cmp"
	"encoding"
	"encoding/base64"
	"math"
	"reflect"
	"slices"
	"strconv"
	"time"
)

// addressable returns v where its methods with pointer receivers can be called.
func addressable(v reflect.Value) reflect.Value {
	if v.Kind() == reflect.Pointer || v.CanAddr() {
		return v
	}
	p := reflect.New(v.Type()).Elem()
	p.Set(v)
	return p
}

func encodeBool(b []byte, v reflect.Value) ([]byte, error) {
	return strconv.AppendBool(b, v.Bool()), nil
}

func encodeInt(b []byte, v reflect.Value) ([]byte, error) {
	return strconv.AppendInt(b, v.Int(), 10), nil
}

func encodeUint(b []byte, v reflect.Value) ([]byte, error) {
	return strconv.AppendUint(b, v.Uint(), 10), nil
}

func encodeText(b []byte, v reflect.Value) ([]byte, error) { return appendString(b, v.String()), nil }

// encodeFloat writes numbers as JavaScript does: an exponent only where it is shorter to read.
func encodeFloat(b []byte, v reflect.Value) ([]byte, error) {
	f, bits := v.Float(), v.Type().Bits()
	if math.IsInf(f, 0) || math.IsNaN(f) {
		return nil, &Error{Offset: -1, Text: "there is no JSON for " + strconv.FormatFloat(f, 'g', -1, bits)}
	}
	form := byte('f')
	if abs := math.Abs(f); abs != 0 {
		low, high := abs < 1e-6, abs >= 1e21
		if bits == 32 {
			low, high = float32(abs) < 1e-6, float32(abs) >= 1e21
		}
		if low || high {
			form = 'e'
		}
	}
	b = strconv.AppendFloat(b, f, form, -1, bits)
	if n := len(b); form == 'e' && n >= 4 && b[n-4] == 'e' && (b[n-3] == '-' || b[n-3] == '+') && b[n-2] == '0' {
		b[n-2] = b[n-1] // e-09 is e-9
		b = b[:n-1]
	}
	return b, nil
}

func encodeTime(b []byte, v reflect.Value) ([]byte, error) {
	b, err := v.Addr().Interface().(*time.Time).AppendText(append(b, '"'))
	if err != nil {
		return nil, &Error{Offset: -1, Err: err}
	}
	return append(b, '"'), nil
}

func encodeBytes(b []byte, v reflect.Value) ([]byte, error) {
	if v.IsNil() {
		return append(b, "null"...), nil
	}
	b = base64.StdEncoding.AppendEncode(append(b, '"'), v.Bytes())
	return append(b, '"'), nil
}

func encodeAppender(b []byte, v reflect.Value) ([]byte, error) {
	b, err := v.Addr().Interface().(Appender).AppendJSON(b)
	if err != nil {
		return nil, &Error{Offset: -1, Text: v.Type().String() + ": ", Err: err}
	}
	return b, nil
}

// encodeMarshaler writes what the type says, without spaces; it must be JSON.
func encodeMarshaler(b []byte, v reflect.Value) ([]byte, error) {
	text, err := v.Addr().Interface().(Marshaler).MarshalJSON()
	if err != nil {
		return nil, &Error{Offset: -1, Text: v.Type().String() + ": ", Err: err}
	}
	d := decoder{in: text}
	return d.rewrite(b, "", "")
}

func encodeTextMarshaler(b []byte, v reflect.Value) ([]byte, error) {
	text, err := v.Addr().Interface().(encoding.TextMarshaler).MarshalText()
	if err != nil {
		return nil, &Error{Offset: -1, Text: v.Type().String() + ": ", Err: err}
	}
	return appendString(b, text), nil
}

func encodeInterface(b []byte, v reflect.Value) ([]byte, error) {
	if v.IsNil() {
		return append(b, "null"...), nil
	}
	e := addressable(v.Elem())
	return planOf(e.Type()).enc(b, e)
}

// pointer is the plan of a pointer.
type pointer struct{ to lazy }

func (p *pointer) encode(b []byte, v reflect.Value) ([]byte, error) {
	if v.IsNil() {
		return append(b, "null"...), nil
	}
	return p.to.plan().enc(b, v.Elem())
}

// maxGuess bounds the memory that is taken before it is known to be needed.
const maxGuess = 1 << 20

// list is the plan of an array or a slice.
type list struct{ elem lazy }

func (l *list) encode(b []byte, v reflect.Value) (_ []byte, err error) {
	b = append(b, '[')
	n, from := v.Len(), len(b)
	for i := range n {
		if i > 0 {
			b = append(b, ',')
		}
		if b, err = l.elem.plan().enc(b, v.Index(i)); err != nil {
			return nil, atIndex(err, i)
		}
		if i == 0 { // the others are likely as long
			b = slices.Grow(b, min((n-1)*(len(b)-from), maxGuess))
		}
	}
	return append(b, ']'), nil
}

func (l *list) encodeSlice(b []byte, v reflect.Value) ([]byte, error) {
	if v.IsNil() {
		return append(b, "null"...), nil
	}
	return l.encode(b, v)
}

// mapping is the plan of a map.
type mapping struct {
	elem    lazy
	textKey bool // the keys read themselves
}

// encode writes the members in the order of their names.
func (m *mapping) encode(b []byte, v reflect.Value) (_ []byte, err error) {
	if v.IsNil() {
		return append(b, "null"...), nil
	}
	type member struct {
		name  string
		value reflect.Value
	}
	members := make([]member, 0, v.Len())
	for it := v.MapRange(); it.Next(); {
		name, err := keyName(it.Key())
		if err != nil {
			return nil, err
		}
		members = append(members, member{name, it.Value()})
	}
	slices.SortFunc(members, func(a, b member) int { return cmp.Compare(a.name, b.name) })
	b = append(b, '{')
	value := reflect.New(v.Type().Elem()).Elem()
	for i, e := range members {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(appendString(b, e.name), ':')
		value.Set(e.value)
		if b, err = m.elem.plan().enc(b, value); err != nil {
			return nil, within(err, e.name)
		}
	}
	return append(b, '}'), nil
}

func keyName(k reflect.Value) (string, error) {
	if k.Kind() == reflect.String {
		return k.String(), nil
	}
	if t, ok := addressable(k).Addr().Interface().(encoding.TextMarshaler); ok {
		text, err := t.MarshalText()
		if err != nil {
			return "", &Error{Offset: -1, Text: k.Type().String() + ": ", Err: err}
		}
		return string(text), nil
	}
	switch {
	case k.CanInt():
		return strconv.FormatInt(k.Int(), 10), nil
	case k.CanUint():
		return strconv.FormatUint(k.Uint(), 10), nil
	}
	return "", &Error{Offset: -1, Text: "a " + k.Type().String() + " cannot name a member"}
}

func (s *structure) encode(b []byte, v reflect.Value) (_ []byte, err error) {
	if s.refuse != "" {
		return nil, &Error{Offset: -1, Text: s.refuse}
	}
	b = append(b, '{')
	empty, behind := len(b), s.behindOf(v, false)
	memory, memoryBehind := v.Addr().UnsafePointer(), behind.Addr().UnsafePointer()
	for _, f := range s.fields {
		in, at := v, memory
		if f.behind {
			in, at = behind, memoryBehind
		}
		if f.zero > 0 && zeroMemory(at, f.offset, f.zero) {
			continue
		}
		x := f.of(in)
		if f.zero > 0 && f.omits(x) {
			continue
		}
		if len(b) > empty {
			b = append(b, ',')
		}
		if b, err = f.plan().enc(append(b, f.key...), x); err != nil {
			return nil, within(err, f.name)
		}
	}
	return append(b, '}'), nil
}
