package sacctmgr

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"dev.muster/api"
	"dev.muster/cluster"
	"dev.muster/slurm/format"
	"dev.muster/slurm/front"
)

// Slurm's number of an event's state: the base state, with a flag for drained.
const (
	rawDown  = 1
	rawIdle  = 2
	rawDrain = 512
)

// eventStates are the words for states of nodes; only nodes that are down or drained have events.
const eventStates = "DRAIN FAIL UNKNOWN DOWN IDLE ALLOCATED ? MIXED FUTURE"

// eventAsk is which events are asked for.
type eventAsk struct {
	nodes, clusters bool
	states          []string
}

// askEvents reads the conditions of show event, or says what is wrong with them.
func askEvents(m *manager, q *mgrQuery) (ask eventAsk, code int) {
	for _, kind := range q.where["event"] {
		node, whole := front.IsKey(kind, 1, "node"), front.IsKey(kind, 1, "cluster")
		if !node && !whole {
			return ask, m.wrong(" Unknown event type: '" + kind + "'  Valid events are Cluster and Node.")
		}
		ask.nodes, ask.clusters = ask.nodes || node, ask.clusters || whole
	}
	for _, word := range q.where["state"] {
		if word != "" && !slices.Contains(strings.Fields(eventStates), strings.ToUpper(word)) {
			return ask, m.wrong("Invalid state: "+word, "Valid node states are: "+eventStates+" ",
				"sacctmgr: fatal: unrecognized job state value")
		}
		ask.states = append(ask.states, strings.ToUpper(word))
	}
	for _, name := range q.where["user"] {
		if _, known := front.LookupUser(name); !known {
			return ask, m.wrong("sacctmgr: error: Invalid user id: " + name)
		}
	}
	return ask, 0
}

// takes reports whether an event is one that is asked for.
func (ask *eventAsk) takes(q *mgrQuery, s *cluster.NodeSpan) bool {
	if s.Forgotten || ask.clusters && !ask.nodes {
		return false
	}
	if len(ask.states) > 0 && q.from == "" && s.To != 0 { // then what is so now is meant
		return false
	}
	stated := slices.ContainsFunc(ask.states, func(w string) bool { return w == "" || w == eventState(s) })
	by := slices.ContainsFunc(q.where["user"], func(name string) bool {
		u, _ := front.LookupUser(name)
		return u.UID == s.ByUID
	})
	reason := slices.ContainsFunc(q.where["reason"], func(text string) bool { return strings.EqualFold(text, s.Reason) })
	return q.has("node", string(s.Node)) && (stated || len(ask.states) == 0) &&
		(by || len(q.where["user"]) == 0) && (reason || len(q.where["reason"]) == 0)
}

func eventState(s *cluster.NodeSpan) string { return front.Choose(s.Down, "DOWN", "DRAIN") }

// events shows when nodes were down or drained: since the day before, in the time that is asked for, or, with states,
// which are so now.
func (m *manager) events(q *mgrQuery) int {
	ask, code := askEvents(m, q)
	if code != 0 {
		return code
	}
	now := m.sys.Now().Local()
	y, mo, d := now.Date()
	from, to := time.Date(y, mo, d-1, 0, 0, 0, 0, now.Location()), now
	if len(ask.states) > 0 {
		from = time.Unix(0, 0)
	}
	if text, pos := q.span(now, &from, &to); text != "" {
		return m.wrong(fmt.Sprintf("Invalid time specification (pos=%d): %s", pos, text))
	}
	resp, err := front.Call(m.sys, api.ShowUsage, api.UsageRequest{
		NodeSpans:  true,
		UsageQuery: cluster.UsageQuery{Time: cluster.Span{From: from.Unix(), To: to.Unix() + 1}},
	})
	if err != nil {
		text, _ := front.ErrorText(err)
		return m.sys.Fail("%s", text)
	}
	var rows []cluster.NodeSpan
	for _, s := range joinedEvents(resp.Nodes, from.Unix()) {
		if !q.elsewhere && ask.takes(q, &s) {
			rows = append(rows, s)
		}
	}
	fields := "Cluster,NodeName,TimeStart,TimeEnd,State,Reason,User"
	if ask.clusters && !ask.nodes {
		fields = "Cluster,TRES,TimeStart,TimeEnd,ClusterNodes"
	}
	return showTable(m, q, eventColumns(resp.Cluster, now), fields, rows)
}

// joinedEvents are the spans since then; a drained node that becomes empty is the same event still.
func joinedEvents(spans []cluster.NodeSpan, from int64) (rows []cluster.NodeSpan) {
	for _, s := range spans {
		if s.Time().To <= from || !s.Event() {
			continue
		}
		if n := len(rows); n > 0 && goesOn(&rows[n-1], &s) {
			rows[n-1].To, rows[n-1].Lost = s.To, s.Lost
			continue
		}
		rows = append(rows, s)
	}
	return rows
}

// goesOn reports whether one span goes on as the next one.
func goesOn(one, next *cluster.NodeSpan) bool {
	return one.SameEvent(next) && one.Node == next.Node && one.To == next.From
}

func eventColumns(name string, now time.Time) []front.Column[cluster.NodeSpan] {
	type E = cluster.NodeSpan
	raw := func(s *E) int {
		return rawIdle - (rawIdle-rawDown)*front.BoolInt(s.Down) + rawDrain*front.BoolInt(s.Drain)
	}
	return []front.Column[E]{
		{Name: "Cluster", Head: "Cluster", Width: 10, Of: func(*E) string { return name }},
		{Name: "ClusterNodes", Head: "Cluster Nodes", Width: 20, Of: func(*E) string { return "" }},
		{Name: "Duration", Head: "Duration", Width: 13, Of: func(s *E) string {
			end := cmp.Or(s.To, now.Unix())
			return format.Padded(time.Duration(end-s.From) * time.Second)
		}},
		{Name: "Event", Head: "Event", Width: 7, Of: func(*E) string { return "Node" }},
		{Name: "EventRaw", Head: "EventRaw", Width: 8, Of: func(*E) string { return "2" }},
		{Name: "NodeName", Head: "NodeName", Width: -15, Of: func(s *E) string { return string(s.Node) }},
		{
			Name: "TimeStart Start", Head: "TimeStart", Width: 19,
			Of: func(s *E) string { return front.Stamp(time.Unix(s.From, 0)) },
		},
		{
			Name: "TimeEnd End", Head: "TimeEnd", Width: 19,
			Of: func(s *E) string { return front.Choose(s.To == 0, "Unknown", front.Stamp(time.Unix(s.To, 0))) },
		},
		{
			Name: "State", Head: "State", Width: 6,
			Of: func(s *E) string { return eventState(s) + front.Choose(s.Lost, "*", "") },
		},
		{Name: "StateRaw", Head: "StateRaw", Width: 8, Of: func(s *E) string { return strconv.Itoa(raw(s)) }},
		{Name: "Reason", Head: "Reason", Width: 30, Of: func(s *E) string { return s.Reason }},
		{Name: "User", Head: "User", Width: 10, Of: eventUser},
		{Name: "TRES", Head: "TRES", Width: 20, Of: eventTRES},
	}
}

// eventTRES is what the node has.
func eventTRES(s *cluster.NodeSpan) string {
	return amountsText(slices.DeleteFunc(slices.Clone(s.TRES), func(a cluster.Amount) bool { return a.TRES == "node" }))
}

// eventUser is who it was, with the number.
func eventUser(s *cluster.NodeSpan) string {
	if s.By == "" {
		return ""
	}
	return fmt.Sprintf("%s(%d)", s.By, s.ByUID)
}
