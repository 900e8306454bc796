package values

import (
	"strings"
	"time"
)

// ParseWhen reads a point in time as --begin and --deadline take it: now[+-COUNT[UNIT]],
// a time of day, midnight, noon, fika, teatime, today, tomorrow, a date, or a date and a
// time. A time of day that has passed means tomorrow. pos is where it went wrong.
func ParseWhen(s string, now time.Time) (t time.Time, pos int, ok bool) {
	return parseTime(s, now, false)
}

// ParsePast reads one as questions about the past take it: a time of day is today's, a date without a year the last
// such.
func ParsePast(s string, now time.Time) (t time.Time, pos int, ok bool) {
	return parseTime(s, now, true)
}

func parseTime(s string, now time.Time, past bool) (t time.Time, pos int, ok bool) {
	w := whenParser{text: s, now: now, past: past, day: -1, sec: -1}
	if len(strings.TrimSpace(s)) == 0 {
		return time.Time{}, 0, false
	}
	for w.next(); w.pos < len(w.text); w.next() {
		if !w.term() {
			return time.Time{}, w.pos, false
		}
	}
	return w.result(), 0, true
}

type whenParser struct {
	text   string
	pos    int
	now    time.Time
	past   bool
	day    int // day of the month, or -1
	month  time.Month
	year   int // 0: not said
	sec    int // second of the day, or -1
	offset time.Duration
	isNow  bool
	words  int // days after today, by the words today and tomorrow; -1 in day if none
	named  bool
}

// peek is the character so many ahead, 0 behind the end.
func (w *whenParser) peek(ahead int) byte {
	if w.pos+ahead >= len(w.text) {
		return 0
	}
	return w.text[w.pos+ahead]
}

func (w *whenParser) skip() {
	for w.peek(0) == ' ' || w.peek(0) == '\t' {
		w.pos++
	}
}

// next goes to the next term, over what may stand between two: blanks, hyphens, and a T before a number.
func (w *whenParser) next() {
	for w.between() {
		w.pos++
	}
}

func (w *whenParser) between() bool {
	switch w.peek(0) {
	case ' ', '\t', '-':
		return true
	case 'T':
		return w.pos > 0 && isDigit(w.peek(1))
	}
	return false
}

// word eats a keyword, in any case.
func (w *whenParser) word(k string) bool {
	if end := w.pos + len(k); end <= len(w.text) && strings.EqualFold(w.text[w.pos:end], k) {
		w.pos = end
		return true
	}
	return false
}

// The words for days, by how far they are ahead, and for hours.
var (
	dayWords  = [...]string{"today", "tomorrow"}
	hourWords = [...]struct {
		word string
		hour int
	}{{"midnight", 0}, {"noon", 12}, {"fika", 15}, {"teatime", 16}}
)

func (w *whenParser) term() bool {
	if digits := leadingDigits(w.text[w.pos:]); digits > 0 {
		if w.peek(digits) == ':' {
			return w.clock()
		}
		return w.date()
	}
	if w.word("now") {
		w.isNow = true
		return w.delta()
	}
	return w.dayWord() || w.hourWord()
}

func (w *whenParser) dayWord() bool {
	for ahead, word := range dayWords {
		if w.word(word) {
			w.named = true
			w.words = ahead
			return true
		}
	}
	return false
}

func (w *whenParser) hourWord() bool {
	for _, h := range hourWords {
		if w.word(h.word) {
			w.sec = h.hour * 3600
			return true
		}
	}
	return false
}

// delta reads what may follow "now".
func (w *whenParser) delta() bool {
	word := w.pos
	w.skip()
	sign := w.pos
	if !w.eat('+') && !w.eat('-') {
		w.pos = word
		return true
	}
	w.skip()
	first := w.pos
	end := first + leadingDigits(w.text[first:])
	n, ok := Digits(w.text[first:end])
	if !ok {
		w.pos = sign
		return false
	}
	w.pos = end
	unit, ok := w.unit()
	if !ok || n > int64(1<<62/unit) {
		w.pos = end - 1
		return false
	}
	w.offset = time.Duration(n) * unit
	if w.text[sign] == '-' {
		w.offset = -w.offset
	}
	return true
}

var deltaUnits = [...]struct {
	name string
	d    time.Duration
}{
	{"second", time.Second},
	{"minute", time.Minute},
	{"hour", time.Hour},
	{"day", 24 * time.Hour},
	{"week", 7 * 24 * time.Hour},
}

// unit reads what a number counts; behind the last one seconds are meant.
func (w *whenParser) unit() (time.Duration, bool) {
	w.skip()
	if w.pos == len(w.text) {
		return time.Second, true
	}
	for _, u := range deltaUnits {
		if w.word(u.name+"s") || w.word(u.name) {
			return u.d, true
		}
	}
	return 0, false
}

// two reads exactly two digits, lo to hi.
func (w *whenParser) two(lo, hi int) (int, bool) {
	start := w.pos
	for w.pos < start+2 {
		if !isDigit(w.peek(0)) {
			return 0, false
		}
		w.pos++
	}
	n := int(w.text[start]-'0')*10 + int(w.text[start+1]-'0')
	if n < lo || n > hi {
		w.pos = start
		return 0, false
	}
	return n, true
}

// small reads one or two digits, lo to hi.
func (w *whenParser) small(lo, hi int) (int, bool) {
	start, n := w.pos, 0
	for w.pos < start+2 && isDigit(w.peek(0)) {
		n = n*10 + int(w.text[w.pos]-'0')
		w.pos++
	}
	if w.pos == start || n < lo || n > hi {
		w.pos = start
		return 0, false
	}
	return n, true
}

// clock reads H:MM[:SS][ ][AM|PM].
func (w *whenParser) clock() bool {
	hour, ok := w.small(0, 23)
	if !ok || !w.eat(':') {
		return false
	}
	minute, ok := w.two(0, 59)
	if !ok {
		return false
	}
	second := 0
	if w.eat(':') {
		if second, ok = w.two(0, 59); !ok {
			return false
		}
	}
	if hour, ok = w.halfDay(hour); !ok {
		return false
	}
	w.sec = hour*3600 + minute*60 + second
	return true
}

// halfDay reads what may follow a time of day, AM or PM, and makes the hour one of the whole day.
func (w *whenParser) halfDay(hour int) (int, bool) {
	back := w.pos
	w.skip()
	am := w.word("am")
	pm := !am && w.word("pm")
	switch {
	case !am && !pm:
		w.pos = back
		return hour, true
	case hour > 12:
		w.pos = back
		return 0, false
	case pm:
		return hour%12 + 12, true
	}
	return hour % 12, true
}

func (w *whenParser) eat(c byte) bool {
	if w.peek(0) != c {
		return false
	}
	w.pos++
	return true
}

// date reads MMDD[YY], MM/DD[/YY], MM.DD[.YY] or YYYY-MM-DD[THH:MM[:SS]].
func (w *whenParser) date() bool {
	t := w.text[w.pos:]
	switch {
	case len(t) >= 10 && t[4] == '-' && t[7] == '-':
		return w.isoDate()
	case leadingDigits(t) >= 4:
		return w.shortDate()
	}
	return w.partedDate()
}

// isoDate reads YYYY-MM-DD[THH:MM[:SS]].
func (w *whenParser) isoDate() (ok bool) {
	if w.year, ok = w.fourDigits(); !ok || !w.eat('-') {
		return false
	}
	if !w.monthDay('-') {
		return false
	}
	timed := w.eat('T') || w.eat('t')
	if timed && w.pos < len(w.text) {
		return w.clock()
	}
	return true
}

// shortDate reads MMDD[YY].
func (w *whenParser) shortDate() bool {
	if !w.monthDay(0) {
		return false
	}
	if !isDigit(w.peek(0)) {
		return true
	}
	return w.twoYear()
}

// partedDate reads MM/DD[/YY] or MM.DD[.YY].
func (w *whenParser) partedDate() bool {
	month, ok := w.small(1, 12)
	if !ok {
		return false
	}
	w.month = time.Month(month)
	sep := byte('/')
	if w.peek(0) == '.' {
		sep = '.'
	}
	if !w.eat(sep) {
		return false
	}
	if w.day, ok = w.small(1, 31); !ok {
		return false
	}
	if w.eat(sep) {
		return w.twoYear()
	}
	return true
}

func (w *whenParser) fourDigits() (int, bool) {
	n, ok := Digits(w.text[w.pos : w.pos+4])
	if ok {
		w.pos += 4
	}
	return int(n), ok
}

func (w *whenParser) twoYear() bool {
	y, ok := w.two(0, 99)
	w.year = 2000 + y
	return ok
}

func (w *whenParser) monthDay(sep byte) bool {
	start := w.pos
	month, ok := w.two(1, 12)
	if !ok {
		w.pos = start
		return false
	}
	if sep != 0 && !w.eat(sep) {
		return false
	}
	start = w.pos
	if w.day, ok = w.two(1, 31); !ok {
		w.pos = start
		return false
	}
	w.month = time.Month(month)
	return true
}

// result puts the parts together.
func (w *whenParser) result() time.Time {
	if w.isNow {
		return w.now.Add(w.offset)
	}
	year, month, day := w.now.Date()
	switch {
	case w.day >= 0 && w.year != 0:
		return w.at(w.year, w.month, w.day)
	case w.day >= 0:
		return w.yearless()
	case w.named:
		return w.at(year, month, day+w.words)
	}
	t := w.at(year, month, day)
	if t.Before(w.now) && !w.past {
		t = w.at(year, month, day+1)
	}
	return t
}

// at is the time of day that was said, on a day.
func (w *whenParser) at(y int, m time.Month, d int) time.Time {
	sec := max(w.sec, 0)
	return time.Date(y, m, d, sec/3600, sec/60%60, sec%60, 0, w.now.Location())
}

// yearless is a date of which no year was said: the last one or the next one.
func (w *whenParser) yearless() time.Time {
	year, month, day := w.now.Date()
	today := w.month == month && w.day == day
	t := w.at(year, w.month, w.day)
	switch {
	case w.past && t.After(w.now):
		return w.at(year-1, w.month, w.day)
	case w.past || today && w.sec < 0:
		return t
	case t.Before(w.now):
		return w.at(year+1, w.month, w.day)
	}
	return t
}
