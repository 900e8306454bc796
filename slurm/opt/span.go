package opt

import (
	"strconv"
	"strings"
	"time"
)

const (
	// MaxSpan is how many minutes a time may have: 255 years, what a time.Duration can hold.
	MaxSpan   = 1 << 27
	maxDigits = 9 // of the numbers in a time
)

// ParseSpan reads a time that something takes, as a time limit is written: M, M:S, H:M:S, D-H, D-H:M or D-H:M:S, to
// the second.
func ParseSpan(s string) (time.Duration, bool) {
	dayText, clock, hasDays := strings.Cut(s, "-")
	var days int64
	if hasDays {
		var ok bool
		if days, ok = Digits(dayText); !ok {
			return 0, false
		}
	} else {
		clock = s
	}
	var part [3]int64
	fields := strings.Split(clock, ":")
	if len(fields) > len(part) {
		return 0, false
	}
	for i, f := range fields {
		if hasDays && clock == "" {
			break // "1-" is a day
		}
		var ok bool
		if part[i], ok = Digits(f); !ok {
			return 0, false
		}
	}
	var sec int64
	switch {
	case hasDays: // H, H:M, H:M:S
		sec = part[0]*3600 + part[1]*60 + part[2]
	case len(fields) == 3:
		sec = part[0]*3600 + part[1]*60 + part[2]
	default: // M, M:S
		sec = part[0]*60 + part[1]
	}
	return time.Duration(min(days*24*3600+sec, MaxSpan*60+1)) * time.Second, true
}

// Digits reads a short unsigned number.
func Digits(s string) (int64, bool) {
	if s == "" || len(s) > maxDigits || strings.Trim(s, "0123456789") != "" {
		return 0, false
	}
	n, err := strconv.ParseInt(s, 10, 64)
	return n, err == nil
}
