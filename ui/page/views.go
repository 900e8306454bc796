package page

import (
	"cmp"
	"context"
	"fmt"
	"hash/fnv"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"dev.muster/agent/visibility"
	"dev.muster/api"
	"dev.muster/cluster"
	"dev.muster/cluster/hostlist"
	"dev.muster/sched/explain"
	"dev.muster/ui"
)

// Bounds of what one page shows.
const (
	pageJobs  = 100 // more rows are laid out too late: see make pages
	pageSick  = 100
	pageTop   = 12
	pageCells = 400 // nodes of which each GPU is drawn
)

// top lists the largest counts, the largest first.
func top(counts map[string]int, most int, to func(string) string) (out []ui.Count) {
	for _, name := range slices.SortedFunc(maps.Keys(counts), func(a,
		b string) int {
		return cmp.Or(counts[b]-counts[a], strings.Compare(a, b))
	}) {
		if len(out) == most {
			break
		}
		out = append(out, ui.Count{Name: name, N: counts[name], To: to(name)})
	}
	return out
}

func b2i(b bool) int {
	if b {
		return 1
	}
	return 0
}

// palette says what color a GPU has that is in use, or that is not.
type palette struct {
	free   string
	of     func(j *cluster.Job) string
	legend []ui.Cell
	whose  func(j *cluster.Job) string // who is said to have most of a tile; nil: colors are of nodes alone
	dense  string                      // what the color of a tile means that has no cells
}

// painter makes the palette for what the colors mean.
func painter(sees visibility.Scope, by string) palette {
	switch by {
	case "health":
		return palette{free: "used", of: func(*cluster.Job) string { return "used" }}
	case "job":
		hues := jobHues(sees.Snap)
		return palette{free: "free", of: func(j *cluster.Job) string { return ui.Color(hues[j.ID]) },
			legend: []ui.Cell{{Class: "c0", Title: "in use; adjacent GPUs of one color belong to one job"}},
			whose:  func(j *cluster.Job) string { return "job " + jobID(j) + " of " + j.Spec.User },
			dense:  "A node has the color of its largest job, paler if part of the node is free."}
	}
	hues := userHues(sees)
	p := palette{free: "free", of: func(j *cluster.Job) string { return ui.Color(hues[j.Spec.User]) },
		whose: func(j *cluster.Job) string { return j.Spec.User },
		dense: "A node has the color of the user with the largest share, paler if part of the node is free."}
	seen := map[string]bool{}
	for j := range sees.Snap.Live() {
		if sees.Job(j) && len(seen) < pageTop {
			seen[j.Spec.User] = true
		}
	}
	for _, name := range slices.Sorted(maps.Keys(seen)) {
		p.legend = append(p.legend, ui.Cell{Class: ui.Color(hues[name]), Title: name})
	}
	return p
}

// hueOf is the color that a name has unless another one has it.
func hueOf(name string) int {
	h := fnv.New32a()
	_, _ = h.Write([]byte(name))
	return int(h.Sum32() % ui.Colors)
}

// userHues gives users their colors by their names: one changes only if somebody comes whose name has the same
// color and is before theirs.
func userHues(sees visibility.Scope) map[string]int {
	names := map[string]bool{}
	for a := range sees.Snap.Assocs() {
		names[a.User] = a.User != ""
	}
	for j := range sees.Snap.Jobs() {
		names[j.Spec.User] = true
	}
	hues, taken := map[string]int{}, [ui.Colors]bool{}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		h := hueOf(name)
		for k := range ui.Colors {
			if at := (h + k) % ui.Colors; !taken[at] {
				h = at
				break
			}
		}
		hues[name], taken[h] = h, true
	}
	return hues
}

// jobHues gives jobs their colors: each one of its own while there are enough, and never that of a job on the
// same node or the ones beside it if it can be helped.
func jobHues(snap *cluster.Snapshot) map[cluster.JobID]int {
	beside := map[cluster.JobID]map[cluster.JobID]bool{}
	link := func(a, b cluster.JobID) {
		if beside[a] == nil {
			beside[a] = map[cluster.JobID]bool{}
		}
		beside[a][b] = true
	}
	var last []cluster.JobID
	for n := range snap.Nodes() {
		here := snap.Load(n.Name).Jobs
		for i, a := range here[:min(len(here), pageTop)] {
			for _, b := range slices.Concat(here[:i], last[:min(len(last), pageTop)]) {
				if a != b {
					link(a, b)
					link(b, a)
				}
			}
		}
		last = here
	}
	hues, uses := map[cluster.JobID]int{}, [ui.Colors]int{}
	for j := range snap.Live() {
		cost := uses // of jobs elsewhere, the fewer the better
		for other := range beside[j.ID] {
			if h, ok := hues[other]; ok {
				cost[h] += snap.JobCount()
			}
		}
		best := int(j.ID) * 5 % ui.Colors
		for k := range ui.Colors {
			if h := (int(j.ID)*5 + k) % ui.Colors; cost[h] < cost[best] {
				best = h
			}
		}
		hues[j.ID] = best
		uses[best]++
	}
	return hues
}

// places says under which leaf switch, or in which block, nodes are, and in which order these come.
func places(w cluster.Wiring) (map[cluster.NodeName]string, []string) {
	at := map[cluster.NodeName]string{}
	var order []string
	put := func(name string, nodes []cluster.NodeName) {
		order = append(order, name)
		for _, n := range nodes {
			at[n] = name
		}
	}
	for _, sw := range w.Switches {
		if len(sw.Nodes) > 0 {
			put("switch "+sw.Name, sw.Nodes)
		}
	}
	for _, b := range w.Blocks {
		put("block "+b.Name, b.Nodes)
	}
	return at, order
}

// tile is a node of the map.
func tile(sees visibility.Scope, n *cluster.Node, colour palette, cells bool) ui.Node {
	snap := sees.Snap
	l, inv := snap.Load(n.Name), &n.Inventory
	t := ui.Node{Name: string(n.Name), State: n.Word(len(l.Jobs) > 0), Reason: n.Reason, Jobs: len(l.Jobs),
		CPUs: ui.Gauge{Name: "CPUs", Used: l.CPUs.Len(), Have: inv.JobCPUCount()}, GPU: ui.Gauge{Name: "GPUs",
			Used: l.GPUs.Len(), Have: len(inv.GPUs)},
		Mem: ui.Gauge{Name: "memory", Used: int(l.MemMB) >> 10, Have: int(inv.MemMB) >> 10}}
	if t.Named = cells; !cells {
		t.Class, t.Most = colour.most(sees, n)
		return t
	}
	whose := make([]*cluster.Job, len(inv.GPUs))
	for _, id := range l.Jobs {
		j, ok := snap.Job(id)
		if !ok || j.Alloc == nil {
			continue
		}
		for _, sh := range j.Alloc.Shares {
			if sh.Node == n.Name {
				for k := range sh.GPUs.All() {
					whose[k] = j
				}
			}
		}
	}
	for i := range inv.GPUs {
		c := ui.Cell{Class: colour.free, Title: fmt.Sprintf("GPU %d %s: free", i, inv.GPUs[i].Type)}
		switch j := whose[i]; {
		case inv.GPUs[i].Missing || !n.Usable() && j == nil:
			c = ui.Cell{Class: "gone", Title: fmt.Sprintf("GPU %d %s: missing or out of service", i, inv.GPUs[i].Type)}
		case j != nil:
			c.Class, c.Title = colour.of(j), fmt.Sprintf("GPU %d %s: in use", i, inv.GPUs[i].Type)
			if sees.Job(j) {
				c.To = jobPath(j)
				c.Title = fmt.Sprintf("GPU %d %s: job %s of %s", i, inv.GPUs[i].Type, jobID(j), j.Spec.User)
			}
		}
		t.Cells = append(t.Cells, c)
	}
	return t
}

// most is the color of a tile that has no cells, and who has most of the node.
func (p *palette) most(sees visibility.Scope, n *cluster.Node) (class, whose string) {
	if p.whose == nil {
		return "", ""
	}
	parts, best := map[string]int{}, 0
	for _, id := range sees.Snap.Load(n.Name).Jobs {
		j, ok := sees.Snap.Job(id)
		if !ok {
			continue
		}
		sh, ok := j.Share(n.Name)
		if !ok {
			continue
		}
		part := sh.CPUs.Len()
		if len(n.Inventory.GPUs) > 0 {
			part = sh.GPUs.Len()
		}
		name := p.whose(j)
		if parts[name] += part; class != "" && parts[name] <= best {
			continue
		}
		class, whose, best = p.of(j), "", parts[name]
		if sees.Job(j) {
			whose = name
		}
	}
	return class, whose
}

// span words a duration for people.
func span(d time.Duration) string {
	switch {
	case d <= 0:
		return "0 s"
	case d >= cluster.Unlimited:
		return "no limit"
	case d >= 48*time.Hour:
		return fmt.Sprintf("%d d %d h", d/(24*time.Hour), d%(24*time.Hour)/time.Hour)
	case d >= time.Hour:
		return fmt.Sprintf("%d h %d min", d/time.Hour, d%time.Hour/time.Minute)
	case d >= time.Minute:
		return fmt.Sprintf("%d min %d s", d/time.Minute, d%time.Minute/time.Second)
	}
	return fmt.Sprintf("%d s", d/time.Second)
}

// waits fills in why a job waits, and when and where it is planned to start.
func waits(ctx context.Context, s *pages, v *ui.Waits, sees visibility.Scope, j *cluster.Job, now time.Time) {
	e := explain.CausesFor(sees.Snap, now, j.ID, sees)
	if len(e.Causes) == 0 {
		return
	}
	// A prediction for a job deep in the queue takes as long as a pass.
	key := fmt.Sprintf("%d %d %v", j.ID, j.Held, j.Limit)
	then, ok := s.starts.of(ctx, key, func(context.Context) (explain.Explanation, error) {
		return explain.Foretell(sees.Snap, now, j.ID), nil
	})
	for _, c := range e.Causes {
		v.Causes = append(v.Causes, ui.Cause{Reason: string(c.Reason), Text: c.Text, Hint: c.Hint})
	}
	v.Comes = !ok
	endless := slices.IndexFunc(then.Holders, func(h explain.Holder) bool { return h.Endless })
	switch {
	case endless >= 0:
		v.Starts = "unknown: " + holderName(sees, &then.Holders[endless]) +
			" has no time limit: nothing can be planned behind it"
	case !then.StartsAt.IsZero():
		v.Starts = ahead(then.StartsAt, now) + " on " + hostlist.CompressNames(then.Nodes)
	}
	v.Holders = holderRows(sees, then.Holders, now)
	if sees.Who.UID == j.Spec.UID || sees.Who.Operator() {
		v.Sooner = ui.Link{To: jobPath(j) + "/sooner", Text: "ways to start sooner"}
	}
}

// holderName is which job holds something, as far as the visitor may see.
func holderName(sees visibility.Scope, h *explain.Holder) string {
	if sees.Job(h.Job) {
		return fmt.Sprintf("job %s of %s", jobID(h.Job), h.Job.Spec.User)
	}
	return "another user's job"
}

// ahead words a moment of the future: how long it is until then, and the date.
func ahead(at, now time.Time) string {
	if in := at.Sub(now); in >= time.Second {
		return "in " + coarse(in) + " (" + at.Format("2006-01-02 15:04") + ")"
	}
	return "now"
}

// coarse words how long it is until something in one unit.
func coarse(d time.Duration) string {
	switch {
	case d >= 48*time.Hour:
		return fmt.Sprintf("%d d", d/(24*time.Hour))
	case d >= 2*time.Hour:
		return fmt.Sprintf("%d h", d/time.Hour)
	case d >= time.Minute:
		return fmt.Sprintf("%d min", d/time.Minute)
	}
	return fmt.Sprintf("%d s", d/time.Second)
}

// until words when a job is over.
func until(h *explain.Holder, now time.Time) string {
	if h.Endless {
		return ", without a time limit"
	}
	return ", over " + ahead(h.Until, now) + " at the latest"
}

// maxHolders is how many of the jobs that hold something are shown, those that are over last.
const maxHolders = 5

// holderRows are the jobs that hold what another one is to get, as far as the visitor may see them.
func holderRows(sees visibility.Scope, list []explain.Holder, now time.Time) (out []ui.Row) {
	for _, h := range list[max(len(list)-maxHolders, 0):] {
		row := ui.Row{Name: holderName(sees, &h), Value: hostlist.CompressNames(h.Nodes)}
		if !h.From.IsZero() {
			row.Value += ", from " + ahead(h.From, now)
		}
		row.Value += until(&h, now)
		if sees.Job(h.Job) {
			row.Link = jobPath(h.Job)
		}
		out = append(out, row)
	}
	return out
}

func jobRow(snap *cluster.Snapshot, j *cluster.Job, now time.Time) ui.Job {
	row := ui.Job{ID: jobID(j), To: jobPath(j), Name: j.Spec.Name, User: j.Spec.User, Account: j.Spec.Account,
		Partition: strings.Join(api.PartitionsOf(j), ","),
		State:     api.JobWord(j), Size: size(snap, j), Limit: span(j.Limit), For: span(now.Sub(j.Submitted))}
	switch {
	case j.Alloc != nil:
		row.Nodes, row.For = hostlist.CompressNames(j.AllocNodes()), span(j.RunTime(now))
	case j.Phase == cluster.Ended:
		row.For = "never ran"
	}
	if j.Phase == cluster.Pending {
		row.Why = api.WaitWord(j)
	}
	if row.Reason = strings.TrimSpace(string(j.Wait) + " " + j.WaitNote); !j.PlannedStart.IsZero() {
		row.Reason += ", planned for " + j.PlannedStart.Format("Jan 2 15:04")
	}
	return row
}

// exitText words how a job or a step has ended.
func exitText(e cluster.ExitStatus) string {
	switch {
	case e == cluster.OOMExit:
		return "out of memory"
	case e.Signal == 0:
		return fmt.Sprintf("exit code %d", e.Code)
	}
	text := fmt.Sprintf("signal %d (%v)", e.Signal, syscall.Signal(e.Signal))
	if e.Code != 0 {
		text = fmt.Sprintf("exit code %d, %s", e.Code, text)
	}
	return text
}

// size words what a job has, or asks for.
func size(snap *cluster.Snapshot, j *cluster.Job) string {
	var out []string
	for _, a := range snap.AmountsOf(j) {
		switch a.TRES {
		case "node", "cpu", "gres/gpu":
			if a.N > 0 {
				out = append(out, several(a.N, map[string]string{"node": "node", "cpu": "CPU",
					"gres/gpu": "GPU"}[a.TRES]))
			}
		}
	}
	return strings.Join(out, ", ")
}

// several words how many there are of something.
func several(n float64, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%.0f %ss", n, what)
}

func (s *pages) viewAccounts(sees visibility.Scope, r *http.Request) (string, string, any, error) {
	days, err := s.usedDays(r.Context(), sees)
	if err != nil {
		return "", "", nil, err
	}
	v := ui.Accounts{Rows: shares(sees), Budgets: budgets(sees, days, time.Now()), Chart: chartOf(days, r)}
	v.Note = unheldNote(sees.Snap)
	if len(v.Rows) == 0 {
		v.Note = "There are no accounts: everybody may run. The first is made with sacctmgr add account."
	}
	return "accounts", "Accounts", v, nil
}

// unheldNote tells which limits and budgets are set that hold nothing back.
func unheldNote(snap *cluster.Snapshot) string {
	var set []cluster.Limits
	for a := range snap.Assocs() {
		set = append(set, a.Limits)
	}
	for q := range snap.QOSes() {
		set = append(set, q.Limits)
	}
	cfg := snap.Config()
	return strings.Join(cluster.Unheld(cfg.Enforce, cfg.Priority, set...), ". ")
}

// shares lists the tree of associations, each account before its own.
func shares(sees visibility.Scope) (out []ui.Share) {
	snap := sees.Snap
	below := map[cluster.AssocID][]*cluster.Association{}
	var root *cluster.Association
	for a := range snap.Assocs() {
		if a.Account == "root" && a.User == "" {
			root = a
		} else {
			below[a.Parent] = append(below[a.Parent], a)
		}
	}
	if root == nil {
		return nil
	}
	standing := snap.Standings()
	whole := max(root.Spent.Raw, 1)
	var walk func(a *cluster.Association, depth int)
	walk = func(a *cluster.Association, depth int) {
		row := ui.Share{Depth: depth, Account: a.Account, User: a.User, Shares: strconv.Itoa(a.Shares),
			Usage: hours(a.Spent.Raw), GPUHours: "0.0",
			Bar: ui.Gauge{Name: "of all usage", Used: int(100 * a.Spent.Raw / whole), Have: 100}}
		if a.Shares == cluster.ShareParent {
			row.Shares = "parent's"
		}
		for _, x := range a.Spent.TRES {
			if x.TRES == "gres/gpu" {
				row.GPUHours = hours(x.N)
			}
		}
		if st := standing[a.ID]; st != nil && a.User != "" {
			row.Fair = strconv.FormatFloat(st.FairShare, 'f', 3, 64)
		}
		if sees.Owner(cluster.PrivateUsage, a.User, a.Account) && sees.Owner(cluster.PrivateUsers, a.User, a.Account) {
			out = append(out, row)
		}
		list := below[a.ID]
		slices.SortFunc(list, func(x, y *cluster.Association) int {
			return cmp.Or(b2i(x.User == "")-b2i(y.User == ""), strings.Compare(x.Account, y.Account),
				strings.Compare(x.User, y.User))
		})
		for _, b := range list {
			walk(b, depth+1)
		}
	}
	walk(root, 0)
	return out
}

// hours words seconds.
func hours(seconds float64) string { return strconv.FormatFloat(seconds/3600, 'f', 1, 64) }

// resvWords names the flags of reservations that say when and for whom they are.
var resvWords = []struct {
	flag cluster.ResvFlags
	word string
}{{cluster.ResvMaint, "maintenance"}, {cluster.ResvFlex, "flex"}, {cluster.ResvIgnoreJobs,
	"ignores jobs"}, {cluster.ResvHourly, "hourly"}, {cluster.ResvDaily, "daily"},
	{cluster.ResvWeekday, "on work days"}, {cluster.ResvWeekend, "at weekends"}, {cluster.ResvWeekly,
		"weekly"}, {cluster.ResvMagnetic, "magnetic"}}

func resvFlags(r *cluster.Reservation) string {
	var words []string
	for _, w := range resvWords {
		if r.Flags&w.flag != 0 {
			words = append(words, w.word)
		}
	}
	return strings.Join(words, ", ")
}

// partsText says that a reservation has only parts of its nodes.
func partsText(r *cluster.Reservation) string {
	switch {
	case len(r.GRES) > 0:
		gpus := 0
		for _, ids := range r.GPUs {
			gpus += ids.Len()
		}
		return ", " + several(float64(gpus), "GPU")
	case len(r.Cores) > 0:
		return ", some cores"
	}
	return ""
}

func (s *pages) viewReservations(sees visibility.Scope, _ *http.Request) (string, string, any, error) {
	snap := sees.Snap
	var v ui.Reservations
	var shown []*cluster.Reservation
	now := time.Now()
	for _, r := range snap.Reservations() {
		if !sees.Reservation(r) {
			continue
		}
		r = r.At(now)
		shown = append(shown, r)
		state := "planned"
		if r.Active(now) {
			state = "active"
		}
		nodes := hostlist.CompressNames(snap.Reserved(r))
		nodes += partsText(r)
		v.Rows = append(v.Rows, ui.Reservation{Name: r.Name, Nodes: nodes,
			Who:   strings.Join(slices.Concat(r.Users, r.Accounts), ", "),
			State: state, Flags: resvFlags(r), Start: r.Start, End: r.End})
	}
	slices.SortFunc(v.Rows, func(a, b ui.Reservation) int {
		return cmp.Or(a.Start.Compare(b.Start), strings.Compare(a.Name, b.Name))
	})
	slices.SortFunc(shown, func(a, b *cluster.Reservation) int {
		return cmp.Or(a.Start.Compare(b.Start), strings.Compare(a.Name, b.Name))
	})
	v.Calendar = calendar(shown, now)
	return "reservations", "Reservations", v, nil
}
