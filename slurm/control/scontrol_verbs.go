package control

import (
	"errors"
	"fmt"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"dev.muster/api"
	"dev.muster/cluster"
	"dev.muster/slurm/conf"
	"dev.muster/slurm/format"
	"dev.muster/slurm/front"
)

// The verbs that administrators have beside those about jobs, nodes and partitions.

// refused is a verb that muster has nothing for: it says what does that here.
func refused(wayOut string) func(*control, []string) int {
	return func(c *control, _ []string) int {
		return c.complain("scontrol: error: "+wayOut, "scontrol: error: "+notSupported)
	}
}

const notSupported = "Requested operation not supported on this system"

// adminVerbs are the verbs about daemons, processes and errors.
func adminVerbs() []verb {
	return []verb{
		{"notify", 1, 2, notifyJob},
		{"wait_job", 2, 1, waitJob},
		{"completing", 3, 0, showCompleting},
		{"listpids", 1, 0, listPIDs},
		{"pidinfo", 3, 0, pidInfo},
		{"errnumstr", 2, 0, showErrnum},
		{"takeover", 4, 0, takeOver},
		{"setdebug", 4, 1, setDebug},
		{"setdebugflags", 9, 1, setDebugFlags},
		{"schedloglevel", 3, 1, schedLog},
		{"fsdampeningfactor", 1, 1, dampening},
		{"callerid", 2, 5, refused("jobs are found by their processes: scontrol pidinfo PID on the node")},
		{"abort", 2, 0, refused("daemons are systemd's: systemctl kill -s ABRT muster-server; jobs run on")},
		{"getent", 4, 0, refused("muster has no nss_slurm: nodes need the users of their jobs; use getent passwd")},
		{"shutdown", 4, 0, shutDown},
	}
}

// shutDown is refused: no daemon ends the others.
func shutDown(c *control, args []string) int {
	if len(args) > 0 && !slices.Contains([]string{"slurmctld", "controller"}, strings.ToLower(args[0])) {
		return c.complain("invalid shutdown argument:" + args[0])
	}
	return refused("daemons are systemd's: systemctl stop muster-server, muster-client on nodes; jobs run on")(c, nil)
}

// notifyJob is scontrol notify JOB TEXT: a line on the errors of its script, of its salloc, or of the sruns of its
// steps.
func notifyJob(c *control, args []string) int {
	const what = "job notify failure: "
	t, ok := front.ParseTarget(args[0])
	if !ok || t.Step != nil {
		return c.complain("Invalid job_id "+args[0], what+"No error")
	}
	resp, err := front.Call(c.sys, api.ListJobs, api.JobQuery{Refs: []cluster.Ref{t.Ref}})
	if err == nil && len(resp.Jobs) == 0 {
		err = &api.Error{Kind: cluster.ErrJobID}
	}
	if err != nil {
		text, _ := front.ErrorText(err)
		return c.complain(what + text)
	}
	j := resp.Jobs[0]
	switch {
	case j.Phase == cluster.Pending:
		return c.complain(what + "Requested operation is presently disabled")
	case j.Phase >= cluster.Ending || j.Alloc == nil:
		return c.complain(what + "Job/step already completing or completed")
	}
	prefix := "srun: "
	if j.RunsScript() {
		prefix = "slurmstepd-" + string(j.Alloc.Shares[0].Node) + ": error: "
	}
	_, err = front.Call(c.sys, api.NotifyJob, api.NotifyRequest{Job: j.ID, Text: prefix + strings.Join(args[1:], " ")})
	switch {
	case err == nil:
		return 0
	case front.IsKind(err, cluster.ErrAccess):
		return c.complain(what + "Invalid user id")
	case front.IsKind(err, cluster.ErrUnsupported):
		return c.complain(what+"Requested operation is presently disabled",
			"why: no salloc waits for the job, and it runs no step that could tell: "+
				"write(1) reaches its user's terminal")
	}
	text, _ := front.ErrorText(err)
	return c.complain(what + text)
}

// waitHold bounds one call that waits for a job; then it is asked again.
const waitHold = 30 * time.Second

// waitJob is scontrol wait_job JOB: until the nodes of a job that has some are there.
func waitJob(c *control, args []string) int {
	n, err := strconv.ParseUint(args[0], 10, 32)
	if err != nil || n == 0 {
		return c.complain("Invalid job_id " + args[0])
	}
	id := cluster.JobID(n)
	for {
		resp, err := front.Call(c.sys, api.ListJobs, api.JobQuery{Refs: []cluster.Ref{{Job: id}}})
		switch {
		case front.IsKind(err, cluster.ErrJobID) || err == nil && len(resp.Jobs) == 0:
			return c.complain("scontrol: Problem running job " + args[0])
		case err != nil && !errors.Is(err, api.ErrUnreachable):
			text, _ := front.ErrorText(err)
			return c.complain("scontrol: error: " + text)
		case err != nil: // the daemon may come back
			time.Sleep(time.Second)
			continue
		}
		switch phase := resp.Jobs[0].Phase; {
		case phase == cluster.Pending: // as in Slurm
			return c.complain("scontrol: Job "+args[0]+" no longer running", "why: it is pending: wait_job is "+
				"about the nodes of a running job, sbatch --wait or muster follow wait for one")
		case phase >= cluster.Ending:
			return c.complain("scontrol: Job " + args[0] + " no longer running")
		case phase == cluster.Running:
			return toldWell(c, "scontrol: Nodes are ready for job "+args[0])
		}
		_, err = front.Call(c.sys, api.WaitJob, api.WaitRequest{Job: id, Phase: cluster.Running, Timeout: waitHold})
		if err != nil && !errors.Is(err, api.ErrUnreachable) {
			text, _ := front.ErrorText(err)
			return c.complain("scontrol: error: " + text)
		}
	}
}

// showCompleting is scontrol completing: jobs that have ended and whose nodes clean up.
func showCompleting(c *control, args []string) int {
	if len(args) > 0 {
		return c.complain("too many arguments for keyword:completing")
	}
	resp, err := front.Call(c.sys, api.ListJobs, api.JobQuery{Phases: []cluster.Phase{cluster.Ending}})
	if err != nil {
		text, _ := front.ErrorText(err)
		return c.complain("slurm_load_jobs error: " + text)
	}
	for _, j := range resp.Jobs {
		took := max(resp.Now.Sub(j.EndingAt), 0)
		_, _ = fmt.Fprintf(c.out, "JobId=%d EndTime=%s CompletingTime=%s Nodes(COMPLETING)=%s \n", j.ID,
			front.Stamp(j.EndingAt), format.Padded(took), front.NodeText(j.AllocNodes()))
	}
	return 0
}

// showErrnum is scontrol errnumstr NUMBER.
func showErrnum(c *control, args []string) int {
	if len(args) != 1 {
		return c.complain("one arguments required for keyword:errnumstr")
	}
	n, err := strconv.Atoi(args[0])
	if err != nil {
		return c.complain("numeric arguments required for keyword:errnumstr")
	}
	_, _ = c.out.WriteString(front.ErrnumText(n) + "\n")
	return 0
}

// takeOver is scontrol takeover [INDEX]: the server that leads gives the lead to the INDEXth of the others, or
// to the most current one.
func takeOver(c *control, args []string) int {
	if len(args) > 1 {
		return c.complain("takeover: too many arguments")
	}
	var q api.ServerRequest
	resp, err := front.Call(c.sys, api.Ping, api.Empty{})
	if err == nil && len(args) == 1 {
		others := slices.DeleteFunc(resp.Servers, func(s api.Server) bool { return s.Leader })
		n, bad := strconv.Atoi(args[0])
		if bad != nil || n < 1 || n > len(others) {
			return c.complain(fmt.Sprintf("takeover: invalid backup controller index (%d)", n),
				fmt.Sprintf("why: servers that do not lead: %d; see scontrol ping", len(others)))
		}
		q.Name = others[n-1].Name
	}
	if err == nil && len(resp.Servers) < 2 {
		return c.complain("slurm_takeover error: there is no other server: muster server token makes one join")
	}
	if err == nil {
		_, err = front.Call(c.sys, api.TransferLead, q)
	}
	return ended(c, "slurm_takeover error: ", err)
}

// ended words the end of a verb about the servers.
func ended(c *control, what string, err error) int {
	if err == nil {
		return 0
	}
	text, _ := front.ErrorText(err)
	if front.IsKind(err, cluster.ErrAccess) {
		text = "Permission denied"
	}
	return c.complain(what + text)
}

// debugLevels are Slurm's levels, by number, with what they are here.
var debugLevels = [...]struct{ name, level string }{
	{"quiet", "error"}, {"fatal", "error"}, {"error", "error"}, {"info", "info"}, {"verbose", "info"},
	{"debug", "debug"}, {"debug2", "debug"}, {"debug3", "debug"}, {"debug4", "debug"}, {"debug5", "debug"},
}

// setDebug is scontrol setdebug LEVEL: of the server that leads, until it is started again.
func setDebug(c *control, args []string) int {
	if len(args) > 1 {
		return c.complain("too many arguments for keyword:setdebug")
	}
	for i, l := range debugLevels {
		if strings.EqualFold(args[0], l.name) || args[0] == strconv.Itoa(i) {
			_, err := front.Call(c.sys, api.SetLogLevel, api.LogLevelRequest{Level: l.level})
			return ended(c, "slurm_set_debug_level error: ", err)
		}
	}
	return c.complain("invalid debug level: " + args[0])
}

// flagsAsWords has the parser take what follows setdebugflags for words, though a - may begin them.
func flagsAsWords(argv []string) []string {
	for i, a := range argv {
		if front.IsKey(strings.ToLower(a), 9, "setdebugflags") {
			return slices.Insert(slices.Clone(argv), i, "--")
		}
	}
	return argv
}

// setDebugFlags is refused once what it says is a flag.
func setDebugFlags(c *control, args []string) int {
	if len(args) > 1 {
		return c.complain("too many arguments for keyword:setdebugflags")
	}
	for _, a := range args {
		sign, name := a[:min(len(a), 1)], a[min(len(a), 1):]
		known := strings.Contains(strings.ToLower(" "+debugFlags+" "), " "+strings.ToLower(name)+" ")
		if sign != "+" && sign != "-" || !known {
			return c.complain("invalid debug flag: "+a, "Usage: setdebugflags [+|-]NAME")
		}
	}
	return refused("the log has no parts: scontrol setdebug debug has all of it, "+
		"muster why JOB and sdiag say what the scheduler does")(c, nil)
}

// debugFlags are those that Slurm's manual names.
const debugFlags = "Accrue Agent Backfill BackfillMap BurstBuffer Cgroup CPU_Bind CpuFrequency Data Dependency " +
	"Elasticsearch Energy ExtSensors Federation FrontEnd Gres Hetjob Gang Interconnect JobAccountGather " +
	"JobContainer License Network NetworkRaw NodeFeatures NO_CONF_HASH Power Priority Profile Protocol " +
	"Reservation Route Script SelectType Steps Switch TaskPlugin TimeCray TraceJobs Triggers WorkQueue"

// schedLog is refused: there is no log of the scheduler's own.
func schedLog(c *control, args []string) int {
	if len(args) > 1 {
		return c.complain("too many arguments for keyword:schedloglevel")
	}
	if !slices.Contains([]string{"0", "1", "disable", "enable"}, strings.ToLower(args[0])) {
		return c.complain("invalid schedlog level: " + args[0])
	}
	return refused("the scheduler has no log of its own: scontrol setdebug debug has all of it, "+
		"muster why JOB says why a job waits")(c, nil)
}

// dampening is refused: what is active comes from one place.
func dampening(c *control, args []string) int {
	if n, err := strconv.Atoi(args[0]); err != nil || n < 1 {
		return toldWell(c, "invalid dampening factor: "+args[0])
	}
	return refused("set FairShareDampeningFactor="+args[0]+" in slurm.conf, "+
		"then scontrol reconfigure or muster config apply")(c, nil)
}

// writeConfig is scontrol write config [FILE]: the active configuration, as files that muster reads the same from.
func writeConfig(c *control, args []string) int {
	if len(args) > 1 {
		return c.complain("too many arguments for keyword:write")
	}
	resp, err := front.Call(c.sys, api.ShowCluster, api.Empty{})
	if err != nil {
		text, _ := front.ErrorText(err)
		return c.complain("slurm_load_ctl_conf error: " + text)
	}
	name := c.sys.Getenv("SLURM_CONF")
	if name == "" {
		name = "/etc/slurm/slurm.conf"
	}
	if len(args) == 1 {
		name = args[0]
	}
	suffix := "." + front.Stamp(c.sys.Now())
	for i, f := range conf.Write(&resp.Config) {
		file := name + suffix
		if i > 0 { // beside it, by its own name
			file = path.Join(path.Dir(name), f.Name+suffix)
		}
		if err := os.WriteFile(file, []byte(f.Text()), 0o644); err != nil {
			return c.complain("Could not create file " + file + ": " + front.PlainError(err))
		}
		_, _ = c.out.WriteString("Slurm config saved to " + file + "\n")
	}
	return 0
}
