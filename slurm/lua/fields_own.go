package lua

import (
	"errors"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	lua "github.com/yuin/gopher-lua"

	"dev.muster/cluster"
	"dev.muster/slurm/format"
	"dev.muster/slurm/values"
)

// Fields whose values are unlike others: each has functions of its own.

// mailBits are the bits of mail_type.
var mailBits = [...]struct {
	bit  int
	word string
}{{1, "BEGIN"}, {2, "END"}, {4, "FAIL"}, {8, "REQUEUE"}, {16, "TIME_LIMIT"}, {32, "TIME_LIMIT_90"},

	{64, "TIME_LIMIT_80"}, {128, "TIME_LIMIT_50"}, {256, "STAGE_OUT"}, {512, "ARRAY_TASKS"}, {1024, "INVALID_DEPEND"}}

func getMail(d *desc) lua.LValue {
	n := 0
	for _, b := range mailBits {
		if slices.Contains(d.spec.MailType, b.word) {
			n |= b.bit
		}
	}
	return lua.LNumber(n)
}

func setMail(d *desc, v lua.LValue) error {
	n, err := numberOf(v)
	if err != nil {
		return err
	}
	d.spec.MailType = nil
	for _, b := range mailBits {
		if int(n)&b.bit != 0 && !isNone(n) {
			d.spec.MailType = append(d.spec.MailType, b.word)
		}
	}
	return nil
}

// sharings are the numbers of shared.
var sharings = map[cluster.Sharing]int{
	cluster.ShareExclusive: 0, cluster.ShareOver: 1, cluster.ShareUser: 2, cluster.ShareMCS: 3,
}

func getShared(d *desc) lua.LValue {
	if n, ok := sharings[d.spec.Sharing]; ok {
		return lua.LNumber(n)
	}
	return lua.LNumber(noVal16)
}

func setShared(d *desc, v lua.LValue) error {
	n, err := numberOf(v)
	if err != nil {
		return err
	}
	if isNone(n) {
		d.spec.Sharing = cluster.ShareDefault
		return nil
	}
	for sharing, number := range sharings {
		if number == int(n) {
			d.spec.Sharing = sharing
			return nil
		}
	}
	return errors.New(strconv.Itoa(int(n)) + " is none of the slurm.JOB_SHARED_*")
}

// memory is the memory by one way to count it, nil where it is not that one.
func memory(names string, per cluster.MemPer) field {
	return field{names, "Mem",
		func(d *desc) lua.LValue {
			if d.spec.Mem.Per == per {
				return lua.LNumber(d.spec.Mem.MB)
			}
			return lua.LNil
		},
		func(d *desc, v lua.LValue) error {
			n, err := numberOf(v)
			if err != nil {
				return err
			}
			return setMemory(d.spec, per, n)
		}}
}

func setMemory(s *cluster.JobSpec, per cluster.MemPer, n float64) error {
	switch {
	case isNone(n):
		s.Mem = cluster.Mem{}
	case n < 0 || n > math.MaxInt32:
		return errors.New(lua.LNumber(n).String() + " is no memory in MB")
	default:
		s.Mem = cluster.Mem{Per: per, MB: cluster.MemMB(n)}
	}
	return nil
}

// getMemory is pn_min_memory: MB of a node, or of a CPU with the highest bit.
func getMemory(d *desc) lua.LValue {
	switch d.spec.Mem.Per {
	case cluster.MemPerNode:
		return lua.LNumber(d.spec.Mem.MB)
	case cluster.MemPerCPU:
		return lua.LNumber(perCPU + float64(d.spec.Mem.MB))
	}
	return lua.LNumber(noVal64)
}

func setPnMemory(d *desc, v lua.LValue) error {
	n, err := numberOf(v)
	switch {
	case err != nil:
		return err
	case isNone(n) || n < perCPU:
		return setMemory(d.spec, cluster.MemPerNode, n)
	}
	return setMemory(d.spec, cluster.MemPerCPU, n-perCPU)
}

func getPriority(d *desc) lua.LValue {
	switch {
	case d.spec.Hold:
		return lua.LNumber(0)
	case d.spec.Priority != nil:
		return lua.LNumber(*d.spec.Priority)
	}
	return lua.LNumber(d.priority)
}

func setPriority(d *desc, v lua.LValue) error {
	n, err := numberOf(v)
	if err != nil {
		return err
	}
	d.spec.Hold, d.spec.Priority = n == 0, nil
	if n > 0 && !isNone(n) {
		p := uint32(min(n, noVal-1))
		d.spec.Priority = &p
	}
	return nil
}

func getNice(d *desc) lua.LValue {
	if d.spec.Nice == 0 && d.priority == noVal {
		return lua.LNumber(noVal)
	}
	return lua.LNumber(niceOffset + d.spec.Nice)
}

func setNice(d *desc, v lua.LValue) error {
	n, err := numberOf(v)
	if err != nil {
		return err
	}
	if d.spec.Nice = 0; isNone(n) {
		return nil
	}
	if n -= niceOffset; math.Abs(n) > niceOffset-3 {
		return errors.New("write slurm.NICE_OFFSET + N")
	}
	d.spec.Nice = int(n)
	return nil
}

func setSite(d *desc, v lua.LValue) error {
	n, err := numberOf(v)
	if err != nil {
		return err
	}
	if d.spec.Site = 0; !isNone(n) && math.Abs(n) < niceOffset {
		d.spec.Site = int(n)
	}
	return nil
}

// The bits of bitflags that muster knows, with what they are.
var flagBits = [...]struct {
	bit float64
	at  func(s *cluster.JobSpec) *bool
}{

	{256, func(s *cluster.JobSpec) *bool { return &s.Spread }},
	{512, func(s *cluster.JobSpec) *bool { return &s.UseMinNodes }},
}

func getFlags(d *desc) lua.LValue {
	n := 0.0
	for _, b := range flagBits {
		if *b.at(d.spec) {
			n += b.bit
		}
	}
	if k := d.spec.KillInvalidDepend; k != nil {
		n += map[bool]float64{true: 1, false: 2}[*k]
	}
	return lua.LNumber(n)
}

func setFlags(d *desc, v lua.LValue) error {
	f, err := numberOf(v)
	if err != nil {
		return err
	}
	n := uint64(f)
	for _, b := range flagBits {
		*b.at(d.spec) = n&uint64(b.bit) != 0
		n &^= uint64(b.bit)
	}
	if kill := n & 3; kill != 0 {
		yes := kill == 1
		d.spec.KillInvalidDepend = &yes
	}
	if n&^3 != 0 {
		return errors.New("of these flags SPREAD_JOB, USE_MIN_NODES, KILL_INV_DEP and NO_KILL_INV_DEP can be set")
	}
	return nil
}

// perGPU is a number for each GPU: gres/gpu:2.
func perGPU(names string, get func(s *cluster.JobSpec) int64, set func(s *cluster.JobSpec, n int64)) field {
	return parsed(names, "",
		func(s *cluster.JobSpec) string {
			if n := get(s); n != 0 {
				return "gres/gpu:" + strconv.FormatInt(n, 10)
			}
			return ""
		},
		func(s *cluster.JobSpec, v string) bool {
			if v == "" {
				set(s, 0)
				return true
			}
			list, ok := values.ParseGRES(v)
			if !ok || len(list) != 1 || list[0].Name != "gpu" || list[0].Type != "" {
				return false
			}
			set(s, list[0].Count)
			return true
		})
}

// dependText writes a dependency as --dependency has it.
func dependText(d cluster.Depends) string {
	words := make([]string, len(d.Terms))
	for i, t := range d.Terms {
		word := string(t.Type)
		if t.Type != cluster.SingletonOf {
			word += ":" + strconv.FormatUint(uint64(t.Job), 10)
		}
		switch {
		case t.Array:
			word += "_*"
		case t.Task >= 0:
			word += "_" + strconv.Itoa(t.Task)
		}
		if t.Plus > 0 {
			word += "+" + strconv.Itoa(int(t.Plus/time.Minute))
		}
		words[i] = word
	}
	if d.Any {
		return strings.Join(words, "?")
	}
	return strings.Join(words, ",")
}

func setDepends(s *cluster.JobSpec, v string) bool {
	d, ok := values.ParseDepends(v)
	if ok {
		s.Depends = d
	}
	return ok
}

func arrayText(s *cluster.JobSpec) string {
	if s.Array == nil {
		return ""
	}
	return format.Tasks(s.Array.Tasks, s.Array.Limit)
}

func setArray(s *cluster.JobSpec, v string) bool {
	if v == "" {
		s.Array = nil
		return true
	}
	a, ok := values.ParseArray(v)
	if ok {
		s.Array = a
	}
	return ok
}

// minCPUs is how many CPUs the tasks need.
func minCPUs(d *desc) lua.LValue {
	if d.change {
		return lua.LNumber(noVal)
	}
	s := d.spec
	tasks := max(s.Tasks, s.TasksPerNode*s.MinNodes, s.MinNodes, 1)
	return lua.LNumber(tasks * max(s.CPUsPerTask, 1))
}

// setMinCPUs sees to so many CPUs where there is one task, which has them.
func setMinCPUs(d *desc, v lua.LValue) error {
	n, err := numberOf(v)
	switch s := d.spec; {
	case err != nil:
		return err
	case isNone(n) || lua.LNumber(n) == minCPUs(d):
	case s.Tasks > 1 || s.TasksPerNode > 1 || s.MinNodes > 1:
		return errors.New("of a job of several tasks set num_tasks and cpus_per_task")
	default:
		s.CPUsPerTask = int(n)
	}
	return nil
}

// gpuMemory and setGPUMemory are the memory for each GPU.
func gpuMemory(s *cluster.JobSpec) int64 {
	if s.Mem.Per == cluster.MemPerGPU {
		return int64(s.Mem.MB)
	}
	return 0
}

func setGPUMemory(s *cluster.JobSpec, n int64) {
	s.Mem = cluster.Mem{Per: cluster.MemPerGPU, MB: cluster.MemMB(n)}
}

func partitionText(s *cluster.JobSpec) string { return strings.Join(s.Partitions, ",") }

func setPartitions(s *cluster.JobSpec, v string) bool {
	s.Partitions = nil
	if v != "" {
		s.Partitions = strings.Split(v, ",")
	}
	return true
}

func getCoreSpec(d *desc) lua.LValue {
	if d.spec.CoreSpec == nil {
		return lua.LNil
	}
	return lua.LNumber(*d.spec.CoreSpec)
}

func setCoreSpec(d *desc, v lua.LValue) error {
	n, err := numberOf(v)
	if d.spec.CoreSpec = nil; err == nil && !isNone(n) {
		k := int(n)
		d.spec.CoreSpec = &k
	}
	return err
}

func getPart(d *desc) lua.LValue {
	if d.part < 0 {
		return lua.LNumber(noVal)
	}
	return lua.LNumber(d.part)
}

func getTmp(d *desc) lua.LValue {
	if d.spec.TmpMB == 0 {
		return lua.LNumber(noVal)
	}
	return lua.LNumber(d.spec.TmpMB)
}

func setTmp(d *desc, v lua.LValue) error {
	n, err := numberOf(v)
	if d.spec.TmpMB = 0; err == nil && !isNone(n) {
		d.spec.TmpMB = int64(n)
	}
	return err
}

func getSite(d *desc) lua.LValue {
	if d.spec.Site == 0 {
		return lua.LNumber(noVal)
	}
	return lua.LNumber(d.spec.Site)
}

func getScript(d *desc) lua.LValue {
	if d.script == nil {
		return lua.LNil
	}
	return given(string(*d.script))
}

func setScript(d *desc, v lua.LValue) error {
	t, err := textOf(v)
	switch {
	case err != nil:
		return err
	case d.script == nil || len(*d.script) == 0:
		return errors.New("the job has no script")
	case !strings.HasPrefix(t, "#!"):
		return errors.New("a script begins with #! and its interpreter")
	}
	*d.script = cluster.BlobText(t)
	return nil
}

// getInput is where a script reads from, which is the empty file unless the user says otherwise.
func getInput(d *desc) lua.LValue {
	if d.spec.Stdin == "" && d.spec.Kind == cluster.Batch && !d.change {
		return lua.LString("/dev/null")
	}
	return given(d.spec.Stdin)
}

func setInput(d *desc, v lua.LValue) (err error) {
	d.spec.Stdin, err = textOf(v)
	return err
}
