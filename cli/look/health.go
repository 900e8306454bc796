package look

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"dev.muster/api"
	"dev.muster/cluster"
	"dev.muster/cluster/hostlist"
	"dev.muster/slurm/format"
	"dev.muster/slurm/front"
	"dev.muster/slurm/show"
)

// finding is something about a node that people should look at.
type finding struct {
	Kind   string `json:"kind"` // gpu, port, system, node, topology
	Part   string `json:"part,omitempty"`
	Cause  string `json:"cause"`
	Action string `json:"action"` // note, drain, drain_now; empty: no fault
	Text   string `json:"text"`
	ToDo   string `json:"to_do"`
}

// nodeHealth is how a node is.
type nodeHealth struct {
	Node     cluster.NodeName `json:"node"`
	State    string           `json:"state"`
	Well     bool             `json:"well"`
	Score    float64          `json:"score"` // recent trouble, in points that halve every day
	Shaky    bool             `json:"shaky"` // large jobs avoid it
	Reason   string           `json:"reason"`
	Boot     int64            `json:"boot_time"`
	Findings []finding        `json:"findings"`
	NICs     []show.NICJSON   `json:"nics"`

	info *api.NodeInfo
}

// toDo says what helps against a fault; the first row that fits. An empty cell fits all.
var toDo = []struct {
	kind   cluster.FaultKind
	cause  string // what it begins with
	action cluster.FaultAction
	text   string
}{
	{cluster.FaultPort, "down", "", "look at the cable and the switch's port; the node returns by itself"},
	{cluster.FaultPort, "gone", "", "look at the adapter and its driver; the node returns by itself"},
	{cluster.FaultPort, "degraded", "", "reseat or replace the cable; the node returns by itself"},
	{cluster.FaultPort, "unused", "", "connect it, or leave it"},
	{cluster.FaultPort, "", "", "clean, reseat or replace the cable"},
	{cluster.FaultSystem, "read-only", "", "look at the disk and the kernel's log; the node returns by itself"},
	{cluster.FaultSystem, "no space", "", "make space; the node returns by itself"},
	{cluster.FaultSystem, "little space", "", "make space"},
	{cluster.FaultSystem, "off", "", "look at chronyd or ntpd"},
	{cluster.FaultSystem, "left", "", "end the process, or reset the GPU; the node returns by itself"},
	{cluster.FaultSystem, "burnin", "", "repair it; then resume the node, and test it again by muster burnin"},
	{cluster.FaultGPU, "burnin", "",
		"reset or replace the GPU; then resume the node, and test it again by muster burnin"},
	{cluster.FaultSystem, "shared", "", "run the client as root, with its data and socket outside of the folders"},
	{cluster.FaultGPU, "gres.conf", "", "correct gres.conf"},
	{cluster.FaultGPU, "unknown", "", "look at the driver; the node returns by itself"},
	{cluster.FaultGPU, "lost", "", "reboot, or replace the GPU; then resume the node"},
	{cluster.FaultGPU, "remap failed", "", "replace the GPU; then resume the node"},
	{cluster.FaultGPU, "throttle", "", "look at cooling and power"},
	{cluster.FaultGPU, "", cluster.FaultDrain, "reset the GPU; then resume the node"},
	{cluster.FaultGPU, "", cluster.FaultDrainNow, "reset or replace the GPU; then resume the node"},
	{cluster.FaultGPU, "", cluster.FaultNote, "watch it"},
}

// found makes a finding of a fault.
func found(f *cluster.Fault) finding {
	out := finding{Kind: cmp.Or(string(f.Kind), "gpu"), Part: f.Part, Cause: f.Cause, Action: string(f.Action),
		Text: f.Text}
	for _, row := range toDo {
		if row.kind == f.Kind && strings.HasPrefix(f.Cause, row.cause) && (row.action == "" || row.action == f.Action) {
			out.ToDo = row.text
			break
		}
	}
	return out
}

// healthOf judges a node by its record. A node that an operator has drained or set down is well, if nothing else is
// wrong.
func healthOf(n *api.NodeInfo, now time.Time) nodeHealth {
	state := show.NodeState(n)
	h := nodeHealth{
		Node:   n.Name,
		State:  show.StateWord(state, true),
		Score:  n.Score(now),
		Shaky:  n.Shaky(now),
		Reason: n.Reason,
		Boot:   n.Inventory.Boot.Unix(),
		NICs:   show.NICList(&n.Inventory),
		info:   n,
	}
	h.Findings = make([]finding, 0, len(n.Inventory.Faults))
	for i := range n.Inventory.Faults {
		h.Findings = append(h.Findings, found(&n.Inventory.Faults[i]))
	}
	for i := range n.DrainedFor { // over by now, and yet to be resumed
		f := &n.DrainedFor[i]
		same := func(o cluster.Fault) bool { return o.Part == f.Part && o.Cause == f.Cause }
		if !slices.ContainsFunc(n.Inventory.Faults, same) {
			h.Findings = append(h.Findings, found(f))
		}
	}
	if !show.Hidden(state) && n.Reboot == nil {
		h.judgeState(n)
	}
	if n.Misplaced != "" {
		h.add("topology", "misplaced", n.Misplaced, "correct topology.conf or the cables")
	}
	if h.Shaky && len(h.Findings) == 0 {
		h.add("node", "shaky", "much went wrong recently; large jobs avoid it", "test it")
	}
	h.Well = len(h.Findings) == 0
	return h
}

func (h *nodeHealth) add(kind, cause, text, todo string) {
	h.Findings = append(h.Findings, finding{Kind: kind, Cause: cause, Text: text, ToDo: todo})
}

// judgeState finds what is wrong with a node that is not where it should be.
func (h *nodeHealth) judgeState(n *api.NodeInfo) {
	resume := "scontrol update nodename=" + string(n.Name) + " state=resume"
	ours := n.ReasonBy == "" || n.ReasonBy == "slurm"
	switch {
	case n.Power != nil && n.Down && ours:
		h.add("node", "power", cmp.Or(n.Reason, "it did not come"),
			"look at the servers' log and at the provider; it is tried again at "+front.Stamp(n.Power.Retry)+
				", or by "+resume)
	case n.Power != nil:
	case n.Registered.IsZero():
		h.add("node", "absent", "its client has never come", "start muster client there")
	case n.Down && ours:
		h.add("node", "down", cmp.Or(n.Reason, "it is down"),
			"look at the machine; it returns when its client does, or by "+resume)
	case n.Word(false) == "silent":
		h.add("node", "silent", "its client does not answer", "look at the machine and the log of muster client there")
	case n.Drain && ours && len(n.DrainedFor) == 0:
		h.add("node", "drained", n.Reason, resume+", once it is well")
	case n.Lacks != "" && len(h.Findings) == 0:
		h.add("node", "lacks", n.Lacks, "look at the machine")
	}
}

// Health prints which nodes need attention, why, and what to do (muster health [--json] [NODES]). It returns the
// exit code: 1 if some do.
func Health(sys *front.Sys, argv []string) int {
	json := len(argv) > 0 && argv[0] == "--json"
	if json {
		argv = argv[1:]
	}
	var q api.NodeQuery
	if len(argv) > 1 || len(argv) == 1 && strings.HasPrefix(argv[0], "-") {
		fmt.Fprintln(sys.Stderr, "usage: muster health [--json] [NODES]")
		return 2
	}
	if len(argv) == 1 {
		names, err := hostlist.Expand(argv[0])
		if err != nil {
			return sys.Fail("%s: %v", argv[0], err)
		}
		for _, n := range names {
			q.Names = append(q.Names, cluster.NodeName(n))
		}
	}
	resp, err := front.Call(sys, api.ListNodes, q)
	if err != nil {
		return sys.Failed(err)
	}
	if len(resp.Missing) > 0 {
		return sys.Fail("there is no node %s; see sinfo", front.NodeText(resp.Missing))
	}
	all, bad := make([]nodeHealth, 0, len(resp.Nodes)), 0
	for i := range resp.Nodes {
		h := healthOf(&resp.Nodes[i], resp.Now)
		if all = append(all, h); !h.Well {
			bad++
		}
	}
	switch {
	case json:
		if code := sys.JSON(map[string]any{"nodes": all}); code != 0 {
			return code
		}
	case len(all) == 1 && len(argv) == 1:
		healthNode(sys, &all[0])
	default:
		healthTable(sys, all, bad)
		healthRestored(sys, resp.Now)
	}
	return min(bad, 1)
}

// points writes a score.
func points(f float64) string { return strconv.FormatFloat(f, 'f', 1, 64) }

// healthTable prints a line for each finding.
func healthTable(s *front.Sys, all []nodeHealth, bad int) {
	if bad == 0 {
		fmt.Fprintf(s.Stdout, "%d nodes, nothing needs attention\n", len(all))
		return
	}
	t := &Columns{}
	t.Line("NODE", "STATE", "SCORE", "WHAT", "WHAT TO DO")
	for i := range all {
		for k, f := range all[i].Findings {
			h := &all[i]
			if k == 0 {
				t.Line(string(h.Node), h.State, points(h.Score), f.Text, f.ToDo)
			} else {
				t.Line("", "", "", f.Text, f.ToDo)
			}
		}
	}
	t.Print(s.Stdout)
	fmt.Fprintf(s.Stdout, "%d of %d nodes need attention\n", bad, len(all))
}

// restoredShown is for how long it is told that the cluster was restored.
const restoredShown = 7 * 24 * time.Hour

// healthRestored prints what nodes knew otherwise than the file from which the cluster was brought back.
func healthRestored(s *front.Sys, now time.Time) {
	info, err := front.Call(s, api.ShowCluster, api.Empty{})
	r := info.Restored
	if err != nil || r == nil || now.Sub(r.At) > restoredShown {
		return
	}
	fmt.Fprintf(s.Stdout, "restored %s as of %s; nodes knew otherwise of %d jobs\n", front.Stamp(r.At),
		front.Stamp(r.Saved), len(r.Differs)+r.More)
	t := &Columns{}
	for _, d := range r.Differs {
		t.Line("job "+strconv.FormatUint(uint64(d.Job), 10), d.User, string(d.Node), d.What)
	}
	t.Print(s.Stdout)
	if r.More > 0 {
		fmt.Fprintf(s.Stdout, "and %d more\n", r.More)
	}
}

// healthNode prints all that is known of one node's parts.
func healthNode(s *front.Sys, h *nodeHealth) {
	n, inv := h.info, &h.info.Inventory
	fmt.Fprintf(s.Stdout, "node %s is %s\n", h.Node, h.State)
	say := func(what, format string, args ...any) {
		fmt.Fprintf(s.Stdout, "  %-12s %s\n", what, fmt.Sprintf(format, args...))
	}
	if n.Reason != "" {
		say("reason", "%s, said by %s at %s", n.Reason, cmp.Or(n.ReasonBy, "muster"), front.Stamp(n.ReasonAt))
	}
	note := ""
	if h.Shaky {
		note = ", large jobs avoid it"
	}
	say("score", "%s points of trouble, which halve every day%s", points(h.Score), note)
	say("booted", "%s", format.Stamp(inv.Boot, "unknown"))
	for _, f := range h.Findings {
		say(cmp.Or(f.Action, "note"), "%s", f.Text)
		say("", "%s", f.ToDo)
	}
	if h.Well {
		say("well", "nothing needs attention")
	}
	t := &Columns{}
	if len(inv.GPUs) > 0 {
		t.Line("  GPU", "TYPE", "STATE", "BUS", "NVLINKS", "FABRIC", "UUID")
	}
	for i := range inv.GPUs {
		g := &inv.GPUs[i]
		state := "well"
		if slices.ContainsFunc(inv.Faults, func(f cluster.Fault) bool {
			return f.Part == g.UUID &&
				f.Kind == cluster.FaultGPU
		}) {
			state = "faulty"
		}
		if g.Missing {
			state = "missing"
		}
		t.Line("  "+strconv.Itoa(g.Index), cmp.Or(g.Type, "-"), state, cmp.Or(g.PCI, "-"),
			strconv.Itoa(g.NVLinks), cmp.Or(g.Fabric, "-"), cmp.Or(g.UUID, "-"))
	}
	t.Print(s.Stdout)
	t = &Columns{}
	if len(inv.NICs) > 0 {
		t.Line("  PORT", "STATE", "RATE", "LINK", "LEAF", "GPUS", "ERRORS")
	}
	for i := range inv.NICs {
		p := &inv.NICs[i]
		var near, errs []string
		for _, g := range p.Near {
			near = append(near, g.Distance+"="+g.GPUs.String())
		}
		for _, c := range p.Errors {
			errs = append(errs, c.Name+"="+strconv.FormatUint(c.Count, 10))
		}
		t.Line("  "+show.NICName(p), strings.ToLower(p.State), cmp.Or(p.Rate, "-"), cmp.Or(p.Link, "-"),
			cmp.Or(p.Leaf, "-"),
			cmp.Or(strings.Join(near, " "), "-"), cmp.Or(strings.Join(errs, " "), "-"))
	}
	t.Print(s.Stdout)
}
