package data

import (
	"math"
	"slices"
	"strconv"
	"strings"

	"dev.muster/wire"
)

// append writes a value as its type has it. It calls no function by a table: a value that leaves the stack for that,
// field by field, is most of the work of a long list.
func (v *Value) append(b []byte, s *Schemas, t *Type) []byte {
	if v.kind == isNested {
		return v.nested.append(b, s, t)
	}
	switch t.Form {
	case String:
		return v.appendPlain(b)
	case Integer:
		return strconv.AppendInt(b, v.whole(), 10)
	case Number:
		return appendFloat(b, v.float())
	case Boolean:
		return strconv.AppendBool(b, v.n != 0)
	case List:
		return appendList(b, t, v.list())
	}
	if !t.optional() {
		return appendZero(b, t)
	}
	return v.appendOptional(b, t)
}

// appendPlain writes the value as a text.
func (v *Value) appendPlain(b []byte) []byte {
	if v.kind == isNumber {
		return append(strconv.AppendInt(append(b, '"'), v.n, 10), '"')
	}
	return appendText(b, v.plain())
}

// float is the value as a number with digits behind the point.
func (v *Value) float() float64 {
	if v.kind == isFloat {
		return math.Float64frombits(uint64(v.n))
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
		return strconv.FormatFloat(v.float(), 'f', -1, 64)
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
	switch v.kind {
	case isUnset:
		b = append(b, `{"set":false,"infinite":false,"number":`...)
	case isInfinite:
		b = append(b, `{"set":false,"infinite":true,"number":`...)
	default:
		b = append(b, `{"set":true,"infinite":false,"number":`...)
	}
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
