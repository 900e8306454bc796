package rest

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"dev.muster/cluster"
	"dev.muster/slurm/control"
	"dev.muster/slurm/data"
	"dev.muster/slurm/front"
	"dev.muster/slurm/jobfield"
	"dev.muster/slurm/sacctmgr"
	"dev.muster/slurm/submit"
)

// wording is how the words of a form are made for sbatch, and for scontrol update.
type wording struct {
	option, key func(key string, v any) ([]string, bool)
}

var wordings = [...]wording{
	jobfield.Text:     {asText, asText},
	jobfield.Count:    {asCount, asCount},
	jobfield.Flag:     {asFlag, asYesNo},
	jobfield.Array:    {asText, asThrottle},
	jobfield.GPUs:     {asGPUs, nil},
	jobfield.GRES:     {asGRES, asText},
	jobfield.Keep:     {asKeep, nil},
	jobfield.Memory:   {asMemory, asMemory},
	jobfield.OpenMode: {asOpenMode, nil},
	jobfield.Requeue:  {asRequeue, asYesNo},
	jobfield.Shared:   {asShared, asOverSubscribe},
	jobfield.Time:     {asTime, asTime},
}

// submitFields are the members of a job to submit, as options of sbatch.
func submitFields() (list []field) {
	for _, row := range jobfield.Rows {
		if row.Asked != "" && row.Option != "" {
			list = append(list, field{row.Asked, "--" + row.Option + "=", wordings[row.Form].option})
		}
	}
	return list
}

func asOpenMode(key string, v any) ([]string, bool) {
	return asText(key, strings.ToLower(strings.Join(texts(v), "")))
}

func asRequeue(_ string, v any) ([]string, bool) {
	yes, ok := v.(bool)
	return []string{map[bool]string{true: "--requeue", false: "--no-requeue"}[yes]}, ok
}

// asKeep is --no-kill of a job that goes on when a node fails.
func asKeep(key string, v any) ([]string, bool) {
	kill, ok := v.(bool)
	return asFlag(key, ok && !kill)
}

// asShared is --exclusive or --oversubscribe.
func asShared(_ string, v any) ([]string, bool) {
	for _, word := range texts(v) {
		option, known := map[string]string{"none": "--exclusive", "oversubscribe": "--oversubscribe",
			"user": "--exclusive=user", "mcs": "--exclusive=mcs"}[word]
		return []string{option}, known
	}
	return nil, true
}

// changingJobs are the paths that make and change jobs.
func changingJobs() map[string]func(*request) {
	return map[string]func(*request){
		"POST /slurm/job/submit":          submitJob,
		"POST /slurm/job/allocate":        allocate,
		"POST /slurm/job/{job_id}":        updateJob,
		"DELETE /slurm/job/{job_id}":      func(x *request) { x.kill([]string{x.vars["job_id"]}, x.query("signal")) },
		"DELETE /slurm/jobs":              killJobs,
		"GET /slurm/job/{job_id}/requeue": func(x *request) { x.requeue([]string{x.vars["job_id"]}, nil) },
		"POST /slurm/jobs/requeue": func(x *request) {
			x.requeue(texts(x.body["jobs"]),
				texts(x.body["flags"]))
		},
		"POST /slurmdb/job/{job_id}": amendJob,
		"POST /slurmdb/jobs":         amendJobs,
		"POST /slurm/reservation":    func(x *request) { x.reservations([]any{x.body}) },
		"POST /slurm/reservations":   func(x *request) { x.reservations(list(x.body["reservations"])) },
		"DELETE /slurm/reservation/{reservation_name}": func(x *request) {
			x.change("Failure to delete reservation", "scontrol", control.Scontrol, "delete",
				"reservationname="+x.vars["reservation_name"])
		},
	}
}

// parts are the jobs of a submission: one, or the components of a heterogeneous one.
func (x *request) parts(single, several string) (parts []map[string]any) {
	if one, ok := x.body[single].(map[string]any); ok {
		return []map[string]any{one}
	}
	for _, e := range list(x.body[several]) {
		if one, ok := e.(map[string]any); ok {
			parts = append(parts, one)
		}
	}
	return parts
}

// jobLine is the line of sbatch that a submission is.
func (x *request) jobLine(parts []map[string]any) (argv []string, bad string) {
	for i, part := range parts {
		if i > 0 {
			argv = append(argv, ":")
		}
		words, bad := wordsOf(part, submitFields(), "environment", "script", "argv", "user_id", "group_id",
			"admin_comment", "maximum_nodes", "flags", "wait_for_switch",
			"kill_warning_signal", "kill_warning_delay", "kill_warning_flags")
		if bad == "" {
			bad = x.otherUser(part)
		}
		if bad != "" {
			return nil, bad
		}
		argv = append(argv, words...)
		for _, form := range joined {
			words, bad := form(part)
			if bad != "" {
				return nil, bad
			}
			argv = append(argv, words...)
		}
	}
	if len(parts) > 0 && isExternal(parts[0]) {
		return argv, ""
	}
	return append(argv, "--wrap=:"), ""
}

// joined make an option of several members of a job, or several options of one.
var joined = [...]func(part map[string]any) (words []string, bad string){warningOf, nodesOf, switchesOf, flagsOf}

// warningOf is --signal: who is signalled, by what and how many seconds before the end.
func warningOf(part map[string]any) (words []string, bad string) {
	signal, _ := part["kill_warning_signal"].(string)
	who := ""
	for _, flag := range texts(part["kill_warning_flags"]) {
		letter, known := map[string]string{"BATCH_JOB": "B", "RESERVATION_JOB": "R"}[flag]
		if !known {
			return nil, "kill_warning_flags: " + flag + " cannot be done here: leave it out"
		}
		who += letter
	}
	delay, _, _ := number(part["kill_warning_delay"])
	if signal == "" && who == "" && delay <= 0 {
		return nil, ""
	}
	word := "--signal="
	if who != "" {
		word += who + ":"
	}
	if word += cmp.Or(signal, "KILL"); delay > 0 {
		word += "@" + plainNumber(delay)
	}
	return []string{word}, ""
}

// nodesOf is --nodes=LEAST-MOST.
func nodesOf(part map[string]any) (words []string, bad string) {
	most, set, _ := number(part["maximum_nodes"])
	if !set || most <= 0 || part["nodes"] != nil {
		return nil, ""
	}
	least, _, _ := number(part["minimum_nodes"])
	return []string{fmt.Sprintf("--nodes=%d-%d", int(max(least, 1)), int(most))}, ""
}

// switchesOf is --switches=COUNT@TIME, of which the time is given in seconds.
func switchesOf(part map[string]any) (words []string, bad string) {
	wait, set, _ := number(part["wait_for_switch"])
	count, asked, _ := number(part["required_switches"])
	switch {
	case !set || wait <= 0:
		return nil, ""
	case !asked || count <= 0:
		return nil, "wait_for_switch: required_switches says for how many"
	}
	return []string{fmt.Sprintf("--switches=%d@00:00:%d", int(count), int(wait))}, ""
}

// flagWords are the flags of a job as options of sbatch; those that are no user's to give are not among them.
var flagWords = [...]struct{ flag, option string }{
	{"KILL_INVALID_DEPENDENCY", "--kill-on-invalid-dep=yes"},
	{"NO_KILL_INVALID_DEPENDENCY", "--kill-on-invalid-dep=no"},
	{"SPREAD_JOB", "--spread-job"},
	{"PREFER_MINIMUM_NODE_COUNT", "--use-min-nodes"},
	{"GRES_BINDING_ENFORCED", "--gres-flags=enforce-binding"},
	{"GRES_BINDING_DISABLED", "--gres-flags=disable-binding"},
	{"EXTERNAL_JOB", "--external"},
	{"SPREAD_SEGMENTS", "--spread-segments"},
	{"CONSOLIDATE_SEGMENTS", "--consolidate-segments"},
}

// flagsOf are the options that are flags of a job.
func flagsOf(part map[string]any) (words []string, bad string) {
	for _, flag := range texts(part["flags"]) {
		k := slices.IndexFunc(flagWords[:], func(w struct{ flag, option string }) bool { return w.flag == flag })
		if k < 0 {
			return nil, "flags: " + flag + " cannot be done here: leave it out"
		}
		words = append(words, flagWords[k].option)
	}
	return words, ""
}

// setComments sets what no option of sbatch says: the operators' comment of each component.
func setComments(r *submit.Request, parts []map[string]any) {
	for i, one := range append([]*submit.Request{r}, r.Parts...) {
		one.Job.AdminComment, _ = parts[i]["admin_comment"].(string)
	}
}

// otherUser refuses a job for somebody else: who it is for is said by the token, or by X-SLURM-USER-NAME.
func (x *request) otherUser(part map[string]any) string {
	for name, own := range map[string]string{"user_id": strconv.FormatUint(uint64(x.Who.UID), 10),
		"group_id": strconv.FormatUint(uint64(x.Who.GID), 10)} {
		v := part[name]
		word, _ := v.(string)
		if n, set, _ := number(v); set {
			word = plainNumber(n)
		}
		if emptyValue(v) || word == own || name == "user_id" && word == x.Who.User {
			continue
		}
		return name + ": a job is the caller's own; root names another user by X-SLURM-USER-NAME"
	}
	return ""
}

// noDirectory is Slurm's number of a job without a directory.
const noDirectory = 2063

// externalJob is Slurm's number of an external job that asks for what it cannot have.
const externalJob = 2189

// isExternal reports whether a job holds nodes for another manager: it has no script, environment or folder.
func isExternal(part map[string]any) bool {
	return slices.Contains(texts(part["flags"]), "EXTERNAL_JOB")
}

func submitJob(x *request) {
	parts := x.parts("job", "jobs")
	script, _ := x.body["script"].(string)
	if script == "" && len(parts) > 0 {
		script, _ = parts[0]["script"].(string)
	}
	external := len(parts) > 0 && isExternal(parts[0])
	switch {
	case external && script != "":
		x.refuse(externalJob, "Invalid configuration for external job", "Batch job submission failed")
		return
	case external:
		x.submit(parts, "", false)
		return
	case script == "" || len(parts) == 0:
		x.refuse(badQuery, badQuery9, `Populated "script" and "job" fields are required for job submission`)
		return
	case emptyValue(parts[0]["current_working_directory"]):
		x.refuse(noDirectory, "Job cannot be submitted without the current working directory specified.",
			"Batch job submission failed")
		return
	case emptyValue(parts[0]["environment"]):
		x.refuse(badQuery, badQuery9, `Populated "environment" field is required for job submission`)
		return
	}
	x.submit(parts, script, true)
}

// submit hands a job over. Directives in the script do not count, as in Slurm.
func (x *request) submit(parts []map[string]any, script string, batch bool) {
	argv, bad := x.jobLine(parts)
	if bad != "" {
		x.refuse(badQuery, bad, "Batch job submission failed")
		return
	}
	var out, errs bytes.Buffer
	sys := x.sys("sbatch", &out, &errs)
	r, err := submit.ParseSbatch(argv, sys)
	if err != nil {
		x.refuse(badQuery, strings.TrimPrefix(err.Error(), "sbatch: error: "), "Batch job submission failed")
		return
	}
	r.Script, r.Job.Command, r.Job.SubmitLine = cluster.BlobText(script), "", ""
	r.Job.Args = texts(parts[0]["argv"])
	setComments(r, parts)
	sys.Environ = withPath(texts(parts[0]["environment"]))
	q, code := submit.Submission(sys, r)
	if code != 0 {
		x.refuse(badQuery, strings.TrimSpace(errs.String()), "Batch job submission failed")
		return
	}
	resp, err := submit.SubmitAll(sys, r, q)
	if err != nil {
		x.failed = err
		p := x.fail("Batch job submission failed", err.Error())
		x.write(statusOf(p.Number))
		return
	}
	answer := []data.Part{data.One("job_id", "plain_number", data.Num(resp.Job))}
	if batch {
		answer = append(answer, data.One("step_id", "hostlist_text", data.Text("batch")))
	}
	x.write(200, answer...)
}

// withPath adds a PATH to an environment that has none, so that the script finds srun.
func withPath(environ []string) []string {
	if slices.ContainsFunc(environ, func(v string) bool { return strings.HasPrefix(v, "PATH=") }) {
		return environ
	}
	return append(environ, front.JobPath("/usr/local/bin:/usr/bin:/bin"))
}

// allocate makes a job whose nodes are there for steps: its script waits until it is cancelled or its time is over.
func allocate(x *request) {
	parts := x.parts("job", "hetjob")
	if len(parts) == 0 {
		x.refuse(badQuery, badQuery9, `Populated "job" or "hetjob" field is required for an allocation`)
		return
	}
	if emptyValue(parts[0]["current_working_directory"]) {
		parts[0]["current_working_directory"] = "/"
	}
	if emptyValue(parts[0]["standard_output"]) {
		parts[0]["standard_output"] = "/dev/null"
	}
	x.submit(parts, "#!/bin/sh\nexec sleep infinity\n", false)
}

// updateFields are the members of a job to change, as keys of scontrol update.
func updateFields() (list []field) {
	for _, row := range jobfield.Rows {
		if row.Asked != "" && row.Key != "" {
			list = append(list, field{row.Asked, row.Key + "=", wordings[row.Form].key})
		}
	}
	return list
}

func asThrottle(key string, v any) ([]string, bool) {
	text, ok := v.(string)
	_, n, _ := strings.Cut(text, "%")
	return []string{key + n}, ok && n != ""
}

func asOverSubscribe(key string, v any) ([]string, bool) {
	word := strings.Join(texts(v), ",")
	return []string{key + map[string]string{"none": "no",
		"oversubscribe": "yes"}[word]}, word == "none" || word == "oversubscribe"
}

func updateJob(x *request) {
	if !x.jobID() {
		return
	}
	id := x.vars["job_id"]
	words, bad := wordsOf(x.body, updateFields(), "hold", "job_id", "step_id", "user_id", "group_id", "flags",
		"environment")
	if bad != "" {
		x.refuse(badQuery, bad, "Job update failed")
		return
	}
	if len(words) > 0 {
		if said, ok := x.run("scontrol", control.Scontrol, append([]string{"update", "jobid=" + id},
			words...)...); !ok {
			p := x.fail("Job update failed", said)
			x.write(statusOf(p.Number))
			return
		}
	}
	if hold, there := x.body["hold"].(bool); there {
		x.change("Job update failed", "scontrol", control.Scontrol, map[bool]string{true: "hold",
			false: "release"}[hold], id)
		return
	}
	x.write(200)
}

// killed is what became of one job.
type killed struct {
	id, what string
	number   int
}

var killedTable = data.Table[killed]{Schema: "kill_jobs_resp_job", Members: []data.Member[killed]{
	{Path: "error.string", Of: func(k *killed) data.Value { return data.Text(k.what) }},
	{Path: "error.code", Of: func(k *killed) data.Value { return data.Num(k.number) }},
	{Path: "error.message", Of: func(k *killed) data.Value { return data.Text(k.what) }},
	{Path: "step_id", Of: func(k *killed) data.Value { return data.Text(k.id) }},
	{Path: "job_id"},
}}

// kill cancels or signals jobs; only what failed is listed.
func (x *request) kill(ids []string, signal string) {
	var status []killed
	for _, id := range ids {
		argv := []string{id}
		if signal != "" {
			argv = []string{"-s", signal, id}
		}
		for _, flag := range append(strings.Split(x.query("flags"), ","), texts(x.body["flags"])...) {
			if option, ok := map[string]string{"BATCH_JOB": "-b", "FULL_JOB": "-f", "HURRY": "-H",
				"CRON_JOBS": "--cron"}[flag]; ok {
				argv = append([]string{option}, argv...)
			}
		}
		x.failed = nil
		said, ok := x.run("scancel", control.Scancel, argv...)
		if ok && x.failed == nil {
			continue
		}
		if k := len(x.errors); true {
			p := x.fail("Signal request failed", said)
			x.errors = x.errors[:k]
			status = append(status, killed{id, p.Error, p.Number})
		}
	}
	if x.path.Path == "/slurm/job/{job_id}" && len(status) > 0 { // a job that is not there is an error
		x.errors = append(x.errors, data.Problem{Description: "Signal request failed", Number: status[0].number,
			Error: status[0].what, Source: x.source()})
		x.write(statusOf(status[0].number), data.Each("status", &killedTable, status))
		return
	}
	x.write(200, data.Each("status", &killedTable, status))
}

// killFilters are the members that select jobs to cancel, and the options of scancel that they are.
var killFilters = [...][2]string{{"account", "-A"}, {"job_name", "-n"}, {"partition", "-p"}, {"qos", "-q"},
	{"reservation", "-R"},
	{"user_name", "-u"}, {"user_id", "-u"}, {"wckey", "--wckey"}, {"nodes", "-w"}, {"job_state", "-t"}}

func killJobs(x *request) {
	signal, _ := x.body["signal"].(string)
	ids := texts(x.body["jobs"])
	if len(ids) > 0 {
		x.kill(ids, signal)
		return
	}
	argv := []string{}
	if signal != "" {
		argv = append(argv, "-s", signal)
	}
	filtered := false
	for _, f := range killFilters {
		words, _ := asText("", x.body[f[0]])
		if len(words) > 0 {
			argv, filtered = append(argv, f[1], words[0]), true
		}
	}
	if !filtered {
		x.refuse(badQuery, badQuery9, "Neither jobs nor a filter are given")
		return
	}
	x.change("Signal request failed", "scancel", control.Scancel, argv...)
}

func (x *request) requeue(ids, flags []string) {
	verb := "requeue"
	for _, f := range flags {
		if f == "Hold" {
			verb = "requeuehold"
		}
	}
	if len(ids) == 0 {
		x.refuse(badQuery, badQuery9, "No jobs are named")
		return
	}
	x.change("Requeue failed", "scontrol", control.Scontrol, append([]string{verb}, strings.Join(ids, ","))...)
}

// amendJob changes a job of history.
func amendJob(x *request) {
	if x.jobID() {
		x.amend(x.vars["job_id"], x.body)
	}
}

// amendJobs changes several jobs of history in one way.
func amendJobs(x *request) {
	ids := texts(x.body["job_id_list"])
	rec, _ := x.body["job_rec"].(map[string]any)
	if len(ids) == 0 {
		x.refuse(badQuery, badQuery9, "job_id_list names no job")
		return
	}
	x.amend(strings.Join(ids, ","), rec)
}

// amendKeys are the members of a job of history that can be changed, with the keys of sacctmgr.
var amendKeys = [...]string{"comment.administrator admincomment", "comment.job comment",
	"comment.system systemcomment", "extra extra", "wckey newwckey"}

// amend changes jobs of history, and lists which.
func (x *request) amend(ids string, rec map[string]any) {
	if !emptyValue(rec["tres"]) {
		x.refuse(badQuery, badQuery9, "tres cannot be done here: leave it out")
		return
	}
	words := set(nil, rec, amendKeys[:]...)
	if n, given, _ := number(at(rec, "derived_exit_code.return_code")); given {
		words = append(words, "derivedexitcode="+strconv.Itoa(int(n)))
	}
	if len(words) == 0 {
		x.refuse(badQuery, badQuery9, "Nothing to change was given")
		return
	}
	argv := append([]string{"-i", "modify", "job", "where", "jobid=" + ids, "set"}, words...)
	said, ok := x.run("sacctmgr", sacctmgr.Run, argv...)
	if !ok {
		x.write(statusOf(x.fail("Job modification failed", said).Number))
		return
	}
	var changed []string
	for line := range strings.Lines(said) {
		if name, is := strings.CutPrefix(line, "  "); is {
			changed = append(changed, strings.TrimSpace(name))
		}
	}
	x.write(200, data.One("results", "string_list", data.Words(changed...)))
}
