package control

import (
	"bytes"
	"os"
	"slices"
	"strconv"
	"strings"

	"dev.muster/api"
	"dev.muster/cluster"
	"dev.muster/slurm/env"
	"dev.muster/slurm/front"
)

// resetAccrue is a key without a value.
const resetAccrue = "resetaccruetime"

// updateJob changes jobs.
func (c *control) updateJob(who front.Setting, rest []front.Setting) int {
	rest, wrong := readOwner(c, who, rest)
	if wrong != nil {
		return c.complain(wrong...)
	}
	p, all, code := readPatch(c, who, rest)
	if code >= 0 {
		return code
	}
	if len(rest) == 0 {
		return c.complain(noChanges)
	}
	refs, words, bad := c.refs([]string{who.Value})
	if bad != "" && len(c.owners) > 0 {
		return c.complain("scontrol: error: No jobs with user ID " + front.UintText(c.owners[0]) +
			" and name '" + bad + "'")
	}
	if bad != "" {
		return c.complain("Invalid job id specified for job "+bad, "slurm_update error: Invalid job id specified")
	}
	resizes := all || p.MinNodes != nil || p.NodeList != nil
	if resizes {
		if text := c.resizable(refs, words); text != "" {
			return c.complain(text)
		}
	}
	code = 0
	for i, t := range refs {
		code = max(code, c.updateOne(t.Ref, words[i], p))
	}
	if resizes && code == 0 {
		c.resized(refs[0].Ref)
	}
	return code
}

// readOwner takes UserID out of the words: with JobName it says whose jobs are meant. wrong is what to say of a user
// that does not exist.
func readOwner(c *control, who front.Setting, rest []front.Setting) (others []front.Setting, wrong []string) {
	i := slices.IndexFunc(rest, func(s front.Setting) bool { return s.Key == "userid" })
	if i < 0 || who.Key != "jobname" {
		return rest, nil
	}
	user, ok := front.LookupUser(rest[i].Value)
	if !ok {
		return nil, []string{"Invalid UserID: " + rest[i].Value, "Request aborted"}
	}
	c.owners = []uint32{user.UID}
	return slices.Delete(slices.Clone(rest), i, i+1), nil
}

// fixedKey complains about a key that cannot be changed. The lines of a burst buffer are in the job's script, and were
// looked at.
func fixedKey(who, s front.Setting) []string {
	if front.IsKey(s.Key, 4, "burstbuffer") {
		return []string{"Requested operation not supported on this system for job " + who.Value}
	}
	lines := []string{"Update of this parameter is not supported: " + s.Text, "Request aborted"}
	return append(lines, refusal("job", s.Key)...)
}

// readPatch reads what is to change of a job. all: it keeps all of its nodes, and only its variables are told again.
// code is that of the command where it cannot be read, below 0 if it can.
func readPatch(c *control, who front.Setting, rest []front.Setting) (p cluster.Patch, all bool, code int) {
	keys := jobKeys()
	for _, s := range append([]front.Setting{who}, rest...) {
		i := findKey(keys, s.Key)
		switch {
		case s.Bare && s.Key != "nice" && s.Key != resetAccrue:
			return p, all, c.complain("Invalid input: "+s.Text, "Request aborted")
		case s == who:
		case i >= 0 && keepsNodes(&keys[i], s):
			all = true
		case i < 0 || s.Key == resetAccrue && !s.Bare:
			return p, all, c.complain(fixedKey(who, s)...)
		case !keys[i].set(&p, s, c.sys.Now()):
			code := c.complain(keys[i].complaint(who, s)...)
			if strings.HasPrefix(keys[i].names, "numnodes") { // as Slurm
				code = 0
			}
			return p, all, code
		}
	}
	return p, all, -1
}

// findKey finds the key of that name, or the only one that begins with it; -1: none.
func findKey(keys []jobKey, name string) int {
	whole := func(k jobKey) bool {
		return slices.Contains(strings.Fields(k.names), name)
	}
	if i := slices.IndexFunc(keys, whole); i >= 0 {
		return i
	}
	begins := func(k jobKey) bool {
		return front.IsKey(name, leastJobKey, strings.Fields(k.names)...)
	}
	i := slices.IndexFunc(keys, begins)
	if i < 0 || slices.ContainsFunc(keys[i+1:], begins) {
		return -1
	}
	return i
}

// leastJobKey is how many letters of a key scontrol takes for the whole of it.
const leastJobKey = 2

// keepsNodes reports whether a job is to keep all of its nodes.
func keepsNodes(key *jobKey, s front.Setting) bool {
	return strings.HasPrefix(key.names, "numnodes") && strings.EqualFold(s.Value, "all")
}

// updateOne changes a job, or tasks of an array.
func (c *control) updateOne(ref cluster.Ref, word string, p cluster.Patch) int {
	update := func(r cluster.Ref) error {
		_, err := front.Call(c.sys, api.UpdateJob, cluster.UpdateJob{
			Ref: r, Patch: p, Runs: p.MinNodes != nil || p.NodeList != nil || p.Licenses != nil,
			Memory: p.Mem != nil,
		})
		return err
	}
	var jobs []*cluster.Job
	if resp, err := front.Call(c.sys, api.ListJobs, api.JobQuery{Refs: []cluster.Ref{ref}, Brief: true}); err == nil && ref.Part == 0 {
		jobs = resp.Jobs
	}
	if ref.Tasks.Empty() && (len(jobs) == 0 || jobs[0].ArrayID == 0) {
		if err := update(ref); err != nil {
			return c.failed(err, word, updateError)
		}
		return 0
	}
	all := updateTasks(ref, jobs, update)
	if !slices.ContainsFunc(all, func(s said) bool { return s.text != noErrorText }) {
		return 0
	}
	slices.SortFunc(all, func(a, b said) int { return a.tasks.Min() - b.tasks.Min() })
	var lines []string
	for _, s := range all {
		lines = append(lines, strconv.Itoa(int(ref.Job))+"_"+s.tasks.String()+": "+s.text)
	}
	return c.complain(lines...)
}

// said is what is to be said of some tasks.
type said struct {
	text  string
	tasks cluster.IDSet
}

// updateTasks changes tasks of an array, whose records are given: those that wait at once and the others at once,
// and where some are refused record by record.
func updateTasks(ref cluster.Ref, jobs []*cluster.Job, update func(cluster.Ref) error) (all []said) {
	say := func(text string, tasks cluster.IDSet) {
		i := slices.IndexFunc(all, func(s said) bool { return s.text == text })
		if i < 0 {
			i, all = len(all), append(all, said{text: text})
		}
		all[i].tasks = all[i].tasks.Union(tasks)
	}
	tasksOf := func(jobs ...*cluster.Job) (tasks cluster.IDSet) {
		for _, j := range jobs {
			own := j.Tasks
			if own.Empty() {
				own = cluster.NewIDSet(j.Task)
			}
			tasks = tasks.Union(own)
		}
		if !ref.Tasks.Empty() {
			tasks = tasks.Intersect(ref.Tasks)
		}
		return tasks
	}
	lives := slices.ContainsFunc(jobs, func(j *cluster.Job) bool { return j.Phase != cluster.Ended })
	var waits, others []*cluster.Job
	for _, j := range jobs {
		switch {
		case j.Phase == cluster.Pending:
			waits = append(waits, j)
		case j.Phase != cluster.Ended || !lives:
			others = append(others, j)
		}
	}
	for _, group := range [][]*cluster.Job{waits, others} {
		if len(group) > 1 {
			if tasks := tasksOf(group...); update(cluster.Ref{Job: group[0].ArrayID, Tasks: tasks}) == nil {
				say(noErrorText, tasks)
				continue
			}
		}
		for _, j := range group {
			text := noErrorText
			if err := update(cluster.Ref{Job: j.ArrayID, Tasks: tasksOf(j)}); err != nil {
				text, _ = front.ErrorText(err)
			}
			say(text, tasksOf(j))
		}
	}
	if missing := ref.Tasks.Minus(tasksOf(jobs...)); !missing.Empty() {
		say("Invalid job id specified", missing)
	}
	return all
}

// noErrorText is what is said of tasks that were changed while others were not.
const noErrorText = "No error"

// resizable says why the nodes of what is named cannot be changed, "" if they can: of one job or task at a time.
func (c *control) resizable(refs []front.Target, words []string) string {
	if len(refs) == 0 {
		return "scontrol: error: Could not load state information for job : Invalid job id specified"
	}
	if ref := refs[0].Ref; len(refs) > 1 || ref.Part > 0 || strings.Contains(words[0], "[") || ref.Tasks.Len() > 1 {
		return "scontrol: error: Invalid job ID " + strings.Join(words, ",")
	}
	ref := refs[0].Ref
	resp, err := front.Call(c.sys, api.ListJobs, api.JobQuery{Refs: []cluster.Ref{{Job: ref.Job}}, Brief: true})
	switch {
	case err != nil:
		text, _ := front.ErrorText(err)
		return "scontrol: error: Could not load state information for job " + words[0] + ": " + text
	case len(resp.Jobs) == 0:
		return "scontrol: error: Could not load state information for job " + words[0] + ": Invalid job id specified"
	case len(resp.Jobs) > 1 && ref.Tasks.Empty():
		return "scontrol: error: Job resizing not supported for job arrays"
	}
	return ""
}

// resized writes, inside of a job, the scripts that set its variables again.
func (c *control) resized(ref cluster.Ref) {
	if c.sys.Getenv("SLURM_JOBID") == "" {
		return
	}
	resp, err := front.Call(c.sys, api.ListJobs, api.JobQuery{Refs: []cluster.Ref{ref}})
	if err != nil || len(resp.Jobs) == 0 {
		return
	}
	j := resp.Jobs[0]
	if j.Alloc == nil || j.Phase == cluster.Pending {
		c.complain("slurm_allocation_lookup: Job is pending execution")
		return
	}
	name := "slurm_job_" + strconv.Itoa(int(ref.Job)) + "_resize"
	var csh, sh bytes.Buffer
	for _, v := range env.Size(j) {
		given := v.Name
		if v.Unset { // these go together
			given = "SLURM_TASKS_PER_NODE"
		}
		if _, ok := c.sys.LookupEnv(given); !ok {
			continue
		}
		if v.Unset {
			csh.WriteString("unsetenv " + v.Name + "\n")
			sh.WriteString("unset " + v.Name + "\n")
			continue
		}
		if !v.Number {
			v.Value = `"` + v.Value + `"`
		}
		csh.WriteString("setenv " + v.Name + " " + v.Value + "\n")
		sh.WriteString("export " + v.Name + "=" + v.Value + "\n")
	}
	for _, f := range []struct {
		name string
		text []byte
	}{
		{name + ".csh", csh.Bytes()},
		{name + ".sh", sh.Bytes()},
	} {
		if err := os.WriteFile(f.name, f.text, 0o700); err != nil {
			c.complain("Could not create file " + f.name + ": " + front.PlainError(err))
			return
		}
	}
	_, _ = c.out.WriteString("To reset Slurm environment variables, execute\n" +
		"  For bash or sh shells:  . ./" + name + ".sh\n" +
		"  For csh shells:         source ./" + name + ".csh\n")
}
