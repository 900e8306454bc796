package lua

import (
	"errors"
	"math"
	"reflect"
	"strconv"
	"strings"
	"time"

	lua "github.com/yuin/gopher-lua"

	"dev.muster/cluster"
	"dev.muster/cluster/hostlist"
	"dev.muster/slurm/format"
	"dev.muster/slurm/values"
)

// desc is a job as a script sees it: what was asked, or what a change asks.
type desc struct {
	spec        *cluster.JobSpec
	script, env *cluster.BlobText
	argv        []string
	account     string // the user's default
	part        int    // of a heterogeneous job; below 0: it is none
	priority    float64
	change      bool            // job_desc of slurm_job_modify
	set         map[string]bool // fields that the script has set
}

// field is a row of the table of job_desc: its names in scripts, the usual one first, the field of cluster.JobSpec
// that it is, and how it is read and set. One without set cannot be changed by a script, and says so. Changes have it
// if cluster.Patch has a field of that name.
type field struct {
	names string
	of    string
	get   func(d *desc) lua.LValue
	set   func(d *desc, v lua.LValue) error
}

// at is where a job has the field of a row.
func at[T any](d *desc, of string) *T {
	return reflect.ValueOf(d.spec).Elem().FieldByName(of).Addr().Interface().(*T)
}

// errType is that a value has not the type of its field.
type errType struct{ want, got string }

func (e errType) Error() string { return e.want + " expected, got " + e.got }

func textOf(v lua.LValue) (string, error) {
	if v.Type() != lua.LTString && v.Type() != lua.LTNumber {
		return "", errType{"string", v.Type().String()}
	}
	return v.String(), nil
}

func numberOf(v lua.LValue) (float64, error) {
	switch v := v.(type) {
	case lua.LNumber:
		return float64(v), nil
	case lua.LString:
		if n, err := strconv.ParseFloat(strings.TrimSpace(string(v)), 64); err == nil {
			return n, nil
		}
	}
	return 0, errType{"number", v.Type().String()}
}

// given is a text, nil where there is none.
func given(s string) lua.LValue {
	if s == "" {
		return lua.LNil
	}
	return lua.LString(s)
}

// text is a field that is kept as it stands.
func text(names, of string) field {
	return field{names, of,
		func(d *desc) lua.LValue { return given(*at[string](d, of)) },
		func(d *desc, v lua.LValue) (err error) {
			*at[string](d, of), err = textOf(v)
			return err
		}}
}

// parsed is a text that means something.
func parsed(names, of string, get func(s *cluster.JobSpec) string, set func(s *cluster.JobSpec, v string) bool) field {
	return field{names, of,
		func(d *desc) lua.LValue { return given(get(d.spec)) },
		func(d *desc, v lua.LValue) error {
			word, err := textOf(v)
			if err == nil && !set(d.spec, word) {
				err = errors.New(strconv.Quote(word) + " cannot be read")
			}
			return err
		}}
}

// count is a number, none where it is not given.
func count(names, of string, none float64) field {
	return field{names, of,
		func(d *desc) lua.LValue {
			if n := *at[int](d, of); n != 0 {
				return lua.LNumber(n)
			}
			return lua.LNumber(none)
		},
		func(d *desc, v lua.LValue) error {
			n, err := numberOf(v)
			if err != nil {
				return err
			}
			if isNone(n) {
				n = 0
			}
			if n < 0 || n > math.MaxInt32 || n != math.Trunc(n) {
				return errors.New(lua.LNumber(n).String() + " is no count")
			}
			*at[int](d, of) = int(n)
			return nil
		}}
}

// isNone reports whether a number stands for none, of any width.
func isNone(n float64) bool { return n == noVal || n == noVal16 || n >= noVal64 }

// fixed is what muster has no use for: it reads as in Slurm where it is not given.
func fixed(names string, v lua.LValue) field {
	return field{names: names, get: func(*desc) lua.LValue { return v }}
}

// yesNo is a flag that may not be given.
func yesNo(names, of string) field {
	return field{names, of,
		func(d *desc) lua.LValue {
			switch b := *at[*bool](d, of); {
			case b == nil:
				return lua.LNumber(noVal16)
			case *b:
				return lua.LNumber(1)
			}
			return lua.LNumber(0)
		},
		func(d *desc, v lua.LValue) error {
			n, err := numberOf(v)
			if err != nil {
				return err
			}
			if *at[*bool](d, of) = nil; !isNone(n) {
				yes := n != 0
				*at[*bool](d, of) = &yes
			}
			return nil
		}}
}

// flag is a flag that is not set unless it is given.
func flag(names, of string, none float64) field {
	return field{names, of,
		func(d *desc) lua.LValue {
			switch {
			case *at[bool](d, of):
				return lua.LNumber(1)
			case d.change:
				return lua.LNumber(noVal16)
			}
			return lua.LNumber(none)
		},
		func(d *desc, v lua.LValue) error {
			n, err := numberOf(v)
			*at[bool](d, of) = n != 0 && !isNone(n)
			return err
		}}
}

// span is a time in units.
func span(names, of string, unit time.Duration) field {
	return field{names, of,
		func(d *desc) lua.LValue {
			switch v := *at[time.Duration](d, of); v {
			case 0:
				return lua.LNumber(noVal)
			case cluster.Unlimited:
				return lua.LNumber(infinite)
			default:
				return lua.LNumber(v / unit)
			}
		},
		func(d *desc, v lua.LValue) error {
			n, err := numberOf(v)
			to := at[time.Duration](d, of)
			switch {
			case err != nil:
				return err
			case isNone(n):
				*to = 0
			case n == infinite:
				*to = cluster.Unlimited
			case n < 0 || n > infinite:
				return errors.New(lua.LNumber(n).String() + " is no time")
			default:
				*to = time.Duration(n) * unit
			}
			return nil
		}}
}

// moment is a time since 1970, 0 where it is not given.
func moment(names, of string) field {
	return field{names, of,
		func(d *desc) lua.LValue {
			if t := *at[time.Time](d, of); !t.IsZero() {
				return lua.LNumber(t.Unix())
			}
			return lua.LNumber(0)
		},
		func(d *desc, v lua.LValue) error {
			n, err := numberOf(v)
			to := at[time.Time](d, of)
			if *to = (time.Time{}); n > 0 && !isNone(n) {
				*to = time.Unix(int64(n), 0)
			}
			return err
		}}
}

// tres is a list of generic resources: gres/gpu:h100:2.
func tres(names, of string) field {
	return field{names, of,
		func(d *desc) lua.LValue {
			return given(strings.ReplaceAll(format.GRES(*at[[]cluster.GRES](d, of)), "gres:", "gres/"))
		},
		func(d *desc, v lua.LValue) error {
			word, err := textOf(v)
			if err != nil {
				return err
			}
			list, ok := values.ParseGRES(word)
			if !ok {
				return errors.New(strconv.Quote(word) + ": write gres/NAME[:TYPE]:COUNT")
			}
			*at[[]cluster.GRES](d, of) = list
			return nil
		}}
}

// hosts is a list of nodes.
func hosts(names, of string) field {
	return field{names, of,
		func(d *desc) lua.LValue { return given(hostlist.CompressNames(*at[[]cluster.NodeName](d, of))) },
		func(d *desc, v lua.LValue) error {
			word, err := textOf(v)
			if err != nil {
				return err
			}
			list, err := hostlist.Expand(word)
			if err != nil {
				return err
			}
			to := at[[]cluster.NodeName](d, of)
			*to = nil
			for _, name := range list {
				*to = append(*to, cluster.NodeName(name))
			}
			return nil
		}}
}
