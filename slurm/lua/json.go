package lua

import (
	"errors"
	"strings"

	lua "github.com/yuin/gopher-lua"

	"dev.muster/wire"
)

// toJSON and fromJSON are slurm.to_json and slurm.from_json.
func toJSON(l *lua.LState) int {
	w := &writer{proceed: proceed(l)}
	v, err := w.plain(l.Get(1), 0)
	if err != nil {
		l.RaiseError("to_json: %v", err)
	}
	text, err := wire.Marshal(v)
	if err != nil {
		l.RaiseError("to_json: %v", err)
	}
	l.Push(lua.LString(text))
	return 1
}

func fromJSON(l *lua.LState) int {
	var v any
	if err := wire.Unmarshal([]byte(l.CheckString(1)), &v); err != nil {
		l.RaiseError("from_json: %v", err)
	}
	l.Push(valueOf(l, v))
	return 1
}

// Bounds of what is written as JSON. A table that occurs in several places counts in each.
const (
	maxNested = 50 // tables within each other
	maxValues = 1 << 20
)

// writer turns values of a script into those that JSON has.
type writer struct {
	proceed func() error
	values  int
}

// plain is a value of a script as JSON has it; a table whose keys are 1, 2 … is a list.
func (w *writer) plain(v lua.LValue, depth int) (any, error) {
	if w.values++; w.values > maxValues {
		return nil, errors.New("it has too many values")
	}
	switch v := v.(type) {
	case lua.LBool:
		return bool(v), nil
	case lua.LNumber:
		return float64(v), nil
	case lua.LString:
		return string(v), nil
	case *lua.LTable:
		if depth > maxNested {
			return nil, errors.New("the table is too deep")
		}
		if err := w.proceed(); err != nil {
			return nil, err
		}
		return w.table(v, depth+1)
	}
	if v == lua.LNil {
		return nil, nil
	}
	return nil, errors.New("a " + v.Type().String() + " cannot be written")
}

func (w *writer) table(t *lua.LTable, depth int) (any, error) {
	if n := t.Len(); n > 0 {
		list := make([]any, n)
		for i := range list {
			var err error
			if list[i], err = w.plain(t.RawGetInt(i+1), depth); err != nil {
				return nil, err
			}
		}
		return list, nil
	}
	object := map[string]any{}
	var bad error
	t.ForEach(func(k, v lua.LValue) {
		if bad == nil {
			object[k.String()], bad = w.plain(v, depth)
		}
	})
	return object, bad
}

// valueOf is what was read of JSON, for a script.
func valueOf(l *lua.LState, v any) lua.LValue {
	switch v := v.(type) {
	case bool:
		return lua.LBool(v)
	case float64:
		return lua.LNumber(v)
	case string:
		return lua.LString(v)
	case []any:
		t := l.NewTable()
		for i, one := range v {
			t.RawSetInt(i+1, valueOf(l, one))
		}
		return t
	case map[string]any:
		t := l.NewTable()
		for k, one := range v {
			t.RawSetString(k, valueOf(l, one))
		}
		return t
	}
	return lua.LNil
}

// environ is an environment by names.
func environ(words []string) map[string]string {
	all := map[string]string{}
	for _, w := range words {
		if name, value, ok := strings.Cut(w, "="); ok {
			all[name] = value
		}
	}
	return all
}
