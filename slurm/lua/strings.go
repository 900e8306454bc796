package lua

import (
	"context"
	"errors"
	"strings"

	lua "github.com/yuin/gopher-lua"
)

// Functions of Lua's library that could take long, or make much out of little, without the machine noticing: what is
// here looks at the context of the call and bounds its result.

const (
	// maxFormat is the longest format of string.format; its widths have two digits, so results are bounded, too.
	maxFormat = 1 << 20
	// maxChunk is the longest text that loadstring and load compile.
	maxChunk = 64 << 10
)

var (
	errLong   = errors.New("resulting string too large")
	errFormat = errors.New("invalid format (width or precision too long, or unknown option)")
)

// limit puts the bounded functions into the place of the library's.
func (m *machine) limit() {
	l := m.state
	texts := l.GetGlobal("string").(*lua.LTable)
	texts.RawSetString("format", l.NewFunction(formatted(texts.RawGetString("format"))))
	for name, f := range map[string]lua.LGFunction{
		"rep": rep, "find": find, "match": match, "gmatch": gmatch, "gsub": gsub,
	} {
		texts.RawSetString(name, l.NewFunction(f))
	}
	tables := l.GetGlobal("table").(*lua.LTable)
	tables.RawSetString("concat", l.NewFunction(concat))
	tables.RawSetString("sort", l.NewFunction(sorted(tables.RawGetString("sort"))))
	old := l.GetGlobal("loadstring")
	l.SetGlobal("loadstring", l.NewFunction(loadString(old)))
	l.SetGlobal("load", l.NewFunction(load(old)))
}

// proceed returns why a call has to end, nil if it may go on.
func proceed(l *lua.LState) func() error {
	ctx := l.Context()
	if ctx == nil {
		return func() error { return nil }
	}
	return func() error { return context.Cause(ctx) }
}

// check raises an error.
func check(l *lua.LState, err error) {
	if err != nil {
		l.RaiseError("%v", err)
	}
}

// startOf reads the place where a search begins, from 0.
func startOf(l *lua.LState, arg, length int) int {
	n := l.OptInt(arg, 1)
	if n < 0 {
		n += length + 1
	}
	return min(max(n-1, 0), length)
}

// pushCaptures pushes the captures of a match.
func pushCaptures(l *lua.LState, m *search, start, end int) int {
	list, err := m.values(start, end)
	check(l, err)
	for _, c := range list {
		l.Push(captured(c))
	}
	return len(list)
}

func captured(c captureValue) lua.LValue {
	if c.Position > 0 {
		return lua.LNumber(c.Position)
	}
	return lua.LString(c.Text)
}

// find is string.find.
func find(l *lua.LState) int {
	text, pat := l.CheckString(1), l.CheckString(2)
	from := startOf(l, 3, len(text))
	if l.ToBool(4) || !strings.ContainsAny(pat, "^$*+?.([%-") {
		at := strings.Index(text[from:], pat)
		if at < 0 {
			l.Push(lua.LNil)
			return 1
		}
		l.Push(lua.LNumber(from + at + 1))
		l.Push(lua.LNumber(from + at + len(pat)))
		return 2
	}
	m := newSearch(text, pat, proceed(l))
	start, end, ok, err := m.find(from)
	check(l, err)
	if !ok {
		l.Push(lua.LNil)
		return 1
	}
	l.Push(lua.LNumber(start + 1))
	l.Push(lua.LNumber(end))
	if !m.captured() {
		return 2
	}
	return 2 + pushCaptures(l, m, start, end)
}

// match is string.match.
func match(l *lua.LState) int {
	text := l.CheckString(1)
	m := newSearch(text, l.CheckString(2), proceed(l))
	start, end, ok, err := m.find(startOf(l, 3, len(text)))
	check(l, err)
	if !ok {
		l.Push(lua.LNil)
		return 1
	}
	return pushCaptures(l, m, start, end)
}

// gmatch is string.gmatch. A ^ is a byte like others there.
func gmatch(l *lua.LState) int {
	text := l.CheckString(1)
	pat := l.CheckString(2)
	from := 0
	l.Push(l.NewFunction(func(l *lua.LState) int {
		m := newSearch(text, pat, proceed(l))
		for ; from <= len(text); from++ {
			end, ok, err := m.at(from)
			check(l, err)
			if !ok {
				continue
			}
			start := from
			from = max(end, start+1)
			return pushCaptures(l, m, start, end)
		}
		return 0
	}))
	return 1
}

// gsub is string.gsub.
func gsub(l *lua.LState) int {
	text, with := l.CheckString(1), l.CheckAny(3)
	m := newSearch(text, l.CheckString(2), proceed(l))
	switch with.Type() {
	case lua.LTString, lua.LTNumber, lua.LTTable, lua.LTFunction:
	default:
		l.ArgError(3, "string/function/table expected")
	}
	most := l.OptInt(4, len(text)+1)
	anchored := m.anchor()
	var out strings.Builder
	at, count := 0, 0
	for count < most {
		end, ok, err := m.at(at)
		check(l, err)
		if ok {
			count++
			out.WriteString(replaced(l, m, with, at, end))
		}
		if out.Len() > maxText {
			check(l, errLong)
		}
		if ok && end > at {
			at = end
		} else if at < len(text) {
			out.WriteByte(text[at])
			at++
		} else {
			break
		}
		if anchored {
			break
		}
	}
	out.WriteString(text[at:])
	l.Push(lua.LString(out.String()))
	l.Push(lua.LNumber(count))
	return 2
}

// replaced is what stands for a match.
func replaced(l *lua.LState, m *search, with lua.LValue, start, end int) string {
	list, err := m.values(start, end)
	check(l, err)
	var v lua.LValue
	switch with.Type() {
	case lua.LTTable:
		v = l.GetTable(with, captured(list[0]))
	case lua.LTFunction:
		l.Push(with)
		for _, c := range list {
			l.Push(captured(c))
		}
		l.Call(len(list), 1)
		v = l.Get(-1)
		l.Pop(1)
	default:
		return filledIn(l, with.String(), m.part(start, end), list)
	}
	switch {
	case v == lua.LNil || v == lua.LFalse:
		return m.part(start, end)
	case v.Type() != lua.LTString && v.Type() != lua.LTNumber:
		l.RaiseError("invalid replacement value (a %s)", v.Type())
	}
	return v.String()
}

// filledIn is a replacement with the captures in the place of %0 to %9.
func filledIn(l *lua.LState, with, whole string, list []captureValue) string {
	if !strings.Contains(with, "%") {
		return with
	}
	var b strings.Builder
	for i := 0; i < len(with); i++ {
		if with[i] != '%' || i+1 == len(with) {
			b.WriteByte(with[i])
			continue
		}
		i++
		n := int(with[i]) - '0'
		switch {
		case n < 0 || n > 9:
			b.WriteByte(with[i])
		case n == 0:
			b.WriteString(whole)
		case n > len(list):
			l.RaiseError("invalid capture index")
		default:
			b.WriteString(captured(list[n-1]).String())
		}
		if b.Len() > maxText {
			check(l, errLong)
		}
	}
	return b.String()
}

// concat is table.concat.
func concat(l *lua.LState) int {
	t, between := l.CheckTable(1), l.OptString(2, "")
	first, last := l.OptInt(3, 1), l.OptInt(4, t.Len())
	var b strings.Builder
	for i := first; i <= last; i++ {
		v := t.RawGetInt(i)
		if v.Type() != lua.LTString && v.Type() != lua.LTNumber {
			l.RaiseError("invalid value (%s) at index %d in table for concat", v.Type(), i)
		}
		b.WriteString(v.String())
		if i < last {
			b.WriteString(between)
		}
		if b.Len() > maxText {
			check(l, errLong)
		}
	}
	l.Push(lua.LString(b.String()))
	return 1
}

// sorted is table.sort, which asks whether it may go on where it compares.
func sorted(old lua.LValue) lua.LGFunction {
	return func(l *lua.LState) int {
		l.CheckTable(1)
		l.SetTop(2)
		if l.Get(2) == lua.LNil {
			on := proceed(l)
			l.Replace(2, l.NewFunction(func(l *lua.LState) int {
				check(l, on())
				l.Push(lua.LBool(l.LessThan(l.Get(1), l.Get(2))))
				return 1
			}))
		}
		l.Push(old)
		l.Push(l.Get(1))
		l.Push(l.Get(2))
		l.Call(2, 0)
		return 0
	}
}

// loadString is loadstring for texts up to maxChunk.
func loadString(old lua.LValue) lua.LGFunction {
	return func(l *lua.LState) int { return compileText(l, old, l.CheckString(1), l.OptString(2, "<string>")) }
}

// load is load for texts up to maxChunk.
func load(old lua.LValue) lua.LGFunction {
	return func(l *lua.LState) int {
		f, name := l.CheckFunction(1), l.OptString(2, "?")
		var b strings.Builder
		for b.Len() <= maxChunk {
			l.Push(f)
			l.Call(0, 1)
			piece := l.Get(-1)
			l.Pop(1)
			if piece == lua.LNil || piece.String() == "" {
				break
			}
			b.WriteString(piece.String())
		}
		return compileText(l, old, b.String(), name)
	}
}

func compileText(l *lua.LState, old lua.LValue, text, name string) int {
	if len(text) > maxChunk {
		l.RaiseError("chunk too large: %d bytes are the most", maxChunk)
	}
	l.Push(old)
	l.Push(lua.LString(text))
	l.Push(lua.LString(name))
	l.Call(2, 2)
	return 2
}
