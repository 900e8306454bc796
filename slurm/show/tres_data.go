package show

import (
	"slices"
	"strconv"
	"strings"

	"dev.muster/slurm/data"
	"dev.muster/slurm/front"
)

// Killer is who has cancelled a job or step.
func Killer(uid *uint32) data.Value {
	if uid == nil {
		return data.Unset
	}
	if u, ok := front.UserByID(*uid); ok {
		return data.Text(u.Name)
	}
	return data.Num(*uid)
}

// TRESRow is so much of a resource.
type TRESRow struct {
	Type, Name string
	ID         int
	Count      int64
}

// TRESTable makes the objects of amounts.
var TRESTable = data.Table[TRESRow]{Schema: "tres", Members: []data.Member[TRESRow]{
	{Path: "type", Of: func(t *TRESRow) data.Value { return data.Text(t.Type) }},
	{Path: "name", Of: func(t *TRESRow) data.Value { return data.Text(t.Name) }},
	{Path: "id", Of: func(t *TRESRow) data.Value { return data.Num(t.ID) }},
	{Path: "count", Of: func(t *TRESRow) data.Value { return data.Num(t.Count) }},
}}

// TRESList is a text of amounts as a list: {type, name, id, count} each, memory in megabytes.
func TRESList(v *View, text string) data.Value {
	return data.Records(&TRESTable, TRESRows(v, text))
}

// TRESRows are the amounts of a text.
func TRESRows(v *View, text string) (rows []TRESRow) {
	for _, word := range front.SplitList(text) {
		tres, amount, _ := strings.Cut(word, "=")
		count, err := strconv.ParseInt(strings.TrimSuffix(amount, "M"), 10, 64)
		if err != nil {
			continue
		}
		rows = append(rows, NewTRES(v.AllBooks(), tres, count))
	}
	return rows
}

// NewTRES is so much of a resource by its name.
func NewTRES(b *Books, tres string, count int64) TRESRow {
	kind, name, _ := strings.Cut(tres, "/")
	return TRESRow{Type: kind, Name: name, ID: TRESID(b, tres), Count: count}
}

// TRESID is the number of a resource, as sacctmgr show tres has it; 0: it is not tracked.
func TRESID(b *Books, tres string) int {
	if k := slices.Index(SlurmTRES(), tres); k >= 0 {
		return k + 1
	}
	if k := slices.Index(b.TRES, tres); k >= 0 {
		return firstOwnTRES + k
	}
	return 0
}

// firstOwnTRES is the number of the first resource that the configuration names.
const firstOwnTRES = 1001
