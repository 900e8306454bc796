package sacctmgr

import (
	"slices"
	"strconv"
	"strings"

	"dev.muster/slurm/front"
)

// condition is a word of sacctmgr show, modify and delete: alone, or as the key of KEY=VALUE.
type condition struct {
	least int // letters of a name that are enough
	names []string
	of    []string // entities; nil: all
	take  func(q *mgrQuery, value string)
}

// timed are the entities of which what is shown belongs to a time.
var timed = []string{"event", "transaction", "reservation", "job"}

// flags are the words that stand alone.
func flags() []condition {
	gone := []string{"account", "association", "cluster", "qos", "user"}
	assoc, placed := []string{"association"}, []string{"association", "account", "user"}
	return []condition{
		{5, []string{"withassoc"}, nil, func(q *mgrQuery, _ string) { q.withAssoc = true }},
		{4, []string{"tree"}, nil, func(q *mgrQuery, _ string) { q.tree = true }},
		{5, []string{"withcoordinator"}, nil, func(q *mgrQuery, _ string) { q.withCoord = true }},
		{3, []string{"all_time"}, []string{"event"}, func(q *mgrQuery, _ string) { q.from = "1970-01-02" }},
		{5, []string{"withdeleted"}, gone, func(q *mgrQuery, _ string) { q.withGone = true }},
		{5, []string{"withdeleted"}, []string{"tres"}, func(*mgrQuery, string) {}}, // none is ever
		{5, []string{"withclusters"}, []string{"resource"}, func(q *mgrQuery, _ string) { q.withAssoc = true }},
		{5, []string{"withrawqoslevel"}, placed, func(*mgrQuery, string) {}}, // lists of QOS are whole here
		{5, []string{"withsubaccounts"}, assoc, func(q *mgrQuery, _ string) { q.subAccounts = true }},
		{4, []string{"onlydefaults"}, assoc, func(q *mgrQuery, _ string) { q.onlyDefaults = true }},
		{4, []string{"wopinfo"}, assoc, func(q *mgrQuery, _ string) { q.noParents, q.ownLimits = true, true }},
		{4, []string{"woplimits"}, placed, func(q *mgrQuery, _ string) { q.ownLimits, q.noLimits = true, true }},
		{3, []string{"wolimits"}, []string{"association", "cluster"},
			func(q *mgrQuery, _ string) { q.noLimits = true }},
	}
}

// unknownFlag reports whether a word is one of Slurm's that change what is shown, and that muster's sacctmgr has not.
func unknownFlag(word string) bool {
	return front.IsKey(word, 5, "withdeleted", "withrawqoslevel", "withsubaccounts", "withclusters") ||
		front.IsKey(word, 3, "wolimits", "wopinfo", "woplimits", "onlydefaults")
}

// valued are the keys that mean something only with a value.
func valued() []condition {
	return []condition{
		{2, []string{"start", "starttime"}, timed, func(q *mgrQuery, v string) { q.from = v }},
		{2, []string{"end", "endtime"}, timed, func(q *mgrQuery, v string) { q.to = v }},
		{2, []string{"nodes"}, timed, into("node", expandNames)},
		{2, []string{"states"}, []string{"event"}, into("state", wordsOrNone)},
		{1, []string{"reason"}, []string{"event"}, into("reason", front.SplitList)},
		{1, []string{"server"}, []string{"resource"}, into("server", front.SplitList)},
		{4, []string{"action"}, []string{"transaction"}, into("action", func(v string) []string { return []string{v} })},
		{4, []string{"actor"}, []string{"transaction"}, into("actor", lowered)},
	}
}

// keys are those that name what is meant.
func keys(m *manager) []condition {
	return []condition{
		{1, []string{"format"}, nil, func(q *mgrQuery, v string) {
			q.format = strings.Trim(v, `"'`) // as programs write it that start no shell
		}},
		{2, []string{"jobid"}, []string{"job"}, into("job", jobWords)},
		{2, []string{"accounts", "acct"}, nil, into("account", mgrNameList)},
		{1, []string{"users"}, nil, into("user", mgrNameList)},
		{1, []string{"wckeys"}, []string{"user", "wckey", "job"}, into("wckey", mgrNameList)},
		{2, []string{"id"}, []string{"wckey", "reservation"}, into("id", front.SplitList)},
		{3, []string{"partitions"}, nil, into("partition", wordsOrNone)},
		{2, []string{"clusters"}, nil, func(q *mgrQuery, v string) {
			q.elsewhere, q.byCluster = q.elsewhere || m.elsewhere(v), true
		}},
	}
}

// into adds what split makes of a value to the names of an entity.
func into(entity string, split func(string) []string) func(*mgrQuery, string) {
	return func(q *mgrQuery, v string) { q.where[entity] = append(q.where[entity], split(v)...) }
}

// wordsOrNone are those of a list, "" where it has none: associations with all partitions, any state, nobody.
func wordsOrNone(v string) []string {
	list := front.SplitList(v)
	if len(list) == 0 || v == `""` {
		return []string{""}
	}
	return list
}

// jobWords are those of a list of jobs, also "" where it has none, which is no job.
func jobWords(v string) []string {
	if list := front.SplitOutside(v); len(list) > 0 {
		return list
	}
	return []string{""}
}

func lowered(v string) []string { return []string{strings.ToLower(v)} }

// takeOne lets the first row take a value that has the key among its names and the entity among its own.
func (q *mgrQuery) takeOne(rows []condition, entity, key, value string) bool {
	i := slices.IndexFunc(rows, func(c condition) bool {
		return front.IsKey(key, c.least, c.names...) && (c.of == nil || slices.Contains(c.of, entity))
	})
	if i < 0 {
		return false
	}
	rows[i].take(q, value)
	return true
}

// conditions reads names, key=value conditions and the words that go with show.
func (m *manager) conditions(entity string, args []string) (*mgrQuery, int) {
	q := &mgrQuery{where: map[string][]string{}, withAssoc: m.withAssoc}
	if entity == "association" {
		var bad string
		if args, bad = byID(args); bad != "" {
			return nil, m.wrong("sacctmgr: error: Invalid value for AssocId (" + bad + ")")
		}
	}
	args, q.choice = cutFilters(entity, args)
	for _, a := range args {
		key, value, isSet := strings.Cut(a, "=")
		key = strings.ToLower(key)
		if key == "where" || key == "set" {
			continue
		}
		if isSet && q.takeOne(valued(), entity, key, value) || !isSet && q.takeOne(flags(), entity, key, "") {
			continue
		}
		if !isSet && unknownFlag(key) {
			return nil, m.wrong("sacctmgr: error: muster's sacctmgr has no " + a + ": leave it out")
		}
		if !isSet && entity != "reservation" && entity != "job" {
			q.where[entity] = append(q.where[entity], mgrNameList(a)...)
			continue
		}
		if slices.Contains([]string{"name", "names", entity, entity + "s"}, key) {
			q.where[entity] = append(q.where[entity], mgrNameList(value)...)
			continue
		}
		if !q.takeOne(keys(m), entity, key, value) {
			return nil, unknownCondition(m, entity, a)
		}
	}
	return q, -1
}

// byID reads the words of a line about associations that stand alone as their numbers. Other words are bad.
func byID(args []string) (out []string, bad string) {
	for _, a := range args {
		key, value, isSet := strings.Cut(a, "=")
		key = strings.ToLower(key)
		if !isSet && !new(mgrQuery).takeOne(flags(), "association", key, "") && key != "where" {
			a, key, value = "id="+a, "id", a
		}
		for _, n := range front.SplitList(value) {
			if _, err := strconv.ParseUint(n, 10, 32); key == "id" && err != nil {
				return nil, n
			}
		}
		out = append(out, a)
	}
	return out, ""
}

// setHint is the value that Slurm says how to set where it is told a condition that it does not know.
func setHint(entity string) string {
	return map[string]string{
		"account": "value", "user": "value", "cluster": "value", "tres": "value", "job": "value", "reservation": "value",
		"federation": "value", "qos": "SLURM_PRINT_VALUE", "resource": "SLURM_PRINT_VALUE",
	}[entity]
}

func unknownCondition(m *manager, entity, word string) int {
	lines := []string{" Unknown condition: " + word}
	if hint := setHint(entity); hint != "" {
		lines = append(lines, " Use keyword 'set' to modify "+hint)
	}
	if m.removes {
		lines = append(lines, noConditions)
	}
	return m.wrong(lines...)
}

const noConditions = " No conditions given to remove, not executing."
