package api

import (
	"strconv"
	"time"

	"dev.muster/cluster"
	"dev.muster/wire"
)

// CopyHistory is the tunnel over which a server fetches the whole history from another one: its length
// as eight bytes, the most significant first, and the file.
const CopyHistory = "/v1/history/copy"

// Lag reports that an answer from history lacks the newest records.
type Lag struct {
	AsOf    time.Time `json:"as_of"`
	Missing uint64    `json:"missing"` // entries of the log
}

// Text returns a sentence for the user; "" if nothing is missing.
func (l *Lag) Text() string {
	if l == nil {
		return ""
	}
	unit := "changes"
	if l.Missing == 1 {
		unit = "change"
	}
	return "as of " + l.AsOf.Local().Format("2006-01-02T15:04:05") + ": records of the latest " + thousands(l.Missing) +
		" " + unit + " are missing; this server is still writing its job history"
}

// thousands writes a number with commas: 1,234.
func thousands(n uint64) string {
	text := strconv.FormatUint(n, 10)
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}

// Late returns the sentence about records that are missing; "" if none are.
func (r HistoryResponse) Late() string { return r.Lag.Text() }

// Late returns the sentence about records that are missing; "" if none are.
func (r UsageResponse) Late() string { return r.Lag.Text() }

// Late returns the sentence about records that are missing; "" if none are.
func (r ChangesResponse) Late() string { return r.Lag.Text() }

// Late returns the sentence about records that are missing; "" if none are.
func (r SQLResponse) Late() string { return r.Lag.Text() }

// HistoryQuery selects ended and living jobs of the past.
type HistoryQuery struct {
	Refs       []cluster.Ref      `json:"refs,omitempty"`
	Users      []uint32           `json:"users,omitempty"`
	Accounts   []string           `json:"accounts,omitempty"`
	Partitions []string           `json:"partitions,omitempty"`
	Names      []string           `json:"names,omitempty"`
	QOS        []string           `json:"qos,omitempty"`
	Nodes      []cluster.NodeName `json:"nodes,omitempty"`
	States     []HistoryState     `json:"states,omitempty"`
	From       time.Time          `json:"from,omitzero"`
	To         time.Time          `json:"to,omitzero"`
	Duplicates bool               `json:"duplicates,omitempty"`
	Steps      bool               `json:"steps,omitempty"` // with the jobs' steps
	Brief      bool               `json:"brief,omitempty"` // without what only the full record shows, as of JobQuery
	cluster.HistoryFilter
	// Latest asks for at most so many records, the last ended first, and at most LatestSteps steps of them, those that
	// began last; 0: all, in the order in which they came.
	Latest int    `json:"latest,omitempty"`
	After  uint64 `json:"after,omitempty"`
	// Page asks for a page of the records, beginning there; with nil more than one page of them are an error.
	Page *HistoryCursor `json:"page,omitempty"`
}

// HistoryCursor is where a page of records begins, in the history of one server; the zero value is the beginning.
type HistoryCursor struct {
	Server string `json:"server,omitempty"`
	Seq    int64  `json:"seq,omitempty"`
	Steps  int    `json:"steps,omitempty"` // so many of the first record's steps are on earlier pages
}

// LatestSteps bounds the steps of a HistoryQuery with Latest: a job may have millions.
const LatestSteps = 50_000

// ChangesQuery asks for the changes of the books in a time.
type ChangesQuery struct {
	Time cluster.Span `json:"time"`
}

// ChangesResponse lists them, oldest first.
type ChangesResponse struct {
	Changes []cluster.Transaction `json:"changes"`
	Lag     *Lag                  `json:"lag,omitempty"` // nil: nothing is missing
}

// SQLRequest is a question in SQL about history, for operators.
type SQLRequest struct {
	Query string `json:"query,omitempty" text:"65536,lines"`
	// Tables asks for what there is to ask about instead: table, column and meaning.
	Tables bool `json:"tables,omitempty"`
}

// SQLResponse is the answer. A cell is JSON: a number, a text or null.
type SQLResponse struct {
	Columns []string            `json:"columns"`
	Rows    [][]wire.RawMessage `json:"rows"`
	// More says that there were more rows than one answer has.
	More bool `json:"more,omitempty"`
	Lag  *Lag `json:"lag,omitempty"` // nil: nothing is missing
}

// HistoryState is a phase, for ended jobs with an outcome.
type HistoryState struct {
	Phase   cluster.Phase   `json:"phase"`
	Outcome cluster.Outcome `json:"outcome,omitempty"`
}

// HistoryResponse lists jobs in the order they entered history.
type HistoryResponse struct {
	Now     time.Time    `json:"now"`
	Records []JobHistory `json:"records"`
	Brief   bool         `json:"brief,omitempty"`   // the jobs travel as brief ones
	Federal bool         `json:"federal,omitempty"` // as of JobsResponse
	Lag     *Lag         `json:"lag,omitempty"`     // nil: nothing is missing
	// Next is where the next page begins; nil: there is none.
	Next *HistoryCursor `json:"next,omitempty"`
	// First says that this is the first page, also where another server was asked for the pages before.
	First bool `json:"first,omitempty"`
}

// Size counts the jobs and steps of an answer.
func (r *HistoryResponse) Size() int {
	n := len(r.Records)
	for i := range r.Records {
		n += len(r.Records[i].Steps)
	}
	return n
}

// AllHistory asks for records page by page.
func AllHistory(q HistoryQuery, ask func(HistoryQuery) (HistoryResponse, error)) (all HistoryResponse, err error) {
	for q.Page = (&HistoryCursor{}); q.Page != nil; {
		one, err := ask(q)
		if err != nil {
			return all, err
		}
		q.Page = one.Next
		before := all
		if one.First {
			before = HistoryResponse{}
		}
		all = one
		all.Records = joinPages(before.Records, one.Records)
		if before.Lag != nil { // what was missing then still is
			all.Lag = before.Lag
		}
	}
	return all, nil
}

// joinPages adds the records of a page to those before.
func joinPages(all, more []JobHistory) []JobHistory {
	if len(more) > 0 && more[0].Rest && len(all) > 0 {
		last := &all[len(all)-1]
		last.Steps = append(last.Steps, more[0].Steps...)
		more = more[1:]
	}
	if all == nil {
		return more
	}
	return append(all, more...)
}

// AppendJSON writes the answer.
func (r *HistoryResponse) AppendJSON(b []byte) ([]byte, error) {
	type plain HistoryResponse
	if !r.Brief {
		return wire.Append(b, (*plain)(r))
	}
	return wire.Append(b, &struct {
		plain
		Records briefHistory `json:"records"`
	}{plain(*r), r.Records})
}

// briefHistory is written as briefJobs are.
type briefHistory []JobHistory

// AppendJSON writes a list of records of brief jobs.
func (l briefHistory) AppendJSON(b []byte) (_ []byte, err error) {
	brief := cluster.Job{Spec: &cluster.JobSpec{}}
	b = append(b, '[')
	for i, r := range l {
		if i > 0 {
			b = append(b, ',')
		}
		r.Job.Brief(&brief)
		if b, err = wire.Append(b, &JobHistory{Job: &brief, Steps: r.Steps, Rest: r.Rest}); err != nil {
			return nil, err
		}
	}
	return append(b, ']'), nil
}

// JobHistory is one attempt of one job with its steps.
type JobHistory struct {
	Job   *cluster.Job    `json:"job"`
	Steps []*cluster.Step `json:"steps,omitempty"`
	Rest  bool            `json:"rest,omitempty"` // the record with its first steps is on an earlier page
}
