package mcp

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"dev.muster/api"
	"dev.muster/slurm/front"
)

var historyTool = tool{name: "history", title: "Query your job history", help: "Query your own jobs, past and " +
	"present, with one SELECT of SQLite. Tables: jobs (one row per attempt) and steps. Without sql, lists their " +
	"columns. Times are Unix seconds. Prefer aggregates and LIMIT."}

type historyIn struct {
	SQL    string `json:"sql,omitempty" jsonschema:"one SELECT, e.g. SELECT state, count(*) FROM jobs GROUP BY state"`
	Days   int    `json:"days,omitempty" jsonschema:"how far back, at most 366; default 30"`
	Limit  int    `json:"limit,omitempty" jsonschema:"rows, at most 200; default 25"`
	Cursor string `json:"cursor,omitempty" jsonschema:"value of next: from the previous page"`
}

// Bounds of questions.
const (
	maxRecords = 20_000
	maxDays    = 366
	someDays   = 30
	maxSQL     = 16 << 10
)

func (c *caller) history(ctx context.Context, in historyIn) (string, error) {
	switch {
	case in.SQL != "" && strings.TrimSpace(in.SQL) == "":
		return "", errors.New("sql is empty: use one SELECT")
	case len(in.SQL) > maxSQL:
		return "", fmt.Errorf("sql has %d bytes; the limit is %d", len(in.SQL), maxSQL)
	case in.SQL == "" && in.Limit == 0:
		in.Limit = maxRows
	}
	s := c.sys()
	if in.SQL != "" && c.w.Begin != nil {
		end, err := c.w.Begin(s)
		if err != nil {
			return "", err
		}
		defer end()
	}
	records, cut, err := c.ownRecords(s, &in)
	if err != nil {
		return "", err
	}
	steps := 0
	for i := range records {
		steps += len(records[i].Steps)
	}
	answer, err := c.w.Query(ctx, s, in.SQL, records)
	if err != nil {
		return "", err
	}
	t := &table{}
	t.row(answer.Columns...)
	err = t.page(in.Cursor, in.Limit, len(answer.Rows), func(i int) { t.row(answer.Rows[i]...) })
	if cut {
		fmt.Fprintf(t, "[only the newest %d records were queried: use fewer days]\n", maxRecords)
	}
	if steps >= api.LatestSteps {
		fmt.Fprintf(t, "[only the newest %d steps were queried: use fewer days]\n", api.LatestSteps)
	}
	if answer.More {
		t.WriteString("[there are more rows than one answer has: use WHERE or LIMIT]\n")
	}
	return t.String(), err
}

// ownRecords returns the caller's own jobs, whoever else's the caller may see.
func (c *caller) ownRecords(s *front.Sys, in *historyIn) (list []api.JobHistory, cut bool, err error) {
	if in.SQL == "" {
		return nil, false, nil
	}
	days := min(cmp.Or(max(in.Days, 0), someDays), maxDays)
	resp, err := front.History(s, api.HistoryQuery{
		Users:      []uint32{s.UID},
		Steps:      true,
		Duplicates: true,
		From:       s.Now().AddDate(0, 0, -days),
		To:         s.Now().Add(time.Minute),
		Latest:     maxRecords,
	})
	if err != nil {
		return nil, false, err
	}
	list = slices.DeleteFunc(resp.Records, func(r api.JobHistory) bool { return r.Job.Spec.UID != s.UID })
	if n := len(list) - maxRecords; n > 0 { // an older server answers with all of them
		list = list[n:]
	}
	return list, len(list) == maxRecords, nil
}
