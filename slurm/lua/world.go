package lua

import (
	"strconv"
	"strings"
	"time"

	lua "github.com/yuin/gopher-lua"

	"dev.muster/cluster"
	"dev.muster/slurm/front"
	"dev.muster/slurm/values"
)

// lazy is a table whose fields are found when they are asked for.
func (m *machine) lazy(of func(name string) lua.LValue) *lua.LTable {
	meta := m.state.NewTable()
	meta.RawSetString("__index", m.state.NewFunction(func(l *lua.LState) int {
		l.Push(of(l.ToStringMeta(l.Get(2)).String()))
		return 1
	}))
	meta.RawSetString("__newindex", m.state.NewFunction(func(l *lua.LState) int {
		l.RaiseError("%s cannot be set", l.Get(2).String())
		return 0
	}))
	t := m.state.NewTable()
	t.Metatable = meta
	return t
}

// numberOr is a number, and another one in place of 0.
func numberOr[N ~int | ~int64](n N, none float64) lua.LValue {
	if n == 0 {
		return lua.LNumber(none)
	}
	return lua.LNumber(n)
}

func bit(yes bool) lua.LValue { return lua.LNumber(front.BoolInt(yes)) }

func joined(list []string) lua.LValue { return given(strings.Join(list, ",")) }

// minutesOr is a time limit in minutes.
func minutesOr(d time.Duration, none float64) lua.LValue {
	if d == 0 || d == cluster.Unlimited {
		return lua.LNumber(none)
	}
	return lua.LNumber(d / time.Minute)
}

// memOf is a limit of memory where it is counted that way, else none.
func memOf(m cluster.Mem, per cluster.MemPer, none lua.LValue) lua.LValue {
	if m.Per == per && m.MB != 0 {
		return lua.LNumber(m.MB)
	}
	return none
}

// partStates are the numbers of state_up.
var partStates = map[cluster.PartitionState]int{
	cluster.PartitionUp: 3, cluster.PartitionDown: 1, cluster.PartitionDrain: 2, cluster.PartitionInactive: 0,
}

// part is a partition with its nodes as they are.
type part struct {
	*cluster.Partition
	snap *cluster.Snapshot
}

// partFields are those of a partition.
var partFields = map[string]func(p part) lua.LValue{
	"allow_accounts":      func(p part) lua.LValue { return joined(p.AllowAccounts) },
	"allow_groups":        func(p part) lua.LValue { return joined(p.AllowGroups) },
	"allow_qos":           func(p part) lua.LValue { return joined(p.AllowQOS) },
	"def_mem_per_cpu":     func(p part) lua.LValue { return memOf(p.DefMem, cluster.MemPerCPU, lua.LNil) },
	"def_mem_per_node":    func(p part) lua.LValue { return memOf(p.DefMem, cluster.MemPerNode, lua.LNumber(0)) },
	"default_time":        func(p part) lua.LValue { return minutesOr(p.DefaultTime, noVal) },
	"deny_accounts":       func(p part) lua.LValue { return joined(p.DenyAccounts) },
	"deny_qos":            func(p part) lua.LValue { return joined(p.DenyQOS) },
	"flag_default":        func(p part) lua.LValue { return bit(p.Default) },
	"flags":               func(p part) lua.LValue { return bit(p.Default) },
	"max_cpus_per_node":   func(p part) lua.LValue { return numberOr(p.MaxCPUsPerNode, infinite) },
	"max_cpus_per_socket": func(p part) lua.LValue { return numberOr(p.MaxCPUsPerSocket, infinite) },
	"max_mem_per_cpu":     func(p part) lua.LValue { return memOf(p.MaxMem, cluster.MemPerCPU, lua.LNil) },
	"max_mem_per_node":    func(p part) lua.LValue { return memOf(p.MaxMem, cluster.MemPerNode, lua.LNumber(0)) },
	"max_nodes":           func(p part) lua.LValue { return numberOr(p.MaxNodes, infinite) },
	"max_nodes_orig":      func(p part) lua.LValue { return numberOr(p.MaxNodes, infinite) },
	"max_oversubscribe":   func(part) lua.LValue { return lua.LNumber(1) },
	"max_share":           func(part) lua.LValue { return lua.LNumber(1) },
	"max_time":            func(p part) lua.LValue { return minutesOr(p.MaxTime, infinite) },
	"min_nodes":           func(p part) lua.LValue { return lua.LNumber(p.MinNodes) },
	"min_nodes_orig":      func(p part) lua.LValue { return lua.LNumber(p.MinNodes) },
	"name":                func(p part) lua.LValue { return lua.LString(p.Name) },
	"nodes":               func(p part) lua.LValue { return given(front.NodeText(namesOf(p))) },
	"priority_job_factor": func(p part) lua.LValue { return numberOr(p.PriorityJobFactor, 1) },
	"priority_tier":       func(p part) lua.LValue { return numberOr(p.PriorityTier, 1) },
	"qos":                 func(p part) lua.LValue { return given(p.QOS) },
	"state_up":            func(p part) lua.LValue { return lua.LNumber(partStates[p.State]) },
	"total_cpus":          totalCPUs,
	"total_nodes":         func(p part) lua.LValue { return lua.LNumber(len(namesOf(p))) },
}

func namesOf(p part) (names []cluster.NodeName) {
	for n := range p.snap.PartitionNodes(p.Partition) {
		names = append(names, n.Name)
	}
	return names
}

func totalCPUs(p part) lua.LValue {
	total := 0
	for n := range p.snap.PartitionNodes(p.Partition) {
		total += n.Inventory.CPUs
	}
	return lua.LNumber(total)
}

// partitions is part_list: the partitions that the user may use, by name.
func (m *machine) partitions(open []*cluster.Partition) lua.LValue {
	snap := m.snap
	list := m.state.NewTable()
	for _, p := range open {
		list.RawSetString(p.Name, m.lazy(func(name string) lua.LValue {
			if of, ok := partFields[name]; ok {
				return of(part{p, snap})
			}
			return lua.LNil
		}))
	}
	return list
}

// jobStates are the numbers of job_state while a job lives.
var jobStates = map[cluster.Phase]int{
	cluster.Pending: 0, cluster.Starting: 1, cluster.Running: 1, cluster.Suspended: 2, cluster.Ending: 0x8000,
}

// record is a job that is there, for scripts: it cannot be changed.
func (m *machine) record(j *cluster.Job, d *desc) lua.LValue {
	return m.lazy(func(name string) lua.LValue {
		switch name {
		case "job_id":
			return lua.LNumber(j.ID)
		case "array_job_id":
			return lua.LNumber(j.ArrayID)
		case "job_state":
			if j.Phase == cluster.Ended {
				return lua.LNumber(j.Outcome.Number())
			}
			return lua.LNumber(jobStates[j.Phase])
		case "submit_time":
			return unix(j.Submitted)
		case "start_time":
			return unix(j.Started)
		case "end_time":
			return unix(j.Ended)
		case "restart_cnt":
			return lua.LNumber(j.Restarts)
		case "nice":
			return lua.LNumber(niceOffset + j.Spec.Nice)
		case "site_factor":
			return lua.LNumber(j.Spec.Site)
		case "environment":
			return lua.LNil
		case "partition":
			if j.Alloc != nil {
				return lua.LString(j.Alloc.Partition)
			}
		case "nodes":
			return given(front.NodeText(nodesOf(j)))
		}
		return m.read(d, name)
	})
}

func nodesOf(j *cluster.Job) (names []cluster.NodeName) {
	if j.Alloc == nil {
		return nil
	}
	for _, s := range j.Alloc.Shares {
		names = append(names, s.Node)
	}
	return names
}

func unix(t time.Time) lua.LValue {
	if t.IsZero() {
		return lua.LNumber(0)
	}
	return lua.LNumber(t.Unix())
}

// cluster gives a call what is there now: slurm.jobs, slurm.reservations, slurm.get_qos_priority.
func (m *machine) cluster(snap *cluster.Snapshot) {
	m.snap = snap
	m.slurm.RawSetString("CLUSTER_NAME", lua.LString(snap.Config().ClusterName))
	m.slurm.RawSetString("get_qos_priority", m.state.NewFunction(func(l *lua.LState) int {
		q, ok := snap.QOS(l.CheckString(1))
		if !ok {
			l.Push(lua.LNil)
			return 1
		}
		l.Push(lua.LNumber(q.Priority))
		return 1
	}))
	m.slurm.RawSetString("jobs", m.filled(m.jobs))
	m.slurm.RawSetString("reservations", m.filled(m.reservations))
}

// filled is a table that is made when it is first looked into: most scripts never do.
func (m *machine) filled(fill func(t *lua.LTable)) *lua.LTable {
	t := m.state.NewTable()
	meta := m.state.NewTable()
	meta.RawSetString("__index", m.state.NewFunction(func(l *lua.LState) int {
		t.Metatable = lua.LNil
		fill(t)
		l.Push(t.RawGet(l.Get(2)))
		return 1
	}))
	meta.RawSetString("fill", m.state.NewFunction(func(*lua.LState) int {
		t.Metatable = lua.LNil
		fill(t)
		return 0
	}))
	t.Metatable = meta
	return t
}

func (m *machine) jobs(t *lua.LTable) {
	for j := range m.snap.Jobs() {
		was := *j.Spec
		d := &desc{spec: &was, part: 0, priority: float64(j.Priority), argv: append([]string{was.Command}, was.Args...)}
		t.RawSetString(strconv.FormatUint(uint64(j.ID), 10), m.record(j, d))
	}
}

func (m *machine) reservations(t *lua.LTable) {
	for _, r := range m.snap.Reservations() {
		t.RawSetString(r.Name, m.lazy(func(name string) lua.LValue {
			switch name {
			case "name":
				return lua.LString(r.Name)
			case "accounts":
				return joined(r.Accounts)
			case "users":
				return joined(r.Users)
			case "start_time":
				return unix(r.Start)
			case "end_time":
				return unix(r.End)
			case "node_list":
				return given(front.NodeText(r.Nodes))
			case "node_cnt":
				return lua.LNumber(len(r.Nodes))
			case "partition":
				return given(r.Partition)
			}
			return lua.LNil
		}))
	}
}

// pairs is the library's, for tables that are not filled yet, too.
func pairs(old lua.LValue) lua.LGFunction {
	return func(l *lua.LState) int {
		t := l.CheckTable(1)
		if meta, ok := t.Metatable.(*lua.LTable); ok {
			if fill := meta.RawGetString("fill"); fill.Type() == lua.LTFunction {
				l.Push(fill)
				l.Call(0, 0)
			}
		}
		l.Push(old)
		l.Push(t)
		l.Call(1, 3)
		return 3
	}
}

// minutesOf is slurm.time_str2mins: a time limit in minutes.
func minutesOf(l *lua.LState) int {
	d, ok := values.ParseTimeLimit(l.CheckString(1))
	switch {
	case !ok:
		l.Push(lua.LNumber(noVal))
	case d == cluster.Unlimited:
		l.Push(lua.LNumber(infinite))
	default:
		l.Push(lua.LNumber((d + time.Minute - 1) / time.Minute))
	}
	return 1
}
