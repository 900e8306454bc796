package lua

import (
	"fmt"
	"strings"

	lua "github.com/yuin/gopher-lua"

	"dev.muster/api"
)

// Changes says which fields of job_desc differ between two submissions.
func (*Filter) Changes(from, to *api.SubmitRequest) (list []api.FieldChange) {
	a, b := described(from), described(to)
	for i := range fields() {
		row := &fields()[i]
		x, y := valueText(row.get(a)), valueText(row.get(b))
		if x != y {
			list = append(list, api.FieldChange{Name: row.name(), From: x, To: y})
		}
	}
	return list
}

// described is a submission as a script sees it.
func described(q *api.SubmitRequest) *desc {
	d := &desc{spec: &q.Spec, script: &q.Script, env: &q.Env, part: -1, priority: noVal}
	d.argv = append([]string{q.Spec.Command}, q.Spec.Args...)
	return d
}

// valueText is a value as one writes it in Lua; a number that stands for none is nil.
func valueText(v lua.LValue) string {
	switch v := v.(type) {
	case lua.LNumber:
		if v == noVal || v == noVal16 || v == noVal64 {
			return "nil"
		}
		return v.String()
	case lua.LString:
		return fmt.Sprintf("%q", string(v))
	}
	return v.String()
}

// name is the usual one.
func (f *field) name() string {
	name, _, _ := strings.Cut(f.names, " ")
	return name
}
