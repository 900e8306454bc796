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

func (w *whenParser) skip() {
	for w.pos < len(w.text) && (w.text[w.pos] == ' ' || w.text[w.pos] == '\t') {
		w.pos++
	}
}

// next goes to the next term, over what may stand between two: blanks, hyphens, and a T before a number.
func (w *whenParser) next() {
	for w.pos < len(w.text) {
		switch c := w.text[w.pos]; {
		case c == ' ', c == '\t', c == '-':
		case c == 'T' && w.pos > 0 && w.pos+1 < len(w.text) && isDigits(w.text[w.pos+1:w.pos+2]):
		default:
			return
		}
		w.pos++
	}
}

// word eats a keyword, in any case.
func (w *whenParser) word(k string) bool {
	if end := w.pos + len(k); end <= len(w.text) && strings.EqualFold(w.text[w.pos:end], k) {
		w.pos = end
		return true
	}
	return false
}

func (w *whenParser) term() bool {
	switch {
	case w.word("today"):
		w.named, w.words = true, 0
	case w.word("tomorrow"):
		w.named, w.words = true, 1
	case w.word("midnight"):
		w.sec = 0
	case w.word("noon"):
		w.sec = 12 * 3600
	case w.word("fika"):
		w.sec = 15 * 3600
	case w.word("teatime"):
		w.sec = 16 * 3600
	case w.word("now"):
		w.isNow = true
		return w.delta()
	case w.pos < len(w.text) && w.text[w.pos] >= '0' && w.text[w.pos] <= '9':
		if i := strings.IndexFunc(w.text[w.pos:], func(c rune) bool { return c < '0' || c > '9' }); i > 0 && w.text[w.pos+i] == ':' {
			return w.clock()
		}
		return w.date()
	default:
		return false
	}
	return true
}

// delta reads what may follow "now".
func (w *whenParser) delta() bool {
	word := w.pos
	if w.skip(); w.pos == len(w.text) || w.text[w.pos] != '+' && w.text[w.pos] != '-' {
		w.pos = word
		return true
	}
	sign := w.pos
	w.pos++
	w.skip()
	first := w.pos
	end := first
	for end < len(w.text) && w.text[end] >= '0' && w.text[end] <= '9' {
		end++
	}
	n, ok := Digits(w.text[first:end])
	if !ok {
		w.pos = sign
		return false
	}
	unit := time.Second
	w.pos = end
	if w.skip(); w.pos < len(w.text) {
		units := [...]struct {
			name string
			d    time.Duration
		}{
			{"seconds", time.Second}, {"minutes", time.Minute}, {"hours", time.Hour},
			{"days", 24 * time.Hour}, {"weeks", 7 * 24 * time.Hour},
		}
		known := false
		for _, u := range units {
			if known = w.word(u.name) || w.word(u.name[:len(u.name)-1]); known {
				unit = u.d
				break
			}
		}
		if !known {
			w.pos = end - 1
			return false
		}
	}
	if n > int64(1<<62/unit) {
		w.pos = end - 1
		return false
	}
	if w.offset = time.Duration(n) * unit; w.text[sign] == '-' {
		w.offset = -w.offset
	}
	return true
}

// two reads exactly two digits of at most top.
func (w *whenParser) two(top int) (int, bool) {
	start := w.pos
	for w.pos < start+2 {
		if w.pos >= len(w.text) || w.text[w.pos] < '0' || w.text[w.pos] > '9' {
			return 0, false
		}
		w.pos++
	}
	n := int(w.text[start]-'0')*10 + int(w.text[start+1]-'0')
	if n > top {
		w.pos = start
		return 0, false
	}
	return n, true
}

// small reads one or two digits, lo to hi.
func (w *whenParser) small(lo, hi int) (int, bool) {
	start, n := w.pos, 0
	for w.pos < len(w.text) && w.pos < start+2 && w.text[w.pos] >= '0' && w.text[w.pos] <= '9' {
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
	minute, ok := w.two(59)
	if !ok {
		return false
	}
	second := 0
	if w.eat(':') {
		if second, ok = w.two(59); !ok {
			return false
		}
	}
	back := w.pos
	w.skip()
	am, pm := w.word("am"), false
	if !am {
		pm = w.word("pm")
	}
	switch {
	case !am && !pm:
		w.pos = back
	case hour > 12:
		w.pos = back
		return false
	default:
		if hour %= 12; pm {
			hour += 12
		}
	}
	w.sec = hour*3600 + minute*60 + second
	return true
}

func (w *whenParser) eat(c byte) bool {
	if w.pos < len(w.text) && w.text[w.pos] == c {
		w.pos++
		return true
	}
	return false
}

// date reads MMDD[YY], MM/DD[/YY], MM.DD[.YY] or YYYY-MM-DD[THH:MM[:SS]].
func (w *whenParser) date() (ok bool) {
	t := w.text[w.pos:]
	if len(t) >= 10 && t[4] == '-' && t[7] == '-' {
		if w.year, ok = w.fourDigits(); !ok || !w.eat('-') {
			return false
		}
		if !w.monthDay('-') {
			return false
		}
		if (w.eat('T') || w.eat('t')) && w.pos < len(w.text) {
			return w.clock()
		}
		return true
	}
	if len(t) >= 4 && isDigits(t[:4]) {
		if !w.monthDay(0) {
			return false
		}
		if w.pos == len(w.text) || w.text[w.pos] < '0' || w.text[w.pos] > '9' {
			return true
		}
		return w.twoYear()
	}
	month, ok := w.small(1, 12)
	if !ok {
		return false
	}
	w.month = time.Month(month)
	sep := byte('/')
	if w.pos < len(w.text) && w.text[w.pos] == '.' {
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

func isDigits(s string) bool {
	return strings.IndexFunc(s, func(c rune) bool { return c < '0' || c > '9' }) < 0
}

func (w *whenParser) fourDigits() (int, bool) {
	n, ok := Digits(w.text[w.pos : w.pos+4])
	if ok {
		w.pos += 4
	}
	return int(n), ok
}

func (w *whenParser) twoYear() bool {
	y, ok := w.two(99)
	w.year = 2000 + y
	return ok
}

func (w *whenParser) monthDay(sep byte) bool {
	start := w.pos
	month, ok := w.two(12)
	if !ok || month == 0 {
		w.pos = start
		return false
	}
	if sep != 0 && !w.eat(sep) {
		return false
	}
	start = w.pos
	if w.day, ok = w.two(31); !ok || w.day == 0 {
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
	sec := max(w.sec, 0)
	at := func(y int, m time.Month, d int) time.Time {
		return time.Date(y, m, d, sec/3600, sec/60%60, sec%60, 0, w.now.Location())
	}
	switch {
	case w.day >= 0 && w.year != 0:
		return at(w.year, w.month, w.day)
	case w.day >= 0:
		t := at(year, w.month, w.day)
		switch {
		case w.past && t.After(w.now):
			t = at(year-1, w.month, w.day)
		case !w.past && t.Before(w.now) && !(w.month == month && w.day == day && w.sec < 0):
			t = at(year+1, w.month, w.day)
		}
		return t
	case w.named:
		return at(year, month, day+w.words)
	}
	t := at(year, month, day)
	if t.Before(w.now) && !w.past {
		t = at(year, month, day+1)
	}
	return t
}
