package lua

import (
	"cmp"
	"context"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"sync"

	lua "github.com/yuin/gopher-lua"

	"dev.muster/api"
	"dev.muster/cluster"
)

// SubmitFile is the file of the script that looks at submissions.
const SubmitFile = "job_submit.lua"

// Filter is a site's job_submit.lua. Calls for different users run at the same time, each in a machine of its own.
// Machines are kept until the text is another one; the one that was used last is used next.
type Filter struct {
	Log *slog.Logger

	turns
	mu   sync.Mutex
	text string
	idle []*machine
}

// Check says what is wrong with a script.
func (*Filter) Check(name, text string) error { return Check(name, text) }

// Check reads a script and says what is wrong with it.
func Check(name, text string) error {
	if name == BurstFile {
		return checkBurst(text)
	}
	functions := []string{"slurm_job_submit", "slurm_job_modify"}
	if name == CLIFile {
		functions = cliFunctions[:]
	}
	m, err := newMachine(name, text, func(string, string) {}, functions...)
	if err == nil {
		m.state.Close()
	}
	return err
}

// Submit has the script look at what is submitted, which it may change. Its message for the user is returned, whatever
// becomes of the job. part is the number of a component, below 0 in a job that has none.
func (f *Filter) Submit(ctx context.Context, at api.FilterScene, q *api.SubmitRequest, part int) ([]string, error) {
	d := &desc{spec: &q.Spec, script: &q.Script, env: &q.Env, part: part, priority: noVal}
	d.argv = append([]string{q.Spec.Command}, q.Spec.Args...)
	if u, ok := at.Snap.User(q.Spec.User); ok {
		d.account = u.DefaultAccount
	}
	return f.ask(ctx, at, func(m *machine) (lua.LValue, error) {
		return m.call(ctx, "slurm_job_submit", m.object(d), m.partitions(at.Open), lua.LNumber(at.By))
	})
}

// Update has the script look at a change of a job. The script's own changes are site.
func (f *Filter) Update(ctx context.Context, at api.FilterScene, j *cluster.Job, p *cluster.Patch) (
	said []string, site *cluster.Patch, err error,
) {
	asked := cluster.JobSpec{Layout: &cluster.Layout{}, UID: j.Spec.UID, GID: j.Spec.GID, User: j.Spec.User}
	for i := range fields() {
		fields()[i].fromPatch(p, &asked)
	}
	d := &desc{spec: &asked, part: 0, priority: noVal, change: true, set: map[string]bool{}}
	was := *j.Spec
	was.Layout = was.Layout.Clone()
	rec := &desc{spec: &was, part: 0, priority: float64(j.Priority), argv: append([]string{was.Command}, was.Args...)}
	said, err = f.ask(ctx, at, func(m *machine) (lua.LValue, error) {
		return m.call(ctx, "slurm_job_modify", m.object(d), m.record(j, rec), m.partitions(at.Open), lua.LNumber(at.By))
	})
	if err != nil || len(d.set) == 0 {
		return said, nil, err
	}
	site = &cluster.Patch{}
	for name := range d.set {
		row, to := fieldOf()[name], site
		row.clear(p)
		if slices.Contains(ownRights[:], name) {
			to = p
		}
		if !row.toPatch(&asked, to) {
			err := cluster.Errorf(cluster.Invalid, "", "%s: %s of a job cannot be changed any more", SubmitFile, name)
			return said, nil, err
		}
	}
	return said, site, nil
}

// ownRights are the fields that a script changes with the rights of who asks for the change, as in Slurm: else a
// script that writes what it has read would give users what only operators may set.
var ownRights = [...]string{"admin_comment", "nice", "priority"}

// ask has the script answer, when it is the user's turn.
func (f *Filter) ask(ctx context.Context, at api.FilterScene, call func(m *machine) (lua.LValue, error)) (
	[]string, error,
) {
	leave, err := f.take(ctx, at.By)
	if err != nil {
		return nil, err
	}
	defer leave()
	text := at.Snap.Config().Scripts[SubmitFile]
	m, err := f.machine(text)
	if err != nil {
		f.Log.Error("a script cannot be read: nothing is submitted", "script", SubmitFile, "err", err)
		return nil, cluster.Errorf(cluster.Invalid, "", "%v", err)
	}
	user := userOf(at)
	m.said, m.user = nil, user
	m.cluster(at.Snap)
	v, err := call(m)
	if err != nil { // what it has kept may be half done
		m.state.Close()
		f.Log.Error("a script failed", "script", SubmitFile, "user", user, "err", err)
		said := append(m.said, strings.Split(err.Error(), "\n")...)
		return said, cluster.Errorf(cluster.Invalid, "", "Lua function execution failed due to runtime error")
	}
	status, ok := m.status(v)
	said := m.said
	f.keep(m, text)
	if !ok {
		why := strings.Join(append(said, status), "; ")
		f.Log.Info("a script refused", "script", SubmitFile, "user", user, "why", why)
		return said, cluster.Errorf(cluster.Denied, "", "%s", status)
	}
	return said, nil
}

// userOf names the user whose submission or change it is.
func userOf(at api.FilterScene) string {
	return cmp.Or(at.User, strconv.FormatUint(uint64(at.By), 10))
}

// machine takes a machine that has read the script, or reads it.
func (f *Filter) machine(text string) (*machine, error) {
	f.mu.Lock()
	f.forget(text)
	if n := len(f.idle); n > 0 {
		m := f.idle[n-1]
		f.idle = f.idle[:n-1]
		f.mu.Unlock()
		return m, nil
	}
	f.mu.Unlock()
	return newMachine(SubmitFile, text, f.say, "slurm_job_submit", "slurm_job_modify")
}

// keep gives a machine back, for the next call.
func (f *Filter) keep(m *machine, text string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if text != f.text {
		m.state.Close()
		return
	}
	m.snap = nil
	f.idle = append(f.idle, m)
}

// forget drops the machines of another text.
func (f *Filter) forget(text string) {
	if text == f.text {
		return
	}
	for _, m := range f.idle {
		m.state.Close()
	}
	f.text, f.idle = text, nil
}

// say logs what the script says.
func (f *Filter) say(level, text string) {
	to := map[string]slog.Level{"error": slog.LevelError, "info": slog.LevelInfo}
	l, ok := to[level]
	if !ok {
		l = slog.LevelDebug
	}
	f.Log.Log(context.Background(), l, "lua: "+text)
}

// object is a job for scripts: its fields are read and set by the table.
func (m *machine) object(d *desc) lua.LValue {
	meta := m.state.NewTable()
	meta.RawSetString("__index", m.state.NewFunction(func(l *lua.LState) int {
		l.Push(m.read(d, l.CheckString(2)))
		return 1
	}))
	meta.RawSetString("__newindex", m.state.NewFunction(func(l *lua.LState) int {
		m.write(l, d, l.CheckString(2), l.Get(3))
		return 0
	}))
	t := m.state.NewTable()
	t.Metatable = meta
	return t
}

func (m *machine) read(d *desc, name string) lua.LValue {
	switch name {
	case "environment":
		return m.environment(d)
	case "argv":
		return m.list(d.argv)
	}
	if row, ok := fieldOf()[name]; ok {
		return row.get(d)
	}
	return lua.LNil
}

// write sets a field. One that Slurm does not know is only logged, as there; one that muster cannot set stops the
// script.
func (m *machine) write(l *lua.LState, d *desc, name string, v lua.LValue) {
	row, ok := fieldOf()[name]
	switch {
	case !ok:
		m.log("error", "job_desc has no field "+name)
		return
	case row.set == nil:
		l.RaiseError("%s of a job cannot be set", name)
	}
	if err := row.set(d, v); err != nil {
		if t, bad := err.(errType); bad {
			l.RaiseError("bad argument #3 to 'newindex' (%s)", t)
		}
		l.RaiseError("job_desc.%s: %s", name, err)
	}
	if d.set != nil {
		d.set[strings.Fields(row.names)[0]] = true
	}
}

// list is a list of words that begins at 0, as argv does.
func (m *machine) list(words []string) lua.LValue {
	t := m.state.NewTable()
	for i, w := range words {
		t.RawSetInt(i, lua.LString(w))
	}
	return t
}

// environment is the job's environment, by names.
func (m *machine) environment(d *desc) lua.LValue {
	if d.env == nil {
		return lua.LNil
	}
	meta := m.state.NewTable()
	meta.RawSetString("__index", m.state.NewFunction(func(l *lua.LState) int {
		name := l.CheckString(2)
		for word := range strings.SplitSeq(string(*d.env), "\x00") {
			if v, ok := strings.CutPrefix(word, name+"="); ok {
				l.Push(lua.LString(v))
				return 1
			}
		}
		l.Push(lua.LNil)
		return 1
	}))
	meta.RawSetString("__newindex", m.state.NewFunction(func(l *lua.LState) int {
		setEnv(l, d.env, l.CheckString(2), l.Get(3))
		return 0
	}))
	t := m.state.NewTable()
	t.Metatable = meta
	return t
}

// setEnv sets a variable, or takes it out.
func setEnv(l *lua.LState, env *cluster.BlobText, name string, v lua.LValue) {
	if name == "" || strings.ContainsAny(name, "=\x00") || strings.Contains(v.String(), "\x00") {
		l.RaiseError("%q is no name of a variable", name)
	}
	var words []string
	for word := range strings.SplitSeq(string(*env), "\x00") {
		if word != "" && !strings.HasPrefix(word, name+"=") {
			words = append(words, word)
		}
	}
	if v != lua.LNil {
		words = append(words, name+"="+v.String())
	}
	*env = cluster.BlobText(strings.Join(words, "\x00") + "\x00")
}
