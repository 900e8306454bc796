package report

import (
	"math"

	"dev.muster/cluster"
	"dev.muster/slurm/data"
	"dev.muster/slurm/front"
	"dev.muster/slurm/show"
)

// sharesTable makes the objects of shares.
var sharesTable = data.Table[shareRow]{Schema: "assoc_shares_obj_wrap", Members: []data.Member[shareRow]{
	{Path: "id", Of: func(r *shareRow) data.Value { return data.Num(r.Association.ID) }},
	{Path: "cluster", Of: func(r *shareRow) data.Value { return data.Text(r.books.Cluster) }},
	{Path: "name", Of: func(r *shareRow) data.Value {
		return data.Text(front.Choose(r.Association.User == "", r.Association.Account, r.Association.User))
	}},
	{Path: "parent", Of: func(r *shareRow) data.Value {
		if r.Association.User != "" {
			return data.Text(r.Association.Account)
		}
		b := show.Books{BooksResponse: *r.books}
		if p := b.Assoc(r.Parent); p != nil {
			return data.Text(p.Account)
		}
		return data.Unset
	}},
	{Path: "partition", Of: func(r *shareRow) data.Value { return data.Text(r.Association.Partition) }},
	{Path: "shares_normalized", Of: func(r *shareRow) data.Value { return data.Float(r.stand.NormShares) }},
	{Path: "shares", Of: func(r *shareRow) data.Value {
		if r.root() || r.Shares == cluster.ShareParent {
			return data.Unset
		}
		return data.Num(r.Shares)
	}},
	{Path: "tres.run_seconds", Of: func(r *shareRow) data.Value {
		return data.Records(&shareNumTable, r.tracked(func(name string) data.Value {
			return data.Num(int64(cluster.AmountOf(r.books.RunMins[r.Association.ID], name) * 60))
		}))
	}},
	{Path: "tres.group_minutes", Of: func(r *shareRow) data.Value {
		return data.Records(&shareNumTable, r.tracked(func(name string) data.Value {
			if n, ok := r.Limits.Get("GrpTRESMins", name); ok {
				return data.Num(n)
			}
			return data.Infinite
		}))
	}},
	{Path: "tres.usage", Of: func(r *shareRow) data.Value {
		return data.Records(&shareFloatTable,
			r.tracked(func(name string) data.Value { return data.Float(cluster.AmountOf(r.Spent.TRES, name)) }))
	}},
	{Path: "effective_usage", Of: func(r *shareRow) data.Value {
		if r.root() {
			return data.Float(1)
		}
		return data.Float(r.stand.Usage)
	}},
	{Path: "usage_normalized", Of: func(r *shareRow) data.Value {
		if r.root() {
			return data.Unset
		}
		return data.Float(r.stand.NormUsage)
	}},
	{Path: "usage", Of: func(r *shareRow) data.Value { return data.Num(int64(r.Spent.Raw)) }},
	{Path: "fairshare.factor", Of: func(r *shareRow) data.Value { return data.Float(r.FairShare) }},
	{Path: "fairshare.level", Of: func(r *shareRow) data.Value {
		switch {
		case r.root() || r.Shares == cluster.ShareParent || r.books.Priority.NoFairTree:
			return data.Unset
		case math.IsInf(r.stand.LevelFS, 1):
			return data.Infinite
		}
		return data.Float(r.stand.LevelFS)
	}},
	{Path: "type", Of: func(r *shareRow) data.Value {
		return data.Words(front.Choose(r.Association.User == "", "ASSOCIATION", "USER"))
	}},
}}

// shareTRES is so much of a resource.
type shareTRES struct {
	name  string
	value data.Value
}

func (r *shareRow) tracked(of func(string) data.Value) []shareTRES {
	var list []shareTRES
	for _, name := range TrackedTRES(r.books) {
		list = append(list, shareTRES{name, of(name)})
	}
	return list
}

var shareNumTable = data.Table[shareTRES]{Schema: "shares_uint64_tres", Members: []data.Member[shareTRES]{
	{Path: "name", Of: func(t *shareTRES) data.Value { return data.Text(t.name) }},
	{Path: "value", Of: func(t *shareTRES) data.Value { return t.value }},
}}

var shareFloatTable = data.Table[shareTRES]{Schema: "shares_float128_tres", Members: []data.Member[shareTRES]{
	{Path: "name", Of: func(t *shareTRES) data.Value { return data.Text(t.name) }},
	{Path: "value", Of: func(t *shareTRES) data.Value { return t.value }},
}}

// allShares is the whole answer.
type allShares struct {
	rows  []shareRow
	total int64
}

var allSharesTable = data.Table[allShares]{Schema: "shares_resp_msg", Members: []data.Member[allShares]{
	{Path: "shares", Of: func(a *allShares) data.Value { return data.Records(&sharesTable, a.rows) }},
	{Path: "total_shares", Of: func(a *allShares) data.Value { return data.Num(a.total) }},
}}

func sharesOf(rows []shareRow) *allShares {
	a := &allShares{rows: rows}
	for i := range rows {
		a.total += int64(max(rows[i].Shares, 0))
	}
	return a
}
