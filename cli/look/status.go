// Package look is what muster's own commands show of a cluster: status, top, why, health and logs. It asks as the
// front-ends do, and knows no daemon. Begin with status.go, whose answer top renews.
package look

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"dev.muster/api"
	"dev.muster/cluster"
	"dev.muster/slurm/format"
	"dev.muster/slurm/front"
	"dev.muster/slurm/show"
	"dev.muster/wire"
)

// clusterStatus is how the cluster is at a moment, as muster status --json prints it. Times are in UTC.
type clusterStatus struct {
	Cluster   string        `json:"cluster"`
	Now       time.Time     `json:"now"`
	By        string        `json:"answered_by"`
	Leader    string        `json:"leader,omitempty"`
	Quorum    bool          `json:"quorum"`
	Servers   []api.Server  `json:"servers"`
	Nodes     nodeCounts    `json:"nodes"`
	GPUs      []gpuCounts   `json:"gpus,omitempty"`
	CPUs      gpuCounts     `json:"cpus"`
	Jobs      jobCounts     `json:"jobs"`
	Attention []string      `json:"attention,omitempty"` // what needs somebody, in words
	Aside     []string      `json:"aside,omitempty"`     // what operators have taken out of service, in words
	jobs      []show.JobRow // for top
	nodes     []api.NodeInfo
	wait      time.Duration // of the oldest pending job
}

// nodeCounts are numbers of nodes: Up may be used, those that are Off too, once they are switched on, Down and
// Drained not.
type nodeCounts struct {
	Total   int         `json:"total"`
	Up      int         `json:"up"`
	Busy    int         `json:"busy"` // with jobs
	Off     int         `json:"off"`
	Down    int         `json:"down"`
	Drained int         `json:"drained"`
	Out     []nodeGroup `json:"out,omitempty"`
}

// nodeGroup is nodes that are out of service for one reason.
type nodeGroup struct {
	State  string `json:"state"` // down, silent, absent, drained or draining
	Nodes  string `json:"nodes"` // a host list
	Count  int    `json:"count"`
	Reason string `json:"reason,omitempty"`
	By     string `json:"by,omitempty"`
	names  []cluster.NodeName
}

// gpuCounts is how much of one kind there is, and how much of that is in use or cannot be used.
type gpuCounts struct {
	Type  string `json:"type,omitempty"`
	Total int    `json:"total"`
	Used  int    `json:"used"`
	Out   int    `json:"out,omitempty"`
}

// jobCounts are numbers of jobs, each task of an array one.
type jobCounts struct {
	Running int           `json:"running"`
	Pending int           `json:"pending"`
	Held    int           `json:"held"` // of the pending ones
	Oldest  cluster.JobID `json:"oldest,omitempty"`
	// OldestWait is how many seconds the oldest pending job that is not held has waited.
	OldestWait int64 `json:"oldest_wait,omitempty"`
}

// Status prints how the cluster is (muster status). It returns 1 if no majority of the servers is up, some server is
// down, or none answers.
func Status(sys *front.Sys, json bool) int {
	st, err := askStatus(sys)
	if err != nil {
		return sys.Failed(err)
	}
	if json {
		text, err := wire.Marshal(st)
		if err != nil {
			return sys.Fail("%v", err)
		}
		fmt.Fprintf(sys.Stdout, "%s\n", text)
	} else {
		st.print(sys.Stdout, painterOf(sys))
	}
	if !st.Quorum || slices.ContainsFunc(st.Servers, func(s api.Server) bool { return !s.Up }) {
		return 1
	}
	return 0
}

// WatchStatus prints how the cluster is again whenever something changes, on a terminal in the same place. It ends
// with ctx or an interrupt.
func WatchStatus(ctx context.Context, sys *front.Sys, json bool) int {
	ctx, stop := signal.NotifyContext(ctx, syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	changed := make(chan struct{}, 1)
	go watchChanges(sys, ctx, changed)
	clear := ""
	if painterOf(sys).on {
		clear = "\x1b[H\x1b[2J"
	}
	for {
		fmt.Fprint(sys.Stdout, clear)
		Status(sys, json)
		pause := time.NewTimer(topPace)
		select {
		case <-ctx.Done():
			return 0
		case <-pause.C:
		}
		select {
		case <-ctx.Done():
			return 0
		case <-changed:
		case <-time.After(topAnew):
		}
	}
}

// askStatus asks for all that it shows. Where PrivateData hides nodes they are left out.
func askStatus(s *front.Sys) (*clusterStatus, error) {
	ping, err := front.Call(s, api.Ping, api.Empty{})
	if err != nil {
		return nil, err
	}
	about, err := front.Call(s, api.ShowCluster, api.Empty{})
	if err != nil {
		return nil, err
	}
	nodes, err := front.Call(s, api.ListNodes, api.NodeQuery{})
	var e *api.Error
	if err != nil && !(errors.As(err, &e) && e.Kind == cluster.ErrAccess) {
		return nil, err
	}
	jobs, err := show.ListJobs(s, api.JobQuery{Brief: true, Phases: []cluster.Phase{cluster.Pending,
		cluster.Starting, cluster.Running, cluster.Suspended, cluster.Ending}})
	if err != nil {
		return nil, err
	}
	st := &clusterStatus{Cluster: about.Config.ClusterName, Now: jobs.Now, By: ping.Name, Servers: ping.Servers}
	st.nodes = nodes.Nodes
	st.countServers(&ping)
	st.countNodes(nodes.Nodes)
	st.countJobs(&show.View{Sys: s, Now: jobs.Now}, jobs.Jobs)
	return st, nil
}

func (st *clusterStatus) countServers(ping *api.PingResponse) {
	voters, up := 0, 0
	for i := range ping.Servers {
		v := &ping.Servers[i]
		voters, up = voters+front.BoolInt(v.Voter), up+front.BoolInt(v.Voter && v.Up)
		if v.Leader && v.Up {
			st.Leader = v.Name
		}
		if !v.Up {
			st.Attention = append(st.Attention, fmt.Sprintf("server %s (%s) does not answer", v.Name, v.Addr))
		}
	}
	if late := WithoutVote(ping.Servers); late != "" {
		st.Attention = append(st.Attention, late)
	}
	if st.Quorum = 2*up > voters && st.Leader != ""; !st.Quorum {
		st.Attention = append(st.Attention,
			fmt.Sprintf("no server leads: %d of %d servers answer, a majority must; running jobs run on", up, voters))
	}
}

// WithoutVote names the servers that have no vote yet, and says what the cluster does not survive until they have; ""
// if all have one.
func WithoutVote(servers []api.Server) string {
	var late, voters []string
	for _, s := range servers {
		if s.Voter {
			voters = append(voters, s.Name)
		} else {
			late = append(late, s.Name)
		}
	}
	if len(late) == 0 || len(voters) == 0 {
		return ""
	}
	text := strings.Join(late, ", ") + ": catching up, no vote yet"
	if len(voters) < 3 && len(servers) > 2 { // a majority of two is both
		text += "; the cluster does not survive the loss of " + strings.Join(voters, " or ") + " until then"
	}
	return text
}

// whyOut is the state of a node that cannot be used, "" for the others.
func whyOut(n *api.NodeInfo) string {
	switch word := n.Word(len(n.Load.Jobs) > 0); word {
	case "down", "draining", "drained", "silent", "absent":
		return word
	}
	return ""
}

// gone reports whether a node of a state cannot be reached.
func gone(state string) bool { return state == "down" || state == "silent" || state == "absent" }

// isOff reports whether a node is switched off, or on its way on or off.
func isOff(n *api.NodeInfo) bool { return !n.Up && (n.Off() || n.Leaving()) }

func (st *clusterStatus) countNodes(nodes []api.NodeInfo) {
	type key struct{ state, reason, by string }
	groups, types := map[key]*nodeGroup{}, map[string]*gpuCounts{}
	for i := range nodes {
		n := &nodes[i]
		state := whyOut(n)
		c := &st.Nodes
		off := state == "" && isOff(n)
		c.Total, c.Up, c.Off, c.Busy = c.Total+1, c.Up+front.BoolInt(state == "" &&
			!off), c.Off+front.BoolInt(off), c.Busy+front.BoolInt(len(n.Load.Jobs) > 0)
		c.Down, c.Drained = c.Down+front.BoolInt(gone(state)), c.Drained+front.BoolInt(state == "drained" ||
			state == "draining")
		used := n.Load.CPUs.Len()
		st.CPUs.Total = st.CPUs.Total + n.Inventory.CPUs
		st.CPUs.Used = st.CPUs.Used + used
		st.CPUs.Out = st.CPUs.Out + front.BoolInt(state != "")*(n.Inventory.CPUs-used)
		if state != "" {
			k := key{state, n.Reason, n.ReasonBy}
			if groups[k] == nil {
				groups[k] = &nodeGroup{State: state, Reason: n.Reason, By: n.ReasonBy}
			}
			groups[k].names = append(groups[k].names, n.Name)
		} else if h := healthOf(n, st.Now); !h.Well {
			st.Attention = append(st.Attention, fmt.Sprintf("node %s: %s", n.Name, h.Findings[0].Text))
		}
		for g := range n.Inventory.GPUs {
			gpu := &n.Inventory.GPUs[g]
			t := types[gpu.Type]
			if t == nil {
				t = &gpuCounts{Type: gpu.Type}
				types[gpu.Type] = t
			}
			busy := n.Load.GPUs.Has(g)
			t.Total, t.Used, t.Out = t.Total+1, t.Used+front.BoolInt(busy), t.Out+front.BoolInt(!busy &&
				(state != "" || gpu.Missing))
		}
	}
	for _, g := range groups {
		g.Nodes, g.Count = front.NodeText(g.names), len(g.names)
		st.Nodes.Out = append(st.Nodes.Out, *g)
	}
	slices.SortFunc(st.Nodes.Out, func(a, b nodeGroup) int {
		return cmp.Or(cmp.Compare(a.State, b.State), b.Count-a.Count, cmp.Compare(a.Nodes, b.Nodes))
	})
	for _, g := range st.Nodes.Out {
		text := fmt.Sprintf("%s %s", g.Nodes, g.State)
		if g.Reason != "" {
			text += ": " + g.Reason
		}
		if g.By != "" {
			text += " (by " + g.By + ")"
		}
		if g.By == "" || g.By == "slurm" {
			st.Attention = append(st.Attention, text)
		} else { // somebody knows, as muster health has it too
			st.Aside = append(st.Aside, text)
		}
	}
	for _, t := range types {
		st.GPUs = append(st.GPUs, *t)
	}
	slices.SortFunc(st.GPUs, func(a, b gpuCounts) int { return cmp.Compare(a.Type, b.Type) })
}

func (st *clusterStatus) countJobs(v *show.View, jobs []*cluster.Job) {
	var oldest *cluster.Job
	for _, j := range jobs {
		n := max(1, j.Tasks.Len())
		st.jobs = append(st.jobs, show.NewRow(v, j))
		switch {
		case j.Phase != cluster.Pending:
			st.Jobs.Running += n
			continue
		case j.Held != cluster.NotHeld:
			st.Jobs.Held += n
		case oldest == nil || j.Submitted.Before(oldest.Submitted):
			oldest = j
		}
		st.Jobs.Pending += n
	}
	if oldest != nil {
		st.wait = st.Now.Sub(oldest.Submitted)
		st.Jobs.Oldest, st.Jobs.OldestWait = oldest.ID, int64(st.wait/time.Second)
	}
}

// print writes one screen.
func (st *clusterStatus) print(w io.Writer, p painter) {
	up := 0
	for _, s := range st.Servers {
		up += front.BoolInt(s.Up)
	}
	line := func(name, format string, args ...any) {
		fmt.Fprintf(w, "%s %s\n", p.soft(fmt.Sprintf("%-8s", name)), fmt.Sprintf(format, args...))
	}
	line("cluster", "%s at %s, answered by %s", st.Cluster, st.Now.Local().Format("2006-01-02 15:04:05"), st.By)
	lead := p.bad("no leader")
	if st.Quorum {
		lead = st.Leader + " leads"
	}
	line("servers", "%s, %s", p.count(up, 0, len(st.Servers), "up"), lead)
	if st.Nodes.Total > 0 {
		off := ""
		if st.Nodes.Off > 0 {
			off = fmt.Sprintf(", %d off", st.Nodes.Off)
		}
		line("nodes", "%s, %d with jobs%s%s%s", p.count(st.Nodes.Up, st.Nodes.Off, st.Nodes.Total, "up"),
			st.Nodes.Busy, off, p.some(st.Nodes.Down, "down"), p.some(st.Nodes.Drained, "drained"))
	}
	for _, g := range st.GPUs {
		line("GPUs", "%s %d of %d in use%s  %s", cmp.Or(g.Type, "of any type:"), g.Used, g.Total, p.some(g.Out,
			"out of service"), p.bar(g, 20))
	}
	if st.CPUs.Total > 0 {
		line("CPUs", "%d of %d in use%s  %s", st.CPUs.Used, st.CPUs.Total, p.some(st.CPUs.Out,
			"out of service"), p.bar(st.CPUs, 20))
	}
	queue := ""
	if st.Jobs.Oldest != 0 {
		queue = fmt.Sprintf("; job %d waits longest: %s", st.Jobs.Oldest, format.Duration(st.wait))
	}
	line("jobs", "%d running, %d pending (%d held)%s", st.Jobs.Running, st.Jobs.Pending, st.Jobs.Held, queue)
	if len(st.Aside) > 0 {
		fmt.Fprintln(w, "out of service by operators:")
	}
	for _, a := range st.Aside {
		fmt.Fprintln(w, "  "+a)
	}
	if len(st.Attention) == 0 {
		line("", "%s", p.good("nothing needs attention"))
		return
	}
	fmt.Fprintln(w, "needs attention (muster health says what to do of nodes):")
	for _, a := range st.Attention {
		fmt.Fprintln(w, "  "+p.bad(a))
	}
}

// count words so many of all: good where all others are away for good reasons.
func (p painter) count(n, away, all int, what string) string {
	text := fmt.Sprintf("%d of %d %s", n, all, what)
	if n+away < all {
		return p.bad(text)
	}
	return p.good(text)
}

// some words a number that should be zero.
func (p painter) some(n int, what string) string {
	if n == 0 {
		return ""
	}
	return ", " + p.bad(fmt.Sprintf("%d %s", n, what))
}

// bar draws what is in use and what is out of service.
func (p painter) bar(g gpuCounts, width int) string {
	if g.Total == 0 {
		return ""
	}
	used, out := (g.Used*width+g.Total/2)/g.Total, (g.Out*width+g.Total/2)/g.Total
	out = min(out, width-used)
	return "[" + p.good(strings.Repeat("#", used)) + strings.Repeat(".",
		width-used-out) + p.bad(strings.Repeat("x", out)) + "]"
}
