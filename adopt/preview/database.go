package preview

import (
	"strconv"
	"strings"
)

// The rate and the size of an import of jobs with two steps each, as measured (docs/migrate.md). Both depend on the
// disk and on the number of steps. The bytes include the replicated log, which is compacted later.
const (
	jobsPerSecond = 5000
	bytesPerJob   = 5500
)

// Database says what of the accounting can be imported.
type Database struct {
	Counts map[string]int `json:"counts,omitempty"` // of accounts, users, associations and QOS
	// JobIDs is how many numbers Slurm has given out; it keeps fewer jobs if it has purged some.
	JobIDs  int64   `json:"job_ids,omitempty"`
	Seconds float64 `json:"seconds,omitempty"` // an estimate for that many jobs
	Bytes   int64   `json:"bytes,omitempty"`   // on each server, likewise
	Parts   []Item  `json:"parts"`
}

const importIt = "muster adopt import DUMP"

// database says which parts are imported, and estimates how long that takes.
func database(s *Site, keys, show map[string]string) Database {
	d := Database{Counts: s.Books, Parts: []Item{
		{Name: "accounts, users, associations, QOS, wckeys", Verdict: Adopted, Action: importIt},
		{Name: "jobs, steps and past reservations", Verdict: Adopted, Action: importIt},
		{Name: "fair-share usage", Verdict: Adopted, How: "slurmctld keeps it, not the database",
			Action: "muster adopt import --shares FILE"},
		{Name: "node events, transactions and usage tables", Verdict: Different,
			How: "not imported; reports count the imported jobs", Action: "keep the dump for audits"},
	}}
	if d.Counts == nil && s.Dump != "" {
		d.Counts = countDump(s.Dump)
	}
	flags := strings.ToLower(keys["accountingstoreflags"])
	if strings.Contains(flags, "job_script") || strings.Contains(flags, "job_env") {
		d.Parts = append(d.Parts, Item{Name: "scripts and environments of old jobs", Verdict: Lost,
			How: "not imported; muster keeps those of new jobs", Action: "keep the dump if you need them"})
	}
	if n := countPrefix(s.Reservations, "ReservationName="); n > 0 {
		d.Parts = append(d.Parts, Item{Name: "current reservations", Value: strconv.Itoa(n), Verdict: Different,
			How: "not imported", Action: "scontrol create reservation"})
	}
	next, _ := strconv.ParseInt(show["next_job_id"], 10, 64)
	first, _ := strconv.ParseInt(show["firstjobid"], 10, 64)
	if d.JobIDs = max(next-max(first, 1), 0); d.JobIDs > 0 {
		d.Seconds = float64(d.JobIDs) / jobsPerSecond
		d.Bytes = d.JobIDs * bytesPerJob
	}
	return d
}

func countPrefix(text, prefix string) (n int) {
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, prefix) {
			n++
		}
	}
	return n
}

// countDump counts the accounts and users of a file that sacctmgr dump wrote.
func countDump(text string) map[string]int {
	users, accounts, assocs := map[string]bool{}, map[string]bool{"root": true}, 0
	for line := range strings.Lines(text) {
		kind, rest, ok := strings.Cut(line, " - ")
		name := strings.SplitN(rest, "'", 3)
		if !ok || strings.HasPrefix(line, "#") || len(name) < 3 {
			continue
		}
		switch kind {
		case "Account":
			accounts[name[1]] = true
			assocs++
		case "User":
			users[name[1]] = true
			assocs++
		}
	}
	return map[string]int{"accounts": len(accounts), "users": len(users), "associations": assocs + 1}
}

// IsDump reports whether a text is a file that sacctmgr dump wrote.
func IsDump(text string) bool {
	for line := range strings.Lines(text) {
		if !strings.HasPrefix(line, "#") {
			return strings.HasPrefix(line, "Cluster - '")
		}
	}
	return false
}
