package main

import (
	"os"
	"regexp"
	"strconv"
	"strings"
)

// replacer puts placeholders of the same width for what varies from run to run.
type replacer struct {
	base, end int // job ids of this command
	dir       string
	own       string // the version of that side
}

var (
	number    = regexp.MustCompile(`(?:\b|_)\d+(?:\b|_)`)
	moment    = regexp.MustCompile(`\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\b`)
	dateLine  = regexp.MustCompile(`\b(Mon|Tue|Wed|Thu|Fri|Sat|Sun) [A-Z][a-z][a-z] [ \d]\d \d\d:\d\d:\d\d \d{4}`)
	shortTime = regexp.MustCompile(`\b(0|00:00):0\d\b`)
	longTime  = regexp.MustCompile(`\b00:0\d\.\d{3}\b`)
	variable  = regexp.MustCompile(`(?m)^((?:\d+: )?(?:SLURM_TASK_PID|SLURM_SRUN_COMM_PORT|SLURM_STEP_LAUNCHER_PORT|SLURMD_DEBUG)=)\d+`)
	pid       = regexp.MustCompile(`\[\d{2,7}\](:)?`)
	working   = regexp.MustCompile(`(SLURM_WORKING_CLUSTER=).*`)
	version   = regexp.MustCompile(`slurm(-wlm)? v?\d[\w.\-]*( \(muster [^)]*\))?`)
	port      = regexp.MustCompile(`\b(port|Port)([ =:])\d+`)
	elapsed   = regexp.MustCompile(`\b([A-Za-z]*Time|[Ee]lapsed)=00:00:0\d`)
	submitter = regexp.MustCompile(`AllocNode:Sid=\S+`)
	numbers   = regexp.MustCompile(`\b(Priority=|SrunHost:Pid=\S+:)\d+`)
	// Slurm leaves these to chance: who found the place, whether a job of the first second waits for
	// its prolog, whether salloc still waits for its nodes, and whether it is told that its allocation
	// is gone before it ends.
	scheduler = regexp.MustCompile(`\bScheduler=(Main|Backfill)\b`)
	prolog    = regexp.MustCompile(`(RUNNING Reason=|\|)Prolog\b`)
	revoked   = regexp.MustCompile(`(?m)^salloc: (Job allocation \d+ has been revoked\.|Waiting for resource configuration|Nodes \S+ are ready for job)\n`)
	// muster's additions to Slurm's words for a refusal.
	why     = regexp.MustCompile(`(?m)^[a-z]+: why: .*\n?`)
	started = regexp.MustCompile(`\bSched(Main|Backfill)\b`)
	spool   = regexp.MustCompile(`/\S*/job0*\d+/slurm_script`)
)

func (r replacer) replace(s string) string {
	s = strings.ReplaceAll(s, r.dir, "/DIR")
	s = spool.ReplaceAllString(s, "SPOOL/slurm_script")
	s = dateLine.ReplaceAllString(s, "DAY MON DD HH:MM:SS YYYY")
	s = moment.ReplaceAllString(s, "YYYY-MM-DDTHH:MM:SS")
	s = elapsed.ReplaceAllString(s, "$1=00:00:0S")
	s = longTime.ReplaceAllString(s, "00:0S.mmm")
	s = shortTime.ReplaceAllString(s, "$1:0S")
	s = variable.ReplaceAllString(s, "${1}N")
	s = working.ReplaceAllString(s, "${1}CLUSTER")
	s = pid.ReplaceAllStringFunc(s, func(m string) string {
		if n, err := strconv.Atoi(strings.Trim(m, "[]:")); err == nil && n > 300 {
			return "[PID]"
		}
		return m
	})
	s = revoked.ReplaceAllString(s, "")
	s = why.ReplaceAllString(s, "")
	s = scheduler.ReplaceAllString(s, "Scheduler=ANY")
	s = started.ReplaceAllString(s, "SchedANY")
	s = prolog.ReplaceAllString(s, "${1}None")
	s = version.ReplaceAllString(s, "slurm VERSION")
	if r.own != "" {
		s = regexp.MustCompile(`(^|\s)`+regexp.QuoteMeta(r.own)+`(\s|$)`).ReplaceAllString(s, "${1}VERSION${2}")
	}
	s = port.ReplaceAllString(s, "$1$2PORT")
	s = submitter.ReplaceAllString(s, "AllocNode:Sid=HOST:SID")
	s = numbers.ReplaceAllString(s, "${1}N")
	s = number.ReplaceAllStringFunc(s, r.id)
	if host, err := os.Hostname(); err == nil {
		s = regexp.MustCompile(`\b`+regexp.QuoteMeta(host)+`\b`).ReplaceAllString(s, "HOST")
	}
	return s
}

// id replaces a job id by its place among the ids of the command, in the same width.
func (r replacer) id(m string) string {
	digits := strings.Trim(m, "_")
	n, err := strconv.Atoi(digits)
	if err != nil || n < r.base || n > r.end {
		return m
	}
	text := "J" + strconv.Itoa(n-r.base+1)
	for len(text) < len(digits) {
		text = "J" + text
	}
	return strings.Replace(m, digits, text, 1)
}
