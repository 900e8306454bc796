package data

import (
	"math"
	"slices"
	"strconv"
	"strings"

	"dev.muster/wire"
)

// append writes a value as its type has it.
func (v *Value) append(b []byte, s *Schemas, t *Type) []byte {
	if v.kind == isNested {
		return v.nested.append(b, s, t)
	}
	return writers[t.Form](b, v, t)
}

// writers write a value as one of a form.
var writers = [...]func(b []byte, v *Value, t *Type) []byte{
	String:  func(b []byte, v *Value, _ *Type) []byte { return appendText(b, v.plain()) },
	Integer: func(b []byte, v *Value, _ *Type) []byte { return strconv.AppendInt(b, v.whole(), 10) },
	Number:  func(b []byte, v *Value, _ *Type) []byte { return appendFloat(b, v.float()) },
	Boolean: func(b []byte, v *Value, _ *Type) []byte { return strconv.AppendBool(b, v.n != 0) },
	List:    func(b []byte, v *Value, t *Type) []byte { return appendList(b, t, v.list()) },
	Object: func(b []byte, v *Value, t *Type) []byte {
		if !t.optional() {
			return appendZero(b, t)
		}
		return v.appendOptional(b, t)
	},
}

// float is the value as a number with digits behind the point.
func (v *Value) float() float64 {
	if v.kind == isFloat {
		return v.f
	}
	return float64(v.whole())
}

// plain is the value as a text.
func (v *Value) plain() string {
	switch v.kind {
	case isText:
		return v.text
	case isNumber:
		return strconv.FormatInt(v.n, 10)
	case isFloat:
		return strconv.FormatFloat(v.f, 'f', -1, 64)
	case isBool:
		return strconv.FormatBool(v.n != 0)
	case isWords:
		return strings.Join(v.words, ",")
	}
	return ""
}

// list is the value as a list of texts.
func (v *Value) list() []string {
	if v.kind == isWords {
		return v.words
	}
	if text := v.plain(); text != "" {
		return strings.Split(text, ",")
	}
	return nil
}

func appendList(b []byte, t *Type, words []string) []byte {
	b = append(b, '[')
	first := true
	for _, w := range words {
		if len(t.Of.Words) > 0 && !slices.Contains(t.Of.Words, w) {
			continue
		}
		if !first {
			b = append(b, ',')
		}
		first = false
		b = appendText(b, w)
	}
	return append(b, ']')
}

// appendOptional writes {"set":…,"infinite":…,"number":…}.
func (v *Value) appendOptional(b []byte, t *Type) []byte {
	b = append(b, `{"set":`...)
	b = strconv.AppendBool(b, v.kind != isUnset && v.kind != isInfinite)
	b = append(b, `,"infinite":`...)
	b = strconv.AppendBool(b, v.kind == isInfinite)
	b = append(b, `,"number":`...)
	if t.Fields[2].Type.Form == Number {
		b = appendFloat(b, v.float())
	} else {
		b = strconv.AppendInt(b, v.whole(), 10)
	}
	return append(b, '}')
}

// zeros are what the forms have where nothing is known.
var zeros = [...]string{String: `""`, Integer: "0", Number: "0.0", Boolean: "false", List: "[]"}

// appendZero writes what a type has where nothing is known.
func appendZero(b []byte, t *Type) []byte {
	if t.Form != Object {
		return append(b, zeros[t.Form]...)
	}
	b = append(b, '{')
	for i := range t.Fields {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(appendText(b, t.Fields[i].Name), ':')
		b = appendZero(b, t.Fields[i].Type)
	}
	return append(b, '}')
}

func appendFloat(b []byte, f float64) []byte {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		f = 0
	}
	from := len(b)
	b = strconv.AppendFloat(b, f, 'g', -1, 64)
	if !slices.ContainsFunc(b[from:], func(c byte) bool { return c == '.' || c == 'e' }) {
		b = append(b, ".0"...)
	}
	return b
}

// appendText writes a text with its quotes.
func appendText(b []byte, s string) []byte {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c >= 0x7f || c == '"' || c == '\\' {
			b, _ = wire.Append(b, s) // a text can always be written
			return b
		}
	}
	return append(append(append(b, '"'), s...), '"')
}
