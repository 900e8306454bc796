package queue

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"dev.muster/cluster"
)

// Row is what squeue prints of a job: texts of its user are not in it.
type Row struct {
	ID    string
	UID   uint32
	Admin string // the operators' comment
}

// RowFormat is the option of squeue -O for rows.
const RowFormat = "UserID:16,JobArrayID:64,admin_comment:1024"

// ReadRows reads squeue -h -a -O RowFormat. Its columns have no blank between them if one is full.
func ReadRows(text string) (out []Row, err error) {
	for line := range strings.Lines(text) {
		const user, id = 16, 80
		line = fmt.Sprintf("%-*s", id, strings.TrimRight(line, "\n"))
		n, bad := strconv.ParseUint(strings.TrimSpace(line[:user]), 10, 32)
		if bad != nil {
			return nil, fmt.Errorf("squeue: no user ID in line %q", line)
		}
		admin := strings.TrimSpace(line[id:])
		if admin == "(null)" {
			admin = ""
		}
		out = append(out, Row{ID: strings.TrimSpace(line[user:id]), UID: uint32(n), Admin: admin})
	}
	return out, nil
}

// Read makes jobs of the output of scontrol -d -o show job and of the rows of squeue, in the order of their numbers.
// now is the time of the cluster; loc is the zone of its times.
func Read(show string, rows []Row, now time.Time, loc *time.Location) (out []*Job) {
	pending := map[cluster.JobID]int{}
	others := map[cluster.JobID]bool{}
	for line := range strings.Lines(show) {
		j := readJob(line, now, loc)
		if j == nil {
			continue
		}
		if j.Fields["JobState"] != "PENDING" {
			others[j.ID] = others[j.ID] || !over(j.Fields["JobState"])
			continue
		}
		j.takeRow(rows)
		pending[j.ID]++
		out = append(out, j)
	}
	for _, j := range out {
		if pending[j.ID] > 1 {
			j.leave("tasks of the array differ from each other")
		}
	}
	settleDepends(out, others)
	slices.SortStableFunc(out, func(a, b *Job) int { return int(a.ID) - int(b.ID) })
	return out
}

// over reports whether a state is final.
func over(state string) bool {
	return !slices.Contains([]string{"RUNNING", "SUSPENDED", "COMPLETING", "CONFIGURING", "STAGE_OUT", "SIGNALING",
		"STOPPED", "RESIZING"}, state)
}

// readJob reads a line of scontrol -o show job; nil: it is none.
func readJob(line string, now time.Time, loc *time.Location) *Job {
	if !strings.HasPrefix(line, "JobId=") {
		return nil
	}
	fields, twice := splitFields(line)
	j := &Job{Fields: fields, Name: fields["JobName"]}
	if twice != "" {
		j.leave("a text of its user contains %s=, so its fields cannot be told apart", twice)
	}
	id, err := strconv.ParseUint(cmp.Or(fields["ArrayJobId"], fields["JobId"]), 10, 32)
	if err != nil {
		return nil
	}
	j.ID = cluster.JobID(id)
	j.Target = fields["JobId"]
	if tasks := fields["ArrayTaskId"]; tasks != "" {
		tasks, _, _ = strings.Cut(tasks, "%")
		j.Target = fmt.Sprintf("%d_[%s]", id, tasks)
	}
	j.UID, j.GID = idIn(fields["UserId"]), idIn(fields["GroupId"])
	j.readTimes(now, loc)
	j.refuseKind()
	return j
}

// jobKind is a field of jobs that cannot be moved whatever they ask for: with another value than fine, a job stays.
type jobKind struct{ field, fine, why string }

func jobKinds() []jobKind {
	return []jobKind{
		{"HetJobId", "", "heterogeneous jobs are not supported; submit it again"},
		{"BatchFlag", "1", "an interactive srun or salloc waits for it"},
		{"BurstBuffer", "", "its burst buffer may hold data already"},
		{"CronJob", "No", "it belongs to a crontab; move that with scrontab"},
		{"Restarts", "0", "it ran before and was requeued; let it end in Slurm"},
	}
}

// refuseKind leaves jobs of these kinds.
func (j *Job) refuseKind() {
	for _, k := range jobKinds() {
		if cmp.Or(j.Fields[k.field], k.fine) != k.fine {
			j.leave("%s", k.why)
		}
	}
}

// readTimes takes over submit, eligible and accrue time, and the hold.
func (j *Job) readTimes(now time.Time, loc *time.Location) {
	at := func(key string) time.Time {
		t, err := time.ParseInLocation("2006-01-02T15:04:05", j.Fields[key], loc)
		if err != nil || t.After(now) {
			return time.Time{}
		}
		return t
	}
	m := &j.Moved
	m.ID = j.ID
	m.Submitted = at("SubmitTime")
	m.Eligible = at("EligibleTime")
	m.Accrue = at("AccrueTime")
	if m.Submitted.IsZero() {
		j.leave("its submit time is not known: %q", j.Fields["SubmitTime"])
	}
	holds := []string{"", "JobHeldUser", "JobHeldAdmin"}
	m.Held = cluster.Hold(max(slices.Index(holds, j.Fields["Reason"]), 0))
}

// takeRow adds what squeue said, which no user can forge, and compares the owner.
func (j *Job) takeRow(rows []Row) {
	at := slices.IndexFunc(rows, func(r Row) bool { return j.isRow(r.ID) })
	if at < 0 {
		j.leave("squeue does not list it")
		return
	}
	if rows[at].UID != j.UID {
		j.leave("squeue and scontrol disagree about its user")
	}
	j.Admin = rows[at].Admin
	mark, rest, ok := readMark(j.Admin)
	if !ok {
		return
	}
	j.Mark, j.Admin = &mark, rest
	j.Moved.Held = mark.Held
	j.Moved.Eligible = mark.Eligible
	j.Moved.Accrue = mark.Accrue
}

// isRow reports whether an id of squeue, 5 or 5_[1-3%2], is the job's.
func (j *Job) isRow(id string) bool {
	bare, task, array := strings.Cut(id, "_")
	if bare != fmt.Sprint(uint32(j.ID)) {
		return false
	}
	return !array || strings.HasPrefix(task, "[") || task == j.Fields["ArrayTaskId"]
}

// idIn reads NAME(ID).
func idIn(text string) uint32 {
	i := strings.LastIndexByte(text, '(')
	n, err := strconv.ParseUint(strings.TrimSuffix(text[i+1:], ")"), 10, 32)
	if err != nil {
		return ^uint32(0)
	}
	return uint32(n)
}
