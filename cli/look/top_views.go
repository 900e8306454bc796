package look

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"dev.muster/cluster"
	"dev.muster/slurm/format"
	"dev.muster/slurm/front"
	"dev.muster/slurm/show"
)

// topRow is a row of a view, and what keys may be pressed for.
type topRow struct {
	id   string // the same while the row is there
	text string
	job  *show.JobRow
	node cluster.NodeName
	find string // the filter under which the jobs of this row are seen
}

// topView is one of the tables of muster top.
type topView struct {
	name string
	head string
	rows func(*topScreen) []topRow
}

const (
	topJobLine  = "%-12s %-10.10s %-10.10s %-3s %11s %6d %5d  %s"
	topNodeLine = "%-16.16s %-10.10s %5d %11s %15s %9s  %s"
	topUserLine = "%-16.16s %8d %8d %7d %7d %7d"
	topGPULine  = "%-16.16s %4d %-12.12s %-8s %-12s %-10.10s %s"
)

// heads is the head of a view whose lines have a format.
func heads(line string, words ...any) string {
	return fmt.Sprintf(strings.ReplaceAll(line, "d", "s"), words...)
}

// topViews are reached by the keys 1, 2, … and Tab.
func topViews() []topView {
	return []topView{
		{"jobs", heads(topJobLine, "JOB", "USER", "PARTITION", "ST", "TIME", "NODES", "GPUS",
			"NAME, NODES OR REASON"), (*topScreen).jobRows},
		{"nodes", heads(topNodeLine, "NODE", "STATE", "JOBS", "CPUS", "MEMORY", "GPUS", "REASON"),
			(*topScreen).nodeRows},
		{"users", heads(topUserLine, "USER", "RUNNING", "PENDING", "NODES", "CPUS", "GPUS"), (*topScreen).userRows},
		{"gpus", heads(topGPULine, "NODE", "GPU", "TYPE", "STATE", "JOB", "USER", "NAME"), (*topScreen).gpuRows},
	}
}

func (s *topScreen) jobRows() (out []topRow) {
	rows := slices.Clone(s.st.jobs)
	slices.SortStableFunc(rows, func(a, b show.JobRow) int {
		return cmp.Or(front.BoolInt(a.Phase == cluster.Pending)-front.BoolInt(b.Phase == cluster.Pending),
			topOrders[s.order].less(&a, &b), cmp.Compare(a.ID, b.ID))
	})
	for i := range rows {
		r := &rows[i]
		text := fmt.Sprintf(topJobLine, r.ShownID(), r.Spec.User, r.Partition(), show.StateOf(r.Job).Short,
			format.Duration(topTime(r)), r.NumNodes(), r.NumGPUs(),
			cluster.PlainLine(r.Spec.Name)+" "+r.NodesOrReason())
		out = append(out, topRow{id: r.ShownID(), text: text, job: r})
	}
	return out
}

func (s *topScreen) nodeRows() (out []topRow) {
	for i := range s.st.nodes {
		n := &s.st.nodes[i]
		inv := &n.Inventory
		text := fmt.Sprintf(topNodeLine, n.Name, n.Word(len(n.Load.Jobs) > 0), len(n.Load.Jobs),
			fmt.Sprintf("%d/%d", n.Load.CPUs.Len(), inv.CPUs),
			fmt.Sprintf("%d/%d GiB", n.Load.MemMB>>10, inv.MemMB>>10),
			fmt.Sprintf("%d/%d", n.Load.GPUs.Len(), len(inv.GPUs)), n.Reason)
		name := string(n.Name)
		out = append(out, topRow{id: name, text: strings.TrimRight(text, " "), node: n.Name, find: name})
	}
	return out
}

func (s *topScreen) userRows() (out []topRow) {
	type sum struct{ running, pending, nodes, cpus, gpus int }
	users := map[string]*sum{}
	for i := range s.st.jobs {
		r := &s.st.jobs[i]
		u := users[r.Spec.User]
		if u == nil {
			u = &sum{}
			users[r.Spec.User] = u
		}
		if r.Phase == cluster.Pending {
			u.pending += max(1, r.Tasks.Len())
			continue
		}
		u.running++
		u.nodes, u.cpus, u.gpus = u.nodes+r.NumNodes(), u.cpus+r.NumCPUs(), u.gpus+r.NumGPUs()
	}
	for name, u := range users {
		out = append(out, topRow{id: name, find: name,
			text: fmt.Sprintf(topUserLine, name, u.running, u.pending, u.nodes, u.cpus, u.gpus)})
	}
	slices.SortFunc(out, func(a, b topRow) int {
		x, y := users[a.id], users[b.id]
		return cmp.Or(y.gpus-x.gpus, y.cpus-x.cpus, y.running-x.running, strings.Compare(a.id, b.id))
	})
	return out
}

func (s *topScreen) gpuRows() (out []topRow) {
	jobs := s.gpuJobs()
	for i := range s.st.nodes {
		n := &s.st.nodes[i]
		for g, gpu := range n.Inventory.GPUs {
			row := topRow{id: fmt.Sprintf("%s:%d", n.Name, g), node: n.Name, find: string(n.Name)}
			state, job, user, name := "free", "", "", ""
			switch {
			case gpu.Missing:
				state = "missing"
			case n.Load.GPUs.Has(g):
				state = "in use"
			case whyOut(n) != "":
				state = whyOut(n)
			}
			if r := jobs[gpuAt{n.Name, g}]; r != nil {
				row.job = r
				job, user, name = r.ShownID(), r.Spec.User, cluster.PlainLine(r.Spec.Name)
			}
			row.text = strings.TrimRight(fmt.Sprintf(topGPULine, n.Name, g, gpu.Type, state, job, user, name), " ")
			out = append(out, row)
		}
	}
	return out
}

type gpuAt struct {
	node cluster.NodeName
	gpu  int
}

// gpuJobs finds the job that has each GPU.
func (s *topScreen) gpuJobs() map[gpuAt]*show.JobRow {
	jobs := map[gpuAt]*show.JobRow{}
	for i := range s.st.jobs {
		r := &s.st.jobs[i]
		if r.Alloc == nil {
			continue
		}
		for _, sh := range r.Alloc.Shares {
			for g := range sh.GPUs.All() {
				jobs[gpuAt{sh.Node, g}] = r
			}
		}
	}
	return jobs
}

// kept are the rows of the view that have the filter in them, of all that is asked for of a job also its nodes.
func (s *topScreen) kept() []topRow {
	rows := topViews()[s.view].rows(s)
	if s.filter == "" {
		return rows
	}
	word := strings.ToLower(s.filter)
	return slices.DeleteFunc(rows, func(r topRow) bool {
		return !strings.Contains(strings.ToLower(r.text), word) && !onNode(r.job, word)
	})
}

// onNode reports whether a job has a node of a name.
func onNode(r *show.JobRow, name string) bool {
	if r == nil || r.Alloc == nil {
		return false
	}
	return slices.ContainsFunc(r.Alloc.Shares, func(sh cluster.Share) bool {
		return strings.EqualFold(string(sh.Node), name)
	})
}

// table is the view's head and the rows around the chosen one; room 0: all, nothing chosen.
func (s *topScreen) table(width, room int) []string {
	view, rows := topViews()[s.view], s.kept()
	out := []string{cut(view.head, width)}
	if room == 0 {
		for _, r := range rows {
			out = append(out, cut(printable(r.text), width))
		}
		return out
	}
	room = max(room-1, 0)
	at := s.chosenAt(rows)
	begin := max(min(at-room/2, len(rows)-room), 0)
	for i, r := range rows[begin:min(begin+room, len(rows))] {
		text := cut(printable(r.text), width)
		if begin+i == at {
			text = s.paint.in("7", fmt.Sprintf("%-*s", width, text))
		}
		out = append(out, text)
	}
	return out
}

// chosenAt is the index of the chosen row; the first where it has gone.
func (s *topScreen) chosenAt(rows []topRow) int {
	return max(slices.IndexFunc(rows, func(r topRow) bool { return r.id == s.chosen }), 0)
}

// row is the chosen row; ok is false where there is none.
func (s *topScreen) row() (r topRow, ok bool) {
	rows := s.kept()
	if len(rows) == 0 {
		return r, false
	}
	return rows[s.chosenAt(rows)], true
}

// move chooses another row, so many further down.
func (s *topScreen) move(by int) {
	rows := s.kept()
	if len(rows) > 0 {
		s.chosen = rows[min(max(s.chosenAt(rows)+by, 0), len(rows)-1)].id
	}
}

type topOrder struct {
	key  byte
	name string
	less func(a, b *show.JobRow) int
}

// topOrders are the keys by which jobs are sorted.
var topOrders = [...]topOrder{
	{'g', "gpus", func(a, b *show.JobRow) int { return b.NumGPUs() - a.NumGPUs() }},
	{'t', "time", func(a, b *show.JobRow) int { return cmp.Compare(topTime(b), topTime(a)) }},
	{'u', "user", func(a, b *show.JobRow) int { return cmp.Compare(a.Spec.User, b.Spec.User) }},
	{'n', "nodes", func(a, b *show.JobRow) int { return b.NumNodes() - a.NumNodes() }},
	{'i', "id", func(a, b *show.JobRow) int { return cmp.Compare(a.ID, b.ID) }},
}

// topTime is how long a job has run, or waited.
func topTime(r *show.JobRow) time.Duration {
	if r.Phase == cluster.Pending {
		return r.View.Now.Sub(r.Submitted)
	}
	return r.Elapsed()
}

// topScreen is what muster top shows.
type topScreen struct {
	sys    *front.Sys
	paint  painter
	order  int
	st     *clusterStatus
	trace  string // of the connection
	view   int    // of topViews
	chosen string // id of the row that keys are for
	filter string // what rows must have in them
	typing bool   // a filter is being typed
	panel  *topPanel
	ask    *topQuestion
	said   string   // what the last action came to
	shown  []string // what the terminal has
}
