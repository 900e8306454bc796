package sacctmgr

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"dev.muster/cluster"
	"dev.muster/slurm/front"
	"dev.muster/slurm/show"
)

// dumpHead explains the file, in Slurm's words.
const dumpHead = `# To edit this file start with a cluster line for the new cluster
# Cluster - 'cluster_name':MaxTRESPerJob=node=50
# Followed by Accounts you want in this fashion (root is created by default)...
# Parent - 'root'
# Account - 'cs':MaxTRESPerJob=node=5:MaxJobs=4:MaxTRESMinsPerJob=cpu=20:FairShare=399:MaxWallDurationPerJob=40:Description='Computer Science':Organization='LC'
# Any of the options after a ':' can be left out and they can be in any order.
# If you want to add any sub accounts just list the Parent THAT HAS ALREADY
# BEEN CREATED before the account line in this fashion...
# Parent - 'cs'
# Account - 'test':MaxTRESPerJob=node=1:MaxJobs=1:MaxTRESMinsPerJob=cpu=1:FairShare=1:MaxWallDurationPerJob=1:Description='Test Account':Organization='Test'
# To add users to a account add a line like this after a Parent - 'line'
# User - 'lipari':MaxTRESPerJob=node=2:MaxJobs=3:MaxTRESMinsPerJob=cpu=4:FairShare=1:MaxWallDurationPerJob=1
`

// dump writes the tree of accounts to a file that load reads.
func (m *manager) dump(args []string) int {
	name, file := "", ""
	for _, w := range args {
		key, value, isSet := strings.Cut(w, "=")
		switch {
		case isSet && front.IsKey(strings.ToLower(key), 1, "file"):
			file = value
		case isSet && !front.IsKey(strings.ToLower(key), 1, "cluster", "name"):
			return m.wrong(" Unknown option: " + w)
		case name != "":
			return m.wrong(" Can only do one cluster at a time.  Already doing " + name)
		default:
			if name = value; !isSet {
				name = w
			}
		}
	}
	switch {
	case name == "":
		return m.wrong(" We need a cluster to dump.")
	case !strings.EqualFold(name, m.books.Cluster):
		return m.wrong(" Cluster " + name + " doesn't exist.")
	case file == "":
		file = "./" + name + ".cfg"
		m.tell(" No filename given, using %s.", file)
	}
	lines := m.dumpLines()
	if err := os.WriteFile(file, []byte(dumpHead+strings.Join(lines, "\n")+"\n"), 0o644); err != nil {
		return m.sys.Fail("Can't save state, error opening file %s: %v", file, err)
	}
	for _, l := range lines {
		m.sys.Say("%s", l)
	}
	return 0
}

// dumpLines are the lines of a dump: an account's users, then the accounts below it.
func (m *manager) dumpLines() (lines []string) {
	root := m.books.Find(cluster.RootName, "", "")
	lines = append(lines, "Cluster - '"+m.books.Cluster+"'"+dumpAssoc(root))
	var accounts []*cluster.Association
	for _, t := range show.TreeOf(m.books.Assocs) {
		if t.User == "" {
			accounts = append(accounts, t.Association)
		}
	}
	for _, above := range accounts {
		var below []string
		for _, t := range show.TreeOf(m.books.Assocs) {
			switch {
			case t.Parent != above.ID:
			case t.User != "":
				below = append(below, "User - '"+t.User+"'"+m.dumpUser(t.Association)+dumpAssoc(t.Association))
			default:
				below = append(below, "Account - '"+t.Account+"'"+m.dumpAccount(t.Account)+dumpAssoc(t.Association))
			}
		}
		if below != nil {
			lines = append(append(lines, "Parent - '"+above.Account+"'"), below...)
		}
	}
	return lines
}

func (m *manager) dumpAccount(name string) (text string) {
	for _, a := range m.books.Accounts {
		if a.Name == name {
			text = ":Description='" + a.Description + "':Organization='" + a.Organization + "'"
		}
	}
	return text
}

func (m *manager) dumpUser(a *cluster.Association) (text string) {
	u := m.books.User(a.User)
	if a.Partition != "" {
		text += ":Partition='" + a.Partition + "'"
	}
	if u == nil {
		return text
	}
	text += ":DefaultAccount='" + u.DefaultAccount + "'"
	if u.DefaultWCKey != "" {
		text += ":DefaultWCKey='" + u.DefaultWCKey + "'"
	}
	if u.AdminLevel != "" && u.AdminLevel != "None" {
		text += ":AdminLevel='" + u.AdminLevel + "'"
	}
	if list := coordinatedBy(m.books, u.Name); list != nil {
		text += ":Coordinator='" + strings.Join(list, ",") + "'"
	}
	return text + dumpWCKeys(u)
}

// dumpAssoc writes what is set at an association itself, limits by the names that Slurm's files have.
func dumpAssoc(a *cluster.Association) string {
	text := ":Fairshare=" + sharesText(a)
	names := map[string]string{
		"MaxTRES": "MaxTRESPerJob", "MaxTRESMins": "MaxTRESMinsPerJob", "MaxWall": "MaxWallDurationPerJob",
	}
	var done []string
	for _, l := range a.Limits {
		if slices.Contains(done, l.Name) {
			continue
		}
		done = append(done, l.Name)
		value := show.LimitText(a.Limits, l.Name)
		if l.Name == "MaxWall" || l.Name == "GrpWall" { // minutes
			value = strconv.FormatInt(l.Max/60, 10)
		}
		text += ":" + cmp.Or(names[l.Name], l.Name) + "=" + value
	}
	if a.DefaultQOS != "" {
		text += ":DefaultQOS='" + a.DefaultQOS + "'"
	}
	if a.QOS != nil {
		text += ":QOS='" + strings.Join(a.QOS, ",") + "'"
	}
	return text
}

// loader reads a file of dump line by line and gathers what it changes.
type loader struct {
	m       *manager
	parent  string
	changes []cluster.Change
	told    []string
	made    map[string]bool // accounts and users that the file makes
	named   bool            // the file has named its cluster
	coords  map[string][]string
	qos     []*cluster.QOS // as the file has them
	// clean has the books be as the file afterwards. Records that the file has are kept: by name, and associations
	// by their number.
	clean    bool
	accounts map[string]bool
	users    map[string]cluster.User // as far as the file has told of them
	assocs   map[cluster.AssocID]bool
}

// load makes what a file has and the books lack, and changes what differs. With clean it takes away what the file
// lacks.
func (m *manager) load(args []string) int {
	file, clean := "", false
	for _, w := range args {
		key, value, isSet := strings.Cut(w, "=")
		switch {
		case isSet && front.IsKey(strings.ToLower(key), 1, "file"):
			file = value
		case isSet && front.IsKey(strings.ToLower(key), 1, "cluster"):
			if !strings.EqualFold(value, m.books.Cluster) {
				return m.otherCluster()
			}
		case !isSet && strings.EqualFold(w, "clean"):
			clean = true
		case !isSet && file == "":
			file = w
		default:
			return m.wrong(" Unknown option: " + w)
		}
	}
	if file == "" {
		return m.wrong(" No filename given")
	}
	f, err := os.Open(file)
	if err != nil {
		return m.wrong(fmt.Sprintf(" Unable to read \"%s\": %s", strings.Join(args, " "), pathText(err)))
	}
	defer f.Close()
	l := &loader{m: m, clean: clean, made: map[string]bool{}, coords: map[string][]string{},
		accounts: map[string]bool{cluster.RootName: true}, users: map[string]cluster.User{},
		assocs: map[cluster.AssocID]bool{}}
	code := l.read(f)
	if m.coming = nil; code != 0 {
		return code
	}
	l.coordinate()
	if clean {
		l.sweep()
	}
	if len(l.changes) == 0 {
		m.tell(" Nothing new added.")
		return 0
	}
	for _, t := range l.told {
		m.tell("%s", t)
	}
	if code := m.commit(l.changes, "loading records"); code != 0 {
		return code
	}
	m.sys.Say("Done adding cluster")
	return 0
}

func (l *loader) read(r io.Reader) int {
	in := bufio.NewScanner(r)
	in.Buffer(nil, front.MaxLine)
	var lines []string
	for in.Scan() {
		lines = append(lines, strings.TrimSpace(in.Text()))
	}
	if err := in.Err(); err != nil {
		return l.m.wrong(" " + err.Error())
	}
	l.m.coming = namedQOS(lines)
	for i, line := range lines {
		if line == "" || line[0] == '#' {
			continue
		}
		if code := l.line(i+1, line); code != 0 {
			return code
		}
	}
	return 0
}

// line takes a line, KIND - NAME:KEY=VALUE:…
func (l *loader) line(n int, line string) int {
	kind, rest, ok := strings.Cut(line, " - ")
	parts, closed := splitQuoted(rest, ':')
	if !ok || !closed || len(parts) == 0 {
		return l.m.wrong(fmt.Sprintf(" line %d cannot be read: %s", n, line))
	}
	kind, name := strings.ToLower(strings.TrimSpace(kind)), strings.ToLower(parts[0])
	list, bad := front.Settings(parts[1:])
	if bad != "" {
		return l.m.wrong(fmt.Sprintf(" line %d: Unknown option: %s", n, bad))
	}
	if kind == "qos" {
		return l.setQOS(n, name, list)
	}
	if kind != "cluster" && !l.named {
		l.m.wrong(" You need to specify a cluster name first with 'Cluster - $NAME' in your file")
		return l.m.nothing(" Nothing new added.")
	}
	switch kind {
	case "cluster", "machine":
		return l.cluster(name, list)
	case "parent":
		if !l.hasAccount(name) {
			return l.m.wrong(fmt.Sprintf(" line(%d) You need to add the parent before the account '%s'", n, name))
		}
		l.parent = name
		return 0
	case "account", "project":
		return l.account(name, list)
	case "user":
		return l.user(name, list)
	}
	return l.m.wrong(fmt.Sprintf(" line(%d) Misformatted line: %s", n, line))
}

func (l *loader) cluster(name string, list []front.Setting) int {
	if !strings.EqualFold(name, l.m.books.Cluster) {
		return l.m.otherCluster()
	}
	l.named = true
	l.makeQOS()
	l.m.tell("For cluster %s", name)
	return l.place("root", "", "", list)
}

// hasAccount reports whether there is an account so far, or afterwards if only what the file has is kept.
func (l *loader) hasAccount(name string) bool {
	if l.clean && !l.accounts[name] {
		return false
	}
	return l.made["place "+name] || l.m.books.Find(name, "", "") != nil
}

func (l *loader) account(name string, list []front.Setting) int {
	l.accounts[name] = true
	a, fresh := cluster.Account{
		Name: name, Description: name,
		Organization: front.Choose(l.parent == cluster.RootName, name, l.parent),
	}, true
	if old := l.m.books.Account(name); old != nil {
		a, fresh = *old, false
	}
	before := a
	rest := slices.DeleteFunc(list, func(s front.Setting) bool {
		switch {
		case front.IsKey(s.Key, 3, "description"):
			a.Description = strings.ToLower(s.Value)
		case front.IsKey(s.Key, 1, "organization"):
			a.Organization = strings.ToLower(s.Value)
		default:
			return false
		}
		return true
	})
	if fresh && !l.made["a "+name] || a.Description != before.Description || a.Organization != before.Organization {
		l.made["a "+name] = true
		l.add("Account "+name, fresh, cluster.Change{Account: &a})
	}
	return l.place(name, "", "", rest)
}

func (l *loader) user(name string, list []front.Setting) int {
	old := l.m.books.User(name)
	fresh := old == nil
	u, before := l.userSoFar(name, old)
	part := ""
	var keys []string
	rest := slices.DeleteFunc(list, func(s front.Setting) bool {
		switch {
		case front.IsKey(s.Key, 8, "defaultaccount"):
			u.DefaultAccount = strings.ToLower(s.Value)
		case front.IsKey(s.Key, 2, "adminlevel"):
			u.AdminLevel = adminLevel(s.Value)
		case front.IsKey(s.Key, 3, "partition"):
			part = s.Value
		case front.IsKey(s.Key, 2, "coordinators"):
			for _, a := range mgrNameList(s.Value) {
				l.coords[a] = append(l.coords[a], name)
			}
		case front.IsKey(s.Key, 8, "defaultwckey"):
			u.DefaultWCKey = strings.ToLower(s.Value)
		case front.IsKey(s.Key, 1, "wckeys"):
			keys = mgrNameList(s.Value)
		default:
			return false
		}
		return true
	})
	if u.DefaultWCKey != "" {
		keys = append(keys, u.DefaultWCKey)
	}
	addWCKeys(&u, keys, u.DefaultWCKey)
	if l.clean && old != nil {
		keepNumbers(u.WCKeys, old.WCKeys)
	}
	l.users[name] = u
	changed := !reflect.DeepEqual(u, before)
	if fresh {
		changed = !l.made["u "+name]
	}
	if changed {
		l.made["u "+name] = true
		l.add("User "+name, fresh, cluster.Change{User: &u})
	}
	return l.place(l.parent, name, part, rest)
}

// userSoFar is a user as the lines before have made it, or it was, and as which it is compared with what becomes of it.
func (l *loader) userSoFar(name string, old *cluster.User) (u, before cluster.User) {
	if told, again := l.users[name]; again {
		return told, told
	}
	u = cluster.User{Name: name, DefaultAccount: l.parent}
	switch {
	case old == nil:
		return u, u
	case !l.clean:
		return *old, *old
	case cmp.Or(old.AdminLevel, "None") == "None":
		u.AdminLevel = old.AdminLevel
	}
	return u, *old
}

// keepNumbers has keys that stay keep their numbers.
func keepNumbers(keys, old []cluster.WCKey) {
	for i := range keys {
		same := func(k cluster.WCKey) bool { return k.Name == keys[i].Name }
		if k := slices.IndexFunc(old, same); k >= 0 {
			keys[i] = old[k]
		}
	}
}

func (l *loader) add(what string, fresh bool, c cluster.Change) {
	l.changes = append(l.changes, c)
	l.told = append(l.told, front.Choose(fresh, " Added ", " Changed ")+what)
}

// place makes or changes an association.
func (l *loader) place(account, user, part string, list []front.Setting) int {
	a, fresh, under := cluster.Association{Account: account, User: user, Partition: part, Shares: 1}, true, ""
	before := a
	if old := l.m.books.Find(account, user, part); old != nil {
		l.assocs[old.ID] = true
		fresh, before = false, *old
		before.Limits = slices.Clone(old.Limits)
		if a.Parent = old.Parent; !l.clean {
			a = *old
		} else if user == "" && account != cluster.RootName {
			under = l.parent
		}
	} else if user == "" {
		under = l.parent
		l.made["place "+account] = true
	}
	for _, s := range list {
		if _, code := l.m.setAssoc(&a, l.m.books.Allowed(&a), s); code != 0 {
			return code
		}
	}
	same := !fresh && a.Shares == before.Shares && a.Priority == before.Priority && a.DefaultQOS == before.DefaultQOS &&
		slices.Equal(a.QOS, before.QOS) && slices.Equal(a.Limits, before.Limits) && (under == "" || l.m.books.Above(account) == under)
	if same {
		return 0
	}
	l.add("association of account "+account+front.Choose(user == "", "", ", user "+user)+front.Choose(part == "", "", ", partition "+part),
		fresh, cluster.Change{Assoc: &a, Under: under})
	return 0
}

// coordinate adds the coordinators that users' lines name.
func (l *loader) coordinate() {
	names := slices.Collect(maps.Keys(l.coords))
	if l.clean {
		names = slices.Collect(maps.Keys(l.accounts))
	}
	slices.Sort(names)
	for _, name := range names {
		a := cluster.Account{}
		if old := l.m.books.Account(name); old != nil {
			a = *old
		}
		for i := range l.changes {
			if x := l.changes[i].Account; x != nil && x.Name == name {
				a = *x
			}
		}
		var have []string
		if !l.clean {
			have = slices.Clone(a.Coordinators)
		}
		for _, u := range l.coords[name] {
			if !slices.Contains(have, u) {
				have = append(have, u)
			}
		}
		slices.Sort(have)
		if a.Name != "" && !slices.Equal(have, a.Coordinators) {
			a.Coordinators = have
			l.add("coordinators of account "+name, false, cluster.Change{Account: &a})
		}
	}
}

// sweep takes away what the books have and the file lacks. Root's own records stay.
func (l *loader) sweep() {
	gone := func(what string, c cluster.Change) {
		c.Delete = true
		l.changes, l.told = append(l.changes, c), append(l.told, " Deleted "+what)
	}
	b := l.m.books
	l.users[cluster.RootName] = cluster.User{}
	for _, u := range b.Users {
		if _, told := l.users[u.Name]; !told {
			gone("User "+u.Name, cluster.Change{User: u})
		}
	}
	for _, a := range b.Accounts {
		if !l.accounts[a.Name] {
			gone("Account "+a.Name, cluster.Change{Account: a})
		}
	}
	for _, a := range b.Assocs {
		_, told := l.users[a.User]
		if a.User != "" && told && l.accounts[a.Account] && !l.assocs[a.ID] && (a.User != cluster.RootName || a.Account != cluster.RootName) {
			gone("association of account "+a.Account+", user "+a.User, cluster.Change{Assoc: a})
		}
	}
}

// splitQuoted parts text at a letter that is not in quotes; the quotes go.
func splitQuoted(text string, at rune) (parts []string, closed bool) {
	var part strings.Builder
	quote := rune(0)
	for _, r := range text {
		switch {
		case r == quote:
			quote = 0
		case quote == 0 && (r == '"' || r == '\''):
			quote = r
		case quote == 0 && r == at:
			parts = append(parts, part.String())
			part.Reset()
		default:
			part.WriteRune(r)
		}
	}
	return append(parts, part.String()), quote == 0
}

// pathText is what is wrong with a file, without its name.
func pathText(err error) string {
	var p *os.PathError
	if errors.As(err, &p) && errors.Is(err, os.ErrNotExist) {
		return "No such file or directory"
	}
	return err.Error()
}
