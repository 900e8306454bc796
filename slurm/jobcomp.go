package slurm

import (
	"cmp"
	"fmt"
	"strconv"
	"time"

	"dev.muster/api"
	"dev.muster/cluster"
	"dev.muster/slurm/format"
	"dev.muster/slurm/show"
)

// jobComp is how the end of a job is recorded, as JobCompType says.
func jobComp(j *cluster.Job, cfg *cluster.Config) (p cluster.Program) {
	r := &show.JobRow{
		Job: j, View: &show.View{Now: j.Ended, Conf: &api.ClusterResponse{Config: *cfg}},
		State: show.StateOf(j),
	}
	switch cfg.JobComp.Kind {
	case "filetxt":
		p.Append, p.Line = cfg.JobComp.Loc, cluster.PlainLine(compLine(r, cfg))
	case "script":
		p.Argv, p.Environ = []string{cfg.JobComp.Loc}, compEnv(r, cfg)
	}
	return p
}

// compSizes are the nodes and processors that a job had, none if it never started.
func compSizes(r *show.JobRow) (nodes, procs int) {
	if r.Alloc == nil {
		return 0, 0
	}
	return r.NumNodes(), r.NumCPUs()
}

// compLine is the record of an ended job as Slurm's jobcomp/filetxt writes it. Times are the server's.
func compLine(r *show.JobRow, cfg *cluster.Config) string {
	s, limit := r.Spec, "UNLIMITED"
	if r.Limit != cluster.Unlimited {
		limit = strconv.Itoa(int(r.Limit / time.Minute))
	}
	stamp := func(t time.Time) string { return format.Stamp(t, "unknown") }
	nodes, procs := compSizes(r)
	resv, array := s.Reservation, ""
	if r.Alloc != nil {
		resv = r.Alloc.Reservation
	}
	if r.ArrayID != 0 && r.Task != cluster.TaskAny {
		array = fmt.Sprintf("ArrayJobId=%d ArrayTaskId=%d ", r.ArrayID, r.Task)
	}
	if r.Het != nil {
		array += fmt.Sprintf("HetJobId=%d HetJobOffset=%d ", r.Het.ID, r.Het.Offset)
	}
	return fmt.Sprintf("JobId=%d UserId=%s(%d) GroupId=%s(%d) Name=%s JobState=%s Partition=%s TimeLimit=%s StartTime=%s EndTime=%s NodeList=%s NodeCnt=%d ProcCnt=%d "+
		"WorkDir=%s ReservationName=%s Tres=%s Account=%s QOS=%s WcKey=%s Cluster=%s SubmitTime=%s EligibleTime=%s %sDerivedExitCode=%s ExitCode=%s ",
		r.ID, s.User, s.UID, r.Group(), s.GID, s.Name, r.State.Long, r.Partition(), limit, stamp(r.Start()), stamp(r.End()), cmp.Or(r.Nodes(), "(null)"), nodes, procs,
		s.WorkDir, resv, r.TRES(), s.Account, s.QOS, s.WCKey, cfg.ClusterName, stamp(r.Submitted), stamp(r.Eligible), array, show.ExitText(r.Derived), show.ExitText(show.ShownExit(r)))
}

// noTask is how Slurm writes the task of a job that is none.
const noTask = 1<<32 - 2

// compEnv is what the script of jobcomp/script is told of an ended job: all that it has in its environment.
func compEnv(r *show.JobRow, cfg *cluster.Config) []string {
	s, flags, task := r.Spec, "None", noTask
	if !r.Started.IsZero() {
		if flags = "SchedMain"; r.Backfilled {
			flags = "SchedBackfill"
		}
	}
	if r.ArrayID != 0 && r.Task != cluster.TaskAny {
		task = r.Task
	}
	nodes, procs := compSizes(r)
	batch, resv := "no", s.Reservation
	if s.Kind == cluster.Batch {
		batch = "yes"
	}
	if r.Alloc != nil {
		resv = r.Alloc.Reservation
	}
	secs := func(t time.Time) string { return strconv.FormatInt(max(t.Unix(), 0), 10) }
	out := []string{"PATH=/usr/bin:/bin:/usr/sbin:/sbin"}
	for _, v := range [][2]string{{"ACCOUNT", s.Account}, {"ARRAYJOBID", strconv.Itoa(int(r.ArrayID))},
		{"ARRAYTASKID", strconv.Itoa(task)}, {"BATCH", batch}, {"CLUSTER", cfg.ClusterName},
		{"CONSTRAINTS", s.Constraint}, {"DB_FLAGS", flags}, {"DEPENDENCY", r.DependsText()},
		{"DERIVED_EC", show.ExitText(r.Derived)}, {"END", secs(r.End())},
		{"EXITCODE", show.ExitText(show.ShownExit(r))},
		{"GID", strconv.Itoa(int(s.GID))}, {"GROUPNAME", r.Group()}, {"JOBID", strconv.Itoa(int(r.ID))},
		{"JOBNAME", s.Name}, {"JOBSTATE", r.State.Long}, {"LIMIT", format.Padded(r.Limit)},
		{"NODECNT", strconv.Itoa(nodes)}, {"NODES", r.Nodes()}, {"PARTITION", r.Partition()},
		{"PROCS", strconv.Itoa(procs)}, {"QOS", s.QOS}, {"RESERVATION", resv},
		{"START", secs(r.Start())}, {"STATEREASONPREV", cmp.Or(string(r.Wait), "None")},
		{"SUBMIT", secs(r.Submitted)}, {"UID", strconv.Itoa(int(s.UID))}, {"USERNAME", s.User},
		{"WORK_DIR", s.WorkDir}} {
		out = append(out, v[0]+"="+v[1])
	}
	for _, v := range [][2]string{{"STDIN", s.Stdin}, {"STDOUT", s.Stdout}, {"STDERR", s.Stderr}} {
		if v[1] != "" {
			out = append(out, v[0]+"="+v[1])
		}
	}
	return out
}
