package imported

import (
	"bufio"
	"compress/gzip"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"dev.muster/adopt"
	"dev.muster/adopt/dump"
	"dev.muster/cluster"
	"dev.muster/wire"
)

// now is when sacct was run.
var now = map[string]int64{"22.05": 1795810968, "26.05": 1795811128}

// names reads lines NAME:UID:GID.
func names(t *testing.T, list []string) *adopt.Names {
	t.Helper()
	var users, groups strings.Builder
	for _, line := range list {
		parts := strings.Split(line, ":")
		fmt.Fprintf(&users, "%s:x:%s\n", parts[0], parts[1])
		fmt.Fprintf(&groups, "%s:x:%s\n", parts[0], parts[2])
	}
	n, err := adopt.ReadNames(strings.NewReader(users.String()), strings.NewReader(groups.String()))
	if err != nil {
		t.Fatal(err)
	}
	return n
}

const dumps = "../../e2e/testdata/adopt"

func lines(t *testing.T, path string) (out []string) {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	in := bufio.NewScanner(z)
	in.Buffer(nil, 1<<20)
	for in.Scan() {
		out = append(out, in.Text())
	}
	return out
}

func TestAsSlurm(t *testing.T) {
	t.Setenv("TZ", "UTC")
	for _, version := range []string{"22.05", "26.05"} {
		t.Run(version, func(t *testing.T) {
			src, err := adopt.Open(&dump.File{Path: filepath.Join(dumps, version, "slurm_acct_db.sql.gz")}, "", func(int64) {})
			if err != nil {
				t.Fatal(err)
			}
			src.Names = names(t, lines(t, filepath.Join(dumps, version, "users.txt.gz")))
			rows := map[string][]Row{}
			err = src.Runs(0, 0, func(r *adopt.Run) error {
				row := Row{Job: r.Job, Now: time.Unix(now[version], 0), When: func(at time.Time, none string) string {
					if at.IsZero() {
						return none
					}
					return at.UTC().Format("2006-01-02T15:04:05")
				}}
				for _, text := range r.Texts[1:] {
					st := &cluster.Step{}
					if err := wire.Unmarshal(text, st); err != nil {
						return err
					}
					row.Steps = append(row.Steps, st)
				}
				key := func(row Row) string {
					id, _ := row.Field("JobID")
					index, _ := row.Field("DBIndex")
					return id + " " + index
				}
				rows[key(row)] = append(rows[key(row)], row)
				for _, st := range row.Steps {
					one := row
					one.Step = st
					rows[key(one)] = append(rows[key(one)], one)
				}
				return nil
			}, func(r adopt.Refused) error { return fmt.Errorf("%+v", r) })
			if err != nil {
				t.Fatal(err)
			}
			compare(t, lines(t, filepath.Join(dumps, version, "sacct-ALL-D.txt.gz")), rows)
		})
	}
}

func compare(t *testing.T, list []string, rows map[string][]Row) {
	head := strings.Split(list[0], "|")
	at := func(name string) int { return slices.Index(head, name) }
	equal, differ := map[string]int{}, map[string][]string{}
	lost, all := 0, 0
	for _, line := range list[1:] {
		cells := strings.Split(line, "|")
		if len(cells) != len(head) {
			continue
		}
		all++
		found := rows[cells[at("JobID")]+" "+cells[at("DBIndex")]]
		if len(found) == 0 {
			lost++
			t.Log("lost", cells[at("JobID")], cells[at("DBIndex")])
			continue
		}
		for i, name := range head {
			text, ok := found[0].Field(name)
			waits := cells[at("State")] == "PENDING" && strings.Contains("Reserved ResvCPU ResvCPURAW", name)
			if ok && text == cells[i] || waits { // how long it waits was counted a second later
				equal[name]++
				continue
			}
			differ[name] = append(differ[name], fmt.Sprintf("%s %q, Slurm %q", cells[at("JobID")], text, cells[i]))
		}
	}
	same := 0
	for _, n := range equal {
		same += n
	}
	t.Logf("%d lines, %d lost, %d fields equal", all, lost, same)
	for _, name := range slices.Sorted(maps.Keys(differ)) {
		list := differ[name]
		t.Errorf("%s: %d differ: %s", name, len(list), strings.Join(list[:min(4, len(list))], "; "))
	}
}
