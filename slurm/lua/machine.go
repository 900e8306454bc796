// Package lua runs the scripts by which sites have their say in what users submit: job_submit.lua, where a job is
// submitted or changed, and cli_filter.lua in the command that submits it. Scripts that were written for Slurm run as
// they are (Lua 5.1), in a sandbox: no files, no programs, a bound on time and memory. Begin with submit.go or cli.go.
package lua

import (
	"context"
	"errors"
	"fmt"
	"os"
	"regexp"
	"strings"
	"time"

	lua "github.com/yuin/gopher-lua"
	"github.com/yuin/gopher-lua/parse"

	"dev.muster/cluster"
	"dev.muster/slurm/front"
)

// maxText is the longest text that a function of the library makes.
const maxText = 16 << 20

// machine is a script that has been read, with what it keeps from call to call.
type machine struct {
	name  string
	state *lua.LState
	slurm *lua.LTable // the table slurm of the script
	log   func(level, text string)
	snap  *cluster.Snapshot
	user  string   // whose submission this call looks at; "": not known
	said  []string // log_user and user_msg of this call

	longest time.Duration // of a call
}

// newMachine reads a script. Its functions must be there.
func newMachine(name, text string, log func(level, text string), functions ...string) (*machine, error) {
	proto, err := compile(name, text)
	if err != nil {
		return nil, err
	}
	m := &machine{name: name, log: log, longest: maxCall}
	m.state = lua.NewState(lua.Options{SkipOpenLibs: true,
		RegistrySize: 1024, RegistryMaxSize: 1 << 20, CallStackSize: 200})
	m.sandbox()
	m.words()
	if _, err = m.run(context.Background(), m.state.NewFunctionFromProto(proto), 0); err != nil {
		m.state.Close()
		return nil, err
	}
	for _, f := range functions {
		if m.state.GetGlobal(f).Type() != lua.LTFunction {
			m.state.Close()
			return nil, fmt.Errorf("%s: missing required function %s", name, f)
		}
	}
	return m, nil
}

// compile reads the text of a script; the first line may be a shebang.
func compile(name, text string) (*lua.FunctionProto, error) {
	if strings.HasPrefix(text, "#") {
		text = "--" + text
	}
	chunk, err := parse.Parse(strings.NewReader(text), name)
	if err != nil {
		return nil, errors.New(strings.Join(strings.Fields(err.Error()), " "))
	}
	proto, err := lua.Compile(chunk, name)
	if err != nil {
		return nil, errors.New(strings.Join(strings.Fields(err.Error()), " "))
	}
	return proto, nil
}

// run calls a function within the bounds; what it returns first is the result.
func (m *machine) run(ctx context.Context, f lua.LValue, results int, args ...lua.LValue) (lua.LValue, error) {
	ctx, stop := guard(ctx, m.longest)
	defer stop()
	m.state.SetContext(ctx)
	defer m.state.RemoveContext()
	err := m.state.CallByParam(lua.P{Fn: f, NRet: results, Protect: true}, args...)
	if err != nil {
		return lua.LNil, m.reason(ctx, err)
	}
	if results == 0 {
		return lua.LNil, nil
	}
	out := m.state.Get(-1)
	m.state.Pop(1)
	return out, nil
}

// call calls a function of the script by its name.
func (m *machine) call(ctx context.Context, name string, args ...lua.LValue) (lua.LValue, error) {
	return m.run(ctx, m.state.GetGlobal(name), 1, args...)
}

// reason is why a call failed, in one line, with the script and the line where it did.
func (m *machine) reason(ctx context.Context, err error) error {
	if why := context.Cause(ctx); errors.Is(why, errTime) || errors.Is(why, errMemory) {
		if m.user != "" {
			return fmt.Errorf("%s: %w (user %s)", m.name, why, m.user)
		}
		return fmt.Errorf("%s: %w", m.name, why)
	}
	var api *lua.ApiError
	if !errors.As(err, &api) {
		return err
	}
	first, _, _ := strings.Cut(api.Object.String(), "\n")
	return errors.New(first)
}

// sandbox opens the libraries that touch nothing outside.
func (m *machine) sandbox() {
	l := m.state
	for _, open := range [...]lua.LGFunction{lua.OpenBase, lua.OpenTable, lua.OpenString, lua.OpenMath, lua.OpenOs} {
		l.Push(l.NewFunction(open))
		l.Call(0, 0)
	}
	for _, name := range [...]string{"dofile", "loadfile", "require", "module", "collectgarbage", "newproxy"} {
		l.SetGlobal(name, l.NewFunction(m.refuse(name)))
	}
	system := l.GetGlobal("os").(*lua.LTable)
	for _, name := range [...]string{"execute", "exit", "remove", "rename", "setenv", "setlocale", "tmpname"} {
		system.RawSetString(name, l.NewFunction(m.refuse("os."+name)))
	}
	system.RawSetString("getenv", l.NewFunction(getenv))
	files := l.NewTable()
	for _, name := range [...]string{"open", "lines", "popen", "input", "output", "read", "write", "close", "tmpfile"} {
		files.RawSetString(name, l.NewFunction(m.refuse("io."+name)))
	}
	l.SetGlobal("io", files)
	l.SetGlobal("print", l.NewFunction(m.print))
	l.SetGlobal("pairs", l.NewFunction(pairs(l.GetGlobal("pairs"))))
	m.limit()
}

// refuse is a function that scripts may not call.
func (m *machine) refuse(name string) lua.LGFunction {
	return func(l *lua.LState) int {
		l.RaiseError("%s cannot be called here: the script has no files and no programs; "+
			"write what it needs into %s", name, m.name)
		return 0
	}
}

// getenv gives what of the environment says nothing of the daemon's secrets.
func getenv(l *lua.LState) int {
	switch name := l.CheckString(1); name {
	case "PATH", "HOME", "USER", "LANG", "TZ", "HOSTNAME":
		if v, ok := os.LookupEnv(name); ok {
			l.Push(lua.LString(v))
			return 1
		}
	}
	l.Push(lua.LNil)
	return 1
}

func (m *machine) print(l *lua.LState) int {
	words := make([]string, l.GetTop())
	for i := range words {
		words[i] = l.ToStringMeta(l.Get(i + 1)).String()
	}
	m.log("info", strings.Join(words, "\t"))
	return 0
}

// rep is string.rep within bounds.
func rep(l *lua.LState) int {
	text, n := l.CheckString(1), l.CheckInt(2)
	if n <= 0 {
		l.Push(lua.LString(""))
		return 1
	}
	if len(text) > 0 && n > maxText/len(text) {
		l.RaiseError("resulting string too large")
	}
	l.Push(lua.LString(strings.Repeat(text, n)))
	return 1
}

// formatted is string.format with the verbs of C that the library lacks.
func formatted(format lua.LValue) lua.LGFunction {
	return func(l *lua.LState) int {
		n := l.GetTop()
		text, err := verbs(l.CheckString(1))
		check(l, err)
		args := make([]lua.LValue, 0, n)
		args = append(args, lua.LString(text))
		for i := 2; i <= n; i++ {
			args = append(args, l.Get(i))
		}
		l.Push(format)
		for _, a := range args {
			l.Push(a)
		}
		l.Call(len(args), 1)
		return 1
	}
}

// formatVerb is a verb with its flags, width and precision.
var formatVerb = regexp.MustCompile(`^%[-+ #0]{0,5}[0-9]{0,2}(?:\.[0-9]{0,2})?[lh]{0,2}[cdiouxXeEfgGqs%]`)

// verbs writes %u, %i, %lu and their like as %d, and refuses what Lua does not know.
func verbs(format string) (string, error) {
	if len(format) > maxFormat {
		return "", errFormat
	}
	var b strings.Builder
	for {
		at := strings.IndexByte(format, '%')
		if at < 0 {
			return b.String() + format, nil
		}
		one := formatVerb.FindString(format[at:])
		if one == "" {
			return "", errFormat
		}
		b.WriteString(format[:at] + strings.NewReplacer("l", "", "h", "").Replace(one[:len(one)-1]))
		b.WriteByte(verb(one[len(one)-1]))
		format = format[at+len(one):]
	}
}

func verb(c byte) byte {
	if c == 'u' || c == 'i' {
		return 'd'
	}
	return c
}

// words makes the table slurm: numbers, and what scripts say.
func (m *machine) words() {
	l := m.state
	m.slurm = l.NewTable()
	for name, n := range constants() {
		m.slurm.RawSetString(name, lua.LNumber(n))
	}
	for _, level := range [...]string{"error", "info", "verbose", "debug", "debug2", "debug3", "debug4"} {
		m.slurm.RawSetString("log_"+level, l.NewFunction(m.logs(level)))
	}
	m.slurm.RawSetString("error", l.NewFunction(m.logs("error")))
	m.slurm.RawSetString("log", l.NewFunction(m.numbered))
	m.slurm.RawSetString("log_user", l.NewFunction(m.says))
	m.slurm.RawSetString("user_msg", l.NewFunction(m.says))
	m.slurm.RawSetString("time_str2mins", l.NewFunction(minutesOf))
	m.slurm.RawSetString("to_json", l.NewFunction(toJSON))
	m.slurm.RawSetString("from_json", l.NewFunction(fromJSON))
	for _, name := range [...]string{"to_yaml", "from_yaml"} {
		m.slurm.RawSetString(name, l.NewFunction(func(l *lua.LState) int {
			l.RaiseError("slurm.%s is not there: use JSON", name)
			return 0
		}))
	}
	l.SetGlobal("slurm", m.slurm)
}

// text is what a call of a function of slurm says: a format and its arguments.
func (m *machine) text(l *lua.LState, from int) string {
	if l.GetTop() == from {
		return l.CheckString(from)
	}
	format := l.GetField(l.GetGlobal("string"), "format")
	l.Push(format)
	n := l.GetTop() - 1
	for i := from; i <= n; i++ {
		l.Push(l.Get(i))
	}
	l.Call(n-from+1, 1)
	text := l.ToString(-1)
	l.Pop(1)
	return text
}

func (m *machine) logs(level string) lua.LGFunction {
	return func(l *lua.LState) int {
		m.log(level, m.text(l, 1))
		return 0
	}
}

// numbered is slurm.log(LEVEL, TEXT).
func (m *machine) numbered(l *lua.LState) int {
	levels := [...]string{"error", "error", "error", "info", "verbose", "debug", "debug2", "debug3", "debug4"}
	m.log(levels[min(max(l.CheckInt(1), 0), len(levels)-1)], l.CheckString(2))
	return 0
}

func (m *machine) says(l *lua.LState) int {
	m.said = append(m.said, strings.Split(strings.TrimRight(m.text(l, 1), "\n"), "\n")...)
	return 0
}

// status reads what a script's function returned. One that returned no number means success, as in Slurm.
func (m *machine) status(v lua.LValue) (text string, ok bool) {
	n, number := v.(lua.LNumber)
	if !number {
		m.log("info", "non-numeric return code")
		return "", true
	}
	if n == 0 {
		return "", true
	}
	if n == -1 {
		return "Unspecified error", false
	}
	return front.ErrnumText(int(n)), false
}
