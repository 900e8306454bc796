package cluster

import (
	"fmt"
	"runtime"
)

// Apply executes one entry. A rejected command changes nothing, nor does one that breaks what the state is sure of: see
// Applied.Panic.
func (s *State) Apply(e Entry) (out Applied) {
	t := &tx{tables: &s.tables, at: e.At, by: e.By}
	defer func() {
		if p := recover(); p != nil {
			out = t.broken(e, p)
		}
	}()
	s.Index = max(s.Index, e.Index)
	if e.At.After(s.Now) {
		s.Now = e.At
	}
	change := describeChange(t, e.Cmd)
	result, err := e.Cmd.apply(t)
	if err != nil {
		t.rollback()
		ce, ok := err.(*Error)
		if !ok {
			ce = Errorf(Internal, "", "%v", err)
		}
		return Applied{Err: ce}
	}
	t.endUnheard()
	settleExternal(t)
	wakeAll(t)
	watchEmptied(t)
	gatherHits(t)
	t.dateEvents()
	recordAudit(t, change)
	return Applied{Result: result, Events: t.events}
}

// broken takes back what a command did that could not be carried through.
func (t *tx) broken(e Entry, p any) Applied {
	t.rollback()
	if refused, ok := p.(*Error); ok { // from deep inside, where no error can be returned
		return Applied{Err: refused}
	}
	why := fmt.Sprintf("command %s failed: %v", e.Cmd.kind(), p)
	stack := make([]byte, 16<<10)
	stack = stack[:runtime.Stack(stack, false)]
	return Applied{Err: Errorf(Internal, "", "%s", why), Panic: why + "\n" + string(stack)}
}

// endUnheard ends the jobs of which no node has heard: none will tell that it is clean.
func (t *tx) endUnheard() {
	for _, id := range t.unheard {
		j, ok := t.jobs.Get(id)
		if !ok || j.Phase != Ending || !j.Prelude.waits() {
			continue
		}
		for _, name := range j.AllocNodes() {
			if left, _ := t.jobs.Get(id); left.Phase == Ending {
				c := *left
				t.doneOn(&c, name)
			}
		}
	}
}

// dateEvents adds to what happened to nodes and reservations when that was, and a node that has just become empty
// while it is drained.
func (t *tx) dateEvents() {
	for _, name := range t.emptied {
		if n, ok := t.nodes.Get(name); ok && n.Drain {
			t.events = append(t.events, Event{Node: n})
		}
	}
	for i := range t.events {
		e := &t.events[i]
		if e.Node != nil {
			e.Idle = len(t.Load(e.Node.Name).Jobs) == 0
		}
		if e.Node != nil || e.Resv != nil || e.Gone != "" {
			e.At = t.at
		}
	}
}
