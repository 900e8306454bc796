package sacctmgr

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"dev.muster/api"
	"dev.muster/cluster/federation"
	"dev.muster/slurm/front"
	"dev.muster/slurm/show"
)

// fedStateRaw is a state as Slurm counts them; 0 is none that is known here.
func fedStateRaw(s federation.State) string {
	numbers := [...]string{
		federation.Active: "1", federation.Inactive: "2", federation.Drain: "17", federation.Remove: "49",
	}
	if int(s) < len(numbers) {
		return numbers[s]
	}
	return "0"
}

// knownFederation asks for the federation that this cluster is in; nil if it is in none.
func knownFederation(m *manager) (*federation.Record, int) {
	resp, err := front.Call(m.sys, api.ShowFederation, api.AfterQuery{After: m.after})
	if err != nil {
		text, _ := front.ErrorText(err)
		return nil, m.wrong("sacctmgr: error: " + text)
	}
	return resp.Record, 0
}

// putRecord asks, and has all members know the record.
func putRecord(m *manager, r *federation.Record) int {
	if !m.immediate && !m.agreed() {
		m.tell(" Changes Discarded")
		return 0
	}
	resp, err := front.Call(m.sys, api.PutFederation, *r)
	if err == nil {
		m.after = resp.Index
		return 0
	}
	return m.wrong(" Error with request: " + err.Error())
}

// toldAndPut tells what will be and commits it; with -i it is done before it is told.
func toldAndPut(m *manager, text string, r *federation.Record) int {
	if !m.immediate {
		m.tell("%s", text)
		return putRecord(m, r)
	}
	code := putRecord(m, r)
	if code == 0 {
		m.tell("%s", text)
	}
	return code
}

// clustersKnown are the names of this cluster and its peers, by the names in lower case.
func clustersKnown(m *manager) map[string]string {
	known := map[string]string{strings.ToLower(m.books.Cluster): m.books.Cluster}
	resp, _ := front.Call(m.sys, api.ListPeers, api.Empty{}) // none if they cannot be asked for
	for _, p := range resp.Peers {
		known[strings.ToLower(p.Name)] = p.Name
	}
	return known
}

// withMembers is a record with other members: those of a list in place of them, or with a sign besides or less.
func withMembers(m *manager, r federation.Record, sign byte, list string) (federation.Record, int) {
	known, names := clustersKnown(m), front.SplitList(strings.ToLower(list))
	r.Members = slices.Clone(r.Members)
	for _, n := range names {
		if known[n] == "" && r.Named(n) == nil {
			return r, m.wrong(" The cluster "+n+" doesn't exist. Please add first.",
				"  (muster peer invite and muster peer add make it known here)")
		}
	}
	if sign != '+' {
		r.Members = slices.DeleteFunc(r.Members, func(o federation.Member) bool {
			return slices.Contains(names, strings.ToLower(o.Name)) == (sign == '-')
		})
	}
	if sign == '-' {
		return r, 0
	}
	for _, n := range names {
		if r.Named(n) != nil {
			continue
		}
		id := r.FreeID()
		if id == 0 {
			return r, m.wrong(" A federation has " + strconv.Itoa(federation.MaxID) + " clusters at most: " + n +
				" is one more.")
		}
		r.Members = append(r.Members, federation.Member{ID: id, Name: known[n]})
		slices.SortFunc(r.Members, func(a, b federation.Member) int { return cmp.Compare(a.ID, b.ID) })
	}
	return r, 0
}

// addFederation makes a federation.
func addFederation(m *manager, args []string) int {
	var names []string
	clusters := ""
	for _, s := range front.Words(args) {
		switch {
		case s.Bare && s.Key == "set":
		case s.Bare:
			names = append(names, mgrNameList(s.Text)...)
		case front.IsKey(s.Key, 1, "name", "names"):
			names = append(names, mgrNameList(s.Value)...)
		case front.IsKey(s.Key, 1, "clusters"):
			clusters = s.Value
		default:
			return m.unknown(s)
		}
	}
	if len(names) == 0 {
		return m.wrong(" Need name of federation to add.")
	}
	if len(names) > 1 {
		return m.wrong(" A cluster is in one federation: name one, not " + strings.Join(names, ","))
	}
	old, code := knownFederation(m)
	switch {
	case code != 0:
		return code
	case old != nil && strings.EqualFold(old.Name, names[0]):
		return m.nothing(" This federation " + names[0] + " already exists.  Not adding.")
	case old != nil && old.Named(m.books.Cluster) != nil:
		return m.wrong(" Cluster " + m.books.Cluster + " is in federation " + old.Name +
			": it leaves that first (sacctmgr modify cluster " + m.books.Cluster + " set federation=).")
	}
	r, code := withMembers(m, federation.Record{Name: names[0]}, 0, clusters)
	switch {
	case code != 0:
		return code
	case len(r.Members) > 0 && r.Named(m.books.Cluster) == nil:
		return m.wrong(" Cluster " + m.books.Cluster + " is to be one of it: do this at one of " + clusters + ".")
	}
	text := " Adding Federation(s)\n  " + names[0]
	if clusters != "" {
		text += "\n Settings" + eachLine("  Cluster       = ", clusters)
	}
	return toldAndPut(m, text, &r)
}

func eachLine(head, list string) (text string) {
	for _, n := range front.SplitList(list) {
		text += "\n" + head + n
	}
	return text
}

// modifyFederation changes the members of a federation.
func modifyFederation(m *manager, q *mgrQuery, sets []front.Setting) int {
	old, code := knownFederation(m)
	if code != 0 {
		return code
	}
	for _, name := range q.where["federation"] {
		if old == nil || !strings.EqualFold(old.Name, name) {
			return m.wrong(" The federation " + name + " doesn't exist.")
		}
	}
	if old == nil {
		return m.nothing(" Nothing modified")
	}
	r, text := *old, " Setting"
	for _, s := range sets {
		if !front.IsKey(s.Key, 1, "clusters") {
			return m.unknown(s)
		}
		before := r
		if r, code = withMembers(m, r, s.Sign, s.Value); code != 0 {
			return code
		}
		text += eachLine("  Cluster      += ", strings.Join(namesBut(&r, &before), ",")) +
			eachLine("  Cluster      -= ", strings.Join(namesBut(&before, &r), ","))
	}
	return toldAndPut(m, text+"\n Modified federation...\n  "+r.Name, &r)
}

// namesBut are the members of a record that another one lacks.
func namesBut(r, other *federation.Record) (names []string) {
	for _, m := range r.Members {
		if other.Named(m.Name) == nil {
			names = append(names, m.Name)
		}
	}
	return names
}

func signed(sign byte) string {
	if sign == 0 {
		return " "
	}
	return string(sign)
}

// removeOther deletes what is no record of the books.
func removeOther(m *manager, entity string, args []string) int {
	if entity == "federation" {
		return removeFederation(m, args)
	}
	return m.coordinators(args, false)
}

// removeFederation deletes a federation: its members go on alone.
func removeFederation(m *manager, args []string) int {
	names, _ := mgrWords(args, "name", "names", "federation", "federations")
	if len(names) == 0 {
		return m.wrong(" No conditions given to remove, not executing.")
	}
	old, code := knownFederation(m)
	switch {
	case code != 0:
		return code
	case old == nil || !slices.Contains(names, strings.ToLower(old.Name)):
		return m.nothing(" Nothing deleted")
	}
	r := federation.Record{Name: old.Name, Gone: true}
	return toldAndPut(m, " Deleting federations...\n  "+old.Name, &r)
}

// ofFederation reports whether a change of a cluster is one of its federation.
func ofFederation(s front.Setting) bool {
	return front.IsKey(s.Key, 3, "federation", "features", "fedstate")
}

// modifyMembers changes what clusters are in a federation.
func modifyMembers(m *manager, q *mgrQuery, sets []front.Setting) int {
	old, code := knownFederation(m)
	if code != 0 {
		return code
	}
	names := q.where["cluster"]
	if len(names) == 0 && old != nil {
		for _, o := range old.Members {
			names = append(names, strings.ToLower(o.Name))
		}
	}
	r, text := federation.Record{}, " Setting"
	if old != nil {
		r = *old
	}
	for _, s := range sets {
		var line string
		if r, line, code = setMembers(m, r, old != nil, names, s); code != 0 {
			return code
		}
		text += line
	}
	if len(names) == 0 {
		return m.nothing(" Nothing modified")
	}
	return toldAndPut(m, text+"\n Modified cluster...\n  "+strings.Join(names, "\n  "), &r)
}

// setMembers carries out one setting for some clusters.
func setMembers(m *manager, r federation.Record, there bool, names []string, s front.Setting) (
	_ federation.Record, told string, code int,
) {
	switch {
	case !ofFederation(s):
		return r, "", m.unknown(s)
	case front.IsKey(s.Key, 5, "federation") && s.Value == "":
		r, code = withMembers(m, r, '-', strings.Join(names, ","))
		return r, "\n  Federation     = ", code
	case front.IsKey(s.Key, 5, "federation") && (!there || !strings.EqualFold(r.Name, s.Value)):
		return r, "", m.wrong(" The federation " + s.Value + " doesn't exist.")
	case front.IsKey(s.Key, 5, "federation"):
		r, code = withMembers(m, r, '+', strings.Join(names, ","))
		return r, "\n  Federation     = " + s.Value, code
	}
	r.Members = slices.Clone(r.Members)
	for _, n := range names {
		member := r.Named(n)
		if member == nil {
			return r, "", m.wrong(" Cluster " + n + " is in no federation: sacctmgr modify federation NAME set " +
				"clusters+=" + n)
		}
		if told, code = setMember(m, member, s); code != 0 {
			return r, "", code
		}
	}
	return r, told, 0
}

// setMember changes the state or the features of one member.
func setMember(m *manager, to *federation.Member, s front.Setting) (told string, code int) {
	if front.IsKey(s.Key, 4, "fedstate") {
		i := slices.Index(show.FedStates[:], strings.ToUpper(s.Value))
		if i < 0 {
			return "", m.wrong("Invalid FedState " + s.Value + ".")
		}
		to.State = federation.State(i)
		return "\n  FedState       = " + show.FedStates[i], 0
	}
	list := front.SplitList(s.Value)
	has := func(f string) bool { return slices.Contains(list, f) }
	switch s.Sign {
	case '+':
		to.Features = append(slices.DeleteFunc(slices.Clone(to.Features), has), list...)
	case '-':
		to.Features = slices.DeleteFunc(slices.Clone(to.Features), has)
	default:
		to.Features = list
	}
	told = eachLine("  Feature     "+signed(s.Sign)+"= ", s.Value)
	return cmp.Or(told, "\n  Feature       = "), 0
}

// memberRow is a line about a member, or about its federation.
type memberRow struct {
	federation string
	member     *federation.Member
}

func ofMember(r *memberRow, text func(*federation.Member) string) string {
	if r.member == nil {
		return ""
	}
	return text(r.member)
}

// memberColumns are the fields of federations.
func memberColumns() []front.Column[memberRow] {
	of := func(text func(*federation.Member) string) func(*memberRow) string {
		return func(r *memberRow) string { return ofMember(r, text) }
	}
	return []front.Column[memberRow]{
		{Name: "Federation", Head: "Federation", Width: 10, Of: func(r *memberRow) string { return r.federation }},
		{Name: "Cluster", Head: "Cluster", Width: 10, Of: of(func(m *federation.Member) string { return m.Name })},
		{Name: "ID", Head: "ID", Width: 2,
			Of: of(func(m *federation.Member) string { return strconv.Itoa(int(m.ID)) })},
		{Name: "Features", Head: "Features", Width: 20,
			Of: of(func(m *federation.Member) string { return strings.Join(m.Features, ",") })},
		{Name: "FedState", Head: "FedState", Width: 12,
			Of: of(func(m *federation.Member) string { return show.FedState(m.State) })},
		{Name: "FedStateRaw", Head: "FedStateRaw", Width: 11,
			Of: of(func(m *federation.Member) string { return fedStateRaw(m.State) })},
	}
}

// showFederation lists the members of the federation.
func showFederation(m *manager, q *mgrQuery) int {
	r, code := knownFederation(m)
	if code != 0 {
		return code
	}
	var rows []memberRow
	if r != nil && q.has("federation", strings.ToLower(r.Name)) {
		if q.tree || len(r.Members) == 0 {
			rows = append(rows, memberRow{federation: r.Name})
		}
		for i := range r.Members {
			rows = append(rows, memberRow{federation: front.Choose(q.tree, "", r.Name), member: &r.Members[i]})
		}
	}
	return showTable(m, q, memberColumns(), "Federation,Cluster,ID,Features,FedState", rows)
}

// fedColumns are the fields of clusters that are of their federation.
func fedColumns() []front.Column[mgrRow] {
	of := func(none string, text func(*federation.Member) string) func(*mgrRow) string {
		return func(r *mgrRow) string {
			if r.member == nil {
				return none
			}
			return text(r.member)
		}
	}
	return []front.Column[mgrRow]{
		{Name: "Federation", Head: "Federation", Width: 10, Of: func(r *mgrRow) string { return r.federation }},
		{Name: "Features", Head: "Features", Width: 20,
			Of: of("", func(m *federation.Member) string { return strings.Join(m.Features, ",") })},
		{Name: "FedState", Head: "FedState", Width: 12,
			Of: of("NA", func(m *federation.Member) string { return show.FedState(m.State) })},
		{Name: "FedStateRaw", Head: "FedStateRaw", Width: 11,
			Of: of("0", func(m *federation.Member) string { return fedStateRaw(m.State) })},
	}
}

// withFederation adds to lines about clusters what they are in a federation.
func withFederation(m *manager, rows []mgrRow) []mgrRow {
	r, _ := knownFederation(m)
	for i := range rows {
		row := &rows[i]
		row.isCluster = true
		if r == nil {
			continue
		}
		if member := r.Named(row.books.Cluster); member != nil {
			row.federation = r.Name
			row.member = member
			row.number = int(member.ID)
		}
	}
	return rows
}

// withFed is the word by which show cluster tells of the federation.
const withFed = "withfed"

// conditionsOf reads conditions, and that word.
func conditionsOf(m *manager, entity string, args []string) (*mgrQuery, int) {
	words, withfed := cutWithFed(entity, args)
	q, code := m.conditions(entity, words)
	if withfed && q != nil {
		q.where[withFed] = []string{withFed}
	}
	return q, code
}

// cutWithFed takes that word out of a line.
func cutWithFed(entity string, args []string) (rest []string, there bool) {
	rest = slices.DeleteFunc(slices.Clone(args), func(a string) bool {
		return entity == "cluster" && front.IsKey(strings.ToLower(a), 5, withFed)
	})
	return rest, len(rest) < len(args)
}
