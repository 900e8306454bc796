package sacctmgr

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"dev.muster/api"
	"dev.muster/cluster"
	"dev.muster/slurm/front"
)

// jobSetter sets one thing that is said of a job; least is how much of its name is enough.
type jobSetter struct {
	name  string
	least int
	set   func(a *cluster.Amendment, v string) bool
}

// jobSetters are what modify job sets.
var jobSetters = [...]jobSetter{
	{"admincomment", 12, func(a *cluster.Amendment, v string) bool { a.AdminComment = &v; return true }},
	{"comment", 7, func(a *cluster.Amendment, v string) bool { a.Comment = &v; return true }},
	{"derivedexitcode", 12, func(a *cluster.Amendment, v string) (ok bool) { a.Derived, ok = parseExit(v); return ok }},
	{
		"derivedexitstring", 12, func(a *cluster.Amendment, v string) bool { a.Comment = &v; return true },
	}, // Slurm's older name for it
	{"extra", 5, func(a *cluster.Amendment, v string) bool { a.Extra = &v; return true }},
	{"newwckey", 8, func(a *cluster.Amendment, v string) bool { v = strings.ToLower(v); a.WCKey = &v; return true }},
	{"systemcomment", 13, func(a *cluster.Amendment, v string) bool { a.SystemComment = &v; return true }},
}

// parseExit reads an exit code, CODE or CODE:SIGNAL.
func parseExit(v string) (*cluster.ExitStatus, bool) {
	code, signal, both := strings.Cut(v, ":")
	c, err := strconv.ParseUint(code, 10, 8)
	if err != nil {
		return nil, false
	}
	s := uint64(0)
	if both {
		s, err = strconv.ParseUint(signal, 10, 8)
	}
	return &cluster.ExitStatus{Code: int(c), Signal: int(s)}, err == nil
}

// said reads what is to be said of jobs.
func (m *manager) said(sets []front.Setting) (a cluster.Amendment, code int) {
	for _, s := range sets {
		i := slices.IndexFunc(jobSetters[:],
			func(r jobSetter) bool { return s.Sign == 0 && front.IsKey(s.Key, r.least, r.name) })
		if i < 0 {
			m.wrong(" You didn't give me anything to set")
			return a, m.unknownQOS(s)
		}
		if !jobSetters[i].set(&a, s.Value) {
			return a, m.wrong("sacctmgr: error: Invalid value for DerivedExitCode ("+s.Value+"): want CODE or CODE:SIGNAL, from 0 to 255",
				" You didn't give me anything to set")
		}
	}
	return a, 0
}

// modifyJobs says something of jobs of history.
func (m *manager) modifyJobs(q *mgrQuery, sets []front.Setting) int {
	said, code := m.said(sets)
	if code != 0 {
		return code
	}
	jobs, code := m.jobsOf(q)
	if code != 0 {
		return code
	}
	if len(jobs) == 0 {
		m.wrong("sacctmgr: Request didn't affect anything or your user doesn't have privilege to perform this action")
		return m.nothing(" Nothing modified")
	}
	lines := []string{" Modified jobs..."}
	for _, j := range jobs {
		lines = append(lines, fmt.Sprintf("  %d submitted at %s", j.ID, front.Stamp(j.Submitted)))
	}
	told := strings.Join(lines, "\n")
	if !m.immediate {
		m.tell("%s", told)
		if !m.agreed() {
			m.tell(" Changes Discarded")
			return 0
		}
	}
	for part := range slices.Chunk(jobs, cluster.MaxAmended) {
		resp, err := front.Call(m.sys, api.AmendJobs, cluster.AmendJobs{Jobs: part, Amendment: said})
		switch {
		case front.IsKind(err, cluster.ErrAccess):
			return m.wrong("sacctmgr: error: Your user doesn't have privilege to perform this action",
				" Error with request: Access/permission denied", "  "+err.Error())
		case err != nil:
			return m.wrong(" Error with request: " + err.Error())
		}
		m.after = resp.Index
	}
	if m.immediate {
		m.tell("%s", told)
	}
	return 0
}

// jobsOf are the jobs that the conditions select: those that started at or after a time and ended before another one.
func (m *manager) jobsOf(q *mgrQuery) (list []cluster.JobRecord, code int) {
	var from, to time.Time
	if text, _ := q.span(m.sys.Now().Local(), &from, &to); text != "" {
		return nil, m.wrong(" Invalid time specification: " + text)
	}
	query := api.HistoryQuery{
		After: m.after, From: from, HistoryFilter: cluster.HistoryFilter{WCKeys: q.where["wckey"]},
	}
	for _, w := range q.where["job"] {
		t, ok := front.ParseTarget(w)
		if !ok {
			return nil, m.wrong("sacctmgr: fatal: Bad job/step specified: " + w)
		}
		query.Refs = append(query.Refs, t.Ref)
	}
	users := front.LookupUsers(q.where["user"])
	for _, name := range q.where["user"] {
		u, known := users[name]
		if !known {
			return nil, m.wrong("sacctmgr: error: Invalid user id: " + name)
		}
		query.Users = append(query.Users, u.UID)
	}
	if q.elsewhere {
		return nil, 0
	}
	resp, err := front.History(m.sys, query)
	if err != nil {
		text, _ := front.ErrorText(err)
		return nil, m.wrong(" Error with request: " + text)
	}
	for _, r := range resp.Records {
		if j := r.Job; (from.IsZero() || !j.Started.IsZero() && !j.Started.Before(from)) && (to.IsZero() || j.Phase == cluster.Ended && j.Ended.Before(to)) {
			list = append(list, cluster.JobRecord{ID: j.ID, Submitted: j.Submitted, UID: j.Spec.UID})
		}
	}
	return list, 0
}
