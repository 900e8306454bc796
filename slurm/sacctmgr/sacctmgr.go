// Package sacctmgr is the command that shows and changes accounts, users, QOS and their limits. It stands on package
// report for the tree of accounts, and on package control for the configuration; nothing but the table of front-ends
// stands on it. Begin with sacctmgr.go, then session.go for its commands.
package sacctmgr

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"dev.muster/api"
	"dev.muster/cluster"
	"dev.muster/slurm/data"
	"dev.muster/slurm/front"
	"dev.muster/slurm/opt"
	"dev.muster/slurm/show"
)

// manager is one run of sacctmgr.
type manager struct {
	sys       *front.Sys
	report    front.Table[mgrRow]
	immediate bool
	readOnly  bool
	withAssoc bool
	books     *show.Books
	removes   bool
	after     uint64 // the index of what it has changed itself
	over      bool   // the session is to end
	lines     *lines // of standard input
	data      data.Ask
	coming    []string // the QOS that the file being loaded makes
}

// Asked is what --json and --yaml say.
func (m *manager) Asked() *data.Ask { return &m.data }

// Options are those of the command line, which are fields of a manager.
var Options = []opt.Option[manager]{
	{
		Long: "immediate", Short: 'i', On: opt.Sacctmgr, Help: "commit without asking",
		Set: func(m *manager, _ string) error { m.immediate = true; return nil },
	},
	{Long: "json", Arg: opt.Optional, On: opt.Sacctmgr, Meta: "version", Newer: true,
		Help: "print JSON: v0.0.42 to v0.0.45, or list",
		Set:  func(m *manager, v string) error { return m.data.JSON(v) }},
	{Long: "yaml", Arg: opt.Optional, On: opt.Sacctmgr, Meta: "version", Newer: true, Help: "print YAML, as --json",
		Set: func(m *manager, v string) error { return m.data.Yaml(v) }},
	{
		Long: "noheader", Short: 'n', On: opt.Sacctmgr, Help: "no line of headers",
		Set: func(m *manager, _ string) error { m.report.NoHeader = true; return nil },
	},
	{
		Long: "oneliner", Short: 'o', On: opt.Sacctmgr, Help: "one line a record: always so",
		Set: func(*manager, string) error { return nil },
	},
	{
		Long: "parsable", Short: 'p', On: opt.Sacctmgr, Help: "fields end with |",
		Set: func(m *manager, _ string) error { m.report.Parse = 1; return nil },
	},
	{
		Long: "parsable2", Short: 'P', On: opt.Sacctmgr, Help: "fields are separated by |",
		Set: func(m *manager, _ string) error { m.report.Parse = 2; return nil },
	},
	{
		Long: "quiet", Short: 'Q', On: opt.Sacctmgr, Help: "fewer messages",
		Ignored: "there are none that could be left out", Set: func(*manager, string) error { return nil },
	},
	{
		Long: "readonly", Short: 'r', On: opt.Sacctmgr, Help: "change nothing",
		Set: func(m *manager, _ string) error { m.readOnly = true; return nil },
	},
	{
		Long: "associations", Short: 's', On: opt.Sacctmgr, Help: "with associations, as withassoc",
		Set: func(m *manager, _ string) error { m.withAssoc = true; return nil },
	},
	{
		Long: "verbose", Short: 'v', On: opt.Sacctmgr, Help: "more messages",
		Set: func(*manager, string) error { return nil },
	},
	{Long: "version", Short: 'V', On: opt.Sacctmgr, Group: opt.HelpGroup, Help: "print the version"},
	{Long: "help", Short: 'h', On: opt.Sacctmgr, Group: opt.HelpGroup, Help: "print this"},
	{Long: "usage", On: opt.Sacctmgr, Group: opt.HelpGroup, Help: "print a short help"},
}

// Slurm's words for a command without an entity that it knows.
const (
	listInput = "No valid entity in list command\nInput line must include \"Account\", \"Association\", \"Cluster\", \"Configuration\",\n" +
		"\"Event\", \"Federation\", \"Problem\", \"QOS\", \"Resource\", \"Reservation\",\n\"RunAwayJobs\", \"Stats\", \"Transaction\", \"TRES\", \"User\", or \"WCKey\""
	addInput    = "No valid entity in add command\nInput line must include \"Account\", \"Cluster\", \"Coordinator\", \"Federation\", \"QOS\", \"Resource\", or \"User\""
	modifyInput = "No valid entity in modify command\nInput line must include \"Account\", \"Cluster\", \"Federation\", \"Job\", \"QOS\", \"Resource\" or \"User\""
	deleteInput = "No valid entity in delete command\nInput line must include \"Account\", \"Cluster\", \"Coordinator\", \"Federation\", \"QOS\", \"Resource\", or \"User\""
)

// otherEntities are what Slurm's sacctmgr knows besides, with what there is in their place.
func otherEntities() map[string]string {
	return map[string]string{"resource": "licenses are part of the configuration"}
}

// noEntity answers a command about nothing that is known.
func (m *manager) noEntity(args []string, text string) int {
	if len(args) > 0 {
		for _, name := range slices.Sorted(maps.Keys(otherEntities())) {
			if front.IsKey(strings.ToLower(args[0]), 3, name, name+"s") {
				return m.wrong("sacctmgr: error: muster's sacctmgr has no " + name + ": " + otherEntities()[name])
			}
		}
	}
	return m.wrong(text)
}

// mgrEntity is what a word names, or "".
func mgrEntity(word string) string {
	w := strings.ToLower(word)
	switch w {
	case "txn":
		return "transaction"
	case "resv":
		return "reservation"
	}
	for _, e := range []struct {
		name  string
		least int
	}{{"account", 2}, {"association", 2}, {"user", 1}, {"qos", 1}, {"tres", 2}, {"cluster", 2}, {"coordinator", 2},
		{"event", 1}, {"transaction", 3}, {"problem", 1}, {"runawayjobs", 2}, {"wckey", 1}, {"stats", 1},
		{"configuration", 2}, {"reservation", 3}, {"resource", 4}, {"job", 1}, {"instance", 2}, {"federation", 2}} {
		if w == e.name || w == e.name+"s" || len(w) >= e.least && strings.HasPrefix(e.name, w) {
			return e.name
		}
	}
	return ""
}

// Run shows and changes accounts, users and QOS.
func Run(sys *front.Sys, argv []string) int {
	m := &manager{sys: sys, lines: &lines{in: bufio.NewReader(sys.Stdin)}}
	rest, code := front.ParseQuery(sys, opt.Sacctmgr, Options, m, argv)
	if code >= 0 {
		return code
	}
	if len(rest) == 0 {
		return m.session()
	}
	return m.run(rest)
}

// wrong prints lines as they are and fails.
func (m *manager) wrong(lines ...string) int {
	for _, l := range lines {
		fmt.Fprintln(m.sys.Stderr, l)
	}
	return 1
}

// tell prints what will be or is done, also with -Q, as Slurm does.
func (m *manager) tell(format string, args ...any) { fmt.Fprintf(m.sys.Stdout, format+"\n", args...) }

// nothing says that there was nothing to do.
func (m *manager) nothing(text string) int {
	m.tell("%s", text)
	return 1
}

// mgrQuery is what a command line selects.
type mgrQuery struct {
	where           map[string][]string
	format          string
	withAssoc, tree bool
	withCoord       bool
	withGone        bool // deleted ones too
	from, to        string
	elsewhere       bool // only of other clusters than this one: there are none
	byCluster       bool // named by cluster, as associations are
	subAccounts     bool // what is below the accounts, too
	onlyDefaults    bool // of each user's associations the default one
	noParents       bool // in order of users, not of the tree
	ownLimits       bool // not those of the accounts above
	noLimits        bool // without the columns of limits
	choice
}

func (q *mgrQuery) has(what, name string) bool {
	return !q.elsewhere && (len(q.where[what]) == 0 || slices.Contains(q.where[what], name))
}

// elsewhere reports whether a list of clusters lacks this one.
func (m *manager) elsewhere(list string) bool {
	return list != "" && !slices.Contains(mgrNameList(list), strings.ToLower(m.books.Cluster))
}

// commit asks, and sends the changes.
func (m *manager) commit(changes []cluster.Change, what string) int {
	if !m.immediate && !m.agreed() {
		m.tell(" Changes Discarded")
		return 0
	}
	resp, err := front.Call(m.sys, api.ChangeAccounts, cluster.ChangeAccounts{Changes: changes})
	if err == nil {
		m.after = resp.Index
		noteUnheld(m.sys.Stderr, m.books, limitsOf(changes)...)
		return 0
	}
	text, _ := front.ErrorText(err)
	if front.IsKind(err, cluster.ErrAccess) && !strings.HasPrefix(what, "adding") {
		return m.wrong("sacctmgr: error: Your user doesn't have privilege to perform this action",
			" Error with request: "+text)
	}
	if front.IsKind(err, cluster.ErrJobsActive) {
		return m.wrong(" Error with request: Job(s) active, cancel job(s) before remove", "  "+err.Error())
	}
	if front.IsKind(err, cluster.ErrQOS) || front.IsKind(err, cluster.ErrAccount) || front.IsKind(err, cluster.ErrUser) {
		text = err.Error()
	}
	return m.wrong(" Problem " + what + ": " + text)
}

// commitTime is how long people have to answer.
const commitTime = 30 * time.Second

// agreed asks whether the changes are to be made.
func (m *manager) agreed() bool {
	defer fmt.Fprintln(m.sys.Stdout)
	fmt.Fprint(m.sys.Stdout, "Would you like to commit changes? (You have 30 seconds to decide)\n(N/y): ")
	for end := time.NewTimer(commitTime); ; {
		line, err := m.lines.next(end.C)
		switch word := strings.ToLower(strings.TrimSpace(line)); {
		case errors.Is(err, errNoAnswer):
			fmt.Fprint(m.sys.Stdout, "timeout")
			return false
		case strings.HasPrefix(word, "y"):
			return true
		case err != nil, word == "", strings.HasPrefix(word, "n"):
			return false
		}
		fmt.Fprint(m.sys.Stdout, "Y or N please\n(N/y): ")
	}
}

// add makes accounts, users and QOS.
func (m *manager) add(args []string) int {
	entity := ""
	if len(args) > 0 {
		entity = mgrEntity(args[0])
	}
	if entity == "federation" {
		return addFederation(m, args[1:])
	}
	for _, a := range args {
		if key, value, isSet := strings.Cut(a, "="); isSet && front.IsKey(strings.ToLower(key), 2, "clusters") && m.elsewhere(value) {
			return m.otherCluster()
		}
	}
	switch entity {
	case "account":
		return m.addAccounts(args[1:])
	case "user":
		return m.addUsers(args[1:])
	case "qos":
		return m.addQOS(args[1:])
	case "coordinator":
		return m.coordinators(args[1:], true)
	case "cluster":
		names, _ := mgrWords(args[1:], "name", "names", "cluster", "clusters")
		switch {
		case len(names) == 0:
			return m.wrong(" Need name of cluster to add.")
		case m.elsewhere(strings.Join(names, ",")):
			return m.otherCluster()
		}
		return m.nothing(" This cluster " + m.books.Cluster + " already exists.  Not adding.")
	}
	return m.noEntity(args, addInput)
}

// otherCluster refuses to do something to another cluster.
func (m *manager) otherCluster() int {
	return m.wrong(" There is one cluster, " + m.books.Cluster + ": it is what the servers of muster form; another one has servers and books of its own")
}

// mgrNameList is a list of names; names are in lower case. A list without any names nobody, not everybody.
func mgrNameList(v string) []string { return wordsOrNone(strings.ToLower(v)) }

// mgrWords splits a line into names and settings.
func mgrWords(args []string, nameKeys ...string) (names []string, list []front.Setting) {
	for _, a := range args {
		if strings.EqualFold(a, "set") || strings.EqualFold(a, "where") {
			continue
		}
		if !strings.Contains(a, "=") {
			names = append(names, mgrNameList(a)...)
			continue
		}
		s, _ := front.Settings([]string{a})
		if slices.Contains(nameKeys, s[0].Key) {
			names = append(names, mgrNameList(s[0].Value)...)
		} else if s[0].Key != "cluster" && s[0].Key != "clusters" {
			list = append(list, s[0])
		}
	}
	return names, list
}

func (m *manager) unknown(s front.Setting) int {
	return m.wrong(" Unknown option: "+s.Text, " Use keyword 'where' to modify condition")
}

// unknownQOS is the same for QOS and jobs: Slurm prints it where the answer goes.
func (m *manager) unknownQOS(s front.Setting) int {
	return m.nothing(" Unknown option: " + s.Text + "\n Use keyword 'where' to modify condition")
}

// badQOS tells of a value that a QOS cannot have; of flags Slurm tells where the answer goes.
func (m *manager) badQOS(label string, err error) int {
	if label == "Flags" {
		return m.nothing(err.Error())
	}
	lines := []string{err.Error()}
	if strings.HasPrefix(lines[0], "sacctmgr: error: Invalid value") {
		lines = append(lines, " You didn't give me anything to set")
	}
	return m.wrong(lines...)
}

// nameless refuses to add nothing, and what has no name.
func nameless(m *manager, entity string, names []string) int {
	switch {
	case len(names) == 0:
		return m.wrong(" Need name of " + entity + " to add.")
	case slices.Contains(names, ""):
		m.wrong(" No blank names are allowed when adding.")
		return m.nothing(" Nothing new added.")
	}
	return 0
}

func (m *manager) addAccounts(args []string) int {
	names, list := mgrWords(args, "name", "names", "account", "accounts")
	if code := nameless(m, "account", names); code != 0 {
		return code
	}
	model, a := cluster.Association{Shares: 1}, cluster.Account{}
	parent := cluster.RootName
	var given []string
	for _, s := range list {
		switch {
		case front.IsKey(s.Key, 3, "description"):
			a.Description = strings.ToLower(s.Value)
		case front.IsKey(s.Key, 1, "organization"):
			a.Organization = strings.ToLower(s.Value)
		case front.IsKey(s.Key, 3, "parent"):
			parent = strings.ToLower(s.Value)
		default:
			label, code := m.setAssoc(&model, []string{cluster.NormalQOS}, s)
			if code != 0 {
				return code
			}
			given = append(given, label)
		}
	}
	above := m.books.Find(parent, "", "")
	if above == nil {
		return m.wrong(" Parent account '"+parent+"' doesn't exist on cluster "+m.books.Cluster,
			"        Contact your admin to add this account.", " No associations created.")
	}
	model.Parent = above.ID
	var changes []cluster.Change
	var made []string
	for _, name := range names {
		if m.books.Find(name, "", "") != nil {
			continue
		}
		acct, as := a, model
		acct.Name, as.Account = name, name
		acct.Description = cmp.Or(a.Description, name)
		acct.Organization = cmp.Or(a.Organization, front.Choose(parent == cluster.RootName, name, parent))
		changes, made = append(changes, cluster.Change{Account: &acct}, cluster.Change{Assoc: &as}), append(made, name)
	}
	if len(made) == 0 {
		return m.nothing(" Nothing new added.")
	}
	m.tell(" Adding Account(s)\n  %s\n Settings\n  Description     = %s\n  Organization    = %s\n Associations", strings.Join(made, "\n  "),
		cmp.Or(a.Description, "Account Name"), cmp.Or(a.Organization, "Parent/Account Name"))
	for _, name := range made {
		m.tell("  A = %-10.10s C = %-10.10s", name, m.books.Cluster)
	}
	if len(list) > 0 {
		m.tell(" Settings\n%s", strings.Join(assocTold(&model, given, parent), "\n"))
	}
	return m.commit(changes, "adding accounts")
}

// adminLevel reads the word of an administrator's rank, "" if it is none of these.
func adminLevel(v string) string {
	for _, w := range []string{"Administrator", "Operator", "None"} {
		if v != "" && strings.HasPrefix(strings.ToLower(w), strings.ToLower(v)) {
			return w
		}
	}
	return ""
}

func (m *manager) addQOS(args []string) int {
	names, list := mgrWords(args, "name", "names", "qos")
	if code := nameless(m, "qos", names); code != 0 {
		return code
	}
	model := cluster.QOS{UsageFactor: 1}
	var given []string
	for _, s := range list {
		label, known, err := setQOSKey(&model, s)
		if !known {
			return m.unknownQOS(s)
		} else if err != nil {
			return m.badQOS(label, err)
		}
		if code := m.checkQOS(label, s); code != 0 {
			return code
		}
		given = append(given, label)
	}
	var changes []cluster.Change
	var made []string
	for _, name := range names {
		if slices.ContainsFunc(m.books.QOS, func(q *cluster.QOS) bool { return q.Name == name }) {
			continue
		}
		q := model
		q.Name, q.Description = name, cmp.Or(model.Description, name)
		changes, made = append(changes, cluster.Change{QOS: &q}), append(made, name)
	}
	if len(made) == 0 {
		return m.nothing(" Nothing new added.")
	}
	m.tell(" Adding QOS(s)\n  %s\n Settings\n  Description    = %s", strings.Join(made, "\n  "),
		cmp.Or(model.Description, made[0]))
	for _, line := range qosTold(&model, given) {
		m.tell("%s", line)
	}
	return m.commit(changes, "adding QOS")
}

// setAssoc sets one key of an association and returns its label, or says what is wrong.
func (m *manager) setAssoc(a *cluster.Association, have []string, s front.Setting) (label string, code int) {
	s = signedList(s)
	label, known, err := setAssocKey(a, have, s)
	switch {
	case !known:
		return label, m.unknown(s)
	case err != nil:
		return label, m.wrong(err.Error(), " Unknown option: "+s.Text, " Use keyword 'where' to modify condition")
	}
	return label, m.checkQOS(label, s)
}

// checkQOS refuses names of QOS that do not exist, in the settings that take any.
func (m *manager) checkQOS(label string, s front.Setting) int {
	if label != "QOS" && label != "DefQOS" && label != "Preempt" || s.Value == "-1" {
		return 0
	}
	var all []string
	for _, q := range m.books.QOS {
		all = append(all, q.Name)
	}
	for _, w := range mgrNameList(s.Value) {
		if w != "" && !slices.Contains(all, w) && !slices.Contains(m.coming, w) {
			return m.wrong("sacctmgr: error: You gave a bad qos '"+w+"'. Valid QOS's are "+strings.Join(all, ","),
				" Unknown option: "+s.Text, " Use keyword 'where' to modify condition")
		}
	}
	return 0
}
