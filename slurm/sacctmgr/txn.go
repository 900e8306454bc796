package sacctmgr

import (
	"slices"
	"strings"
	"time"

	"dev.muster/api"
	"dev.muster/cluster"
	"dev.muster/slurm/format"
	"dev.muster/slurm/front"
)

func txnColumns() []front.Column[cluster.Transaction] {
	return []front.Column[cluster.Transaction]{
		{
			Name: "TimeStamp", Head: "Time", Width: 19,
			Of: func(x *cluster.Transaction) string { return format.Stamp(x.At, "Unknown") },
		},
		{Name: "Action", Head: "Action", Width: 20, Of: func(x *cluster.Transaction) string { return x.Action }},
		{Name: "Actor", Head: "Actor", Width: 10, Of: func(x *cluster.Transaction) string { return x.Actor }},
		{Name: "Where", Head: "Where", Width: 20, Of: func(x *cluster.Transaction) string { return x.Where }},
		{Name: "Info", Head: "Info", Width: 20, Of: func(x *cluster.Transaction) string { return x.Info }},
	}
}

// transactions is sacctmgr show transactions: who changed the books, and how.
func (m *manager) transactions(q *mgrQuery) int {
	if q.withAssoc {
		return m.wrong("sacctmgr: error: muster's transactions have no associations beside them: leave withassoc out")
	}
	now := m.sys.Now().Local()
	from, to := time.Unix(0, 0), now.Add(time.Second)
	if text, _ := q.span(now, &from, &to); text != "" {
		return m.wrong(" Invalid time specification: " + text)
	}
	resp, err := front.Call(m.sys, api.ListChanges, api.ChangesQuery{
		Time: cluster.Span{From: from.Unix(), To: to.Unix() + 1},
	})
	if err != nil {
		return m.wrong(" Problem with query: " + err.Error())
	}
	rows := slices.DeleteFunc(resp.Changes, func(x cluster.Transaction) bool {
		return !q.has("account", x.Account) || !q.has("user", x.User) || !q.has("actor", strings.ToLower(x.Actor)) || !q.has("action", strings.ToLower(x.Action))
	})
	return showTable(m, q, txnColumns(), "TimeStamp%19,Action,Actor,Where,Info", rows)
}
