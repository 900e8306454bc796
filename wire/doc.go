// Package wire reads and writes JSON: on the wire, in the log, in snapshots and in files. It writes
// the same bytes as encoding/json (v1), and reads all that it reads.
//
// It exists for two reasons (docs/adr/0005-own-json.md). A front-end's start: Go initializes packages
// in the order of their paths, and encoding/gob, which raft links, comes right before encoding/json;
// this package needs only what is initialized anyway. And speed: a type is looked at once, which
// makes a plan; encoding appends to one buffer, decoding is one pass over the text.
//
// Differences from encoding/json, all on purpose:
//   - Names of fields match exactly; case counts.
//   - The first thing wrong ends decoding; the error names the field and the byte. Values before
//     it have been stored.
//   - Marshalers with pointer receivers are always found: values are made addressable.
//   - The zero value of a type is zero for omitzero, whatever its IsZero says.
//   - A field of pointer type with the tag wire:"shared" may get the same pointer as another element
//     of the same text: lists of jobs repeat their specifications.
//   - UnmarshalStrict refuses a member that the type has no field for, but those that a field named _ lists in its tag
//     retired:"one,two": what the type once had.
//   - The fields of a type that is Ordered are written in its order, not in that of their declaration.
//   - An embedded pointer always leads to something after decoding, if none of its fields was there too.
//   - Not supported, and refused: the tag option "string", several embedded pointers in a struct or one
//     in an embedded struct, two fields of one name at one depth. Numbers in an any are float64. A value must not contain itself.
package wire

import (
	"errors"
	"reflect"
)

// RawMessage is JSON that is not decoded yet, or already encoded.
type RawMessage []byte

// MarshalJSON returns m itself.
func (m RawMessage) MarshalJSON() ([]byte, error) {
	if m == nil {
		return []byte("null"), nil
	}
	return m, nil
}

// UnmarshalJSON copies the text.
func (m *RawMessage) UnmarshalJSON(in []byte) error {
	*m = append((*m)[:0], in...)
	return nil
}

// Marshal encodes v.
func Marshal(v any) ([]byte, error) { return Append(nil, v) }

// Append encodes v behind dst.
func Append(dst []byte, v any) ([]byte, error) {
	if v == nil {
		return append(dst, "null"...), nil
	}
	rv := addressable(reflect.ValueOf(v))
	return planOf(rv.Type()).enc(dst, rv)
}

// AppendIndent encodes v behind dst for the eyes: each member on a line of its own, which begins
// with prefix and one indent a level. The first line has no prefix.
func AppendIndent(dst []byte, v any, prefix, indent string) ([]byte, error) {
	text, err := Marshal(v)
	if err != nil {
		return nil, err
	}
	d := decoder{in: text}
	return d.rewrite(dst, "\n"+prefix, indent)
}

// Unmarshal decodes one JSON value into what v points to.
func Unmarshal(in []byte, v any) error {
	var d decoder
	if len(in) >= internFrom {
		d.seen = seenBefore.Get().(*[internSlots]string)
		defer seenBefore.Put(d.seen)
	}
	return d.value(in, v)
}

// Weigher is a value that takes much more memory than its text: how many bytes.
type Weigher interface{ Weight() int }

// ErrHeavy is why a text is refused whose values take too much memory.
var ErrHeavy = errors.New(" takes too much memory")

// UnmarshalCounted is Unmarshal of a text that may be made to fill the memory: take counts the bytes of its lists,
// of what pointers lead to and of Weighers, and ends the decoding with false.
func UnmarshalCounted(in []byte, v any, take func(bytes int) bool) error {
	d := decoder{take: take}
	if len(in) >= internFrom {
		d.seen = seenBefore.Get().(*[internSlots]string)
		defer seenBefore.Put(d.seen)
	}
	return d.value(in, v)
}

// UnmarshalStrict is Unmarshal for what must be understood whole: a member that the type has no field for is an error,
// ErrUnknown, unless the type lists it as retired. Types that read their own JSON decide for themselves.
func UnmarshalStrict(in []byte, v any) error {
	d := decoder{strict: true}
	if len(in) >= internFrom {
		d.seen = seenBefore.Get().(*[internSlots]string)
		defer seenBefore.Put(d.seen)
	}
	return d.value(in, v)
}

// Decoder decodes texts that resemble each other, one after the other: a shared field of one gets the pointer of an
// equal one before it. The zero value is ready for use, by one caller at a time.
type Decoder struct{ d decoder }

// DecodeStrict is Decode for what must be understood whole, as UnmarshalStrict.
func (x *Decoder) DecodeStrict(in []byte, v any) error {
	x.d.strict = true
	defer func() { x.d.strict = false }()
	return x.Decode(in, v)
}

// Decode decodes one JSON value into what v points to. The text may change afterwards.
func (x *Decoder) Decode(in []byte, v any) error {
	if x.d.seen == nil {
		x.d.seen, x.d.copies = new([internSlots]string), true
	}
	x.d.at, x.d.depth = 0, 0
	return x.d.value(in, v)
}

func (d *decoder) value(in []byte, v any) error {
	rv := reflect.ValueOf(v)
	if rv.Kind() != reflect.Pointer || rv.IsNil() {
		return &Error{Offset: -1, Text: "cannot decode into what is no pointer"}
	}
	d.in = in
	d.space()
	if err := planOf(rv.Type().Elem()).dec(d, rv.Elem()); err != nil {
		return err
	}
	return d.end()
}
