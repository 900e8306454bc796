package cluster

import (
	"iter"
	"slices"
	"strings"
	"time"
)

// A trigger has the leader run a program when something happens: once, or each time if it is permanent (strigger).
// All events of nodes within triggerGather are in one call, so that a lost switch runs one program.

// TriggerEvent is what a trigger waits for.
type TriggerEvent string

// The events, in Slurm's words: of nodes, of jobs, of the servers and of what muster has none of.
const (
	TriggerDown     TriggerEvent = "down"
	TriggerUp       TriggerEvent = "up"
	TriggerDrained  TriggerEvent = "drained"
	TriggerDraining TriggerEvent = "draining"
	TriggerResume   TriggerEvent = "resume"
	TriggerFail     TriggerEvent = "fail"
	TriggerIdle     TriggerEvent = "idle"
	TriggerReconfig TriggerEvent = "reconfig"
	TriggerTime     TriggerEvent = "time"
	TriggerFini     TriggerEvent = "fini"

	TriggerLeaderLost   TriggerEvent = "primary_slurmctld_failure"
	TriggerLeaderBegins TriggerEvent = "primary_slurmctld_resumed_operation"
	TriggerLeaderTakes  TriggerEvent = "primary_slurmctld_resumed_control"
	TriggerAnotherLeads TriggerEvent = "backup_slurmctld_assumed_control"
	TriggerAcctFull     TriggerEvent = "primary_slurmctld_acct_buffer_full"
	TriggerServerLost   TriggerEvent = "server_lost" // muster's own, as the next: any server but the leader
	TriggerServerBack   TriggerEvent = "server_back"
	TriggerDbdLost      TriggerEvent = "primary_slurmdbd_failure"
	TriggerDbdBack      TriggerEvent = "primary_slurmdbd_resumed_operation"
	TriggerDatabaseLost TriggerEvent = "primary_database_failure"
	TriggerDatabaseBack TriggerEvent = "primary_database_resumed_operation"
	TriggerBurstBuffer  TriggerEvent = "burst_buffer"
)

// TriggerKind is what an event is of.
type TriggerKind string

// The kinds, by Slurm's names.
const (
	OfNodes    TriggerKind = "node"
	OfJob      TriggerKind = "job"
	OfServers  TriggerKind = "slurmctld"
	OfDbd      TriggerKind = "slurmdbd"
	OfDatabase TriggerKind = "database"
	OfOther    TriggerKind = "other"
)

// triggerKinds says what events are of; of the last ones muster has nothing, so they never come.
var triggerKinds = [...]struct {
	kind   TriggerKind
	events [8]TriggerEvent
}{
	{OfNodes, [8]TriggerEvent{TriggerDown, TriggerUp, TriggerDrained, TriggerDraining,
		TriggerResume, TriggerFail, TriggerIdle, TriggerReconfig}},
	{OfJob, [8]TriggerEvent{TriggerTime, TriggerFini}},
	{OfServers, [8]TriggerEvent{TriggerLeaderLost, TriggerLeaderBegins, TriggerLeaderTakes,
		TriggerAnotherLeads, TriggerAcctFull, TriggerServerLost, TriggerServerBack}},
	{OfDbd, [8]TriggerEvent{TriggerDbdLost, TriggerDbdBack}},
	{OfDatabase, [8]TriggerEvent{TriggerDatabaseLost, TriggerDatabaseBack}},
	{OfOther, [8]TriggerEvent{TriggerBurstBuffer}},
}

// kind is what an event is of; "" if there is no such event.
func (e TriggerEvent) kind() TriggerKind {
	for i := range triggerKinds {
		if e != "" && slices.Contains(triggerKinds[i].events[:], e) {
			return triggerKinds[i].kind
		}
	}
	return ""
}

// Bounds of triggers.
const (
	// triggerGather is how long a program waits for more of what it is run for.
	triggerGather = 2 * time.Second
	maxTriggers   = 1000
	maxTriggersOf = 100 // of one user who is no operator
	maxProgram    = 4096
)

// Trigger is one.
type Trigger struct {
	ID     uint32         `json:"id"`
	UID    uint32         `json:"uid"` // who has set it, and as whom the program runs
	Events []TriggerEvent `json:"events"`
	Job    JobID          `json:"job,omitempty"`   // it is about this job, or about its nodes
	Nodes  []NodeName     `json:"nodes,omitempty"` // it is about these; none: all, or those of the job
	// Offset is how long after the event the program runs; before it, if that is negative and the event is a job's
	// time limit. Of idle it is how long a node has been so.
	Offset  time.Duration `json:"offset,omitempty"`
	Program string        `json:"program"` // a path and arguments, parted by blanks
	// News is what a channel of the site is notified of, in place of a program.
	News      *ChannelNews `json:"news,omitempty"`
	Permanent bool         `json:"permanent,omitempty"`
	Ran       time.Time    `json:"ran,omitzero"` // when it was run last

	// Due is when the program is to be run, for the nodes Hit; zero: nothing has happened yet.
	Due time.Time  `json:"due,omitzero"`
	Hit []NodeName `json:"hit,omitempty"`
}

// Triggers are those that there are, and the number of the last one. They are replaced, never changed.
type Triggers struct {
	Last uint32    `json:"last"`
	List []Trigger `json:"list,omitempty"`
}

// TriggerRun is the program of a trigger that was met.
type TriggerRun struct {
	ID      uint32 `json:"id"`
	UID     uint32 `json:"uid"`
	Program string `json:"program"`
	// Job, or else Nodes of the hook, or else Event is what it is told.
	Job   JobID        `json:"job,omitempty"`
	Event TriggerEvent `json:"event,omitempty"`
}

// Triggers yields the triggers by number.
func (b *books) Triggers() iter.Seq[*Trigger] {
	return func(yield func(*Trigger) bool) {
		if b.triggers == nil {
			return
		}
		for i := range b.triggers.List {
			if !yield(&b.triggers.List[i]) {
				return
			}
		}
	}
}

// Kind is what the trigger is about.
func (g *Trigger) Kind() TriggerKind {
	if g.Job != 0 {
		return OfJob
	}
	return g.Events[0].kind()
}

func (g *Trigger) awaits(e TriggerEvent) bool { return slices.Contains(g.Events, e) }

// TriggersOfUsers reports whether the site lets users set triggers: their programs run on the servers.
func (c *Config) TriggersOfUsers() bool {
	words := strings.Split(strings.ToLower(c.Keys["slurmctldparameters"]), ",")
	return slices.Contains(words, "allow_user_triggers")
}

func putTriggers(t *tx, next *Triggers) {
	keepOld(t, &t.triggers)
	t.triggers = next
}

// changeTriggers replaces each trigger by what f makes of it, or drops it where f says so. f must not change what it
// is given.
func changeTriggers(t *tx, f func(g Trigger) (next Trigger, keep bool)) {
	if t.triggers == nil {
		return
	}
	next := Triggers{Last: t.triggers.Last}
	for _, g := range t.triggers.List {
		if g, keep := f(g); keep {
			next.List = append(next.List, g)
		}
	}
	putTriggers(t, &next)
}

// TriggerSet makes a trigger. Result: its number.
type TriggerSet struct {
	Trigger Trigger `json:"trigger"`
}

func (*TriggerSet) kind() string { return "trigger_set" }

func (c *TriggerSet) apply(t *tx) (any, error) {
	g := c.Trigger
	if err := mayTrigger(t); err != nil {
		return nil, err
	}
	if err := g.check(t); err != nil {
		return nil, err
	}
	next := Triggers{}
	if t.triggers != nil {
		next.Last = t.triggers.Last
		next.List = slices.Clone(t.triggers.List)
	}
	next.Last++
	g.ID = next.Last
	g.UID = t.by.UID
	g.News = nil
	g.Due = time.Time{}
	g.Hit = nil
	g.Ran = time.Time{}
	next.List = append(next.List, g)
	putTriggers(t, &next)
	return g.ID, nil
}

// mayTrigger refuses triggers of those whose programs may not run on the servers.
func mayTrigger(t *tx) error {
	slurmUser := t.config.ServerUser
	switch {
	case t.by.NodeRoot:
	case t.by.UID == 0, t.by.Admin, slurmUser != "" && t.by.User == slurmUser, t.config.TriggersOfUsers():
		return nil
	}
	return Errorf(Denied, ErrAccess,
		"only root and SlurmUser set triggers, unless SlurmctldParameters has allow_user_triggers")
}

// check refuses what is no trigger, and more of them than may be.
func (g *Trigger) check(t *tx) error {
	if len(g.Events) == 0 || len(g.Program) > maxProgram || !strings.HasPrefix(g.Program, "/") {
		return Errorf(Invalid, "", "a trigger has an event, and a program with its whole path (%d bytes at most)",
			maxProgram)
	}
	for _, e := range g.Events {
		if err := g.checkEvent(e); err != nil {
			return err
		}
	}
	if err := g.checkJob(t); err != nil {
		return err
	}
	for _, n := range g.Nodes {
		if _, ok := t.nodes.Get(n); !ok {
			return Errorf(NotFound, ErrNodeName, "there is no node %s", n)
		}
	}
	switch {
	case t.triggers == nil:
	case len(t.triggers.List) >= maxTriggers+maxChannels*len(channelEvents):
		return Errorf(Conflict, "", "there are %d triggers, and no more may be: clear some", maxTriggers)
	case slices.ContainsFunc(t.triggers.List, g.same):
		return Errorf(Conflict, ErrTrigger, "there is such a trigger")
	}
	return nil
}

// room refuses a trigger that names very much, and more of them than a user may have who is named.
func (c *TriggerSet) room(s *Snapshot) error {
	g, events := &c.Trigger, len(triggerKinds[0].events)
	if len(g.Events) > events || len(g.Nodes) > s.NodeCount() {
		return Errorf(Invalid, ErrTooBig, "a trigger of %d events and %d nodes: there are %d and %d",
			len(g.Events), len(g.Nodes), events, s.NodeCount())
	}
	own := 0
	for other := range s.Triggers() {
		if other.UID == g.UID {
			own++
		}
	}
	return refuseIf(g.UID != 0 && own >= maxTriggersOf,
		Conflict, ErrTooBig, "user %d has %d triggers, and no more may be: clear some", g.UID, own)
}

func (g *Trigger) checkEvent(e TriggerEvent) error {
	kind := e.kind()
	ofJob := kind == OfJob
	aboutJob := g.Job != 0
	ofNodes := kind == OfNodes && e != TriggerReconfig && e != TriggerIdle
	return firstError(
		refuseIf(kind == "",
			Invalid, "", "there is no event %q", e),
		refuseIf(kind != g.Events[0].kind(),
			Invalid, "", "a trigger is about one thing: %s is not of what %s is", e, g.Events[0]),
		refuseIf(ofJob && !aboutJob,
			Invalid, ErrJobID, "the event %s is of a job", e),
		refuseIf(aboutJob && !ofJob && !ofNodes,
			Invalid, ErrJobID, "the event %s is of no job", e),
	)
}

func (g *Trigger) checkJob(t *tx) error {
	if g.Job == 0 {
		return nil
	}
	if !anyGoesOn(t.tables, g.Job) {
		return Errorf(NotFound, ErrJobID, "there is no job %d that goes on", g.Job)
	}
	if j, ok := t.jobs.Get(g.Job); ok && j.Spec.UID != t.by.UID && !t.by.Operator() {
		return Errorf(Denied, ErrUser, "job %d is another user's", g.Job)
	}
	return nil
}

// anyGoesOn reports whether there is such a job, or array, and it has not ended.
func anyGoesOn(t *tables, id JobID) bool {
	if j, ok := t.jobs.Get(id); ok && j.Phase != Ended {
		return true
	}
	for m := range t.Members(id) {
		if m.Phase != Ended {
			return true
		}
	}
	return false
}

// same reports whether two triggers want the same.
func (g *Trigger) same(o Trigger) bool {
	if g.Job != o.Job || g.Offset != o.Offset || g.Program != o.Program {
		return false
	}
	return slices.Equal(g.Events, o.Events) && slices.Equal(g.Nodes, o.Nodes)
}

// TriggerClear takes triggers away: by number, of a job, of a user. Empty conditions do not matter. Result: how many.
type TriggerClear struct {
	ID  uint32  `json:"id,omitempty"`
	Job JobID   `json:"job,omitempty"`
	UID *uint32 `json:"uid,omitempty"`
}

func (*TriggerClear) kind() string { return "trigger_clear" }

// wants reports whether the trigger is one of those that are meant.
func (c *TriggerClear) wants(g *Trigger) bool {
	switch {
	case c.ID != 0 && c.ID != g.ID, c.Job != 0 && c.Job != g.Job, g.News != nil:
		return false
	}
	return c.UID == nil || *c.UID == g.UID
}

func (c *TriggerClear) apply(t *tx) (any, error) {
	if c.ID == 0 && c.Job == 0 && c.UID == nil {
		return nil, Errorf(Invalid, "", "say which triggers are cleared: by number, job or user")
	}
	gone := 0
	for g := range t.Triggers() {
		if !c.wants(g) {
			continue
		}
		if g.UID != t.by.UID && !t.by.Operator() {
			return nil, Errorf(Denied, ErrAccess, "trigger %d is another user's", g.ID)
		}
		gone++
	}
	if gone == 0 {
		return nil, Errorf(NotFound, ErrNoTrigger, "there is no such trigger")
	}
	changeTriggers(t, func(g Trigger) (Trigger, bool) { return g, !c.wants(&g) })
	return gone, nil
}

// TriggerServer says that one of the events of servers has happened.
type TriggerServer struct {
	Events []TriggerEvent `json:"events"`
	Server string         `json:"server,omitempty"` // which one, for messages to channels
}

func (*TriggerServer) kind() string { return "trigger_server" }

func (c *TriggerServer) apply(t *tx) (any, error) {
	if !t.by.System {
		return nil, Errorf(Denied, ErrUser, "the leader says what happens to servers")
	}
	for _, e := range c.Events {
		if e.kind() == OfServers {
			meet(t, func(g *Trigger) bool { return g.awaits(e) }, e, c.Server)
		}
	}
	return nil, nil
}

// happened meets the triggers that wait for an event of the whole cluster.
func happened(t *tx, e TriggerEvent) {
	meet(t, func(g *Trigger) bool { return g.awaits(e) }, e, "")
}

// meet meets the triggers that f picks: they are due after their offset. server is the server that the event is about,
// or "".
func meet(t *tx, f func(*Trigger) bool, e TriggerEvent, server string) {
	var met bool
	for g := range t.Triggers() {
		met = met || f(g)
	}
	if !met {
		return
	}
	changeTriggers(t, func(g Trigger) (Trigger, bool) {
		if !f(&g) {
			return g, true
		}
		wait := max(g.Offset, 0)
		if wait == 0 {
			runTrigger(t, &g, e, server)
			return g, g.Permanent
		}
		if g.Due.IsZero() {
			g.Due = t.at.Add(wait)
		}
		return g, true
	})
}

// runTrigger sends the hook of a trigger, which waits from now on for what comes next.
func runTrigger(t *tx, g *Trigger, e TriggerEvent, server string) {
	run := &TriggerRun{
		ID:      g.ID,
		UID:     g.UID,
		Program: g.Program,
		Job:     g.Job,
	}
	if g.Job == 0 && len(g.Hit) == 0 {
		run.Event = e
	}
	if g.News != nil {
		news := *g.News
		news.Note = server + reasonsOf(t.tables, g.Hit)
		sendNews(t, &news, nil, g.Hit)
	} else {
		t.send(Hook{Kind: HookTrigger, Trigger: run, Nodes: g.Hit})
	}
	g.Due = time.Time{}
	g.Hit = nil
	g.Ran = t.at
}

// watchNode meets the triggers of what has become of a node.
func watchNode(t *tx, old, n *Node) {
	if t.triggers == nil || old == nil || n == nil {
		return
	}
	busy := len(t.Load(n.Name).Jobs) > 0
	for _, w := range nodeEvents {
		if w.is(n, busy) && !w.is(old, busy) {
			hitNode(t, n, w.event)
		}
	}
}

// nodeHit is that something has happened to a node.
type nodeHit struct {
	node  NodeName
	event TriggerEvent
}

// hitNode meets the triggers that wait for an event of the nodes of a job. Those of nodes are met at the end of the
// command (gatherHits): a switch that is lost has many nodes.
func hitNode(t *tx, n *Node, e TriggerEvent) {
	meet(t, func(g *Trigger) bool {
		if g.Job == 0 || !g.awaits(e) {
			return false
		}
		j, ok := t.jobs.Get(g.Job)
		return ok && j.Alloc != nil &&
			slices.ContainsFunc(j.Alloc.Shares, func(sh Share) bool { return sh.Node == n.Name })
	}, e, "")
	t.hits = append(t.hits, nodeHit{n.Name, e})
}

// gatherHits meets the triggers of what has happened to nodes: they are due after their offset, and a moment later at
// the earliest.
func gatherHits(t *tx) {
	if len(t.hits) == 0 {
		return
	}
	next := map[uint32]Trigger{}
	for g := range t.Triggers() {
		if met, ok := g.hitBy(t.hits, t.at); ok {
			next[g.ID] = met
		}
	}
	if len(next) == 0 {
		return
	}
	changeTriggers(t, func(g Trigger) (Trigger, bool) {
		if met, ok := next[g.ID]; ok {
			return met, true
		}
		return g, true
	})
}

// hitBy is the trigger after what has happened to nodes, if it waits for some of that.
func (g *Trigger) hitBy(hits []nodeHit, at time.Time) (met Trigger, ok bool) {
	if g.Job != 0 || !slices.ContainsFunc(hits, func(h nodeHit) bool { return g.awaits(h.event) }) {
		return met, false
	}
	about, known := setOf(g.Nodes), setOf(g.Hit)
	met = *g
	met.Hit = slices.Clip(met.Hit)
	for _, h := range hits {
		if !g.awaits(h.event) || len(about) > 0 && !about[h.node] {
			continue
		}
		ok = true
		if !known[h.node] {
			known[h.node] = true
			met.Hit = append(met.Hit, h.node)
		}
	}
	if met.Due.IsZero() {
		met.Due = at.Add(max(g.Offset, triggerGather))
	}
	return met, ok
}

// setOf is a list of names as a set.
func setOf(list []NodeName) map[NodeName]bool {
	set := make(map[NodeName]bool, len(list))
	for _, name := range list {
		set[name] = true
	}
	return set
}

// nodeEvents are the states of nodes of which the begin is an event.
var nodeEvents = [...]struct {
	event TriggerEvent
	is    func(n *Node, busy bool) bool
}{
	{TriggerDown, func(n *Node, _ bool) bool { return n.lostOrDown() }},
	{TriggerUp, func(n *Node, _ bool) bool { return n.Up && !n.Down }},
	{TriggerDraining, func(n *Node, busy bool) bool { return n.Drain && busy }},
	{TriggerDrained, func(n *Node, busy bool) bool { return n.Drain && !busy }},
	{TriggerResume, func(n *Node, _ bool) bool { return !n.Drain && (!n.Down || n.Silent) }},
	{TriggerFail, func(n *Node, _ bool) bool { return n.Failing }},
}

// lostOrDown reports whether a node that should be there is not: set down, or not heard of.
func (n *Node) lostOrDown() bool {
	return n.Down || !n.Up && !n.Off() && !n.Reboot.Issued()
}

// watchEmptied meets the triggers of nodes that were drained while jobs were on them, and have none any more.
func watchEmptied(t *tx) {
	if t.triggers == nil {
		return
	}
	for _, name := range t.emptied {
		if n, ok := t.nodes.Get(name); ok && n.Drain {
			hitNode(t, n, TriggerDrained)
		}
	}
}

// watchJob meets the triggers of a job that ends, or has reached its time limit. Of an array the first number stands
// for all of its tasks.
func watchJob(t *tx, old, j *Job) {
	if t.triggers == nil {
		return
	}
	if timesOut(old, j) {
		meet(t, func(g *Trigger) bool {
			return g.Job == j.ID && g.awaits(TriggerTime)
		}, TriggerTime, "")
	}
	if !endsNow(old, j) {
		return
	}
	over := []JobID{j.ID}
	switch {
	case j.ArrayID == 0:
	case t.TasksOver(j.ArrayID):
		over = append(over, j.ArrayID)
	case j.ID == j.ArrayID: // a task of it
		return
	}
	meet(t, func(g *Trigger) bool {
		return slices.Contains(over, g.Job) && g.awaits(TriggerFini)
	}, TriggerFini, "")
}

// dropTriggers takes away the triggers of a job that nobody knows any more.
func dropTriggers(t *tx, id JobID) {
	of := func(g *Trigger) bool {
		return g.Job == id && g.Due.IsZero()
	}
	for g := range t.Triggers() {
		if of(g) {
			changeTriggers(t, func(g Trigger) (Trigger, bool) { return g, !of(&g) })
			return
		}
	}
}

// TriggersDue runs the programs whose time has come.
type TriggersDue struct{}

func (*TriggersDue) kind() string { return "triggers_due" }

func (*TriggersDue) apply(t *tx) (any, error) {
	if !t.by.System {
		return nil, Errorf(Denied, ErrUser, "the leader says when programs are run")
	}
	changeTriggers(t, func(g Trigger) (Trigger, bool) {
		at, hit := g.dueAt(t.tables, t.at)
		if at.IsZero() || at.After(t.at) {
			return g, true
		}
		g.Hit = hit
		runTrigger(t, &g, g.Events[0], "")
		return g, g.Permanent && g.Job == 0
	})
	return nil, nil
}

// triggersDue is what runs the programs that are due at now, nil if none is, and when the next one is.
func triggersDue(t *tables, now time.Time) (c Command, next time.Time) {
	for g := range t.Triggers() {
		at, _ := g.dueAt(t, now)
		switch {
		case at.IsZero():
		case at.After(now):
			next = sooner(next, at)
		default:
			c = &TriggersDue{}
		}
	}
	return c, next
}

// dueAt is when a trigger's program is to be run, zero if that is not known yet, and for which nodes.
func (g *Trigger) dueAt(t *tables, now time.Time) (at time.Time, hit []NodeName) {
	switch {
	case !g.Due.IsZero():
		return g.Due, g.Hit
	case g.awaits(TriggerTime):
		if j, ok := t.jobs.Get(g.Job); ok && j.Phase == Running {
			if end := j.EndLimit(t.config); !end.IsZero() {
				return end.Add(g.Offset), nil
			}
		}
	case g.awaits(TriggerIdle):
		return g.idleFor(t, now)
	}
	return time.Time{}, nil
}

// idleFor is when the first node will have been idle for a trigger's offset since its program was last run; if that
// is over, hit are all of which it is true.
func (g *Trigger) idleFor(t *tables, now time.Time) (at time.Time, hit []NodeName) {
	of := nodeSet(g.Nodes)
	for n := range t.Nodes() {
		if len(t.Load(n.Name).Jobs) > 0 || !n.Usable() || len(of) > 0 && !of[n.Name] {
			continue
		}
		since := later(later(n.LastBusy, n.Registered), n.ReasonAt)
		end := since.Add(max(g.Offset, 0))
		if !end.After(g.Ran) { // it was told of
			continue
		}
		if !end.After(now) {
			hit = append(hit, n.Name)
		}
		at = sooner(at, end)
	}
	return at, hit
}
