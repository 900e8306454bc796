package hooks

import (
	"context"
	"iter"
	"log/slog"
	"slices"
	"sync"
	"time"

	"dev.muster/cluster"
)

// How many hooks are done at a time, and how their ends are told.
const (
	atOnce      = 64                    // but for those of burst buffers
	atOnceFor   = 8                     // of those that one user has the say over
	burstAtOnce = 128                   // calls of one stage, as in Slurm
	newsAtOnce  = 16                    // messages to channels of the site
	gatherTime  = 20 * time.Millisecond // what ends within this is told in one entry
)

// lane is hooks that are done beside others: long ones of one kind keep nothing else from being done.
type lane struct {
	atOnce int
	calls  []cluster.BurstCall // for burst buffers; none: all other hooks
	// users says that users have the say over how long they take: these are those for nobody but them, and each of
	// them has a few at a time.
	users bool
	// news says that these are messages to channels.
	news bool
}

var lanes = [...]lane{
	{atOnce: atOnce},
	{atOnce: atOnce, users: true},
	{atOnce: newsAtOnce, news: true},
	{atOnce: burstAtOnce, calls: []cluster.BurstCall{cluster.CallSetup, cluster.CallDataIn}},
	{atOnce: burstAtOnce, calls: []cluster.BurstCall{cluster.CallPreRun}},
	{atOnce: burstAtOnce, calls: []cluster.BurstCall{cluster.CallPostRun, cluster.CallDataOut}},
	{atOnce: burstAtOnce, calls: []cluster.BurstCall{cluster.CallTeardown}},
}

// usersKinds are the hooks that tell a user of something, or run a user's program.
var usersKinds = [...]cluster.HookKind{cluster.HookMail, cluster.HookCall, cluster.HookTrigger}

func (l *lane) takes(e *cluster.Hook) bool {
	switch {
	case e.Kind == cluster.HookBurst:
		return slices.Contains(l.calls, e.Burst)
	case l.calls != nil:
		return false
	}
	return l.users == slices.Contains(usersKinds[:], e.Kind) && l.news == (e.Kind == cluster.HookChannel)
}

// userOf is the user who has the say over a hook.
func userOf(e *cluster.Hook) uint32 {
	switch {
	case e.Trigger != nil:
		return e.Trigger.UID
	case e.Job != nil:
		return e.Job.Spec.UID
	}
	return 0
}

// underway are the hooks of a lane that are being done.
type underway map[uint64]work

// work is one of them.
type work struct {
	stop context.CancelFunc
	user uint32
}

// next are the hooks that are to be begun beside those under way.
func (l *lane) next(hooks iter.Seq[*cluster.Hook], busy underway) (list []*cluster.Hook) {
	of := map[uint32]int{}
	for _, w := range busy {
		of[w.user]++
	}
	for e := range hooks {
		if len(busy)+len(list) >= l.atOnce {
			break
		}
		user := userOf(e)
		_, begun := busy[e.ID]
		if begun || !l.takes(e) || l.users && user != 0 && of[user] >= atOnceFor {
			continue
		}
		of[user]++
		list = append(list, e)
	}
	return list
}

// Run does for one term what the state says is to be done outside, and tells what came of it.
func (r *Runner) Run(term context.Context) {
	if r.Dialect == nil {
		return
	}
	var all sync.WaitGroup
	defer all.Wait()
	for i := range lanes {
		all.Go(func() { r.run(term, &lanes[i]) })
	}
}

// run does hooks of one lane. Hooks that the state no longer has are stopped.
func (r *Runner) run(term context.Context, of *lane) {
	busy := underway{}
	ends, began := make(chan cluster.HookEnd), time.Now()
	running := 0
	defer func() {
		for ; running > 0; running-- {
			<-ends // they end with the term; the next leader does them again
		}
	}()
	for {
		moved := r.Server.Moved()
		snap := r.Server.Committed()
		if _, full := snap.HookCount(); full && of.users {
			r.Log.Warn("messages about jobs are left out: too many wait to be sent")
		}
		stopGone(snap, of, busy)
		for _, e := range of.next(snap.Hooks(), busy) {
			one, stop := context.WithCancel(term)
			busy[e.ID] = work{stop, userOf(e)}
			running++
			go func() { ends <- r.do(one, e, snap.Config(), e.At.Before(began)) }()
		}
		select {
		case <-term.Done():
			return
		case <-moved:
		case end := <-ends:
			over := r.gather(ends, end)
			running -= len(over)
			if term.Err() != nil {
				return // whatever was killed by that has not been done
			}
			r.tellEnds(term, over)
			for _, e := range over {
				busy[e.ID].stop()
				delete(busy, e.ID)
			}
		}
	}
}

// stopGone stops the hooks that the state does not say any more.
func stopGone(snap *cluster.Snapshot, of *lane, busy underway) {
	if of.calls == nil || len(busy) == 0 {
		return
	}
	wanted := map[uint64]bool{}
	for e := range snap.Hooks() {
		wanted[e.ID] = true
	}
	for id, w := range busy {
		if !wanted[id] {
			w.stop()
		}
	}
}

// tellEnds tells what came of hooks, until that is written down or the term ends.
func (r *Runner) tellEnds(term context.Context, over []cluster.HookEnd) {
	for {
		err := r.Server.Done(term, over)
		if err == nil || term.Err() != nil {
			return
		}
		r.Log.Warn("ends of hooks were not taken", "err", err)
		select {
		case <-term.Done():
		case <-time.After(time.Second):
		}
	}
}

// gather waits a little for more ends.
func (r *Runner) gather(ends <-chan cluster.HookEnd, first cluster.HookEnd) []cluster.HookEnd {
	out := []cluster.HookEnd{first}
	for limit := time.After(gatherTime); len(out) < atOnce; {
		select {
		case e := <-ends:
			out = append(out, e)
		case <-limit:
			return out
		}
	}
	return out
}

// do runs one hook and says why it failed, if it did. It may be one that an earlier leader has done and not
// told of.
func (r *Runner) do(term context.Context, e *cluster.Hook, cfg *cluster.Config, again bool) cluster.HookEnd {
	var err error
	switch e.Kind {
	case cluster.HookBurst:
		return r.Stage(term, e, cfg, again)
	case cluster.HookCall:
		err = r.callUser(term, e, cfg)
	case cluster.HookChannel:
		err = r.notifyChannel(term, e, cfg)
	case cluster.HookRetain:
		err = r.Retain(term, e, cfg)
	default:
		err = r.Program(term, e, cfg, again)
	}
	if err == nil {
		return cluster.HookEnd{ID: e.ID}
	}
	if term.Err() == nil {
		about := slog.Any("node", e.Nodes)
		if e.Job != nil {
			about = slog.Any("job", e.Job.ID)
		} else if e.Reservation != "" {
			about = slog.Any("reservation", e.Reservation)
		} else if e.News != nil {
			about = slog.Any("channel", e.News.Channel)
		}
		r.Log.Warn("a hook failed", "kind", e.Kind, about, "err", err)
	}
	return cluster.HookEnd{ID: e.ID, Failed: err.Error()}
}

// Turns runs the programs of a server that begins to lead, or leads no longer, one after the other.
func (r *Runner) Turns(ctx context.Context, turns <-chan cluster.HookKind) {
	for kind := range turns {
		e := &cluster.Hook{Kind: kind}
		cfg := r.Server.Snapshot().Config()
		begins := kind == cluster.HookLead && cfg.LeadProgram != ""
		ends := kind == cluster.HookFollow && cfg.FollowProgram != ""
		if begins || ends {
			r.do(ctx, e, cfg, false)
		}
	}
}
