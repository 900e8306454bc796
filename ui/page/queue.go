package page

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"dev.muster/acct"
	"dev.muster/agent/lookup"
	"dev.muster/agent/visibility"
	"dev.muster/api"
	"dev.muster/cluster"
	"dev.muster/ui"
)

// pageStrip bounds the tasks that a strip draws one by one.
const pageStrip = 1000

// queueFilters are what the list of jobs may be narrowed down by, in its address.
var queueFilters = []string{"q", "user", "account", "partition", "reason", "node", "state", "sort"}

// queueQuery is what a visitor wants listed.
type queueQuery struct {
	filter map[string]string
	word   string       // the filter q in small letters
	ref    *cluster.Ref // likewise, if it is a job's id
	from   int
	before time.Time // of jobs that have ended: those before it
}

func readQueue(r *http.Request) queueQuery {
	q := queueQuery{filter: map[string]string{}}
	for _, name := range queueFilters {
		q.filter[name] = strings.TrimSpace(r.URL.Query().Get(name))
	}
	q.word = strings.ToLower(q.filter["q"])
	if ref, ok := lookup.Ref(q.filter["q"]); ok {
		q.ref = &ref
	}
	q.from, _ = strconv.Atoi(r.URL.Query().Get("from"))
	q.from = max(q.from, 1)
	if n, err := strconv.ParseInt(r.URL.Query().Get("before"), 10, 64); err == nil {
		q.before = time.Unix(0, n)
	}
	return q
}

// link leads to the same list with one thing changed.
func (q *queueQuery) link(name, value string) string {
	own := url.Values{}
	for k, x := range q.filter {
		if x != "" {
			own.Set(k, x)
		}
	}
	own.Set(name, value)
	if value == "" {
		own.Del(name)
	}
	if len(own) == 0 {
		return "/queue"
	}
	return "/queue?" + own.Encode()
}

// ended reports whether jobs are wanted that are over, which history knows as well.
func (q *queueQuery) ended() bool {
	state := q.filter["state"]
	return state == "ended" || state == "unwell" || slices.ContainsFunc(cluster.Outcomes(),
		func(o cluster.Outcome) bool {
			return o.String() == state
		})
}

// wants reports whether a record is to be listed.
func (q *queueQuery) wants(j *cluster.Job) bool {
	state, over := q.filter["state"], j.Phase == cluster.Ended
	switch state {
	case "":
		if over {
			return false
		}
	case "ended":
		if !over {
			return false
		}
	case "unwell":
		if !over || slices.Contains(wellEnded, j.Outcome) {
			return false
		}
	default:
		if state != api.JobWord(j) {
			return false
		}
	}
	return q.matches(j)
}

// wellEnded are the ends that need nobody.
var wellEnded = []cluster.Outcome{cluster.Completed, cluster.Cancelled, cluster.Requeued, cluster.Resized}

// matches reports whether a record has all that is asked for besides its state.
func (q *queueQuery) matches(j *cluster.Job) bool {
	for name, has := range map[string]func(text string) bool{
		"user":      func(text string) bool { return text == j.Spec.User },
		"account":   func(text string) bool { return text == j.Spec.Account },
		"partition": func(text string) bool { return slices.Contains(api.PartitionsOf(j), text) },
		"reason":    func(text string) bool { return j.Phase == cluster.Pending && text == api.WaitWord(j) },
		"node":      func(text string) bool { return slices.Contains(j.AllocNodes(), cluster.NodeName(text)) },
		"q":         func(text string) bool { return q.mentions(j, text) },
	} {
		if text := q.filter[name]; text != "" && !has(text) {
			return false
		}
	}
	return true
}

// refersTo reports whether an id names a job, or one of the tasks that its record stands for.
func refersTo(ref cluster.Ref, j *cluster.Job) bool {
	return ref.Names(j) || ref.Job == j.ArrayID && !ref.Tasks.Intersect(j.Tasks).Empty()
}

// mentions reports whether a job's id, name, user, account, partition or node is what is searched for. Text and word
// may have tens of kilobytes, and there may be a million jobs.
func (q *queueQuery) mentions(j *cluster.Job, text string) bool {
	if q.ref != nil && refersTo(*q.ref, j) {
		return true
	}
	if strings.Contains(strings.ToLower(j.Spec.Name), q.word) {
		return true
	}
	if text == j.Spec.User || text == j.Spec.Account || slices.Contains(api.PartitionsOf(j), text) {
		return true
	}
	return slices.Contains(j.AllocNodes(), cluster.NodeName(text))
}

// queueRow is a job, or the tasks of an array, of the list.
type queueRow struct {
	job   *cluster.Job
	tasks []*cluster.Job // of an array, those that match
}

func (q *queueRow) n() (n int) {
	for _, j := range q.tasks {
		n += max(j.Tasks.Len(), 1)
	}
	return max(n, 1)
}

// rows are the jobs of the state that are wanted, those of an array as one.
func (q *queueQuery) rows(sees visibility.Scope) (rows []*queueRow, all int) {
	arrays := map[cluster.JobID]*queueRow{}
	for j := range sees.Snap.Jobs() {
		if !q.wants(j) || !sees.Job(j) {
			continue
		}
		row := arrays[j.ArrayID]
		if row == nil || j.ArrayID == 0 {
			row = &queueRow{job: j}
			rows = append(rows, row)
		}
		if all += max(j.Tasks.Len(), 1); j.ArrayID != 0 {
			arrays[j.ArrayID] = row
			row.tasks = append(row.tasks, j)
		}
	}
	return rows, all
}

// queueOrders are what a list may be sorted by; the first is that of submission.
var queueOrders = []struct {
	name, text string
	less       func(snap *cluster.Snapshot, a, b *cluster.Job) int
}{
	{"", "by id", func(_ *cluster.Snapshot, a, b *cluster.Job) int { return cmp.Compare(a.ID, b.ID) }},
	{"newest", "newest first", func(_ *cluster.Snapshot, a, b *cluster.Job) int { return cmp.Compare(b.ID, a.ID) }},
	{"priority", "by priority", func(_ *cluster.Snapshot, a, b *cluster.Job) int {
		return cmp.Compare(b.Priority,
			a.Priority)
	}},
	{"size", "largest first", func(snap *cluster.Snapshot, a, b *cluster.Job) int {
		return cmp.Compare(bulk(snap, b), bulk(snap, a))
	}},
	{"user", "by user", func(_ *cluster.Snapshot, a, b *cluster.Job) int {
		return strings.Compare(a.Spec.User,
			b.Spec.User)
	}},
	{"name", "by name", func(_ *cluster.Snapshot, a, b *cluster.Job) int {
		return strings.Compare(a.Spec.Name,
			b.Spec.Name)
	}},
	{"start", "by start", func(_ *cluster.Snapshot, a, b *cluster.Job) int {
		return starts(a).Compare(starts(b))
	}},
}

// far is later than any start that is known.
var far = time.Unix(1<<40, 0)

// starts is when a job began or is planned to.
func starts(j *cluster.Job) time.Time {
	switch {
	case !j.Started.IsZero():
		return j.Started
	case !j.PlannedStart.IsZero():
		return j.PlannedStart
	}
	return far
}

// bulk is how large a job is: by GPUs, then CPUs.
func bulk(snap *cluster.Snapshot, j *cluster.Job) (n float64) {
	for _, a := range snap.AmountsOf(j) {
		n += a.N * map[string]float64{"gres/gpu": 1e6, "cpu": 1}[a.TRES]
	}
	return n
}

func (s *pages) viewQueue(sees visibility.Scope, r *http.Request) (string, string, any, error) {
	q, now := readQueue(r), time.Now()
	v := ui.Queue{Filter: q.filter, LoggedIn: sees.Who.UID != visibility.Nobody}
	for _, w := range [][2]string{{"", "all"}, {"pending", "pending"}, {"running", "running"},
		{"ended", "ended"}, {"unwell", "failed"}} {
		v.States = append(v.States, ui.Link{Text: w[1], To: q.link("state", w[0]), Here: w[0] == q.filter["state"]})
	}
	if v.LoggedIn {
		mine := q.filter["user"] == sees.Who.User
		for _, name := range bulkActions {
			v.Bulk = append(v.Bulk, ui.Link{Text: name})
		}
		v.Mine = ui.Link{Text: "my jobs", To: q.link("user", map[bool]string{false: sees.Who.User}[mine]), Here: mine}
	}
	for _, name := range []string{"reason", "node"} {
		if q.filter[name] != "" {
			v.Only = append(v.Only, ui.Link{Text: name + ": " + q.filter[name], To: q.link(name, "")})
		}
	}
	if q.ended() {
		return "queue", "Jobs", &v, listEnded(r.Context(), s, sees, &q, &v, now)
	}
	rows, all := q.rows(sees)
	for _, o := range queueOrders {
		if v.Orders = append(v.Orders, ui.Link{Text: o.text, To: o.name,
			Here: o.name == q.filter["sort"]}); o.name == q.filter["sort"] && o.name != "" {
			slices.SortStableFunc(rows, func(a, b *queueRow) int { return o.less(sees.Snap, a.job, b.job) })
		}
	}
	v.From, v.All, v.Tasks = q.from, len(rows), all
	for _, row := range rows[min(q.from-1, len(rows)):min(q.from-1+pageJobs, len(rows))] {
		v.Jobs = append(v.Jobs, listed(sees, row, now))
	}
	if v.To = v.From + len(v.Jobs) - 1; v.To < v.All {
		v.Next = q.link("from", strconv.Itoa(v.To+1))
	}
	if v.From > 1 {
		v.Prev = q.link("from", strconv.Itoa(max(v.From-pageJobs, 1)))
	}
	return "queue", "Jobs", &v, nil
}

// listEnded lists jobs that are over, the latest first: those of the state, and what history has besides.
func listEnded(ctx context.Context, s *pages, sees visibility.Scope, q *queueQuery, v *ui.Queue, now time.Time) error {
	known, list := map[cluster.JobID]bool{}, []*cluster.Job(nil)
	before := now.Add(time.Minute).UnixNano()
	if !q.before.IsZero() {
		before = q.before.UnixNano()
	}
	add := func(j *cluster.Job) {
		if j.Ended.UnixNano() < before && !known[j.ID] && q.wants(j) && sees.Job(j) {
			known[j.ID] = true
			list = append(list, j)
		}
	}
	for j := range sees.Snap.Jobs() {
		add(j)
	}
	if s.History != nil && s.History.Whole() {
		query := acct.Query{Latest: pageJobs + len(list) + 1, Before: time.Unix(0, before)}
		if q.filter["account"] != "" {
			query.Accounts = []string{q.filter["account"]}
		}
		for r, err := range s.History.Jobs(ctx, query) {
			if err != nil {
				return err
			}
			add(r.Job)
		}
	}
	slices.SortStableFunc(list, func(a, b *cluster.Job) int { return b.Ended.Compare(a.Ended) })
	if len(list) > pageJobs {
		list = list[:pageJobs]
		v.Next = q.link("before", strconv.FormatInt(list[pageJobs-1].Ended.UnixNano(), 10))
	}
	for _, j := range list {
		row := jobRow(sees.Snap, j, now)
		row.Ended = j.Ended
		v.Jobs = append(v.Jobs, row)
	}
	v.Over = true
	return nil
}

// listed is a row of the list: a job, or what of an array is wanted.
func listed(sees visibility.Scope, row *queueRow, now time.Time) ui.Job {
	if row.job.ArrayID == 0 {
		return jobRow(sees.Snap, row.job, now)
	}
	first := row.tasks[0]
	for _, j := range row.tasks { // one that waits says why
		if j.Phase == cluster.Pending {
			first = j
		}
	}
	out := jobRow(sees.Snap, first, now)
	strip := stripOf(sees, row.job.ArrayID, nil)
	out.Strip = &strip
	if n := row.n(); n > 1 {
		out.ID, out.To = strconv.Itoa(int(row.job.ArrayID)), "/jobs/"+strconv.Itoa(int(row.job.ArrayID))
		out.Nodes = ""
	}
	return out
}

// taskStates are the states of an array's tasks by their numbers, and what each is called; past are tasks that
// history knows.
func taskStates(sees visibility.Scope, array cluster.JobID, past []*cluster.Job) map[int]string {
	states := map[int]string{}
	put := func(tasks cluster.IDSet, state string) {
		for k := range tasks.All() {
			states[k] = state
		}
	}
	if g := sees.Snap.Gone(array); g != nil {
		put(g.OK, "completed")
		put(g.Failed, "failed")
	}
	note := func(j *cluster.Job) {
		if !j.Tasks.Empty() {
			put(j.Tasks, api.JobWord(j))
		} else {
			states[j.Task] = api.JobWord(j)
		}
	}
	for _, j := range past {
		note(j)
	}
	for j := range sees.Snap.Members(array) {
		note(j)
	}
	return states
}

// stripOf draws the tasks of an array: each has its part of 1000, those beside each other in one state together.
func stripOf(sees visibility.Scope, array cluster.JobID, past []*cluster.Job) (out ui.Strip) {
	states := taskStates(sees, array, past)
	counts := map[string]int{}
	for _, state := range states {
		counts[state]++
	}
	order := slices.Sorted(maps.Keys(states))
	cells := min(len(order), pageStrip)
	for at := 0; at < cells; {
		state := states[order[at*len(order)/cells]]
		end := at + 1
		for end < cells && states[order[end*len(order)/cells]] == state {
			end++
		}
		from, to := order[at*len(order)/cells], order[(end*len(order)-1)/cells]
		run := ui.Run{X: at * 1000 / cells, Class: state, Title: fmt.Sprintf("%d to %d: %s", from, to, ui.Words(state))}
		if from == to {
			run.Title = fmt.Sprintf("%d: %s", from, ui.Words(state))
		}
		run.W = end*1000/cells - run.X
		out.Runs = append(out.Runs, run)
		at = end
	}
	out.Counts = top(counts, pageTop, func(state string) string { return "" })
	for i := range out.Counts {
		out.Counts[i].State = out.Counts[i].Name
	}
	return out
}
