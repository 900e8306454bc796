package lua

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"syscall"
	"time"

	lua "github.com/yuin/gopher-lua"

	"dev.muster/api"
	"dev.muster/cluster"
	"dev.muster/slurm/front"
	"dev.muster/wire"
)

// BurstFile is the file of the script for burst buffers. Unlike the others it runs programs and writes files; so each
// call has a process of its own (muster internal burst), as SlurmUser, which the leader ends when its time is over.
const BurstFile = "burst_buffer.lua"

// burstFunctions are those that it has, as Slurm demands.
var burstFunctions = [...]string{"job_process", "pools", "job_teardown", "setup", "data_in", "real_size", "paths",
	"pre_run", "post_run", "data_out", "get_status"}

// burstBusy is what a test returns while a transfer goes on.
const burstBusy = "BUSY"

// BurstMain is the process of one call: it reads a line with an api.BurstAsk and writes an api.BurstReply. It ends,
// with all that the script has started, when nobody holds the other end of its input any more.
func BurstMain([]string) int {
	in := bufio.NewReader(os.Stdin)
	text, err := in.ReadBytes('\n')
	var ask api.BurstAsk
	if err == nil {
		err = wire.Unmarshal(text, &ask)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "muster internal burst:", err)
		return 1
	}
	go func() {
		_, _ = in.ReadByte()
		_ = syscall.Kill(0, syscall.SIGKILL)
	}()
	reply := burstCall(&ask, func(level, text string) { fmt.Fprintln(os.Stderr, level+": "+text) })
	if text, err = wire.Marshal(&reply); err == nil {
		_, err = os.Stdout.Write(text)
	}
	return front.BoolInt(err != nil)
}

// newBurst reads the script. It may do all that Lua can.
func newBurst(text string, say func(level, text string)) (*machine, error) {
	proto, err := compile(BurstFile, text)
	if err != nil {
		return nil, err
	}
	m := &machine{name: BurstFile, log: say, state: lua.NewState()}
	m.words()
	m.state.Push(m.state.NewFunctionFromProto(proto))
	if err := m.state.PCall(0, 0, nil); err != nil {
		m.state.Close()
		return nil, burstReason(err)
	}
	for _, name := range burstFunctions {
		if !m.has("slurm_bb_" + name) {
			m.state.Close()
			return nil, fmt.Errorf("%s: missing required function slurm_bb_%s", BurstFile, name)
		}
	}
	return m, nil
}

// checkBurst says what is wrong with the script, without running it: where it is checked it may do nothing.
func checkBurst(text string) error {
	_, err := compile(BurstFile, text)
	if err != nil {
		return err
	}
	for _, name := range burstFunctions {
		if !strings.Contains(text, "slurm_bb_"+name) {
			return fmt.Errorf("%s: missing required function slurm_bb_%s", BurstFile, name)
		}
	}
	return nil
}

func (m *machine) has(name string) bool { return m.state.GetGlobal(name).Type() == lua.LTFunction }

// burstCall calls a function, and what belongs to it: data_in asks until the transfer is over, pre_run has the
// variables written before.
func burstCall(ask *api.BurstAsk, say func(level, text string)) (out api.BurstReply) {
	m, err := newBurst(ask.Script, say)
	if err != nil {
		return api.BurstReply{Failed: err.Error()}
	}
	defer m.state.Close()
	if ask.Call == cluster.CallPreRun {
		if out = m.burst(ask, "paths"); out.Failed != "" {
			return out
		}
		env, err := readPaths(ask.Paths)
		if err != nil {
			return api.BurstReply{Failed: err.Error()}
		}
		defer func() { out.Env = env }()
	}
	call := string(ask.Call)
	test := "test_" + call
	if out = m.burst(ask, call); out.Failed != "" || !m.has("slurm_bb_"+test) {
		return out
	}
	for {
		if out = m.burst(ask, test); out.Failed != "" || out.Said != burstBusy {
			return out
		}
		time.Sleep(ask.Poll)
	}
}

// burst calls one function.
func (m *machine) burst(ask *api.BurstAsk, name string) (out api.BurstReply) {
	err := m.state.CallByParam(lua.P{Fn: m.state.GetGlobal("slurm_bb_" + name), NRet: 2, Protect: true},
		m.burstArgs(ask, name)...)
	if err != nil {
		return api.BurstReply{Failed: burstReason(err).Error()}
	}
	status, said := m.state.Get(-2), m.state.Get(-1)
	m.state.Pop(2)
	if said != lua.LNil {
		out.Said = said.String()
	}
	if n, ok := status.(lua.LNumber); ok && n == 0 {
		return out
	}
	if out.Failed = out.Said; out.Said == "" {
		out.Failed = "the function returned " + status.String() + ", not slurm.SUCCESS"
	}
	return out
}

// burstArgs are the arguments of a function, in the order of Slurm 26.05; those of before had fewer.
func (m *machine) burstArgs(ask *api.BurstAsk, name string) []lua.LValue {
	if name == string(api.BurstStatus) {
		var words []lua.LValue
		for _, w := range ask.Args {
			words = append(words, lua.LString(w))
		}
		return words
	}
	id, uid, gid := texts(ask.Job.ID), texts(ask.Job.Spec.UID), texts(ask.Job.Spec.GID)
	file := lua.LString(ask.JobScript)
	who := []lua.LValue{uid, gid, valueOf(m.state, burstInfo(ask.Job))}
	switch name {
	case string(api.BurstProcess):
		return append([]lua.LValue{file}, who...)
	case "setup":
		return []lua.LValue{id, uid, gid, lua.LString("(null)"), lua.LString("0"), file, who[2]}
	case "paths":
		return append([]lua.LValue{id, file, lua.LString(ask.Paths)}, who...)
	case "job_teardown":
		return []lua.LValue{id, file, texts(ask.Hurry), uid, gid}
	}
	return append([]lua.LValue{id, file}, who...)
}

// burstInfo is the job for the script, by Slurm's names.
func burstInfo(j *cluster.Job) map[string]any {
	s := j.Spec
	info := map[string]any{
		"job_id": float64(j.ID), "array_job_id": float64(j.ArrayID), "name": s.Name,
		"user_id": float64(s.UID), "group_id": float64(s.GID), "user_name": s.User,
		"account": s.Account, "qos": s.QOS, "partition": strings.Join(s.Partitions, ","),
		"burst_buffer": s.BurstBuffer, "work_dir": s.WorkDir, "comment": s.Comment, "features": s.Constraint,
		"time_limit": float64(j.Limit / time.Minute), "restart_cnt": float64(j.Restarts),
	}
	if j.Task >= 0 && j.ArrayID != 0 {
		info["array_task_id"] = float64(j.Task)
	}
	if j.Alloc != nil {
		info["nodes"], info["partition"] = front.NodeText(j.AllocNodes()), j.Alloc.Partition
	}
	return info
}

// texts is a value as text: so are all arguments.
func texts(v any) lua.LValue { return lua.LString(fmt.Sprint(v)) }

// burstReason is why a call failed, in one line.
func burstReason(err error) error {
	var api *lua.ApiError
	if !errors.As(err, &api) {
		return err
	}
	first, _, _ := strings.Cut(api.Object.String(), "\n")
	return errors.New(first)
}

// Bounds of the variables that the script gives a job.
const (
	maxPathLines = 64
	maxPathBytes = 16 << 10
)

// readPaths reads the variables that the script has written, a line each.
func readPaths(file string) (env []string, err error) {
	if file == "" {
		return nil, nil
	}
	text, err := os.ReadFile(file)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	for line := range strings.Lines(string(text)) {
		line = strings.TrimRight(line, "\n")
		if name, _, ok := strings.Cut(line, "="); ok && name != "" {
			env = append(env, line)
		}
	}
	if len(text) > maxPathBytes || len(env) > maxPathLines {
		return nil, fmt.Errorf("slurm_bb_paths wrote %d variables of %d bytes: %d of %d are the most",
			len(env), len(text), maxPathLines, maxPathBytes)
	}
	return slices.Clip(env), err
}
