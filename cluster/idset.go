package cluster

import (
	"fmt"
	"iter"
	"math/bits"
	"strconv"
	"strings"

	"dev.muster/wire"
)

// IDSet is a set of small numbers (CPUs, GPUs, array tasks): bit i of word i/64.
// It is immutable by convention: operations return new sets. The zero value is empty.
// In JSON and text it is written as ranges: "0-3,8".
type IDSet struct{ w []uint64 }

// MaxID bounds the numbers an IDSet parsed from text may hold: Slurm's largest MaxArraySize is 4,000,001.
const MaxID = 4_000_001

// NewIDSet returns the set of the given numbers.
func NewIDSet(ids ...int) IDSet {
	var s IDSet
	for _, i := range ids {
		s.put(i)
	}
	return s
}

// RangeIDSet returns the set lo..hi, both included.
func RangeIDSet(lo, hi int) IDSet {
	var s IDSet
	s.putRun(lo, hi)
	return s
}

func (s *IDSet) put(i int) { s.putRun(i, i) }

// putRun puts lo..hi, both included, a word at a time.
func (s *IDSet) putRun(lo, hi int) {
	if hi < lo {
		return
	}
	if n := hi/64 + 1 - len(s.w); n > 0 {
		s.w = append(s.w, make([]uint64, n)...)
	}
	for i := lo / 64; i <= hi/64; i++ {
		w := ^uint64(0)
		if i == lo/64 {
			w <<= lo % 64
		}
		if i == hi/64 {
			w &= ^uint64(0) >> (63 - hi%64)
		}
		s.w[i] |= w
	}
}

// Has reports whether i is in the set.
func (s IDSet) Has(i int) bool {
	return i >= 0 && i/64 < len(s.w) && s.w[i/64]>>(i%64)&1 == 1
}

// Len is the number of members.
func (s IDSet) Len() (n int) {
	for _, w := range s.w {
		n += bits.OnesCount64(w)
	}
	return n
}

// Empty reports whether the set has no member.
func (s IDSet) Empty() bool {
	for _, w := range s.w {
		if w != 0 {
			return false
		}
	}
	return true
}

// Min is the smallest member, or -1.
func (s IDSet) Min() int {
	for i, w := range s.w {
		if w != 0 {
			return i*64 + bits.TrailingZeros64(w)
		}
	}
	return -1
}

// Max is the largest member, or -1.
func (s IDSet) Max() int {
	for i := len(s.w) - 1; i >= 0; i-- {
		if s.w[i] != 0 {
			return i*64 + 63 - bits.LeadingZeros64(s.w[i])
		}
	}
	return -1
}

// All yields the members in rising order.
func (s IDSet) All() iter.Seq[int] {
	return func(yield func(int) bool) {
		for i, w := range s.w {
			for ; w != 0; w &= w - 1 {
				if !yield(i*64 + bits.TrailingZeros64(w)) {
					return
				}
			}
		}
	}
}

// runs yields first and last of each run of neighbours, in rising order.
func (s IDSet) runs() iter.Seq2[int, int] {
	return func(yield func(lo, hi int) bool) {
		for at := s.next(0, 0); at < len(s.w)*64; {
			end := s.next(at, ^uint64(0))
			if !yield(at, end-1) {
				return
			}
			at = s.next(end, 0)
		}
	}
}

// next is the first number from at on whose membership is not what the bits of like say; behind the last word if
// there is none.
func (s IDSet) next(at int, like uint64) int {
	for i := at / 64; i < len(s.w); i++ {
		w := s.w[i] ^ like
		if i == at/64 {
			w &= ^uint64(0) << (at % 64)
		}
		if w != 0 {
			return i*64 + bits.TrailingZeros64(w)
		}
	}
	return len(s.w) * 64
}

// First returns the n smallest members (all if there are fewer).
func (s IDSet) First(n int) IDSet {
	var r IDSet
	for i := range s.All() {
		if n--; n < 0 {
			break
		}
		r.put(i)
	}
	return r
}

func (s IDSet) zip(t IDSet, n int, f func(a, b uint64) uint64) IDSet {
	r := IDSet{w: make([]uint64, n)}
	at := func(w []uint64, i int) uint64 {
		if i < len(w) {
			return w[i]
		}
		return 0
	}
	for i := range r.w {
		r.w[i] = f(at(s.w, i), at(t.w, i))
	}
	return r
}

// Union returns s ∪ t.
func (s IDSet) Union(t IDSet) IDSet {
	return s.zip(t, max(len(s.w), len(t.w)), func(a, b uint64) uint64 { return a | b })
}

// Minus returns s without the members of t.
func (s IDSet) Minus(t IDSet) IDSet {
	return s.zip(t, len(s.w), func(a, b uint64) uint64 { return a &^ b })
}

// Intersect returns s ∩ t.
func (s IDSet) Intersect(t IDSet) IDSet {
	return s.zip(t, min(len(s.w), len(t.w)), func(a, b uint64) uint64 { return a & b })
}

// Contains reports whether every member of t is in s.
func (s IDSet) Contains(t IDSet) bool {
	for k, w := range t.w {
		if k < len(s.w) {
			w &^= s.w[k]
		}
		if w != 0 {
			return false
		}
	}
	return true
}

// Equal reports whether both sets have the same members.
func (s IDSet) Equal(t IDSet) bool {
	return s.Contains(t) && t.Contains(s)
}

// String writes the set as ranges: "0-3,8".
func (s IDSet) String() string {
	var b []byte
	for lo, hi := range s.runs() {
		if len(b) > 0 {
			b = append(b, ',')
		}
		b = strconv.AppendInt(b, int64(lo), 10)
		if hi > lo {
			b = strconv.AppendInt(append(b, '-'), int64(hi), 10)
		}
	}
	return string(b)
}

// maxWritten bounds the members that a text writes, those that it repeats included: text that String has written does
// not repeat any.
const maxWritten = 4 * MaxID

// ParseIDSet reads "0-3,8,10-20:5"; members are at most MaxID.
func ParseIDSet(text string) (IDSet, error) {
	var s IDSet
	if text == "" {
		return s, nil
	}
	var written uint64
	for part := range strings.SplitSeq(text, ",") {
		span, stepText, stepped := strings.Cut(part, ":")
		loText, hiText, ranged := strings.Cut(span, "-")
		if !ranged {
			hiText = loText
		}
		lo, err1 := strconv.ParseUint(loText, 10, 32)
		hi, err2 := strconv.ParseUint(hiText, 10, 32)
		step := uint64(1)
		if stepped {
			v, err := strconv.ParseUint(stepText, 10, 32)
			if err != nil || v == 0 || !ranged {
				return IDSet{}, fmt.Errorf("invalid step in %q", clipped(part))
			}
			step = v
		}
		if err1 != nil || err2 != nil || hi < lo || hi > MaxID {
			return IDSet{}, fmt.Errorf("invalid range %q", clipped(part))
		}
		if written += (hi-lo)/step + 1; written > maxWritten {
			return IDSet{}, fmt.Errorf("more than %d numbers", maxWritten)
		}
		if step == 1 {
			s.putRun(int(lo), int(hi))
			continue
		}
		for i := lo; i <= hi; i += step {
			s.put(int(i))
		}
	}
	return s, nil
}

// MarshalText writes the ranges form.
func (s IDSet) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText reads the ranges form.
func (s *IDSet) UnmarshalText(b []byte) (err error) { *s, err = ParseIDSet(string(b)); return err }

// Weight is how many bytes the set takes: a short text may name millions of members (wire.Weigher).
func (s *IDSet) Weight() int { return 8 * cap(s.w) }

// IsZero lets omitzero leave empty sets out.
func (s IDSet) IsZero() bool { return s.Empty() }

var _ wire.Marshaler = BlobText(nil)

// MarshalJSON writes the text as a JSON string when it is valid UTF-8, else as base64 behind "b64:".
func (b BlobText) MarshalJSON() ([]byte, error) { return marshalBlob(b) }

// UnmarshalJSON reads what MarshalJSON wrote.
func (b *BlobText) UnmarshalJSON(in []byte) (err error) { *b, err = unmarshalBlob(in); return err }
