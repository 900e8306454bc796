package dump

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"
)

const small = `-- MySQL dump 10.13  Distrib 8.0.40
/*!50503 SET NAMES utf8mb4 */;
DROP TABLE IF EXISTS ` + "`t`" + `;
CREATE TABLE ` + "`t`" + ` (
  ` + "`id`" + ` int(10) unsigned NOT NULL DEFAULT '4,5)',
  ` + "`name`" + ` text DEFAULT NULL COMMENT 'a;b',
  PRIMARY KEY (` + "`id`,`name`(42)" + `)
) ENGINE=InnoDB;
LOCK TABLES ` + "`t`" + ` WRITE;
/*!40000 ALTER TABLE ` + "`t`" + ` DISABLE KEYS */;
%s
UNLOCK TABLES;
-- Dump completed on 2026-01-01
`

// readAll reads the rows of a dump as text.
func readAll(text string) (rows []string, err error) {
	r := NewReader(strings.NewReader(text), nil)
	for {
		row, err := r.Next()
		if errors.Is(err, io.EOF) {
			return rows, nil
		}
		if err != nil {
			return rows, err
		}
		if row.Bad != nil {
			rows = append(rows, "bad: "+row.Bad.Error())
			continue
		}
		var parts []string
		for _, v := range row.Values {
			word := fmt.Sprintf("%q", v.Text)
			if v.Null {
				word = "NULL"
			}
			parts = append(parts, word)
		}
		rows = append(rows, strings.Join(parts, " "))
	}
}

func TestStatements(t *testing.T) {
	for _, c := range []struct{ name, text, want string }{
		{"rows on lines", "INSERT INTO `t` VALUES\n(1,'a'),\n(2,NULL);", `"1" "a"; "2" NULL`},
		{"rows on one line", "INSERT INTO `t` VALUES (1,'a'),(2,'b');", `"1" "a"; "2" "b"`},
		{"one row a statement", "INSERT INTO `t` VALUES (1,'a');\nINSERT INTO `t` VALUES (2,'b');", `"1" "a"; "2" "b"`},
		{"columns named", "INSERT INTO `t` (`name`, `id`) VALUES ('a',1);", `"1" "a"`},
		{"a column left out", "REPLACE INTO `t` (`name`) VALUES ('a');", `NULL "a"`},
		{"ignore", "INSERT  IGNORE INTO `db`.`t` VALUES (-1,'a');", `"-1" "a"`},
		{"escapes", `INSERT INTO t VALUES (1,'a\'b''c\\\n\t\r\0\Z\"\%');`, `"1" "a'b'c\\\n\t\r\x00\x1a\"%"`},
		{"hex", "INSERT INTO t VALUES (1,0x616263),(2,_binary 'a');", `"1" "abc"; "2" "a"`},
		{"float", "INSERT INTO t VALUES (1.5e-3,'a');", `"1.5e-3" "a"`},
		{"a bracket in text", "INSERT INTO t VALUES (1,'),(2');", `"1" "),(2"`},
		{"a comment", "INSERT INTO t VALUES /* x */ (1,'a') ; # end", `"1" "a"`},
		{"on duplicate key", "INSERT INTO t VALUES (1,'a') ON DUPLICATE KEY UPDATE name=';';", `"1" "a"`},
		{"too few values", "INSERT INTO t VALUES (1),(2,'b');", `bad: it has 1 values of 1 bytes: 2 values of at most 4194304 bytes are expected; "2" "b"`},
	} {
		t.Run(c.name, func(t *testing.T) {
			rows, err := readAll(fmt.Sprintf(small, c.text))
			if got := strings.Join(rows, "; "); err != nil || got != c.want {
				t.Errorf("got %s, %v\nwant %s", got, err, c.want)
			}
		})
	}
}

func TestRefused(t *testing.T) {
	whole := fmt.Sprintf(small, "INSERT INTO `t` VALUES (1,'a'),(2,'b');")
	for _, c := range []struct{ name, text, want string }{
		{"no end", whole[:strings.Index(whole, "-- Dump completed")], "ends before its end"},
		{"a row without its end", whole[:strings.Index(whole, ",'b')")], "ends before its end"},
		{"a text without its end", whole[:strings.Index(whole, "b')")], "ends before its end"},
		{"a table without its end", whole[:strings.Index(whole, "text DEFAULT")], "ends before its end"},
		{"a row without a value", whole[:strings.Index(whole, "'b')")], "ends before its end"},
		{"charset", strings.Replace(whole, "utf8mb4", "latin1", 1), "latin1: make it again with"},
		{"no definition", strings.Replace(whole, "INTO `t`", "INTO `u`", 1), "table u: its definition"},
		{"not a row", strings.Replace(whole, "(1,'a')", "(1,)", 1), "a value is expected here"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := readAll(c.text)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}

func TestLongValues(t *testing.T) {
	for _, n := range []int{MaxValue - 1, MaxValue, MaxValue + 1, 10 << 20} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			text := fmt.Sprintf(small, "INSERT INTO t VALUES (1,'"+strings.Repeat("x", n)+"'),(2,'b');")
			r := NewReader(strings.NewReader(text), nil)
			row, err := r.Next()
			if err != nil {
				t.Fatal(err)
			}
			v := row.Values[1]
			if v.TooLong != (n > MaxValue) || len(v.Text) != min(n, MaxValue) {
				t.Errorf("a value of %d bytes has %d, too long: %t", n, len(v.Text), v.TooLong)
			}
			if row, err = r.Next(); err != nil || string(row.Values[1].Text) != "b" {
				t.Errorf("the row behind it: %v, %v", row, err)
			}
		})
	}
}

// realDump is one of the dumps of e2e.
func realDump(version string) string {
	return filepath.Join("../../e2e/testdata/adopt", version, "slurm_acct_db.sql.gz")
}

func TestRealDumps(t *testing.T) {
	for _, c := range []struct{ version, want string }{
		{"22.05", wantRows2205},
		{"26.05", wantRows2605},
	} {
		t.Run(c.version, func(t *testing.T) {
			seen := map[string]int64{}
			all, err := Scan(&File{Path: realDump(c.version)}, nil, func(row *Row) error {
				if row.Bad != nil {
					t.Errorf("%s: %v", row.Table.Name, row.Bad)
				}
				seen[row.Table.Name]++
				return nil
			}, func(int64) {})
			if err != nil {
				t.Fatal(err)
			}
			var lines []string
			for _, table := range all.Tables {
				if table.Rows > 0 {
					lines = append(lines, fmt.Sprintf("%s %d", table.Name, table.Rows))
				}
				if seen[table.Name] != table.Rows {
					t.Errorf("%s: %d rows were visited, %d counted", table.Name, seen[table.Name], table.Rows)
				}
				countAlone(t, all, table)
			}
			if got := strings.Join(lines, "\n"); got != strings.TrimSpace(c.want) {
				t.Errorf("got\n%s\nwant\n%s", got, c.want)
			}
		})
	}
}

// countAlone reads the rows of one table on their own.
func countAlone(t *testing.T, all *Contents, table *Table) {
	t.Helper()
	rows, err := all.Rows(table)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	for n := int64(0); ; n++ {
		row, err := rows.Next()
		if errors.Is(err, io.EOF) {
			if n != table.Rows {
				t.Errorf("%s: %d rows on their own, want %d", table.Name, n, table.Rows)
			}
			return
		}
		if err != nil || row.Bad != nil || row.Table.Name != table.Name {
			t.Fatalf("%s: row %d: %v, %v", table.Name, n, err, row)
		}
	}
}

func TestCompressed(t *testing.T) {
	text := []byte(fmt.Sprintf(small, "INSERT INTO `t` VALUES (1,'a'),(2,'b');"))
	var gz, zst bytes.Buffer
	g := gzip.NewWriter(&gz)
	_, err := g.Write(text)
	z, zerr := zstd.NewWriter(&zst)
	if err := errors.Join(err, g.Close(), zerr); err != nil {
		t.Fatal(err)
	}
	_, err = z.Write(text)
	if err := errors.Join(err, z.Close()); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name string
		data []byte
		bad  bool
	}{
		{"plain", text, false},
		{"gzip", gz.Bytes(), false},
		{"zstd", zst.Bytes(), false},
		{"cut gzip", gz.Bytes()[:gz.Len()-20], true},
		{"cut zstd", zst.Bytes()[:zst.Len()-20], true},
		{"empty", nil, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "dump")
			if err := os.WriteFile(path, c.data, 0o600); err != nil {
				t.Fatal(err)
			}
			all, err := Scan(&File{Path: path, Unzstd: unzstd}, nil, func(*Row) error { return nil }, func(int64) {})
			if (err != nil) != c.bad {
				t.Fatalf("got %v", err)
			}
			if err != nil || len(all.Tables) == 0 {
				return
			}
			countAlone(t, all, all.Table("t"))
		})
	}
}

func unzstd(path string) (io.ReadCloser, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	z, err := zstd.NewReader(f)
	if err != nil {
		return nil, err
	}
	return z.IOReadCloser(), nil
}

func FuzzReader(f *testing.F) {
	f.Add([]byte(fmt.Sprintf(small, "INSERT INTO `t` VALUES (1,'a'),(2,NULL);")))
	f.Add([]byte("CREATE TABLE t (`a` int);INSERT INTO t (`a`) VALUES (0x41),(_binary 'x');"))
	f.Fuzz(func(t *testing.T, text []byte) {
		r := NewReader(bytes.NewReader(text), nil)
		for {
			row, err := r.Next()
			if err != nil {
				return
			}
			if row.Bad == nil && len(row.Values) != len(row.Table.Columns) {
				t.Fatalf("%d values for %d columns", len(row.Values), len(row.Table.Columns))
			}
		}
	})
}

const wantRows2205 = `
acct_coord_table 2
acct_table 6
clus_res_table 1
cluster_table 1
convert_version_table 1
oracle_assoc_table 21
oracle_assoc_usage_hour_table 77
oracle_event_table 6
oracle_job_env_table 127
oracle_job_script_table 49
oracle_job_table 188
oracle_last_ran_table 1
oracle_resv_table 3
oracle_step_table 335
oracle_suspend_table 3
oracle_usage_hour_table 11
oracle_wckey_table 16
oracle_wckey_usage_hour_table 54
qos_table 7
res_table 2
table_defs_table 49
tres_table 12
txn_table 94
user_table 5
`
const wantRows2605 = `
acct_coord_table 2
acct_table 7
clus_res_table 1
cluster_table 1
convert_version_table 1
oracle_assoc_table 21
oracle_assoc_usage_hour_table 71
oracle_event_table 3
oracle_job_env_table 62
oracle_job_script_table 50
oracle_job_table 199
oracle_last_ran_table 1
oracle_qos_usage_hour_table 133
oracle_resv_table 3
oracle_step_table 349
oracle_suspend_table 2
oracle_usage_hour_table 13
oracle_wckey_table 17
oracle_wckey_usage_hour_table 55
qos_table 8
res_table 2
table_defs_table 55
tres_table 14
txn_table 99
user_table 6
`
