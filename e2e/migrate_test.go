package e2e

import (
	"bufio"
	"bytes"
	"cmp"
	"compress/gzip"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// adoptNow is when the commands of a Slurm cluster were run.
var adoptNow = map[string]string{"22.05": "2026-11-27T20:22:48", "26.05": "2026-11-27T20:25:28"}

// adoptFile reads a file of what a Slurm cluster left behind, in testdata/adopt.
func adoptFile(t *testing.T, version, name string) string {
	t.Helper()
	f, err := os.Open(filepath.Join("testdata/adopt", version, name+".gz"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// sourceNames writes the users and groups of a Slurm cluster as getent prints them, and returns the options that name
// the files.
func sourceNames(t *testing.T, version string) []string {
	t.Helper()
	var users, groups bytes.Buffer
	for line := range strings.Lines(adoptFile(t, version, "users.txt")) {
		parts := strings.Split(strings.TrimSpace(line), ":")
		fmt.Fprintf(&users, "%s:x:%s:%s::/:/bin/sh\n", parts[0], parts[1], parts[2])
		fmt.Fprintf(&groups, "%s:x:%s:\n", parts[0], parts[2])
	}
	dir := t.TempDir()
	passwd, group := filepath.Join(dir, "passwd"), filepath.Join(dir, "group")
	for file, text := range map[string][]byte{passwd: users.Bytes(), group: groups.Bytes()} {
		if err := os.WriteFile(file, text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return []string{"--passwd", passwd, "--group", group}
}

// knownDifference is one that is known: a field in lines that have a text, with the reason.
type knownDifference struct {
	what, field, line, why string
	seen                   int
}

// knownDifferences reads testdata/adopt/known.txt.
func knownDifferences(t *testing.T) (list []*knownDifference) {
	t.Helper()
	text, err := os.ReadFile("testdata/adopt/known.txt")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		parts := strings.Split(strings.TrimSpace(line), "\t")
		if strings.HasPrefix(line, "#") || strings.TrimSpace(line) == "" {
			continue
		}
		if len(parts) != 4 {
			t.Fatalf("known.txt: %q is not WHAT, FIELD, LINE and WHY", line)
		}
		list = append(list, &knownDifference{what: parts[0], field: parts[1], line: parts[2], why: parts[3]})
	}
	return list
}

// migration compares what commands print with what those of Slurm did.
type migration struct {
	t            *testing.T
	known        []*knownDifference
	equal, knows int
	differ       map[string][]string
}

// excused reports whether a difference is known.
func (m *migration) excused(what, field, line string) bool {
	for _, d := range m.known {
		if d.what == what && (d.field == "*" || d.field == field) && (d.line == "*" || strings.Contains(line, d.line)) {
			d.seen++
			m.knows++
			return true
		}
	}
	return false
}

// compare compares two tables by the names of their fields. Lines are found by the fields that make their key.
func (m *migration) compare(what, want, got string, key ...string) {
	m.t.Helper()
	wanted, here := tableOf(want), tableOf(got)
	rows := map[string][][]string{}
	for _, r := range here.rows {
		k := here.key(r, key)
		rows[k] = append(rows[k], r)
	}
	for _, r := range wanted.rows {
		k := wanted.key(r, key)
		line := strings.Join(r, "|")
		if len(rows[k]) == 0 {
			if !m.excused(what, "line", line) {
				m.differ[what+" line"] = append(m.differ[what+" line"], line)
			}
			continue
		}
		mine := rows[k][0]
		rows[k] = rows[k][1:]
		for i, field := range wanted.head {
			at := slices.Index(here.head, field)
			if at < 0 || i >= len(r) || at >= len(mine) || mine[at] != r[i] {
				m.unlike(what, field, line, cellAt(mine, at), cellAt(r, i))
				continue
			}
			m.equal++
		}
	}
	for _, left := range rows {
		for _, r := range left {
			if line := strings.Join(r, "|"); !m.excused(what, "more", line) {
				m.differ[what+" more"] = append(m.differ[what+" more"], line)
			}
		}
	}
}

func (m *migration) unlike(what, field, line, mine, slurm string) {
	if m.excused(what, field, line) {
		return
	}
	name := what + " " + field
	m.differ[name] = append(m.differ[name], fmt.Sprintf("%q, Slurm %q in %.60s", mine, slurm, line))
}

func cellAt(row []string, i int) string {
	if i < 0 || i >= len(row) {
		return "no such field"
	}
	return row[i]
}

// report says how many fields are equal, and fails for those that are not, and for differences that are gone.
func (m *migration) report(version string) {
	m.t.Helper()
	m.t.Logf("%s: %d fields are equal, %d differ for known reasons", version, m.equal, m.knows)
	for _, name := range slices.Sorted(maps.Keys(m.differ)) {
		list := m.differ[name]
		m.t.Errorf("%s: %d differ: %s", name, len(list), strings.Join(list[:min(3, len(list))], "; "))
	}
}

// printedTable is what a command has printed with -P.
type printedTable struct {
	head []string
	rows [][]string
}

// tableOf reads a table. Rows whose fields hold | or line ends cannot be told apart: those with another number of fields
// are left out.
func tableOf(text string) (out printedTable) {
	in := bufio.NewScanner(strings.NewReader(text))
	in.Buffer(nil, 1<<20)
	for in.Scan() {
		cells := strings.Split(in.Text(), "|")
		switch {
		case out.head == nil:
			out.head = cells
		case len(cells) == len(out.head):
			out.rows = append(out.rows, cells)
		}
	}
	return out
}

// key joins the fields that make a line's key.
func (p *printedTable) key(row []string, fields []string) string {
	var parts []string
	for _, f := range fields {
		parts = append(parts, cellAt(row, slices.Index(p.head, f)))
	}
	return strings.Join(parts, "|")
}

// accounting compares what sacctmgr prints of accounts and what belongs to them.
func (m *migration) accounting(d *dev, version string) {
	m.t.Helper()
	for _, c := range []struct {
		name, args string
		key        []string
	}{
		{"accounts", "account withcoord", []string{"Account"}},
		{"assoc", "assoc", []string{"Account", "User", "Partition"}},
		{"qos", "qos", []string{"Name"}},
		{"users", "users withassoc withcoord", []string{"User", "Account", "Partition"}},
		{"wckey", "wckey", []string{"WCKey", "User"}},
		{"resv", "reservation start=2000-01-01", []string{"Name"}},
	} {
		got := d.must("sacctmgr", append([]string{"-P", "show"}, strings.Fields(c.args)...)...)
		m.compare(c.name, adoptFile(m.t, version, "sacctmgr-"+c.name+".txt"), got, c.key...)
	}
}

// shares brings in the usage that two commands of Slurm printed, and compares the standing of all. Slurm prints whole
// seconds, so usage comes with a part of a second less, and factors of it differ in their last digits.
func (m *migration) shares(d *dev, version string) {
	m.t.Helper()
	want := tableOf(adoptFile(m.t, version, "sshare.txt"))
	for _, name := range []string{"assoc_mgr.txt", "sshare.txt"} {
		file := filepath.Join(m.t.TempDir(), name)
		if err := os.WriteFile(file, []byte(adoptFile(m.t, version, name)), 0o600); err != nil {
			m.t.Fatal(err)
		}
		if said := d.must("muster", "adopt", "import", "--shares", file); strings.Contains(said, "was not set") {
			m.t.Errorf("%s: %s", name, said)
		}
		got := tableOf(d.must("sshare", "-a", "-l", "-P"))
		fields := []string{"Account", "User", "RawShares", "NormShares", "RawUsage", "GrpTRESMins"}
		m.compare("sshare", want.text(fields), got.text(fields), "Account", "User")
		if version == "22.05" { // the other cluster had moved an account and not computed FairShare again
			m.compare("sshare", want.text(append(fields, "FairShare")), got.text(append(fields, "FairShare")), "Account", "User")
		}
		m.sameOrder(name, &want, &got)
	}
	qos := d.must("scontrol", "show", "assoc_mgr", "flags=qos", "qos=normal")
	_, line, _ := strings.Cut(adoptFile(m.t, version, "assoc_mgr.txt"), "QOS=normal(1)\n")
	line, _, _ = strings.Cut(line, ".")
	if !strings.Contains(line, "UsageRaw=") || !strings.Contains(qos, strings.TrimSpace(line)+".") {
		m.t.Errorf("QOS normal has %s, in Slurm %s", qos, line)
	}
}

// text writes some fields of a table.
func (p *printedTable) text(fields []string) string {
	lines := []string{strings.Join(fields, "|")}
	for _, r := range p.rows {
		lines = append(lines, p.key(r, fields))
	}
	return strings.Join(lines, "\n")
}

// sameOrder compares the order of the associations below one account by LevelFS, but for those that were so new that
// Slurm had not computed it yet.
func (m *migration) sameOrder(what string, want, got *printedTable) {
	m.t.Helper()
	type standing struct{ old, now float64 }
	groups := map[string][]standing{}
	var above []string
	for i, r := range want.rows {
		name := want.key(r, []string{"Account"})
		depth := len(name) - len(strings.TrimLeft(name, " "))
		above = append(above[:depth], name)
		group := strings.Join(above[:depth], "/")
		old, err := strconv.ParseFloat(want.key(r, []string{"LevelFS"}), 64)
		if err != nil || want.key(r, []string{"FairShare"}) == "0.000000" {
			continue
		}
		now, err := strconv.ParseFloat(got.key(got.rows[i], []string{"LevelFS"}), 64)
		if err != nil {
			m.t.Errorf("%s: LevelFS of %v: %v", what, got.rows[i], err)
		}
		groups[group] = append(groups[group], standing{old, now})
	}
	for group, list := range groups {
		slices.SortStableFunc(list, func(a, b standing) int { return cmp.Compare(a.old, b.old) })
		if !slices.IsSortedFunc(list, func(a, b standing) int { return cmp.Compare(a.now, b.now) }) {
			m.t.Errorf("%s: the order by LevelFS below %s: %v", what, group, list)
		}
		m.equal += len(list)
	}
}

// changedAccounts: a record that muster has in another way is kept, and changed with --replace.
func changedAccounts(d *dev, words []string) {
	d.t.Helper()
	d.must("sacctmgr", "-i", "modify", "account", "team-a", "set", "fairshare=7")
	has := func(shares string) bool {
		list := d.must("sacctmgr", "-nP", "show", "assoc", "account=team-a", "format=user,fairshare")
		return strings.HasPrefix(list, "|"+shares+"\n")
	}
	d.work = d.dir
	said := d.must("muster", words...)
	if !strings.Contains(said, "1 differ in muster and were kept") || !has("7") {
		d.t.Errorf("without --replace: %s", said)
	}
	list, err := os.ReadFile(filepath.Join(d.work, "muster-refused-oracle.jsonl"))
	if err != nil || !strings.Contains(string(list), `"name":"association of account team-a","why":"muster has it with another shares`) {
		d.t.Errorf("the list has %s: %v", list, err)
	}
	said = d.must("muster", slices.Insert(slices.Clone(words), 2, "--replace")...)
	if !strings.Contains(said, "0 added, 1 changed, 33 unchanged") || !has("60") {
		d.t.Errorf("with --replace: %s", said)
	}
}

// TestMigrate: what Slurm's commands printed of a cluster's past, muster's print after the import.
func TestMigrate(t *testing.T) {
	for _, version := range []string{"22.05", "26.05"} {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			file := confFile(t, "ClusterName=oracle", "TrackWCKey=yes", "PriorityType=priority/multifactor",
				"PriorityDecayHalfLife=0", "PriorityUsageResetPeriod=NONE", "PartitionName=main Nodes=ALL Default=YES")
			d := startDev(t, "--hollow", "1x8c16g", "--conf", file)
			d.env = append(d.env, "TZ=UTC")
			dump := filepath.Join("testdata/adopt", version, "slurm_acct_db.sql.gz")
			path, err := filepath.Abs(dump)
			if err != nil {
				t.Fatal(err)
			}
			words := append([]string{"adopt", "import"}, sourceNames(t, version)...)
			said := d.must("muster", append(words, path)...)
			if !strings.Contains(said, "imported") {
				t.Fatalf("import: %s", said)
			}
			again := d.must("muster", append(words, path)...)
			if !strings.Contains(again, "imported before") || !strings.Contains(again, "0 added, 0 changed, 34 unchanged") {
				t.Errorf("import again: %s", again)
			}
			changedAccounts(d, append(words, path))
			m := &migration{t: t, known: knownDifferences(t), differ: map[string][]string{}}
			m.compare("sacct", adoptFile(t, version, "sacct-ALL-D.txt"),
				d.must("sacct", "-a", "-D", "-P", "-o", "ALL", "-S", "2000-01-01", "-E", adoptNow[version]), "JobID", "DBIndex")
			m.accounting(d, version)
			m.shares(d, version)
			m.report(version)
			columns := "JobID,JobName,Partition,Account,AllocCPUS,State,ExitCode"
			brief := d.must("sacct", "-a", "-P", "-S", "2000-01-01", "-o", columns)
			if n, want := strings.Count(brief, "\n"), strings.Count(adoptFile(t, version, "sacct-default.txt"), "\n")-2; n < want {
				t.Errorf("sacct prints %d lines, Slurm's %d", n, want)
			}
		})
	}
}
