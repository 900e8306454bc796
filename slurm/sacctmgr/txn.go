package sacctmgr

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"dev.muster/api"
	"dev.muster/cluster"
	"dev.muster/slurm/format"
	"dev.muster/slurm/front"
)

func txnColumns(name string) []front.Column[cluster.Transaction] {
	return []front.Column[cluster.Transaction]{
		{
			Name: "TimeStamp", Head: "Time", Width: 19,
			Of: func(x *cluster.Transaction) string { return format.Stamp(x.At, "Unknown") },
		},
		{Name: "Action", Head: "Action", Width: 20, Of: func(x *cluster.Transaction) string { return x.Action }},
		{Name: "Actor", Head: "Actor", Width: 10, Of: func(x *cluster.Transaction) string { return x.Actor }},
		{Name: "Where", Head: "Where", Width: 20, Of: func(x *cluster.Transaction) string { return x.Where }},
		{Name: "Info", Head: "Info", Width: 20, Of: func(x *cluster.Transaction) string { return x.Info }},
		{Name: "User", Head: "User", Width: 10, Of: func(x *cluster.Transaction) string { return x.User }},
		{Name: "Account", Head: "Account", Width: 10, Of: func(x *cluster.Transaction) string { return x.Account }},
		{Name: "Cluster", Head: "Cluster", Width: 10, Of: func(*cluster.Transaction) string { return name }},
	}
}

// isAction reports whether the books have such a transaction, in any case of letters.
func isAction(word string) bool {
	verb, kind, _ := strings.Cut(strings.ToLower(word), " ")
	return slices.Contains(strings.Fields("add modify remove"), verb) &&
		slices.Contains([]string{"users", "accounts", "associations", "qos", "clusters", "wckeys", "tres", "job",
			"account coords"}, kind)
}

// transactions is sacctmgr show transactions: who changed the books, and how.
func (m *manager) transactions(q *mgrQuery) int {
	for _, word := range q.where["action"] {
		if !isAction(word) {
			return m.wrong("sacctmgr: error: You gave a bad action '" + word + "'.")
		}
	}
	now := m.sys.Now().Local()
	from, to := time.Unix(0, 0), now.Add(time.Second)
	if text, pos := q.span(now, &from, &to); text != "" {
		return m.wrong(fmt.Sprintf("Invalid time specification (pos=%d): %s", pos, text))
	}
	resp, err := front.Call(m.sys, api.ListChanges, api.ChangesQuery{
		Time: cluster.Span{From: from.Unix(), To: to.Unix() + 1},
	})
	if err != nil {
		return m.wrong(" Problem with query: " + err.Error())
	}
	asked := func(action string) bool {
		same := func(word string) bool { return strings.EqualFold(word, action) }
		return len(q.where["action"]) == 0 || slices.ContainsFunc(q.where["action"], same)
	}
	rows := slices.DeleteFunc(resp.Changes, func(x cluster.Transaction) bool {
		return !q.has("account", x.Account) || !q.has("user", x.User) || !q.has("actor", strings.ToLower(x.Actor)) ||
			!asked(x.Action)
	})
	fields := "TimeStamp%19,Action,Actor,Where,Info" + front.Choose(q.withAssoc, ",User,Account,Cluster", "")
	return showTable(m, q, txnColumns(m.books.Cluster), fields, rows)
}
