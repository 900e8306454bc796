package slurm

import (
	"cmp"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"dev.muster/cluster"
	"dev.muster/slurm/env"
	"dev.muster/slurm/format"
	"dev.muster/slurm/front"
	"dev.muster/slurm/sacctmgr"
	"dev.muster/slurm/show"
	"dev.muster/wire"
)

// eventWords are how Slurm's mails name what has happened.
var eventWords = [...]struct {
	event cluster.JobEvent
	word  string
}{
	{cluster.EventBegin, "Began"},
	{cluster.EventEnd, "Ended"},
	{cluster.EventFail, "Failed"},
	{cluster.EventRequeue, "Requeued"},
	{cluster.EventNever, "Invalid dependency"},
	{cluster.EventStageOut, "Staged Out"},
	{cluster.EventTimeLimit, "Reached time limit"},
	{cluster.EventTime90, "Reached 90% of time limit"},
	{cluster.EventTime80, "Reached 80% of time limit"},
	{cluster.EventTime50, "Reached 50% of time limit"},
}

func eventWord(e cluster.JobEvent) string {
	for _, w := range eventWords {
		if w.event == e {
			return w.word
		}
	}
	return string(e)
}

// HookProgram is the program by which the leader does a hook; none if it is not done by a program.
func (Dialect) HookProgram(e *cluster.Hook, cfg *cluster.Config) (p cluster.Program) {
	switch e.Kind {
	case cluster.HookProlog:
		p.Argv, p.Environ = []string{cfg.PrologServer}, env.Server(e.Job, cfg, "prolog_slurmctld")
	case cluster.HookEpilog:
		p.Argv, p.Environ = []string{cfg.EpilogServer}, env.Server(e.Job, cfg, "epilog_slurmctld")
	case cluster.HookResume:
		p.FileVar, p.File = "SLURM_RESUME_FILE", resumeFile(e)
		p.Argv, p.Environ = []string{cfg.Power.Resume, front.NodeText(e.Nodes)}, env.Switch(cfg)
	case cluster.HookResumeFail:
		p.Argv, p.Environ = []string{cfg.Power.ResumeFail, front.NodeText(e.Nodes)}, env.Switch(cfg)
	case cluster.HookSuspend:
		p.Argv, p.Environ = []string{cfg.Power.Suspend, front.NodeText(e.Nodes)}, env.Switch(cfg)
	case cluster.HookResvProlog:
		p.Argv, p.Environ = []string{cfg.ResvProlog, e.Reservation}, env.Switch(cfg)
	case cluster.HookResvEpilog:
		p.Argv, p.Environ = []string{cfg.ResvEpilog, e.Reservation}, env.Switch(cfg)
	case cluster.HookLead:
		p.Argv, p.Environ = []string{cfg.LeadProgram}, env.Switch(cfg)
	case cluster.HookFollow:
		p.Argv, p.Environ = []string{cfg.FollowProgram}, env.Switch(cfg)
	case cluster.HookJobComp:
		p = jobComp(e.Job, cfg)
	case cluster.HookTrigger:
		p.Argv, p.Environ = triggerArgv(e), env.Switch(cfg)
	case cluster.HookRetain:
		p.Argv, p.Environ = []string{e.Retain.Script}, archiveEnv(e.Retain)
	case cluster.HookMail:
		prog := cfg.MailProg
		if _, err := os.Stat(prog); err != nil && prog == defaultMailProg {
			prog = otherMailProg
		}
		to := mailAddress(e.Job.Spec, cfg)
		if !isAddress(to) {
			break
		}
		p.Argv = []string{prog, "-s", Subject(e), to}
		p.Environ = append(env.Server(e.Job, cfg, ""), mailEnv(e)...)
	}
	return p
}

// triggerArgv is the program of a trigger, and what it is told: a job, a list of nodes, or what has happened. As in
// Slurm no quotes are recognized.
func triggerArgv(e *cluster.Hook) []string {
	argv := strings.Fields(e.Trigger.Program)
	switch {
	case e.Trigger.Job != 0:
		return append(argv, strconv.FormatUint(uint64(e.Trigger.Job), 10))
	case len(e.Nodes) > 0:
		return append(argv, front.NodeText(e.Nodes))
	}
	return append(argv, string(e.Trigger.Event))
}

// archiveEnv tells ArchiveScript what goes and is to be archived, and up to where, Unix seconds.
func archiveEnv(f *cluster.Forgetting) (list []string) {
	for _, k := range sacctmgr.ArchiveKinds() {
		kind := strings.ToUpper(k.Word)
		i := slices.IndexFunc(f.Cutoffs, func(c cluster.Cutoff) bool { return c.Kind == k.Kind && c.Archive })
		list = append(list, "SLURM_ARCHIVE_"+kind+"="+strconv.Itoa(front.BoolInt(i >= 0)))
		if i >= 0 {
			last := strconv.FormatInt(f.Cutoffs[i].Before, 10)
			list = append(list, "SLURM_ARCHIVE_LAST_"+strings.TrimSuffix(kind, "S")+"="+last)
		}
	}
	return append(list, "PATH=/bin:/usr/bin")
}

// resumeFile is what ResumeProgram finds in the file SLURM_RESUME_FILE: which nodes are wanted by which jobs. It
// has the keys of 22.05 and those of later versions.
func resumeFile(e *cluster.Hook) []byte {
	type job struct {
		ID        uint64 `json:"job_id"`
		Nodes     string `json:"nodes"`
		Alloc     string `json:"nodes_alloc"`
		Resume    string `json:"nodes_resume"`
		Partition string `json:"partition"`
		Features  string `json:"features"`
		Resv      string `json:"reservation"`
		Sharing   string `json:"oversubscribe"`
	}
	out := struct {
		All    string `json:"all_nodes"`
		Resume string `json:"all_nodes_resume"`
		Jobs   []job  `json:"jobs"`
	}{All: front.NodeText(e.Nodes), Resume: front.NodeText(e.Nodes)}
	for _, j := range e.Jobs {
		own := j.AllocNodes()
		other := func(n cluster.NodeName) bool { return !slices.Contains(e.Nodes, n) }
		wanted := slices.DeleteFunc(slices.Clone(own), other)
		out.Jobs = append(out.Jobs, job{
			ID:        uint64(j.ID),
			Nodes:     front.NodeText(own),
			Alloc:     front.NodeText(own),
			Resume:    front.NodeText(wanted),
			Partition: j.Alloc.Partition,
			Features:  j.Spec.Constraint,
			Resv:      j.Spec.Reservation,
			Sharing:   show.SharingText(j.Spec.Sharing),
		})
	}
	text, err := wire.Marshal(&out)
	if err != nil { // it has texts and numbers alone
		return nil
	}
	return text
}

// Where mail programs are, as Slurm looks for them.
const (
	defaultMailProg = "/bin/mail"
	otherMailProg   = "/usr/bin/mail"
)

// mailAddress is who is sent mail.
func mailAddress(s *cluster.JobSpec, cfg *cluster.Config) string {
	to := cmp.Or(s.MailUser, s.User)
	if cfg.MailDomain != "" && !strings.Contains(to, "@") {
		to += "@" + cfg.MailDomain
	}
	return to
}

// isAddress reports whether a text is nothing but addresses to a mail program, which runs as SlurmUser: what begins
// with - is an option to it, with | a command that it runs, with /, . or + a file that it writes (mailutils, mailx).
func isAddress(text string) bool {
	words := strings.FieldsFunc(text, func(r rune) bool { return r == ',' || r == ';' || unicode.IsSpace(r) })
	for _, w := range words {
		first, _ := utf8.DecodeRuneInString(w)
		begins := unicode.IsLetter(first) || unicode.IsDigit(first) || first == '_'
		if !begins || strings.ContainsAny(w, "|/<>\"'`!()") {
			return false
		}
	}
	return len(words) > 0
}

// Subject words what a hook tells of, as the subject of Slurm's mails.
func Subject(e *cluster.Hook) string {
	j, what, id := e.Job, "Job_id", strconv.Itoa(int(e.Job.ID))
	switch {
	case e.Array != nil:
		what, id = "Array Summary Job_id", fmt.Sprintf("%d_* (%d)", j.ArrayID, j.ArrayID)
	case j.ArrayID != 0 && j.Task != cluster.TaskAny:
		what, id = "Array Task Job_id", fmt.Sprintf("%d_%d (%d)", j.ArrayID, j.Task, j.ID)
	}
	text := fmt.Sprintf("Slurm %s=%s Name=%s %s", what, id, cluster.PlainLine(j.Spec.Name), eventWord(e.Event))
	ends := e.Event == cluster.EventEnd || e.Event == cluster.EventFail
	switch {
	case e.Array != nil && ends:
		return fmt.Sprintf("%s, %s, ExitCode [%d-%d]", text, arrayState(e.Array), e.Array.MinExit, e.Array.MaxExit)
	case e.Array != nil || e.Event == cluster.EventNever:
		return text
	case e.Event == cluster.EventBegin:
		return text + ", Queued time " + format.Padded(queuedTime(j))
	case e.Event == cluster.EventStageOut:
		return text + ", StageOut time " + format.Padded(max(e.At.Sub(j.Ended), 0))
	case ends:
		return fmt.Sprintf("%s, Run time %s, %s, ExitCode %d", text, format.Padded(runTime(e)),
			show.StateOf(j).Long, j.Exit.Code)
	}
	return text + ", Run time " + format.Padded(runTime(e))
}

func arrayState(a *cluster.ArraySum) string {
	if a.Outcome == cluster.NoOutcome {
		return "Mixed"
	}
	return show.StateOf(&cluster.Job{Phase: cluster.Ended, Outcome: a.Outcome}).Long
}

func queuedTime(j *cluster.Job) time.Duration { return max(j.Started.Sub(j.Submitted), 0) }

// runTime is how long the job of a hook had run then.
func runTime(e *cluster.Hook) time.Duration {
	j := e.Job
	if j.Started.IsZero() {
		return 0
	}
	end := e.At
	if !j.Ended.IsZero() {
		end = j.Ended
	}
	return max(end.Sub(j.Started)-j.SuspendTotal, 0)
}

// mailEnv is what MailProg is told besides the job.
func mailEnv(e *cluster.Hook) []string {
	j, state := e.Job, show.StateOf(e.Job).Long
	if e.Event == cluster.EventRequeue {
		state = "PENDING"
	}
	out := []string{"SLURM_JOB_STATE=" + state, "SLURM_JOB_MAIL_TYPE=" + eventWord(e.Event)}
	switch e.Event {
	case cluster.EventBegin:
		return append(out, "SLURM_JOB_QUEUED_TIME="+format.Padded(queuedTime(j)))
	case cluster.EventNever:
		return out
	case cluster.EventEnd, cluster.EventFail:
		most := j.Exit.Code
		if a := e.Array; a != nil {
			most = a.MaxExit
			out = append(out, fmt.Sprint("SLURM_JOB_EXIT_CODE_MIN=", a.MinExit))
			out = append(out, fmt.Sprint("SLURM_JOB_TERM_SIGNAL_MAX=", a.MaxSignal))
		}
		out = append(out, fmt.Sprint("SLURM_JOB_EXIT_CODE_MAX=", most))
	}
	return append(out, "SLURM_JOB_RUN_TIME="+format.Padded(runTime(e)))
}
