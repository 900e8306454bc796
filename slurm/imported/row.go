// Package imported writes the fields of jobs that ran in a Slurm cluster as the sacct of that cluster did: from what
// its database had, with the spellings of its release. Begin with Row.Field.
package imported

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"time"

	"dev.muster/cluster"
	"dev.muster/slurm/format"
)

// Row is a line of sacct: a job, or one of its steps.
type Row struct {
	Job   *cluster.Job
	Steps []*cluster.Step // of the job
	Step  *cluster.Step   // nil: the line of the job
	Now   time.Time
	Raw   bool // numbers are not shortened
	Unit  byte // of all sizes; 0: the largest that loses nothing
	// When writes a time, none where there is none.
	When func(t time.Time, none string) string
}

// Order compares two jobs as sacct orders them: by the time of their submission, tasks of arrays behind other jobs.
func Order(a, b *cluster.Job) int {
	return cmp.Or(a.Submitted.Compare(b.Submitted), cmp.Compare(a.ArrayID, b.ArrayID), cmp.Compare(a.Task, b.Task),
		cmp.Compare(a.ID, b.ID))
}

// Numbers that stand for something else.
const (
	noValue   = 0xfffffffe
	infinite  = 0xffffffff
	unknown64 = 1<<64 - 2
)

// The first releases that print something in another way than those before.
const (
	release2302 = 2302
	release2311 = 2311
	release2505 = 2505
	release2511 = 2511
)

func (r *Row) release() int { return r.Job.Imported.Release }

func number[T ~int | ~int64 | ~uint32](n T) string { return strconv.FormatInt(int64(n), 10) }

// nonZero is a number, empty for 0.
func nonZero(n uint32) string {
	if n == 0 {
		return ""
	}
	return number(n)
}

// given is what the line's job or step has.
func (r *Row) given() cluster.TRESList {
	if r.Step != nil && r.Step.Imported.TRESAlloc != "" {
		return r.Step.Imported.TRESAlloc
	}
	return r.Job.Imported.TRESAlloc
}

func count(l cluster.TRESList, name string) int64 {
	n, _ := l.Count(name)
	if n >= unknown64 {
		return 0
	}
	return int64(n)
}

// cpus are those that the job or step had; before 23.02 also those that a job asked for that never began.
func (r *Row) cpus() int64 {
	if n := count(r.given(), "cpu"); n > 0 {
		return n
	}
	if r.release() < release2302 {
		return count(r.Job.Imported.TRESReq, "cpu")
	}
	return 0
}

func (r *Row) nodes() int64 {
	if r.Step != nil {
		return int64(r.Step.Imported.Nodes)
	}
	i := r.Job.Imported
	return cmp.Or(int64(i.Nodes), count(i.TRESAlloc, "node"), count(i.TRESReq, "node"))
}

// times are when the line's job or step began and ended, and for how long it was suspended.
func (r *Row) times() (start, end, suspended int64) {
	i := r.Job.Imported
	if r.Step == nil {
		start, end, suspended = i.Start, i.End, i.Suspended
		if r.Job.Phase == cluster.Suspended {
			suspended = r.Now.Unix() - i.Suspended
		}
		if end != 0 && start > end {
			start = end
		}
		return start, end, max(suspended, 0)
	}
	s := r.Step.Imported
	if r.endsWithJob() {
		return s.Start, i.End, s.Suspended
	}
	return s.Start, s.End, s.Suspended
}

// endsWithJob reports whether a step that has no end of its own shows that of its job.
func (r *Row) endsWithJob() bool {
	return r.Step.Imported.End == 0 && r.Job.Phase == cluster.Ended &&
		(r.Job.Outcome != cluster.Resized || r.release() < release2302)
}

func (r *Row) elapsed() time.Duration {
	start, end, suspended := r.times()
	if start == 0 {
		return 0
	}
	if end == 0 {
		end = r.Now.Unix()
	}
	return time.Duration(max(end-start-suspended, 0)) * time.Second
}

func (r *Row) suspended() string {
	_, _, suspended := r.times()
	return format.Padded(time.Duration(suspended) * time.Second)
}

func (r *Row) cpuTime() time.Duration { return r.elapsed() * time.Duration(r.cpus()) }

func seconds(d time.Duration) string { return number(int64(d / time.Second)) }

func moment(at int64) time.Time {
	if at <= 0 || at >= infinite {
		return time.Time{}
	}
	return time.Unix(at, 0)
}

func (r *Row) start() string {
	start, end, _ := r.times()
	if start == 0 && end != 0 {
		return "None"
	}
	return r.When(moment(start), "Unknown")
}

func (r *Row) end() string {
	_, end, _ := r.times()
	return r.When(moment(end), "Unknown")
}

// waited is how long a job was eligible before it began; ok is false where Slurm prints INVALID.
func (r *Row) waited() (d time.Duration, ok bool) {
	i := r.Job.Imported
	start, end, _ := r.times()
	until := cmp.Or(start, end, r.Now.Unix())
	switch {
	case i.Eligible == 0 || i.Eligible >= infinite:
		return 0, true
	case start == 0 && end != 0 && r.release() < release2302:
		return 0, false
	}
	return time.Duration(until-i.Eligible) * time.Second, until >= i.Eligible
}

func (r *Row) planned() string {
	d, ok := r.waited()
	if !ok {
		return "INVALID"
	}
	return format.Padded(d)
}

// plannedSeconds is how long a job waited, for each of its CPUs. For a job that never began Slurm counts up to
// number that stands for no value, in 32 bits.
func (r *Row) plannedSeconds() int64 {
	i := r.Job.Imported
	start, end, _ := r.times()
	if start == 0 && end != 0 && i.Eligible != 0 && i.Eligible < infinite {
		return int64(uint32(noValue-i.Eligible) * i.CPUs)
	}
	d, _ := r.waited()
	return int64(uint32(d/time.Second) * i.CPUs)
}

func (r *Row) plannedCPU() string {
	if _, ok := r.waited(); !ok && (r.Job.Imported.Start != 0 || r.release() < release2302) {
		return "INVALID"
	}
	return format.Padded(time.Duration(r.plannedSeconds()) * time.Second)
}

// liveStates are the first states by their numbers: those of jobs that have not ended.
var liveStates = [...]string{"PENDING", "RUNNING", "SUSPENDED"}

func (r *Row) state() string {
	n, by := r.Job.Imported.State, r.Job.CancelledBy
	if r.Step != nil {
		by = r.Step.CancelledBy
		if !r.endsWithJob() {
			n = r.Step.Imported.State
		}
	}
	if int(n) < len(liveStates) {
		return liveStates[n]
	}
	how, ok := cluster.NumberedOutcome(n)
	switch {
	case !ok:
		return number(n)
	case how == cluster.Cancelled && by != nil:
		return how.State() + " by " + number(*by)
	}
	return how.State()
}

// status writes a wait status. Up to 25.05 codes from 128 on are less by 128.
func (r *Row) status(n uint32, shortens bool) string {
	code, signal := n>>8&0xff, n&0x7f
	if signal != 0 {
		code = 0
	}
	if shortens && code >= 128 && r.release() < release2511 {
		code -= 128
	}
	return number(code) + ":" + number(signal)
}

func (r *Row) exitCode() string {
	if r.Step == nil {
		return r.status(r.Job.Imported.Exit, true)
	}
	if r.Step.Imported.Exit < 0 {
		return ""
	}
	return r.status(uint32(r.Step.Imported.Exit), true)
}

func (r *Row) derived() string {
	n := r.Job.Imported.Derived
	if n == noValue {
		n = 0
	}
	return r.status(n, false)
}

func limit(minutes uint32, infinity string) string {
	switch minutes {
	case infinite:
		return infinity
	case noValue:
		return "Partition_Limit"
	}
	return format.Padded(time.Duration(minutes) * time.Minute)
}

func (r *Row) writeLimit(minutes uint32) string { return limit(minutes, "UNLIMITED") }

func (r *Row) limit() string { return limit(r.Job.Imported.Limit, "UNLIMITED") }

func (r *Row) limitRaw() string {
	n := r.Job.Imported.Limit
	if n >= noValue {
		return limit(n, "UNLIMITED")
	}
	return number(n)
}

// stepLimit is the time limit of a step; before 25.05 it was not kept.
func (r *Row) stepLimit(write func(uint32) string) string {
	n := r.Step.Imported.Limit
	if n == nil || *n == infinite || r.release() < release2505 {
		return ""
	}
	return write(*n)
}

// flags are which part of the scheduler began a job, and that it did.
func (r *Row) flags() string {
	received := "StartReceived"
	if r.release() < release2311 {
		received = "StartRecieved"
	}
	var out []string
	set := r.Job.Imported.Flags
	for bit, name := range [...]string{1: "SchedSubmit", 2: "SchedMain", 3: "SchedBackfill"} {
		if name != "" && set&(1<<bit) != 0 && out == nil {
			out = append(out, name)
		}
	}
	if set&(1<<4) != 0 {
		out = append(out, received)
	}
	return strings.Join(out, ",")
}

// id is the number of a job as users know it.
func (r *Row) id() string {
	j := r.Job
	switch {
	case j.ArrayID != 0 && !j.Tasks.Empty():
		text := number(uint32(j.ArrayID)) + "_[" + j.Tasks.String()
		if n := j.Imported.ArrayLimit; n != 0 {
			text += "%" + number(n)
		}
		return text + "]"
	case j.ArrayID != 0 && j.Task >= 0:
		return number(uint32(j.ArrayID)) + "_" + number(j.Task)
	case j.Het != nil:
		return number(uint32(j.Het.ID)) + "+" + number(j.Het.Offset)
	}
	return number(uint32(j.ID))
}

func (r *Row) rawID() string { return number(uint32(r.Job.ID)) }

// ofStep adds the step to the number of a job.
func (r *Row) ofStep(id string) string {
	text := id + "." + stepName(r.Step.ID.Step)
	if r.Step.Imported.Part != nil {
		text += "+" + number(*r.Step.Imported.Part)
	}
	return text
}

func stepName(n int) string {
	switch n {
	case cluster.BatchStep:
		return "batch"
	case cluster.ExternStep:
		return "extern"
	case cluster.InteractiveStep:
		return "interactive"
	case -3:
		return "TBD"
	}
	return number(n)
}

// tres writes what a job asked for or has, by the names.
func (r *Row) tres(l cluster.TRESList) string {
	var out []string
	for name, n := range l.All() {
		if n >= unknown64 {
			continue
		}
		text := strconv.FormatUint(n, 10)
		if name == "mem" {
			text = r.mem(int64(n))
		}
		out = append(out, name+"="+text)
	}
	slices.SortFunc(out, byName)
	return strings.Join(out, ",")
}

// byName orders NAME=… as Slurm does: gres/gpu:h100 stands before gres/gpu.
func byName(a, b string) int {
	x, _, _ := strings.Cut(a, "=")
	y, _, _ := strings.Cut(b, "=")
	switch {
	case strings.HasPrefix(x, y) && x != y:
		return -1
	case strings.HasPrefix(y, x) && x != y:
		return 1
	}
	return cmp.Compare(x, y)
}

// mem writes megabytes.
func (r *Row) mem(n int64) string {
	switch {
	case r.Unit != 0:
		return format.MemIn(cluster.MemMB(n), r.Unit)
	case r.Raw:
		return format.MemRaw(cluster.MemMB(n))
	}
	return format.Mem(cluster.MemMB(n))
}

// sluid writes the number of a run as Slurm does from 24.11 on.
func sluid(n uint64) string {
	const digits = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
	out := []byte("s0000000000000")
	for i := len(out) - 1; i > 0; i-- {
		out[i] = digits[n&31]
		n >>= 5
	}
	return string(out)
}

// total adds up a time of all steps that are over.
func (r *Row) total(of func(*cluster.Usage) time.Duration) (sum time.Duration) {
	if r.Step != nil {
		return of(&r.Step.Usage)
	}
	for _, s := range r.Steps {
		if s.Imported.End != 0 {
			sum += of(&s.Usage)
		}
	}
	return sum
}

func allCPU(u *cluster.Usage) time.Duration    { return u.UserCPU + u.SystemCPU }
func userCPU(u *cluster.Usage) time.Duration   { return u.UserCPU }
func systemCPU(u *cluster.Usage) time.Duration { return u.SystemCPU }

// cpuClock writes CPU time: below an hour with milliseconds, if there are any.
func cpuClock(d time.Duration) string {
	ms := d / time.Millisecond % 1000
	if d >= time.Hour || ms == 0 {
		return format.Padded(d)
	}
	return format.Padded(d)[3:] + "." + strconv.Itoa(int(ms) + 1000)[1:]
}
