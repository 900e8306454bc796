package adopt

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"dev.muster/adopt/dump"
	"dev.muster/cluster"
)

// books is a cluster as far as accounts go: it takes changes as a server does.
type books struct {
	have Have
	// never names a record that is refused.
	never string
	sent  int
}

func (b *books) send(list []cluster.Change) error {
	for _, c := range list {
		if e := (&Entry{Change: c}); b.never != "" && e.Label() == b.never {
			return fmt.Errorf("%w: %s is not allowed", ErrNotTaken, b.never)
		}
		for _, name := range preempts(c) {
			if !slices.ContainsFunc(b.have.QOS, func(q *cluster.QOS) bool { return q.Name == name }) {
				return fmt.Errorf("%w: no QOS %s", ErrNotTaken, name)
			}
		}
	}
	b.sent += len(list)
	for _, c := range list {
		b.put(c)
	}
	return nil
}

func preempts(c cluster.Change) []string {
	if c.QOS == nil {
		return nil
	}
	return c.QOS.Preempt
}

func (b *books) put(c cluster.Change) {
	switch h := &b.have; {
	case c.Account != nil:
		h.Accounts = slices.DeleteFunc(h.Accounts, func(a *cluster.Account) bool { return a.Name == c.Account.Name })
		h.Accounts = append(h.Accounts, c.Account)
	case c.User != nil:
		h.Users = slices.DeleteFunc(h.Users, func(u *cluster.User) bool { return u.Name == c.User.Name })
		h.Users = append(h.Users, c.User)
	case c.QOS != nil:
		h.QOS = slices.DeleteFunc(h.QOS, func(q *cluster.QOS) bool { return q.Name == c.QOS.Name })
		h.QOS = append(h.QOS, c.QOS)
	default:
		a := *c.Assoc
		a.ID = cluster.AssocID(100 + len(h.Assocs))
		h.Assocs = slices.DeleteFunc(h.Assocs, func(o *cluster.Association) bool { return assocKey(o) == assocKey(&a) })
		for _, o := range h.Assocs {
			if o.User == "" && o.Account == c.Under {
				a.Parent = o.ID
			}
		}
		h.Assocs = append(h.Assocs, &a)
	}
}

// bringIn imports the accounts of a dump, and returns the list of what is not imported.
func (b *books) bringIn(t *testing.T, s *Source, replace bool) (AccountsReport, string) {
	t.Helper()
	var refused bytes.Buffer
	a := Accounts{Source: s, Replace: replace, Send: b.send, Refused: &refused, batch: 3}
	report, err := a.Run(b.have)
	if err != nil {
		t.Fatal(err)
	}
	return report, refused.String()
}

func (b *books) assoc(key string) *cluster.Association { x := indexOf(b.have); return x.assocs[key] }

func newBooks() *books {
	account, user, qos, assocs := cluster.FirstBooks()
	return &books{have: Have{[]*cluster.Account{account}, []*cluster.User{user}, assocs, []*cluster.QOS{qos}}}
}

// TestAccounts: the records of real dumps come in once, and a second run changes nothing.
func TestAccounts(t *testing.T) {
	for _, version := range []string{"22.05", "26.05"} {
		b := newBooks()
		s := open(t, version)
		report, refused := b.bringIn(t, s, false)
		want := AccountsReport{Records: 34, Added: 29, Changed: 1, Same: 4}
		if report != want || refused != "" {
			t.Errorf("%s: %+v, want %+v; refused: %s", version, report, want, refused)
		}
		b.sent = 0
		report, _ = b.bringIn(t, s, false)
		if want := (AccountsReport{Records: 34, Same: 34}); report != want || b.sent != 0 {
			t.Errorf("%s again: %+v, %d changes", version, report, b.sent)
		}
		if a := b.assoc("team-b\x00bob\x00"); a == nil || len(a.QOS) != 7 {
			t.Errorf("%s: %+v", version, a)
		}
	}
}

// TestChangedAccounts: a record that differs stays unless it is to be replaced; a key that a user lacks is added.
func TestChangedAccounts(t *testing.T) {
	s := open(t, "22.05")
	b := newBooks()
	b.bringIn(t, s, false)
	b.put(cluster.Change{Account: &cluster.Account{Name: "nlp", Description: "mine"}})
	b.put(cluster.Change{User: &cluster.User{Name: "bob", DefaultAccount: "team-b", DefaultWCKey: "osprey",
		WCKeys: []cluster.WCKey{{ID: 9, Name: "osprey"}, {ID: 10, Name: "own"}}}})
	report, refused := b.bringIn(t, s, false)
	if report.Changed != 1 || report.Kept != 1 || !strings.Contains(refused, `"name":"account nlp"`) {
		t.Errorf("%+v: %s", report, refused)
	}
	x := indexOf(b.have)
	if x.accounts["nlp"].Description != "mine" || !x.users["bob"].HasWCKey("own") || !x.users["bob"].HasWCKey("heron") {
		t.Errorf("%+v, %+v", x.accounts["nlp"], x.users["bob"])
	}
	if report, _ = b.bringIn(t, s, true); report.Changed != 1 || report.Kept != 0 {
		t.Errorf("with Replace: %+v", report)
	}
	if x = indexOf(b.have); x.accounts["nlp"].Description != "project nlp" {
		t.Errorf("with Replace: %+v", x.accounts["nlp"])
	}
}

// TestRefusedAccounts: a record that the cluster refuses is listed, and all others come in.
func TestRefusedAccounts(t *testing.T) {
	b := newBooks()
	b.never = "user carol"
	report, refused := b.bringIn(t, open(t, "22.05"), false)
	if report.Added != 28 || report.Refused != 1 || !strings.Contains(refused, "user carol is not allowed") {
		t.Errorf("%+v: %s", report, refused)
	}
	s := open(t, "22.05")
	a := Accounts{Source: s, Send: func([]cluster.Change) error { return errors.New("gone") }, Refused: &bytes.Buffer{}}
	if _, err := a.Run(newBooks().have); err == nil || err.Error() != "gone" {
		t.Errorf("an error ends the run: %v", err)
	}
}

// edited is the dump with some text replaced.
func edited(t *testing.T, version string, pairs ...string) *Source {
	t.Helper()
	text := textOfDump(t, version)
	for i := 0; i < len(pairs); i += 2 {
		if !strings.Contains(text, pairs[i]) {
			t.Fatalf("the dump has no %q", pairs[i])
		}
		text = strings.Replace(text, pairs[i], pairs[i+1], 1)
	}
	s, err := openText(t, text)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestHostileAccounts: rows, and parts of rows, that muster cannot keep are listed with the reason.
func TestHostileAccounts(t *testing.T) {
	for _, c := range []struct {
		name, from, to, want string
		added                int
	}{
		{"a control character", "'nlp','project nlp'", "'nlp','a\x1b[2J'", "control characters", 25},
		{"too few values", "0,'carol',1)", "0,'carol')", "values", 25},
		{"a negative limit", "',2160,50,", "',2160,-50,", "grp_jobs", 26},
		{"an unknown resource", "'1=64,1001=32'", "'1=64,77=32'", "77=32", 29},
		{"an unknown flag", "'cheap cycles',80,", "'cheap cycles',1104,", "0x400", 29},
		{"an unknown mode", "',7,',0,NULL,590", "',7,',77,NULL,590", "0x4d", 29},
		{"a level", "'alice',1)", "'alice',9)", "admin_level", 25},
		{"an account below itself", "'nlp','','team-a'", "'nlp','','nlp'", "not in the tree", 26},
		{"a QOS without a number", "0,7,'long'", "0,NULL,'long'", "id", 28},
		{"an account twice", "'','speech','','team-b'", "'','nlp','','team-a'", "there twice", 27},
		{"a deleted account", "0,'speech','it`s", "1,'speech','it`s", "account speech is deleted", 26},
		{"a limit of older versions", "'1=16','1=100000',''", "'1=16','1=100000','1=5'", "MaxTRESRunMins", 29},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newBooks()
			report, refused := b.bringIn(t, edited(t, "22.05", c.from, c.to), false)
			if report.Added != c.added || report.Refused == 0 || !strings.Contains(refused, c.want) {
				t.Errorf("%+v: %s\nwant %d, %q", report, refused, c.added, c.want)
			}
		})
	}
}

// TestAssociations: lists of QOS that add to those above, parents by number, modes and factors of QOS.
func TestAssociations(t *testing.T) {
	b := newBooks()
	s := edited(t, "26.05",
		"'proteins','','team-a',3,", "'proteins','','',4,", // by number alone
		"NULL,NULL,NULL,NULL,'1=64,1001=32','1=1000000','',NULL,NULL,NULL,'',''",
		"NULL,NULL,NULL,NULL,'1=64,1001=32','1=1000000','',NULL,NULL,NULL,'',',+2,+99,-1,'",
		"',7,',0,NULL,240,2,NULL,NULL", "',7,',16386,60,240,2,0.5,3")
	b.bringIn(t, s, false)
	x := indexOf(b.have)
	a := b.assoc("proteins\x00\x00")
	if above := x.byID[a.Parent]; above == nil || above.Account != "team-b" || !slices.Equal(a.QOS, []string{"high"}) {
		t.Errorf("below %v, QOS %v", above, a.QOS)
	}
	if n, _ := a.Limits.Get("GrpTRES", "gres/gpu"); n != 32 {
		t.Errorf("limits %v", a.Limits)
	}
	q := x.qos["long"]
	if q.PreemptMode != "REQUEUE,WITHIN" || *q.UsageThreshold != 0.5 || *q.LimitFactor != 3 || q.PreemptExempt.Seconds() != 60 {
		t.Errorf("%+v", q)
	}
	if n, _ := b.assoc("genome\x00\x00").Limits.Get("MaxWall", ""); n != 36*3600 {
		t.Errorf("MaxWall is %d s", n)
	}
}

// TestAccountsOfCluster: only what the chosen cluster has comes in, and what no cluster has.
func TestAccountsOfCluster(t *testing.T) {
	text := textOfDump(t, "22.05")
	begin := strings.Index(text, "CREATE TABLE `oracle_assoc_table`")
	end := begin + strings.Index(text[begin:], "UNLOCK TABLES")
	other := strings.NewReplacer("oracle_assoc", "other_assoc", "'erin'", "'zoe'", "'lattice'", "'speech'").
		Replace(text[begin:end])
	text = text[:begin] + other + "UNLOCK TABLES;\n" + text[begin:]
	text = strings.Replace(text, "0,'erin',1)", "0,'erin',1),\n(1,1,0,'zoe',1),\n(1,1,0,'yan',2)", 1)
	text = strings.Replace(text, "INSERT INTO `cluster_table` VALUES\n", "INSERT INTO `cluster_table` VALUES\n"+
		"(1,1,0,'other','127.0.0.1',1,1,9728,0,1,109,128,'','',0,0),\n", 1)
	path := filepath.Join(t.TempDir(), "dump.sql")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	s, err := Open(&dump.File{Path: path}, "oracle", func(int64) {})
	if err != nil {
		t.Fatal(err)
	}
	b := newBooks()
	b.bringIn(t, s, false)
	x := indexOf(b.have)
	if x.users["zoe"] != nil || x.users["erin"] == nil || x.users["yan"] == nil || x.users["yan"].AdminLevel != "Operator" {
		t.Errorf("users %v", x.users)
	}
	if b.assoc("speech\x00zoe\x00") != nil || b.assoc("lattice\x00erin\x00") == nil {
		t.Errorf("associations %v", x.assocs)
	}
}
