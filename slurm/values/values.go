// Package values reads the words that options and settings take: times, memory, counts, lists of GPUs, what a
// job waits for. It knows no option and no command; what it cannot read it says in Slurm's words. Begin with
// values.go, whose functions Parse read a word, and Set into a field.
package values

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"time"

	"dev.muster/cluster"
	"dev.muster/slurm/opt"
)

// SetCount reads a whole number of at least low into dst.
func SetCount(s string, low int, dst *int) error {
	n, ok := opt.Number(s)
	if !ok || n < low {
		return opt.ErrNumber
	}
	*dst = n
	return nil
}

// ParseTimeLimit reads a time limit: M, M:S, H:M:S, D-H, D-H:M or D-H:M:S, rounded up to
// whole minutes. Zero, a negative number, INFINITE and UNLIMITED mean no limit.
func ParseTimeLimit(s string) (time.Duration, bool) {
	if strings.EqualFold(s, "INFINITE") || strings.EqualFold(s, "UNLIMITED") {
		return cluster.Unlimited, true
	}
	if rest, neg := strings.CutPrefix(s, "-"); neg {
		_, ok := Digits(rest)
		return cluster.Unlimited, ok
	}
	d, ok := opt.ParseSpan(s)
	if d = (d + time.Minute - 1).Truncate(time.Minute); ok && (d == 0 || d > maxMinutes*time.Minute) {
		return cluster.Unlimited, true
	}
	return d, ok
}

// ParseNewLimit reads the time limit that a job is given later: 0 is not unlimited then, as for sbatch, but none at
// all: the job ends as soon as it runs.
func ParseNewLimit(s string) (time.Duration, bool) {
	if s != "" && strings.Trim(s, "0:-") == "" {
		_, ok := opt.ParseSpan(s)
		return time.Nanosecond, ok
	}
	return ParseTimeLimit(s)
}

// maxMinutes is what a time limit can be; more is none.
const maxMinutes = opt.MaxSpan

// Digits reads a short unsigned number.
func Digits(s string) (int64, bool) { return opt.Digits(s) }

const decimals = "0123456789"

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

// leadingDigits counts the digits with which a text begins.
func leadingDigits(s string) int { return len(s) - len(strings.TrimLeft(s, decimals)) }

// SetLimit reads a time limit into dst.
func SetLimit(s string, dst *time.Duration) error {
	d, ok := ParseTimeLimit(s)
	if !ok {
		return opt.ErrSpec
	}
	*dst = d
	return nil
}

// memUnits are the units of memory from MB, each 1024 times the one before.
var memUnits = []string{"M", "G", "T"}

// ParseMem reads an amount of memory in MB: digits and K, M, G or T, with or without a
// final B, in any case. Kilobytes are rounded up.
func ParseMem(s string) (cluster.MemMB, bool) {
	end := leadingDigits(s)
	n, err := strconv.ParseInt(s[:end], 10, 64)
	if err != nil {
		return 0, false
	}
	unit := strings.ToUpper(s[end:])
	if len(unit) == 2 {
		unit = strings.TrimSuffix(unit, "B")
	}
	if unit == "K" {
		return cluster.MemMB(n/1024 + min(n%1024, 1)), true
	}
	k := slices.Index(memUnits, cmp.Or(unit, "M"))
	if k < 0 || n > 1<<(62-10*k) {
		return 0, false
	}
	return cluster.MemMB(n << (10 * k)), true
}

// ParseNodes reads a node count: N, MIN-MAX, with k for 1024 and m for 1024 x 1024.
func ParseNodes(s string) (lo, hi int, err error) {
	min, max, ranged := strings.Cut(s, "-")
	word := min
	if lo, err = NodeNumber(min, ranged); err == nil {
		hi = lo
		if ranged {
			word = max
			if max == "" {
				hi = -1
			} else {
				hi, err = NodeNumber(max, false)
			}
		}
	}
	if err != nil && strings.ContainsAny(s, ",:") {
		return 0, 0, opt.Errorf(opt.CodeUsage, "error: \"%s\" lists node counts, which muster does not support: "+
			"name one count, as in 4, or a range, as in 1-4", s)
	}
	if err != nil {
		return 0, 0, opt.Errorf(opt.CodeUsage, "error: \"%s\" is not a valid node count", word)
	}
	if hi < lo {
		return 0, 0, opt.Errorf(opt.CodeUsage,
			"error: Maximum node count %d is less than minimum node count %d", hi, lo)
	}
	return lo, hi, nil
}

// nodeFactor is what a letter behind a number of nodes stands for, 0 if for nothing.
func nodeFactor(unit string) int64 {
	switch unit {
	case "":
		return 1
	case "k", "K":
		return 1024
	case "m", "M":
		return 1024 * 1024
	}
	return 0
}

// NodeNumber reads a number of nodes: digits, with k or m behind them.
func NodeNumber(s string, mayBeEmpty bool) (int, error) {
	if s == "" && mayBeEmpty {
		return 1, nil
	}
	end := leadingDigits(s)
	n, ok := Digits(s[:end])
	factor := nodeFactor(s[end:])
	if !ok || factor == 0 {
		return 0, opt.ErrSpec
	}
	return int(min(n*factor, 1<<31-1)), nil
}

// ParseGPUs reads [TYPE:]COUNT[,...], the argument of --gpus and its relatives.
func ParseGPUs(s string) ([]cluster.GRES, bool) {
	var list []cluster.GRES
	for word := range strings.SplitSeq(s, ",") {
		if word == "" {
			continue
		}
		g, ok := gres(append([]string{"gpu"}, strings.SplitN(word, ":", 2)...))
		if !ok || strings.HasPrefix(g.Type, "-") {
			return nil, false
		}
		if g.Count > 0 {
			list = append(list, g)
		}
	}
	return list, true
}

// ParseGRES reads NAME[[:TYPE]:COUNT][,...]. "none" asks for nothing.
func ParseGRES(s string) ([]cluster.GRES, bool) {
	var list []cluster.GRES
	for word := range strings.SplitSeq(s, ",") {
		word = strings.TrimPrefix(strings.TrimPrefix(word, "gres:"), "gres/")
		if word == "" || strings.EqualFold(word, "none") {
			continue
		}
		g, ok := gres(strings.Split(strings.Replace(word, "=", ":", 1), ":"))
		if !ok {
			return nil, false
		}
		if g.Count > 0 {
			list = append(list, g)
		}
	}
	return list, true
}

// gres reads the parts of NAME[[:TYPE]:COUNT]. A part that is not a count is a type, but for a number below zero.
func gres(part []string) (g cluster.GRES, ok bool) {
	if slices.Contains(part, "") {
		return g, false
	}
	g.Name = part[0]
	g.Count = 1
	switch len(part) {
	case 1:
		return g, true
	case 2:
		if n, isCount := scaled(part[1]); isCount {
			g.Count = n
			return g, true
		}
		g.Type = part[1]
		return g, g.Type[0] != '-'
	case 3:
		g.Type = part[1]
		g.Count, ok = scaled(part[2])
		return g, ok
	}
	return g, false
}

// scaled reads a number with k, m, g, t or p for powers of 1024.
func scaled(s string) (int64, bool) {
	shift := 0
	if n := len(s); n > 1 {
		if i := strings.IndexByte("kmgtp", s[n-1]|0x20); i >= 0 {
			shift, s = 10*(i+1), s[:n-1]
		}
	}
	n, ok := Digits(s)
	if !ok || n > 1<<(62-shift) {
		return 0, false
	}
	return n << shift, true
}

// BadGRES is what is said of a list of generic resources that cannot be read.
const BadGRES = "error: Invalid generic resource (gres) specification"

// SetGPUs reads a list of GPUs into dst.
func SetGPUs(s string, dst *[]cluster.GRES) error {
	list, ok := ParseGPUs(s)
	if !ok {
		return opt.Errorf(opt.CodeError, BadGRES)
	}
	*dst = list
	return nil
}

// FlagArg reads yes or no, as --kill-on-invalid-dep and --send-libs take it.
func FlagArg(s string) (yes, ok bool) {
	switch strings.ToLower(s) {
	case "y", "yes", "1", "true":
		return true, true
	case "n", "no", "0", "false":
		return false, true
	}
	return false, false
}
