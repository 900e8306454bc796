package cluster

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// A crontab is a user's text with lines that are jobs, each of which runs again and again under one number. Apply
// knows no time zone, so the leader says when the next run begins (CronNext); until then the job waits.

// Crontab is a user's, with the jobs that its lines are.
type Crontab struct {
	UID  uint32     `json:"uid"`
	Text string     `json:"text"`
	Jobs []CronLine `json:"jobs,omitempty"`
}

// CronLine is a job and its lines in the text, counted from one.
type CronLine struct {
	Job   JobID `json:"job"`
	First int   `json:"first"`
	Last  int   `json:"last"`
}

// CronJob is a job of a crontab to be submitted.
type CronJob struct {
	Spec  *JobSpec `json:"spec"`
	First int      `json:"first"`
	Last  int      `json:"last"`
}

// maxCrontab bounds the text and the jobs of one.
const (
	maxCrontab     = 1 << 20
	maxCrontabJobs = 1000
)

// Crontab is that of a user, nil if there is none.
func (b *books) Crontab(uid uint32) *Crontab {
	c, _ := b.crontabs.Get(uid)
	return c
}

// Cron says whether the site allows crontabs, and whether ending their jobs wants to be confirmed.
func (c *Config) Cron() (enabled, explicit bool) {
	words := strings.Split(strings.ToLower(c.Keys["scronparameters"]), ",")
	return slices.Contains(words, "enable"), slices.Contains(words, "explicit_scancel")
}

// CrontabPut replaces a user's crontab and submits its jobs; those of the one before wait no longer, what runs of
// them is not begun again. Without a text it takes the crontab away. Result: the jobs.
type CrontabPut struct {
	UID  uint32    `json:"uid"`
	Text string    `json:"text,omitempty"`
	Jobs []CronJob `json:"jobs,omitempty"`
}

func (*CrontabPut) kind() string { return "crontab_put" }

func (c *CrontabPut) apply(t *tx) (any, error) {
	enabled, _ := t.config.Cron()
	if err := firstError(
		refuseIf(!enabled,
			Denied, ErrDisabled, "crontabs are not enabled: ScronParameters=enable in slurm.conf does"),
		refuseIf(t.by.UID != c.UID && !t.by.Operator(),
			Denied, ErrUser, "only an operator changes the crontab of another user"),
		refuseIf(len(c.Text) > maxCrontab || len(c.Jobs) > maxCrontabJobs,
			Invalid, ErrTooBig, "a crontab has %d bytes and %d jobs at most", maxCrontab, maxCrontabJobs),
	); err != nil {
		return nil, err
	}
	old := t.Crontab(c.UID)
	dropValue(t, t.crontabs, c.UID)
	if old != nil {
		for _, l := range old.Jobs {
			uncron(t, l.Job)
		}
	}
	if c.Text == "" {
		return []JobID(nil), nil
	}
	tab := &Crontab{UID: c.UID, Text: c.Text}
	ids := []JobID{}
	for _, x := range c.Jobs {
		id, err := submitCron(t, c.UID, x.Spec)
		if err != nil {
			return nil, err
		}
		tab.Jobs = append(tab.Jobs, CronLine{id, x.First, x.Last})
		ids = append(ids, id)
	}
	putValue(t, t.crontabs, c.UID, tab)
	return ids, nil
}

// submitCron puts a job of a crontab into the queue.
func submitCron(t *tx, uid uint32, asked *JobSpec) (JobID, error) {
	if asked == nil || asked.Cron == nil || asked.UID != uid || asked.Array != nil || asked.Kind != Batch {
		return 0, Errorf(Invalid, "", "a line of a crontab is one batch job of its user")
	}
	if _, err := ParseCron(asked.Cron.When); err != nil {
		return 0, Errorf(Invalid, "", "%v", err)
	}
	spec, err := Admit(&Snapshot{*t.tables}, t.by, *asked)
	if err != nil {
		return 0, err
	}
	j := &Job{ID: t.allotID()}
	return j.ID, t.enter(j, &spec, "", nil)
}

// uncron ends a job of a crontab that waits; one that runs is not begun again.
func uncron(t *tx, id JobID) {
	j, ok := t.jobs.Get(id)
	if !ok || j.Phase == Ended {
		return
	}
	n := *j
	if n.Phase == Pending {
		t.end(&n, Cancelled, n.Wait)
		uid := t.by.UID
		n.CancelledBy = &uid
		t.putJob(&n)
		t.ended(&n)
		return
	}
	n.Spec = onceOnly(n.Spec)
	t.putJob(&n)
}

// onceOnly is a job's specification as that of a job that runs once.
func onceOnly(s *JobSpec) *JobSpec {
	spec := *s
	spec.Cron = nil
	return &spec
}

// DisabledLine is put before lines of a crontab whose job was ended.
const DisabledLine = "#DISABLED: "

// cronOver comments out the lines of a job that will not run again.
func cronOver(t *tx, j *Job) {
	c := t.Crontab(j.Spec.UID)
	if c == nil {
		return
	}
	i := slices.IndexFunc(c.Jobs, func(l CronLine) bool { return l.Job == j.ID })
	if i < 0 {
		return
	}
	n := *c
	n.Text = disable(c.Text, c.Jobs[i].First, c.Jobs[i].Last)
	n.Jobs = slices.Delete(slices.Clone(c.Jobs), i, i+1)
	putValue(t, t.crontabs, c.UID, &n)
}

// disable comments out some lines of a text, counted from one; those that are keep their one mark. It goes once over
// the text: a user may end a thousand jobs at once.
func disable(text string, first, last int) string {
	var out strings.Builder
	number := 0
	for line := range strings.SplitAfterSeq(text, "\n") {
		number++
		if number >= first && number <= last && !strings.HasPrefix(line, DisabledLine) {
			out.WriteString(DisabledLine)
		}
		out.WriteString(line)
	}
	return out.String()
}

// Cron is when a job of a crontab runs: the five fields. With After its next run has no time yet: it is the first
// after that.
type Cron struct {
	When  string    `json:"when"`
	After time.Time `json:"after,omitzero"`
}

// untimed reports whether a job waits for the leader to say when its next run begins.
func untimed(j *Job) bool {
	return j.Phase == Pending && j.Spec.Cron != nil && !j.Spec.Cron.After.IsZero()
}

// recurs reports whether a job whose run is over waits for the next one.
func recurs(j *Job) bool {
	return j.Spec.Cron != nil && j.CancelledBy == nil
}

// unconfirmed refuses to end a job of a crontab where the site wants that to be confirmed.
func unconfirmed(t *tx, c *Cancel, j *Job) error {
	if _, explicit := t.config.Cron(); explicit && !c.Cron && c.Sig == 0 && j.Spec.Cron != nil {
		return Errorf(Denied, ErrCron, "job %d is of a crontab: scancel --cron ends all its runs", j.ID)
	}
	return nil
}

// cronPause is how long a job waits for the leader to say when its next run begins; it does not take that long.
const cronPause = time.Hour

// waitsForTime makes a job wait until the leader has said when its first run after a time begins.
func waitsForTime(t *tx, n *Job, after time.Time) {
	spec := *n.Spec
	spec.Begin = t.at.Add(cronPause)
	spec.Cron = &Cron{When: spec.Cron.When, After: after}
	n.Spec = &spec
}

// CronBegin is when the next run of a job begins.
type CronBegin struct {
	Job JobID     `json:"job"`
	At  time.Time `json:"at"`
}

// CronNext says when the next runs of jobs begin.
type CronNext struct {
	Begins []CronBegin `json:"begins"`
}

func (*CronNext) kind() string { return "cron_next" }

func (c *CronNext) apply(t *tx) (any, error) {
	if !t.by.System {
		return nil, Errorf(Denied, ErrUser, "the leader says when jobs of crontabs run")
	}
	for _, b := range c.Begins {
		j, ok := t.jobs.Get(b.Job)
		if !ok || !untimed(j) {
			continue
		}
		n := *j
		spec := *j.Spec
		spec.Begin = b.At
		spec.Cron = &Cron{When: spec.Cron.When}
		n.Spec = &spec
		t.evaluate(&n)
		t.rank(&n)
		t.putJob(&n)
		t.tell(&n)
	}
	return nil, nil
}

// cronDue says when jobs of crontabs that have run begin again, in the time zone of now.
func cronDue(s *Snapshot, now time.Time) []Command {
	var out []CronBegin
	s.crontabs.Scan(func(_ uint32, c *Crontab) bool {
		for _, l := range c.Jobs {
			j, ok := s.jobs.Get(l.Job)
			if !ok || !untimed(j) {
				continue
			}
			when, err := ParseCron(j.Spec.Cron.When)
			if at := when.Next(later(now, j.Spec.Cron.After.In(now.Location()))); err == nil && !at.IsZero() {
				out = append(out, CronBegin{j.ID, at})
			}
		}
		return true
	})
	if out == nil {
		return nil
	}
	return []Command{&CronNext{Begins: out}}
}

// CronTime is when a line of a crontab runs: a bit for each minute, hour, day, month and day of the week.
type CronTime struct {
	minutes, hours, days, months, weekdays uint64
	anyDay, anyWeekday                     bool
}

// cronField is one of the five fields.
type cronField struct {
	what     string
	from, to int
	names    string
}

var cronFields = [...]cronField{
	{"minute", 0, 59, ""}, {"hour", 0, 23, ""}, {"day", 1, 31, ""},
	{"month", 1, 12, "jan feb mar apr may jun jul aug sep oct nov dec"},
	{"weekday", 0, 7, "sun mon tue wed thu fri sat"},
}

// CronNamed is what a word like @daily stands for, "" if it is none.
func CronNamed(word string) string {
	switch word {
	case "@yearly", "@annually":
		return "0 0 1 1 *"
	case "@monthly":
		return "0 0 1 * *"
	case "@weekly":
		return "0 0 * * 0"
	case "@daily", "@midnight":
		return "0 0 * * *"
	case "@hourly":
		return "0 * * * *"
	case "@elevenses":
		return "0 11 * * *"
	case "@fika":
		return "0 15 * * *"
	case "@teatime":
		return "0 16 * * *"
	}
	return ""
}

// ParseCron reads the five fields.
func ParseCron(text string) (CronTime, error) {
	var c CronTime
	words := strings.Fields(text)
	if len(words) != len(cronFields) {
		return c, fmt.Errorf("%q: want five fields", text)
	}
	for i, to := range []*uint64{&c.minutes, &c.hours, &c.days, &c.months, &c.weekdays} {
		bits, err := cronFields[i].parse(words[i])
		if err != nil {
			return c, err
		}
		*to = bits
	}
	c.weekdays |= c.weekdays >> 7 & 1
	c.anyDay = words[2][0] == '*'
	c.anyWeekday = words[4][0] == '*'
	return c, nil
}

// parse reads a field: *, numbers, names, ranges, each with a step, with commas between.
func (f *cronField) parse(text string) (bits uint64, err error) {
	for part := range strings.SplitSeq(text, ",") {
		span, step, stepped := strings.Cut(part, "/")
		by := 1
		if stepped {
			if by, err = strconv.Atoi(step); err != nil || by < 1 {
				return 0, fmt.Errorf("bad %s specification", f.what)
			}
		}
		low, high, ranged := strings.Cut(span, "-")
		from := f.from
		to := f.to
		if span != "*" {
			if from, err = f.number(low); err != nil {
				return 0, err
			}
			if to = from; ranged {
				if to, err = f.number(high); err != nil {
					return 0, err
				}
			} else if stepped {
				to = f.to
			}
		}
		if to < from {
			return 0, fmt.Errorf("bad %s specification", f.what)
		}
		for n := from; n <= to; n += by {
			bits |= 1 << n
		}
	}
	return bits, nil
}

func (f *cronField) number(word string) (int, error) {
	if i := slices.Index(strings.Fields(f.names), strings.ToLower(word)); i >= 0 {
		return f.from + i, nil
	}
	n, err := strconv.Atoi(word)
	if err != nil || n < f.from || n > f.to {
		return 0, fmt.Errorf("bad %s specification", f.what)
	}
	return n, nil
}

// cronYears is how far ahead a time is looked for: the 29th of February comes within eight years.
const cronYears = 9

// Next is the first time after a moment, in its time zone; zero if there is none.
func (c *CronTime) Next(after time.Time) time.Time {
	y, m, d := after.Date()
	for day := time.Date(y, m, d, 0, 0, 0, 0, after.Location()); day.Year() < y+cronYears; day = day.AddDate(0, 0, 1) {
		if c.months>>day.Month()&1 == 0 || !c.onDay(day) {
			continue
		}
		for h := range 24 {
			for min := range 60 {
				if c.hours>>h&1 == 0 || c.minutes>>min&1 == 0 {
					continue
				}
				at := time.Date(day.Year(), day.Month(), day.Day(), h, min, 0, 0, after.Location())
				if at.After(after) && at.Hour() == h { // not in the hour that a change of clocks leaves out
					return at
				}
			}
		}
	}
	return time.Time{}
}

// onDay: where both the day and the weekday are given, one of them is enough.
func (c *CronTime) onDay(day time.Time) bool {
	date := c.days>>day.Day()&1 == 1
	week := c.weekdays>>day.Weekday()&1 == 1
	if c.anyDay || c.anyWeekday {
		return date && week
	}
	return date || week
}
