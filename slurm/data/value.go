// Package data writes muster's values as the objects that Slurm's data parsers write: in --json and --yaml of the
// commands, and in the answers of the REST interface. The schemas of all versions are text (schema/), read when
// they are needed; what stands in an object's fields is a Table of its members, one for each kind of record,
// beside the record. A field of the schema that no member fills is written with its zero, as Slurm does; a member
// that a version's schema has no field for is left out of that version. Begin with table.go.
package data

import (
	"math"
	"strconv"
)

// kind is what a value is.
type kind uint8

const (
	isUnset kind = iota // a number without a value, else the type's zero
	isText
	isNumber
	isFloat
	isBool
	isInfinite
	isWords
	isNested
)

// Value is what stands in a field, whatever the version makes of it: a number may be written as such, as an object of
// three members or as text.
type Value struct {
	kind   kind
	n      int64 // of a float its bits
	text   string
	words  []string
	nested nested
}

// nested is a value that has members of its own.
type nested interface {
	append(b []byte, s *Schemas, t *Type) []byte
}

// Unset is a number that has no value, an empty text or an empty list.
var Unset = Value{}

// Infinite is a number without a limit.
var Infinite = Value{kind: isInfinite}

// Text is a text.
func Text[S ~string](s S) Value {
	return Value{kind: isText, text: string(s)}
}

// Num is a number.
func Num[N ~int | ~int32 | ~int64 | ~uint32 | ~uint64 | ~uint16 | ~uint8](n N) Value {
	return Value{kind: isNumber, n: int64(n)}
}

// Float is a number with digits behind the point.
func Float(f float64) Value {
	return Value{kind: isFloat, n: int64(math.Float64bits(f))}
}

// Bool is true or false.
func Bool(b bool) Value {
	v := Value{kind: isBool}
	if b {
		v.n = 1
	}
	return v
}

// Words is a list of texts. Where the schema lists the words that there are, others are left out.
func Words(words ...string) Value {
	return Value{kind: isWords, words: words}
}

// Or is the number, unset where it is 0.
func Or[N ~int | ~int32 | ~int64 | ~uint32](n N) Value {
	if n == 0 {
		return Unset
	}
	return Num(n)
}

// Limit is a number that is without a limit where it is 0.
func Limit[N ~int | ~int32 | ~int64 | ~uint32](n N) Value {
	if n == 0 {
		return Infinite
	}
	return Num(n)
}

// whole is the value as a whole number.
func (v *Value) whole() int64 {
	switch v.kind {
	case isFloat:
		return int64(v.float())
	case isText:
		n, _ := strconv.ParseInt(v.text, 10, 64)
		return n
	}
	return v.n
}
