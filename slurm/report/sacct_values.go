package report

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"dev.muster/cluster"
	"dev.muster/slurm/front"
	"dev.muster/slurm/opt"
	"dev.muster/slurm/show"
	"dev.muster/slurm/values"
)

// namedList is a list of names; an empty one names what has no name, not everything.
func namedList(v string) []string {
	if list := front.SplitList(v); len(list) > 0 {
		return list
	}
	return []string{""}
}

func setSacctNodes(o *sacctOptions, v string) error {
	err := front.SetNodes(&o.query.Nodes, v)
	if v == "" {
		o.query.Nodes = []cluster.NodeName{""}
	}
	return err
}

// noJob reports whether a word of -j names none.
func noJob(word string) bool {
	job, _, _ := strings.Cut(word, ".")
	return slices.Contains([]string{"", "0"}, job)
}

// setSacctJobs reads -j: jobs, tasks and steps. Nothing, and job 0, name none.
func setSacctJobs(o *sacctOptions, v string) error {
	for _, w := range slices.DeleteFunc(front.SplitOutside(v), noJob) {
		job, _, stepped := strings.Cut(w, ".")
		t, ok := front.ParseTarget(job)
		if !ok {
			return badJob(w, job)
		}
		o.query.Refs = append(o.query.Refs, t.Ref)
		n, one := sacctStep(w)
		switch {
		case one:
			o.steps = append(o.steps, front.Target{Ref: t.Ref, Step: &n})
		case stepped:
			return opt.Errorf(opt.CodeError, "sacct: fatal: Bad step specified: %s", job)
		default:
			o.wholes = append(o.wholes, t.Ref)
		}
	}
	o.byJob = len(o.query.Refs) > 0
	return nil
}

// setWholeHet reads --whole-hetjob[=yes|no].
func setWholeHet(o *sacctOptions, v string) error {
	whole := v == "" || strings.EqualFold(v, "yes")
	if !whole && !strings.EqualFold(v, "no") {
		return opt.Errorf(opt.CodeError, "sacct: error: Invalid --whole-hetjob value \"%s\". Valid values: [yes|no].", v)
	}
	o.query.WholeHet = &whole
	return nil
}

// shows reports whether a row is one that -j names: all of a job, or single steps of it.
func (o *sacctOptions) shows(r *acctRow) bool {
	named := func(ref cluster.Ref) bool {
		return ref.Names(r.Job)
	}
	if o.jobsOnly && r.step != nil {
		return false
	}
	oneStep := func(t front.Target) bool {
		return named(t.Ref) && r.step != nil && r.step.ID.Step == *t.Step
	}
	return len(o.steps) == 0 || slices.ContainsFunc(o.wholes, named) || slices.ContainsFunc(o.steps, oneStep)
}

// nobody refuses an empty list of users or groups, without a word as Slurm does.
func nobody(list []uint32) error {
	if len(list) == 0 {
		return &opt.UsageError{Code: opt.CodeError}
	}
	return nil
}

func setSacctGroups(o *sacctOptions, v string) error {
	for _, name := range front.SplitList(v) {
		g, ok := front.LookupGroup(name)
		if !ok {
			return opt.Errorf(opt.CodeError, "sacct: error: Invalid group id: %s", name)
		}
		o.query.Groups = append(o.query.Groups, g)
	}
	return nobody(o.query.Groups)
}

// setSacctFlags reads which part of the scheduler started a job; none is started by its submission here.
func setSacctFlags(o *sacctOptions, v string) error {
	for _, w := range front.SplitList(v) {
		switch strings.ToLower(w) {
		case "schedmain":
			o.query.Starters = append(o.query.Starters, cluster.StartedInOrder)
		case "schedbackfill":
			o.query.Starters = append(o.query.Starters, cluster.StartedBehind)
		case "schedsubmit":
			o.query.Starters = append(o.query.Starters, "")
		default:
			return opt.Errorf(opt.CodeError, "sacct: error: str_2_job_flags: Invalid job flag %s", w)
		}
	}
	return nil
}

// reasonWords are the reasons that jobs wait for, but those of limits.
func reasonWords() []string {
	words := []string{"None"}
	for _, row := range cluster.ReasonRows() {
		words = append(words, string(row.Word))
	}
	return words
}

// stateWords are the states that history tells.
func stateWords() (words []string) {
	for _, s := range show.JobStates() {
		name := s.Long
		if st, ok := historyState(name); ok && len(st) > 0 && !slices.Contains(words, name) &&
			!slices.Contains(strings.Fields(unaccountedStates), name) {
			words = append(words, name)
		}
	}
	return words
}

func setSacctReasons(o *sacctOptions, v string) error {
	for _, w := range front.SplitList(v) {
		if strings.EqualFold(w, "None") {
			w = ""
		}
		o.query.Reasons = append(o.query.Reasons, cluster.Reason(w))
	}
	return nil
}

func sacctLimit(v string, to *int) error {
	var d time.Duration
	if err := values.SetLimit(v, &d); err != nil || d <= 0 {
		return opt.Errorf(opt.CodeError, "sacct: fatal: Invalid time limit specification")
	}
	*to = int(d / time.Minute)
	return nil
}

// sacctRange reads MIN[-MAX].
func sacctRange(what, v string, to *cluster.Range) error {
	low, high, ranged := strings.Cut(v, "-")
	n, err := strconv.Atoi(low)
	most, merr := n, error(nil)
	if ranged {
		most, merr = strconv.Atoi(high)
	}
	if err != nil || merr != nil || n < 0 || most < n {
		return opt.Errorf(opt.CodeError, "sacct: error: Invalid numeric value \"%s\" for requested %s range.", v, what)
	}
	*to = cluster.Range{Min: n, Max: most}
	return nil
}

func setSacctUnits(o *sacctOptions, v string) error {
	if len(v) != 1 || !strings.Contains("KMGTP", strings.ToUpper(v)) {
		return &opt.UsageError{Code: opt.CodeError, Lines: []string{
			"sacct: error: Invalid unit type '" + v + "'. Possible options are 'KMGTP'",
			"sacct: fatal: Invalid unit type"}}
	}
	o.unit = strings.ToUpper(v)[0]
	return nil
}

func setSacctUsers(o *sacctOptions, v string) error {
	for _, name := range front.SplitList(v) {
		u, ok := front.LookupUser(name)
		if !ok {
			return opt.Errorf(opt.CodeError, "sacct: error: Invalid user id: %s", name)
		}
		o.query.Users = append(o.query.Users, u.UID)
	}
	return nobody(o.query.Users)
}
