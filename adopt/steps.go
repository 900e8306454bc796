package adopt

import (
	"strconv"
	"strings"
	"time"

	"dev.muster/cluster"
)

func text(n uint32) string { return strconv.FormatUint(uint64(n), 10) }

// tresOf reads counts of resources, with the names of these for their numbers.
func (s *Source) tresOf(r *row, column string) cluster.TRESList {
	in := r.text(column)
	if in == "" {
		return ""
	}
	out := make([]byte, 0, 2*len(in)+16)
	for rest := in; rest != ""; {
		var item string
		item, rest, _ = strings.Cut(rest, ",")
		id, count, _ := strings.Cut(item, "=")
		name := s.tres[id]
		if name == "" || count == "" || strings.Trim(count, "0123456789") != "" {
			r.refuse("%s has %.40q", column, item)
			return ""
		}
		if len(out) > 0 {
			out = append(out, ',')
		}
		out = append(append(append(out, name...), '='), count...)
	}
	return cluster.TRESList(out)
}

// step makes a record of a row of the step table, of a job.
func (s *Source) step(r *row, j *cluster.Job) *cluster.Step {
	i := s.importedStep(r)
	number := r.signed("id_step")
	_, outcome, ok := phaseOf(i.State)
	if !ok {
		r.refuse("state is %d", i.State)
	}
	st := &cluster.Step{
		ID: cluster.StepID{Job: j.ID, Step: int(number)}, Attempt: j.Attempt, Name: r.text("step_name"),
		User: j.Spec.User, UID: j.Spec.UID, Tasks: int(r.count("task_cnt")), SubmitLine: r.text("submit_line"),
		Started: moment(i.Start), Ended: moment(i.End), Outcome: outcome, Imported: i,
	}
	if i.Part != nil { // it is told from other parts of the step by its time, which shows whole seconds
		st.Started = st.Started.Add(time.Duration(*i.Part) + 1)
	}
	if i.Exit >= 0 {
		st.Exit = statusOf(uint32(i.Exit))
	}
	if !r.null("kill_requid") {
		by := r.count("kill_requid")
		st.CancelledBy = &by
	}
	if nodes := r.nodes("nodelist"); len(nodes) > 0 {
		st.Shares = shares(nodes, i.TRESAlloc, st.Tasks)
	}
	st.Usage = cluster.Usage{
		UserCPU:   cpuTime(r, "user_sec", "user_usec"),
		SystemCPU: cpuTime(r, "sys_sec", "sys_usec"),
	}
	st.Usage.MaxRSS = int64(min(number64(i.In.Max, i.In.Ave, "mem"), maxPart))
	return st
}

// number64 is a count of a list, or of the one that it is as.
func number64(l *cluster.TRESList, as cluster.TRESList, name string) uint64 {
	if l == nil {
		l = &as
	}
	return number(*l, name)
}

func cpuTime(r *row, seconds, micros string) time.Duration {
	return time.Duration(r.seconds(seconds))*time.Second + time.Duration(r.count(micros))*time.Microsecond
}

func (s *Source) importedStep(r *row) *cluster.ImportedStep {
	i := &cluster.ImportedStep{
		State: r.count("state"), Exit: r.signed("exit_code"), Start: r.seconds("time_start"),
		End: r.seconds("time_end"), Suspended: r.seconds("time_suspended"), Nodes: r.count("nodes_alloc"),
		NodeList: r.text("nodelist"),
		Layout:   r.signed("task_dist"), FreqMin: r.count("req_cpufreq_min"), FreqMax: r.count("req_cpufreq"),
		FreqGov: r.count("req_cpufreq_gov"), Freq: r.float("act_cpufreq"), Energy: r.number("consumed_energy", 64),
		Container: r.text("container"), WorkDir: r.text("cwd"), TRESAlloc: s.tresOf(r, "tres_alloc"),
		In: s.use(r, "tres_usage_in_"), Out: s.use(r, "tres_usage_out_"),
	}
	if part := r.count("step_het_comp"); part != noValue && !r.null("step_het_comp") {
		i.Part = &part
	}
	if limit := r.count("timelimit"); !r.null("timelimit") {
		i.Limit = &limit
	}
	return i
}

// float reads a number that may have a fraction.
func (r *row) float(column string) float64 {
	text := r.value(column)
	if text == nil {
		return 0
	}
	n, err := strconv.ParseFloat(string(text), 64)
	if err != nil || n < 0 || n > maxPart {
		r.refuse("%s is %.40q", column, text)
		return 0
	}
	return n
}

// use reads what tasks took in or gave out; what is as another list is left out.
func (s *Source) use(r *row, prefix string) cluster.ImportedUse {
	ave := s.tresOf(r, prefix+"ave")
	node := s.tresOf(r, prefix+"max_nodeid")
	task := s.tresOf(r, prefix+"max_taskid")
	unless := func(as cluster.TRESList, column string) *cluster.TRESList {
		l := s.tresOf(r, prefix+column)
		if l == as {
			return nil
		}
		return &l
	}
	return cluster.ImportedUse{
		Ave: ave, Max: unless(ave, "max"), Min: unless(ave, "min"), Tot: unless(ave, "tot"),
		MaxNode: node, MinNode: unless(node, "min_nodeid"),
		MaxTask: task, MinTask: unless(task, "min_taskid"),
	}
}
