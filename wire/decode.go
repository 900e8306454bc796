package wire

import (
	"bytes"
	"encoding"
	"encoding/base64"
	"reflect"
	"slices"
	"strconv"
	"time"
)

func decodeBool(d *decoder, v reflect.Value) error {
	switch {
	case d.null():
	case d.word("true"):
		v.SetBool(true)
	case d.word("false"):
		v.SetBool(false)
	default:
		return d.want("a boolean")
	}
	return nil
}

func decodeInt(d *decoder, v reflect.Value) error {
	if d.null() {
		return nil
	}
	from := d.at
	text, err := d.number()
	if err != nil {
		return err
	}
	n, err := strconv.ParseInt(string(text), 10, 64)
	if err != nil || v.OverflowInt(n) {
		return d.unfit(from, text, v)
	}
	v.SetInt(n)
	return nil
}

func decodeUint(d *decoder, v reflect.Value) error {
	if d.null() {
		return nil
	}
	from := d.at
	text, err := d.number()
	if err != nil {
		return err
	}
	n, err := strconv.ParseUint(string(text), 10, 64)
	if err != nil || v.OverflowUint(n) {
		return d.unfit(from, text, v)
	}
	v.SetUint(n)
	return nil
}

func decodeFloat(d *decoder, v reflect.Value) error {
	if d.null() {
		return nil
	}
	from := d.at
	text, err := d.number()
	if err != nil {
		return err
	}
	f, err := strconv.ParseFloat(string(text), v.Type().Bits())
	if err != nil || v.OverflowFloat(f) {
		return d.unfit(from, text, v)
	}
	v.SetFloat(f)
	return nil
}

// unfit is the error of a number that the type cannot hold.
func (d *decoder) unfit(from int, text []byte, v reflect.Value) error {
	return &Error{Offset: from, Text: string(text) + " does not fit " + v.Kind().String()}
}

func decodeText(d *decoder, v reflect.Value) error {
	if d.null() {
		return nil
	}
	s, err := d.text()
	if err == nil {
		v.SetString(d.intern(s))
	}
	return err
}

func decodeTime(d *decoder, v reflect.Value) error {
	from := d.at
	text, err := d.skip()
	if err != nil {
		return err
	}
	if err := v.Addr().Interface().(*time.Time).UnmarshalJSON(text); err != nil {
		return &Error{Offset: from, Text: "want a time: ", Err: err}
	}
	return nil
}

func decodeUnmarshaler(d *decoder, v reflect.Value) error {
	from := d.at
	text, err := d.skip()
	if err != nil {
		return err
	}
	if err := v.Addr().Interface().(Unmarshaler).UnmarshalJSON(text); err != nil {
		return &Error{Offset: from, Text: "bad " + v.Type().String() + ": ", Err: err}
	}
	return nil
}

func decodeTextUnmarshaler(d *decoder, v reflect.Value) error {
	if d.null() {
		if k := v.Kind(); k == reflect.Map || k == reflect.Slice {
			v.SetZero()
		}
		return nil
	}
	from := d.at
	s, err := d.text()
	if err != nil {
		return err
	}
	if err := v.Addr().Interface().(encoding.TextUnmarshaler).UnmarshalText(s); err != nil {
		return &Error{Offset: from, Text: "bad " + v.Type().String() + ": ", Err: err}
	}
	if d.take == nil {
		return nil
	}
	if w, ok := v.Addr().Interface().(Weigher); ok {
		return d.count(w.Weight())
	}
	return nil
}

// count counts bytes that a value takes, or ends the decoding.
func (d *decoder) count(bytes int) error {
	if d.take == nil || d.take(bytes) {
		return nil
	}
	return &Error{Offset: d.at, Text: "this and what comes before it", Err: ErrHeavy}
}

// decodeInterface reads what encoding/json would: maps, lists, strings, numbers, booleans, nil.
func decodeInterface(d *decoder, v reflect.Value) error {
	if d.null() {
		v.SetZero()
		return nil
	}
	if v.NumMethod() > 0 {
		return d.fail("cannot decode into a " + v.Type().String())
	}
	x, err := d.any()
	if err == nil {
		v.Set(reflect.ValueOf(x))
	}
	return err
}

// any reads one value without a type to read it into.
func (d *decoder) any() (any, error) {
	switch d.peek() {
	case '{':
		m := map[string]any{}
		if err := d.open('{', ""); err != nil {
			return nil, err
		}
		for i := 0; ; i++ {
			more, err := d.more(i, '}')
			if err != nil || !more {
				return m, err
			}
			k, err := d.key()
			if err != nil {
				return nil, err
			}
			name := d.intern(k)
			if m[name], err = d.any(); err != nil {
				return nil, err
			}
		}
	case '[':
		list := []any{}
		if err := d.open('[', ""); err != nil {
			return nil, err
		}
		for i := 0; ; i++ {
			more, err := d.more(i, ']')
			if err != nil || !more {
				return list, err
			}
			x, err := d.any()
			if err != nil {
				return nil, err
			}
			list = append(list, x)
		}
	case '"':
		s, err := d.text()
		return d.intern(s), err
	case 't', 'f', 'n':
		w, err := d.skip()
		if err != nil || w[0] == 'n' {
			return nil, err
		}
		return w[0] == 't', nil
	case '-', '0', '1', '2', '3', '4', '5', '6', '7', '8', '9':
		var f float64
		err := decodeFloat(d, reflect.ValueOf(&f).Elem())
		return f, err
	}
	return nil, d.want("a value")
}

func (p *pointer) decode(d *decoder, v reflect.Value) error {
	if d.null() {
		v.SetZero()
		return nil
	}
	if v.IsNil() {
		if err := d.count(int(v.Type().Elem().Size())); err != nil {
			return err
		}
		v.Set(reflect.New(v.Type().Elem()))
	}
	return p.to.plan().dec(d, v.Elem())
}

// decodeSlice fills the slice from its beginning, in its own memory as far as that goes.
func (l *list) decodeSlice(d *decoder, v reflect.Value) error {
	if d.null() {
		v.SetZero()
		return nil
	}
	if err := d.open('[', "a list"); err != nil {
		return err
	}
	for i := 0; ; i++ {
		more, err := d.more(i, ']')
		if err != nil {
			return err
		}
		if !more {
			v.SetLen(i)
			if i == 0 {
				v.Set(reflect.MakeSlice(v.Type(), 0, 0))
			}
			return nil
		}
		if had := v.Cap(); i >= had {
			v.Grow(1)
			if err := d.count((v.Cap() - had) * int(v.Type().Elem().Size())); err != nil {
				return atIndex(err, i)
			}
		}
		if i >= v.Len() {
			v.SetLen(i + 1)
		}
		if err := l.elem.plan().dec(d, v.Index(i)); err != nil {
			return atIndex(err, i)
		}
	}
}

// decodeArray drops what does not fit and clears what is not there.
func (l *list) decodeArray(d *decoder, v reflect.Value) error {
	if d.null() {
		return nil
	}
	if err := d.open('[', "a list"); err != nil {
		return err
	}
	for i := 0; ; i++ {
		more, err := d.more(i, ']')
		if err != nil {
			return err
		}
		if !more {
			for ; i < v.Len(); i++ {
				v.Index(i).SetZero()
			}
			return nil
		}
		if i < v.Len() {
			err = l.elem.plan().dec(d, v.Index(i))
		} else {
			_, err = d.skip()
		}
		if err != nil {
			return atIndex(err, i)
		}
	}
}

func (l *list) decodeBytes(d *decoder, v reflect.Value) error {
	if d.peek() != '"' {
		return l.decodeSlice(d, v)
	}
	from := d.at
	s, err := d.text()
	if err != nil {
		return err
	}
	b := make([]byte, base64.StdEncoding.DecodedLen(len(s)))
	n, err := base64.StdEncoding.Decode(b, s)
	if err != nil {
		return &Error{Offset: from, Err: err}
	}
	v.SetBytes(b[:n])
	return nil
}

func (m *mapping) decode(d *decoder, v reflect.Value) error {
	if d.null() {
		v.SetZero()
		return nil
	}
	if err := d.open('{', "an object"); err != nil {
		return err
	}
	if v.IsNil() {
		v.Set(reflect.MakeMap(v.Type()))
	}
	key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
	for i := 0; ; i++ {
		more, err := d.more(i, '}')
		if err != nil || !more {
			return err
		}
		from := d.at
		k, err := d.key()
		if err != nil {
			return err
		}
		name := d.intern(k)
		if err := m.setKey(key, name, from); err != nil {
			return err
		}
		value.SetZero()
		if err := m.elem.plan().dec(d, value); err != nil {
			return within(err, name)
		}
		v.SetMapIndex(key, value)
	}
}

func (m *mapping) setKey(key reflect.Value, name string, from int) error {
	key.SetZero()
	var err error
	switch {
	case m.textKey:
		err = key.Addr().Interface().(encoding.TextUnmarshaler).UnmarshalText([]byte(name))
	case key.Kind() == reflect.String:
		key.SetString(name)
	case key.CanInt():
		var n int64
		n, err = strconv.ParseInt(name, 10, key.Type().Bits())
		key.SetInt(n)
	case key.CanUint():
		var n uint64
		n, err = strconv.ParseUint(name, 10, key.Type().Bits())
		key.SetUint(n)
	default:
		return &Error{Offset: from, Text: "a " + key.Type().String() + " cannot name a member"}
	}
	if err != nil {
		return &Error{Offset: from, Text: "bad name of a member: ", Err: err}
	}
	return nil
}

func (s *structure) decode(d *decoder, v reflect.Value) error {
	if s.refuse != "" {
		return d.fail(s.refuse)
	}
	if d.null() {
		return nil
	}
	if err := d.open('{', "an object"); err != nil {
		return err
	}
	behind := s.behindOf(v, true)
	next := 0 // where the field that comes most likely is, or soon after
	for i := 0; ; i++ {
		more, err := d.more(i, '}')
		if err != nil || !more {
			return err
		}
		k, err := d.key()
		if err != nil {
			return err
		}
		f := s.find(k, &next)
		if f == nil {
			if err := d.unknown(s, k); err != nil {
				return err
			}
			continue
		}
		in := v
		if f.behind {
			in = behind
		}
		x := f.of(in)
		if f.shared && d.peek() == '{' {
			err = d.share(f, x)
		} else {
			err = f.plan().dec(d, x)
		}
		if err != nil {
			return within(err, f.name)
		}
	}
}

// unknown passes over a member that the type has no field for. Where decoding is strict only those may be there
// that the type once had.
func (d *decoder) unknown(s *structure, name []byte) error {
	if d.strict && !slices.Contains(s.retired, string(name)) {
		return &Error{Offset: d.at, Text: strconv.Quote(string(name)) + ": ", Err: ErrUnknown}
	}
	_, err := d.skip()
	return err
}

// find looks for a field in the order in which fields are written, first behind the last one found.
func (s *structure) find(name []byte, next *int) *field {
	for i := *next; i < len(s.fields); i++ {
		if s.fields[i].name == string(name) {
			*next = i + 1
			return s.fields[i]
		}
	}
	for i := range s.fields[:*next] {
		if s.fields[i].name == string(name) {
			*next = i + 1
			return s.fields[i]
		}
	}
	return nil
}

// shared is an object that was read into a shared field.
type shared struct {
	field *field
	text  []byte
	value reflect.Value
}

// share reads an object, or finds that it was read before: its text ends with itself, so that what
// begins with it is it.
func (d *decoder) share(f *field, v reflect.Value) error {
	for i := range d.shared {
		if s := &d.shared[i]; s.field == f && bytes.HasPrefix(d.in[d.at:], s.text) {
			d.at += len(s.text)
			v.Set(s.value)
			return nil
		}
	}
	from := d.at
	v.SetZero() // what was there may belong to others
	if err := f.plan().dec(d, v); err != nil {
		return err
	}
	s := shared{f, d.in[from:d.at], reflect.ValueOf(v.Interface())}
	if d.copies {
		s.text = bytes.Clone(s.text)
	}
	if len(d.shared) < sharedTexts {
		d.shared = append(d.shared, s)
	} else {
		d.shared[d.oldest] = s
		d.oldest = (d.oldest + 1) % sharedTexts
	}
	return nil
}
