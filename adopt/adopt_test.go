package adopt

import (
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"dev.muster/adopt/dump"
	"dev.muster/cluster"
	"dev.muster/wire"
)

func open(t testing.TB, version string) *Source {
	t.Helper()
	path := filepath.Join("../e2e/testdata/adopt", version, "slurm_acct_db.sql.gz")
	s, err := Open(&dump.File{Path: path}, "", func(int64) {})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestRealDumps(t *testing.T) {
	for _, c := range []struct {
		version              string
		release, jobs, steps int
	}{
		{"22.05", 2205, 188, 335},
		{"26.05", 2605, 199, 349},
	} {
		t.Run(c.version, func(t *testing.T) {
			s := open(t, c.version)
			if s.Cluster != "oracle" || s.Release != c.release {
				t.Errorf("cluster %s, release %d", s.Cluster, s.Release)
			}
			jobs, steps, size := 0, 0, 0
			states := map[cluster.Outcome]int{}
			err := s.Runs(0, 0, func(r *Run) error {
				jobs++
				steps += len(r.Texts) - 1
				for _, text := range r.Texts {
					size += len(text)
				}
				states[r.Job.Outcome]++
				return nil
			}, func(r Refused) error {
				t.Errorf("refused: %+v", r)
				return nil
			})
			if err != nil || jobs != c.jobs || steps != c.steps {
				t.Errorf("%d jobs, %d steps: %v", jobs, steps, err)
			}
			t.Logf("%d bytes a job with its steps; outcomes %v; highest %d", size/jobs, states, s.Highest)
		})
	}
}

// textOfDump returns the plain text of a dump.
func textOfDump(t testing.TB, version string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("../e2e/testdata/adopt", version, "slurm_acct_db.sql.gz"))
	if err != nil {
		t.Fatal(err)
	}
	return unpacked(t, text)
}

// unpacked returns the text of a file that gzip made.
func unpacked(t testing.TB, file []byte) string {
	t.Helper()
	z, err := gzip.NewReader(bytes.NewReader(file))
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// openText opens a text as a dump.
func openText(t testing.TB, text string) (*Source, error) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "dump.sql")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return Open(&dump.File{Path: path}, "", func(int64) {})
}

func TestRefusedDumps(t *testing.T) {
	text := textOfDump(t, "22.05")
	for _, c := range []struct{ name, text, want string }{
		{"cut off", text[:len(text)-40], "ends before its end"},
		{"half", text[:len(text)/2], "ends before its end"},
		{"an older schema", strings.Replace(text, "(0,12);", "(0,11);", 1), "version 11"},
		{"a newer schema", strings.Replace(text, "(0,12);", "(0,99);", 1), "version 99"},
		{"a charset", strings.Replace(text, "SET NAMES utf8mb4", "SET NAMES latin1", 1), "latin1"},
		{"another database", strings.ReplaceAll(text, "tres_table", "x_table"), "not a dump of Slurm"},
		{"no cluster", strings.ReplaceAll(text, "oracle_job_table", "other_job_table"), "oracle_job_table"},
		{"nothing", "", "not a dump of Slurm"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if _, err := openText(t, c.text); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}

// TestHostileRows: an impossible row is listed with the reason, and all others are taken.
func TestHostileRows(t *testing.T) {
	text := textOfDump(t, "22.05")
	begin := strings.Index(text, "INSERT INTO `oracle_job_table` VALUES\n") + len("INSERT INTO `oracle_job_table` VALUES\n")
	row := text[begin : begin+strings.Index(text[begin:], ",\n")+2]
	name := "'nodefail-norequeue'"
	if !strings.Contains(row, name) {
		t.Fatalf("the first row is %s", row)
	}
	for _, c := range []struct{ name, row, want string }{
		{"a negative time", strings.Replace(row, "1795807077", "-5", 2), "-5"},
		{"a late time", strings.Replace(row, "1795807077", "99999999999999", 2), "that is no time"},
		{"a huge number", strings.Replace(row, ",5008,", ",99999999999,", 1), "id_job"},
		{"a control character", strings.Replace(row, name, "'a\x1b[2J'", 1), "control characters"},
		{"no UTF-8", strings.Replace(row, name, "'a\xff'", 1), "not UTF-8"},
		{"a long name", strings.Replace(row, name, "'"+strings.Repeat("x", 10<<20)+"'", 1), "bytes"},
		{"too few values", "(1,2,3),\n", "values"},
		{"a resource", strings.Replace(row, "'1=2,", "'77=1,", 1), "77=1"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, err := openText(t, text[:begin]+c.row+text[begin+len(row):])
			if err != nil {
				t.Fatal(err)
			}
			var refused bytes.Buffer
			jobs := 0
			i := Importer{Source: s, Refused: &refused, Tell: func(_, _ int64) {},
				Send: func(c *cluster.ImportHistory) error { jobs += len(c.Jobs); return nil }}
			report, err := i.Run(nil)
			var first string
			for line := range strings.Lines(refused.String()) {
				if first == "" && !strings.Contains(line, "oracle_resv_table") {
					first = line
				}
			}
			if err != nil || jobs != 187 || report.Refused == 0 || !strings.Contains(first, c.want) {
				t.Errorf("%d jobs, %d refused, %v: %.300s\nwant %q", jobs, report.Refused, err, first, c.want)
			}
		})
	}
}

// TestResume: an import that was ended goes on behind what the cluster has, and a second one sends nothing.
func TestResume(t *testing.T) {
	s := open(t, "26.05")
	var known cluster.Import
	sent := map[uint64]int{}
	run := func(stop int) error {
		i := Importer{Source: s, Refused: io.Discard, Tell: func(_, _ int64) {}, Send: func(c *cluster.ImportHistory) error {
			if stop--; stop < 0 {
				return errors.New("killed")
			}
			if c.From != known.Passed {
				t.Errorf("a batch follows %d rows, not %d", c.From, known.Passed)
			}
			known = c.Import
			for _, text := range c.Jobs {
				var j cluster.Job
				if err := wire.Unmarshal(text, &j); err != nil {
					return err
				}
				sent[j.Imported.Row]++
			}
			return nil
		}}
		i.jobs = 10
		_, err := i.Run(&known)
		return err
	}
	for stop := 3; ; stop++ {
		if err := run(stop); err == nil {
			break
		}
	}
	if err := run(0); err != nil {
		t.Errorf("again: %v", err)
	}
	for row, n := range sent {
		if n != 1 {
			t.Errorf("row %d was sent %d times", row, n)
		}
	}
	if len(sent) != 199 || !known.Over {
		t.Errorf("%d jobs were sent, over: %t", len(sent), known.Over)
	}
}

// TestReservations: reservations that were over come in, and the others are listed.
func TestReservations(t *testing.T) {
	for _, version := range []string{"22.05", "26.05"} {
		var got []cluster.ResvSpan
		var refused bytes.Buffer
		i := Importer{Source: open(t, version), Refused: &refused, Tell: func(_, _ int64) {},
			Send: func(c *cluster.ImportHistory) error {
				for _, text := range c.Resvs {
					got = append(got, cluster.ResvSpan{})
					if err := wire.Unmarshal(text, &got[len(got)-1]); err != nil {
						return err
					}
				}
				return nil
			}}
		report, err := i.Run(nil)
		if err != nil || report.Resvs != 1 || report.Refused != 2 || strings.Count(refused.String(), "not over") != 2 {
			t.Fatalf("%s: %+v, %v: %s", version, report, err, &refused)
		}
		r := got[0]
		if r.Name != "gone" || r.To <= r.From || len(r.Nodes) != 1 || r.Flags != cluster.ResvIgnoreJobs ||
			!slices.Equal(r.TRES, []cluster.Amount{{TRES: "cpu", N: 16}}) || len(r.Accounts) != 1 {
			t.Errorf("%s: %+v", version, r)
		}
	}
}

// TestHostileReservations: times of reservations that cannot be are listed.
func TestHostileReservations(t *testing.T) {
	row := "(3,1,'11',64,'gpu-node-005','4','gone',1795807077,1795807140,'1=16',63)"
	for _, c := range []struct{ from, to, want string }{
		{"1795807140", "1795807000", "cannot last"},
		{"gpu-node-005", "gpu-node-[001-999999]", "nodelist"},
		{"1=16", "77=16", "tres has"},
		{"'gone'", "''", "not a name"},
		{"1795807077", "-3", "time_start"},
	} {
		var refused bytes.Buffer
		i := Importer{Source: edited(t, "22.05", row, strings.Replace(row, c.from, c.to, 1)), Refused: &refused,
			Tell: func(_, _ int64) {}, Send: func(*cluster.ImportHistory) error { return nil }}
		a := Accounts{Source: i.Source, Refused: &refused}
		report, err := i.Run(nil)
		if _, also := a.Run(Have{}); err != nil || also != nil || report.Resvs != 0 || !strings.Contains(refused.String(), c.want) {
			t.Errorf("%s: %+v, %v: %s", c.to, report, err, &refused)
		}
	}
}
