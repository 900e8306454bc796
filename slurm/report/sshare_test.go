package report

import (
	"bufio"
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"dev.muster/api"
	"dev.muster/cluster"
	"dev.muster/slurm/conf"
	"dev.muster/slurm/front"
	"dev.muster/slurm/opt"
	"dev.muster/slurm/slurmtest"
)

// treeRows are the associations of rows that sshare printed: what they are below, their shares and usage; the
// standing is not read.
func treeRows(t *testing.T, rows []string) (all []*cluster.Association) {
	t.Helper()
	var path []*cluster.Association // the accounts above
	for i, row := range rows {
		depth := len(row) - len(strings.TrimLeft(row, " "))
		f := strings.Split(row[depth:], "|")
		a := &cluster.Association{
			ID: cluster.AssocID(i + 1), Account: f[0], User: f[1], Partition: f[2],
			Shares: cluster.ShareParent,
		}
		if f[3] != "parent" && depth > 0 {
			a.Shares = atoi(t, f[3])
		}
		a.Spent.Raw = float64(atoi(t, f[5]))
		if path = path[:depth]; depth > 0 {
			a.Parent = path[depth-1].ID
		}
		if a.User == "" {
			path = append(path, a)
		}
		all = append(all, a)
	}
	all[0].Shares = 1
	return all
}

func atoi(t *testing.T, text string) int {
	t.Helper()
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// shareTable is what sshare -nP prints of books with these options.
func shareTable(books *api.BooksResponse, o shareOptions, format string, users ...string) string {
	var buf bytes.Buffer
	out := bufio.NewWriter(&buf)
	o.report.NoHeader, o.report.Parse = true, 2
	o.report.Pick(shareColumns(), format)
	o.report.Print(out, o.rows(users, books))
	_ = out.Flush()
	return buf.String()
}

// TestSshareReference: the tree of accounts stands as in a real Slurm, to the digit.
func TestSshareReference(t *testing.T) {
	text, err := os.ReadFile("testdata/sshare.txt")
	if err != nil {
		t.Fatal(err)
	}
	for _, tree := range strings.Split(string(text), "== ")[1:] {
		flags, want, _ := strings.Cut(tree, "\n")
		file := filepath.Join(t.TempDir(), "slurm.conf")
		if err := os.WriteFile(file,
			[]byte("PriorityType=priority/multifactor\n"+strings.ReplaceAll(flags, " ", "\n")+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		c, _, err := conf.Load(file)
		if err != nil {
			t.Fatal(err)
		}
		books := &api.BooksResponse{
			Assocs: treeRows(t, strings.Split(strings.TrimSpace(want), "\n")), Priority: c.Priority,
		}
		for id, s := range cluster.FairShares(slices.Values(books.Assocs), c.Priority.NoFairTree,
			c.Priority.Dampening) {
			books.Assocs[id-1].FairShare = s.FairShare
		}
		got := shareTable(books, shareOptions{all: true},
			"Account,User,Partition,RawShares,NormShares,RawUsage,NormUsage,EffectvUsage,FairShare,LevelFS")
		if got != want {
			t.Errorf("%s\ngot\n%swant\n%s", flags, got, want)
		}
	}
}

// TestSshareRows: which rows of a tree the options show, as in a real Slurm.
func TestSshareRows(t *testing.T) {
	const tree = "root||||0|0|\n root|root||1|0|0\n a|||3|0|0\n  a|alice||1|0|0\n  a|zed||1|0|0\n  b|||parent|0|0\n   b|alice|debug|parent|0|0\n   b|bob||0|0|0\n c|||1|0|0\n  c|bob||1|0|0"
	books := &api.BooksResponse{Assocs: treeRows(t, strings.Split(tree, "\n"))}
	for _, c := range []struct{ line, want string }{
		{"", "root|/ a|/  a|alice/  b|/   b|alice/ c|"},
		{"-a", "root|/ root|root/ a|/  a|alice/  a|zed/  b|/   b|alice/   b|bob/ c|/  c|bob"},
		{"-U", "a|alice/b|alice"},
		{"-u bob", "root|/ a|/  b|/   b|bob/ c|/  c|bob"},
		{"-u zed -u BOB -U", "a|zed/b|bob/c|bob"},
		{"-u 0", "root|/ root|root/ a|/  b|/ c|"},
		{"-u nobody", "root|/ a|/  b|/ c|"},
		{"-A B", "b|/ b|alice"}, // who asks, also below one account
		{"-A b -u bob", "b|/ b|bob"},
		{"-A a -A c -a", "a|/ a|alice/ a|zed/c|/ c|bob"},
		{"-A a,b", "a|/ a|alice/ b|/  b|alice"},
		{"-a -u bob -U", "b|bob/c|bob"}, // the later counts
		{"-u bob -a -U", "root|root/a|alice/a|zed/b|alice/b|bob/c|bob"},
		{"-A ,", ""},
		{"-A nope -a", ""},
	} {
		sys := slurmtest.Sys("sshare", "/")
		var o shareOptions
		if _, code := front.ParseQuery(sys, opt.Sshare, SshareOptions, &o, strings.Fields(c.line)); code >= 0 {
			t.Fatalf("sshare %s: exit code %d", c.line, code)
		}
		users, _ := o.whose(sys)
		if len(o.users) == 0 { // who asks has a number alone here
			users = []string{"alice"}
		}
		if got := strings.ReplaceAll(strings.TrimSuffix(shareTable(books, o, "Account,User", users...), "\n"),
			"\n", "/"); got != c.want {
			t.Errorf("sshare %s: %s\nwant %s", c.line, got, c.want)
		}
	}
	unknown := shareOptions{users: []string{"alice", "4294967290"}}
	if _, nobody := unknown.whose(slurmtest.Sys("sshare", "/")); nobody != "4294967290" {
		t.Errorf("a number that no user has: %q", nobody)
	}
}

// TestReportWords: a field that is named twice is shown once, where it came last.
func TestReportWords(t *testing.T) {
	var r front.Table[shareRow]
	if bad := r.Pick(shareColumns(), "user,User,acc%5,,rawshares,user"); bad != "" || len(r.Cols) != 3 || r.Cols[2].Name != "User" {
		t.Errorf("columns %v and %q, want Account, RawShares and User", r.Cols, bad)
	}
}
