package slurm

import (
	"bufio"
	"cmp"
	"fmt"
	"slices"
	"strings"

	"dev.muster/api"
	"dev.muster/cluster"
	"dev.muster/slurm/opt"
)

// manager is one run of sacctmgr.
type manager struct {
	sys       *Sys
	report    report[mgrRow]
	immediate bool
	quiet     bool
	readOnly  bool
	withAssoc bool
	books     *mgrBooks
}

var sacctmgrOptions = []opt.Option[manager]{
	{Long: "immediate", Short: 'i', On: opt.Sacctmgr, Help: "commit without asking", Set: func(m *manager, _ string) error { m.immediate = true; return nil }},
	{Long: "noheader", Short: 'n', On: opt.Sacctmgr, Help: "no line of headers", Set: func(m *manager, _ string) error { m.report.noHeader = true; return nil }},
	{Long: "parsable", Short: 'p', On: opt.Sacctmgr, Help: "fields end with |", Set: func(m *manager, _ string) error { m.report.parse = 1; return nil }},
	{Long: "parsable2", Short: 'P', On: opt.Sacctmgr, Help: "fields are separated by |", Set: func(m *manager, _ string) error { m.report.parse = 2; return nil }},
	{Long: "quiet", Short: 'Q', On: opt.Sacctmgr, Help: "no messages but errors", Set: func(m *manager, _ string) error { m.quiet = true; return nil }},
	{Long: "readonly", Short: 'r', On: opt.Sacctmgr, Help: "change nothing", Set: func(m *manager, _ string) error { m.readOnly = true; return nil }},
	{Long: "associations", Short: 's', On: opt.Sacctmgr, Help: "with associations, as withassoc", Set: func(m *manager, _ string) error { m.withAssoc = true; return nil }},
	{Long: "verbose", Short: 'v', On: opt.Sacctmgr, Help: "more messages", Set: func(*manager, string) error { return nil }},
	{Long: "version", Short: 'V', On: opt.Sacctmgr, Group: opt.HelpGroup, Help: "print the version"},
	{Long: "help", Short: 'h', On: opt.Sacctmgr, Group: opt.HelpGroup, Help: "print this"},
	{Long: "usage", On: opt.Sacctmgr, Group: opt.HelpGroup, Help: "print a short help"},
}

// What Slurm says to a command without an entity that it knows.
const (
	listInput   = `Input line must include "Account", "Association", "Cluster", "QOS", "TRES", or "User"`
	addInput    = `Input line must include "Account", "Cluster", "Coordinator", "Federation", "QOS", "Resource", or "User"`
	modifyInput = `Input line must include "Account", "Cluster", "Federation", "Job", "QOS", "Resource" or "User"`
	deleteInput = `Input line must include "Account", "Cluster", "Coordinator", "Federation", "QOS", "Resource", or "User"`
)

// mgrEntity is what a word names, or "".
func mgrEntity(word string) string {
	w := strings.ToLower(word)
	for _, e := range []struct {
		name  string
		least int
	}{{"account", 2}, {"association", 2}, {"user", 1}, {"qos", 1}, {"tres", 2}, {"cluster", 2}} {
		if w == e.name || w == e.name+"s" || len(w) >= e.least && strings.HasPrefix(e.name, w) {
			return e.name
		}
	}
	return ""
}

// runSacctmgr shows and changes accounts, users and QOS.
func runSacctmgr(sys *Sys, argv []string) int {
	m := &manager{sys: sys}
	rest, code := parseQuery(sys, opt.Sacctmgr, sacctmgrOptions, m, argv, "[<OPTION>] [<COMMAND>]")
	if code >= 0 {
		return code
	}
	if len(rest) == 0 {
		return m.wrong("sacctmgr reads no commands from its input: give one, such as sacctmgr show account")
	}
	verb, args := strings.ToLower(rest[0]), rest[1:]
	run := m.verb(verb)
	if run == nil {
		return m.wrong("invalid keyword: " + rest[0])
	}
	if verb == "version" {
		return run(nil)
	}
	resp, err := call(sys, api.ListBooks, api.AfterQuery{})
	if err != nil {
		text, _ := slurmText(err)
		return sys.fail("%s", text)
	}
	m.books = &mgrBooks{resp}
	return run(args)
}

func (m *manager) verb(word string) func([]string) int {
	for _, v := range []struct {
		name  string
		least int
		run   func([]string) int
	}{{"add", 1, m.add}, {"create", 2, m.add}, {"show", 1, m.show}, {"list", 1, m.show}, {"modify", 1, m.modify}, {"update", 1, m.modify},
		{"delete", 3, m.remove}, {"remove", 3, m.remove},
		{"version", 4, func([]string) int { fmt.Fprintln(m.sys.Stdout, "slurm-wlm "+slurmVersion); return 0 }}} {
		if word == v.name || len(word) >= v.least && strings.HasPrefix(v.name, word) {
			return v.run
		}
	}
	return nil
}

// wrong prints lines as they are and fails.
func (m *manager) wrong(lines ...string) int {
	for _, l := range lines {
		fmt.Fprintln(m.sys.Stderr, l)
	}
	return 1
}

func (m *manager) tell(format string, args ...any) {
	if !m.quiet {
		fmt.Fprintf(m.sys.Stdout, format+"\n", args...)
	}
}

// mgrQuery is what a command line selects.
type mgrQuery struct {
	where           map[string][]string
	format          string
	withAssoc, tree bool
}

func (q *mgrQuery) has(what, name string) bool {
	return len(q.where[what]) == 0 || slices.Contains(q.where[what], name)
}

// conditions reads names, key=value conditions and the words that go with show.
func (m *manager) conditions(entity string, args []string) (*mgrQuery, int) {
	q := &mgrQuery{where: map[string][]string{}, withAssoc: m.withAssoc}
	for _, a := range args {
		key, value, isSet := strings.Cut(a, "=")
		key = strings.ToLower(key)
		switch {
		case key == "where":
		case !isSet && isKey(key, 5, "withassoc"):
			q.withAssoc = true
		case !isSet && key == "tree":
			q.tree = true
		case !isSet:
			q.where[entity] = append(q.where[entity], splitList(a)...)
		case isKey(key, 1, "format"):
			q.format = value
		case key == "name" || key == "names" || key == entity || key == entity+"s":
			q.where[entity] = append(q.where[entity], splitList(value)...)
		case isKey(key, 2, "accounts", "acct"):
			q.where["account"] = append(q.where["account"], splitList(value)...)
		case isKey(key, 1, "users"):
			q.where["user"] = append(q.where["user"], splitList(value)...)
		case isKey(key, 3, "partitions"):
			q.where["partition"] = append(q.where["partition"], splitList(value)...)
		case isKey(key, 2, "clusters"):
		default:
			return nil, m.wrong(" Unknown condition: " + a)
		}
	}
	return q, -1
}

// commit asks, and sends the changes.
func (m *manager) commit(changes []cluster.Change, what string) int {
	if m.readOnly {
		return m.wrong("Can't run this command in readonly mode.")
	}
	if !m.immediate && !m.agreed() {
		m.tell(" Changes Discarded")
		return 0
	}
	_, err := call(m.sys, api.ChangeAccounts, cluster.ChangeAccounts{Changes: changes})
	if err == nil {
		return 0
	}
	text, _ := slurmText(err)
	if isKind(err, cluster.ErrJobsActive) {
		return m.wrong(" Error with request: Job(s) active, cancel job(s) before remove", "  "+err.Error())
	}
	if isKind(err, cluster.ErrQOS) || isKind(err, cluster.ErrAccount) || isKind(err, cluster.ErrUser) {
		text = err.Error()
	}
	return m.wrong(" Problem " + what + ": " + text)
}

// agreed asks whether the changes are to be made.
func (m *manager) agreed() bool {
	fmt.Fprint(m.sys.Stdout, "Would you like to commit changes? (You have 30 seconds to decide)\n(N/y): ")
	for in := bufio.NewReader(m.sys.Stdin); ; {
		line, err := in.ReadString('\n')
		switch word := strings.ToLower(strings.TrimSpace(line)); {
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
	switch entity {
	case "account":
		return m.addAccounts(args[1:])
	case "user":
		return m.addUsers(args[1:])
	case "qos":
		return m.addQOS(args[1:])
	case "cluster":
		return m.wrong(" There is one cluster, " + m.books.Cluster + ": it is what the servers of muster form")
	}
	return m.wrong("No valid entity in add command", addInput)
}

// words splits a line into names and settings.
func mgrWords(args []string, nameKeys ...string) (names []string, list []setting) {
	for _, a := range args {
		if !strings.Contains(a, "=") {
			names = append(names, splitList(a)...)
			continue
		}
		s, _ := settings([]string{a})
		if slices.Contains(nameKeys, s[0].key) {
			names = append(names, splitList(s[0].value)...)
		} else if s[0].key != "cluster" && s[0].key != "clusters" {
			list = append(list, s[0])
		}
	}
	return names, list
}

func (m *manager) unknown(s setting) int {
	return m.wrong(" Unknown option: " + s.text)
}

func (m *manager) addAccounts(args []string) int {
	names, list := mgrWords(args, "name", "names", "account", "accounts")
	model, a := cluster.Association{Shares: 1}, cluster.Account{}
	parent := cluster.RootName
	var told []string
	for _, s := range list {
		switch {
		case isKey(s.key, 3, "description"):
			a.Description = s.value
		case isKey(s.key, 1, "organization"):
			a.Organization = s.value
		case isKey(s.key, 3, "parent"):
			parent = s.value
		default:
			label, known, err := setAssocKey(&model, []string{cluster.NormalQOS}, s)
			if !known {
				return m.unknown(s)
			} else if err != nil {
				return m.wrong(err.Error())
			}
			told = append(told, fmt.Sprintf("  %-13s = %s", label, s.value))
		}
	}
	above := m.books.find(parent, "", "")
	if above == nil {
		return m.wrong(" Parent account '" + parent + "' doesn't exist.")
	}
	if model.Parent = above.ID; parent != cluster.RootName {
		told = append(told, fmt.Sprintf("  %-13s = %s", "Parent", parent))
	}
	var changes []cluster.Change
	var made []string
	for _, name := range names {
		if m.books.find(name, "", "") != nil {
			continue
		}
		acct, as := a, model
		acct.Name, as.Account = name, name
		acct.Description, acct.Organization = cmp.Or(a.Description, name), cmp.Or(a.Organization, choose(parent == cluster.RootName, name, parent))
		changes, made = append(changes, cluster.Change{Account: &acct}, cluster.Change{Assoc: &as}), append(made, name)
	}
	if len(made) == 0 {
		return m.wrong(" Nothing new added.")
	}
	m.tell(" Adding Account(s)\n  %s\n Settings\n  Description     = %s\n  Organization    = %s\n Associations", strings.Join(made, "\n  "),
		cmp.Or(a.Description, "Account Name"), cmp.Or(a.Organization, "Parent/Account Name"))
	for _, name := range made {
		m.tell("  A = %-10.10s C = %-10.10s", name, m.books.Cluster)
	}
	if told != nil {
		m.tell(" Settings\n%s", strings.Join(told, "\n"))
	}
	return m.commit(changes, "adding accounts")
}

// find looks up an association.
func (b *mgrBooks) find(account, user, partition string) *cluster.Association {
	for _, a := range b.Assocs {
		if a.Account == account && a.User == user && a.Partition == partition {
			return a
		}
	}
	return nil
}

func (b *mgrBooks) user(name string) *cluster.User {
	i := slices.IndexFunc(b.Users, func(u *cluster.User) bool { return u.Name == name })
	if i < 0 {
		return nil
	}
	return b.Users[i]
}

func (m *manager) addUsers(args []string) int {
	names, list := mgrWords(args, "name", "names", "user", "users")
	model, u := cluster.Association{Shares: 1}, cluster.User{}
	var accounts, told []string
	parts := []string{""}
	for _, s := range list {
		switch {
		case isKey(s.key, 2, "accounts"):
			accounts = splitList(s.value)
		case isKey(s.key, 8, "defaultaccount"):
			u.DefaultAccount = s.value
		case isKey(s.key, 2, "adminlevel"):
			u.AdminLevel = adminLevel(s.value)
		case isKey(s.key, 3, "partitions"):
			parts = splitList(s.value)
		default:
			label, known, err := setAssocKey(&model, []string{cluster.NormalQOS}, s)
			if !known {
				return m.unknown(s)
			} else if err != nil {
				return m.wrong(err.Error())
			}
			told = append(told, fmt.Sprintf("  %-13s = %s", label, s.value))
		}
	}
	if accounts == nil && u.DefaultAccount != "" {
		accounts = []string{u.DefaultAccount}
	}
	if accounts == nil {
		return m.wrong(" Need name of account to add user to.")
	}
	var changes []cluster.Change
	var fresh, places []string
	for _, acct := range accounts {
		if m.books.find(acct, "", "") == nil {
			return m.wrong(" This account '"+acct+"' doesn't exist.", "        Contact your admin to add this account.", " No associations or wckeys created.")
		}
		for _, name := range names {
			if m.books.user(name) == nil && !slices.Contains(fresh, name) {
				user := u
				user.Name, user.DefaultAccount = name, cmp.Or(u.DefaultAccount, accounts[0])
				fresh, changes = append(fresh, name), append(changes, cluster.Change{User: &user})
			}
			for _, part := range parts {
				if m.books.find(acct, name, part) != nil {
					continue
				}
				as := model
				as.Account, as.User, as.Partition = acct, name, part
				changes = append(changes, cluster.Change{Assoc: &as})
				place := fmt.Sprintf("  U = %-9.9s A = %-10.10s C = %-10.10s", name, acct, m.books.Cluster)
				if part != "" {
					place += fmt.Sprintf(" P = %-10.10s", part)
				}
				places = append(places, place)
			}
		}
	}
	if len(places) == 0 {
		return m.wrong(" Nothing new added.")
	}
	if fresh != nil {
		m.tell(" Adding User(s)\n  %s", strings.Join(fresh, "\n  "))
	}
	m.tell(" Associations =\n%s", strings.Join(places, "\n"))
	if told != nil {
		m.tell(" Non Default Settings\n%s", strings.Join(told, "\n"))
	}
	return m.commit(changes, "adding users")
}

// adminLevel reads the word of an administrator's rank.
func adminLevel(v string) string {
	for _, w := range []string{"Administrator", "Operator"} {
		if v != "" && strings.HasPrefix(strings.ToLower(w), strings.ToLower(v)) {
			return w
		}
	}
	return "None"
}

func (m *manager) addQOS(args []string) int {
	names, list := mgrWords(args, "name", "names", "qos")
	model := cluster.QOS{UsageFactor: 1}
	var told []string
	for _, s := range list {
		label, known, err := setQOSKey(&model, s)
		if !known {
			return m.unknown(s)
		} else if err != nil {
			return m.wrong(err.Error())
		}
		if label != "Description" {
			told = append(told, fmt.Sprintf("  %-24s = %s", label, s.value))
		}
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
		return m.wrong(" Nothing new added.")
	}
	m.tell(" Adding QOS(s)\n  %s\n Settings\n  Description    = %s", strings.Join(made, "\n  "), cmp.Or(model.Description, made[0]))
	for _, t := range told {
		m.tell("%s", t)
	}
	return m.commit(changes, "adding QOS")
}
