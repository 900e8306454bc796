package lua

import (
	"context"
	"strconv"

	lua "github.com/yuin/gopher-lua"

	"dev.muster/slurm/front"
	"dev.muster/wire"
)

// CLIFile is the file of the script that sbatch, srun and salloc call.
const CLIFile = "cli_filter.lua"

// cliFunctions are the functions that it has.
var cliFunctions = [...]string{"slurm_cli_setup_defaults", "slurm_cli_pre_submit", "slurm_cli_post_submit"}

// CLI is a site's cli_filter.lua in one command.
type CLI struct {
	m     *machine
	store map[string]string
}

// NewCLI reads a script. say tells what it logs.
func NewCLI(text string, say func(level, text string)) (*CLI, error) {
	m, err := newMachine(CLIFile, text, say, cliFunctions[:]...)
	if err != nil {
		return nil, err
	}
	c := &CLI{m: m, store: map[string]string{}}
	m.slurm.RawSetString("cli_store", m.state.NewFunction(func(l *lua.LState) int {
		c.store[l.CheckString(1)] = l.CheckString(2)
		return 0
	}))
	m.slurm.RawSetString("cli_retrieve", m.state.NewFunction(func(l *lua.LState) int {
		l.Push(given(c.store[l.CheckString(1)]))
		return 1
	}))
	return c, nil
}

// Close forgets the script.
func (c *CLI) Close() { c.m.state.Close() }

// Defaults are the options that the script sets for those who do not say.
func (c *CLI) Defaults(o *front.SiteOptions) ([]front.SiteOption, string, error) {
	var set []front.SiteOption
	why, err := c.call("slurm_cli_setup_defaults", c.options(o, &set), lua.LFalse)
	return set, why, err
}

// PreSubmit has the script look at the options, which it may set again. why is said if it refuses.
func (c *CLI) PreSubmit(o *front.SiteOptions, part int) (set []front.SiteOption, why string, err error) {
	why, err = c.call("slurm_cli_pre_submit", c.options(o, &set), lua.LNumber(part))
	return set, why, err
}

// PostSubmit tells the script the number of the job.
func (c *CLI) PostSubmit(part int, job uint32) error {
	_, err := c.call("slurm_cli_post_submit", lua.LNumber(part), lua.LNumber(job), lua.LNumber(noVal))
	return err
}

func (c *CLI) call(name string, args ...lua.LValue) (why string, err error) {
	v, err := c.m.call(context.Background(), name, args...)
	if err != nil {
		return "", err
	}
	if text, ok := c.m.status(v); !ok {
		return text, nil
	}
	return "", nil
}

// options is a command's options for a script.
func (c *CLI) options(o *front.SiteOptions, set *[]front.SiteOption) lua.LValue {
	l, changed := c.m.state, map[string]string{}
	c.m.slurm.RawSetString("json_cli_options", l.NewFunction(func(l *lua.LState) int {
		all := map[string]any{"argv": o.Argv}
		for long, v := range o.Given() {
			all[long] = v
		}
		for long, v := range changed {
			all[long] = v
		}
		return pushJSON(l, all)
	}))
	c.m.slurm.RawSetString("json_env", l.NewFunction(func(l *lua.LState) int { return pushJSON(l, environ(o.Env)) }))
	meta := l.NewTable()
	meta.RawSetString("__index", l.NewFunction(func(l *lua.LState) int {
		l.Push(c.option(o, changed, l.CheckString(2)))
		return 1
	}))
	meta.RawSetString("__newindex", l.NewFunction(func(l *lua.LState) int {
		long, v := l.CheckString(2), l.Get(3)
		value, err := textOf(v)
		if err != nil {
			l.RaiseError("options[%s]: %s", strconv.Quote(long), err)
		}
		changed[long] = value
		*set = append(*set, front.SiteOption{Long: long, Value: value})
		return 0
	}))
	t := l.NewTable()
	t.Metatable = meta
	return t
}

func (c *CLI) option(o *front.SiteOptions, changed map[string]string, long string) lua.LValue {
	switch long {
	case "type":
		return lua.LString(o.Prog)
	case "argv":
		t := c.m.state.NewTable()
		for i, w := range o.Argv {
			t.RawSetInt(i+1, lua.LString(w))
		}
		return t
	}
	if v, ok := changed[long]; ok {
		return lua.LString(v)
	}
	if v, ok := o.Get(long); ok {
		return lua.LString(v)
	}
	return lua.LNil
}

func pushJSON(l *lua.LState, v any) int {
	text, err := wire.Marshal(v)
	if err != nil {
		l.RaiseError("%v", err)
	}
	l.Push(lua.LString(text))
	return 1
}
