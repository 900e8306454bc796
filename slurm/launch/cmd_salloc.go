package launch

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"syscall"
	"time"

	"dev.muster/api"
	"dev.muster/cluster"
	"dev.muster/slurm/env"
	"dev.muster/slurm/front"
	"dev.muster/slurm/submit"
)

// Salloc allocates and runs a command (or a shell) here, on the caller's machine.
func Salloc(sys *front.Sys, argv []string) int {
	r, err := submit.ParseSalloc(argv, sys)
	if err != nil {
		return sys.Usage(err)
	}
	submit.SayNotes(sys, r)
	if own, code := submit.PickCluster(sys, r); code >= 0 {
		return code
	} else if own != "" { // what the command asks is asked there too
		sys.Environ = append(sys.Environ, "SLURM_CLUSTERS="+own)
	}
	command, code := sallocCommand(sys, r)
	if code != 0 {
		return code
	}
	job, server, code := allocateShown(sys, r)
	if code != 0 {
		return code
	}
	if b := r.Client.Bell; b != nil && *b {
		fmt.Fprint(sys.Stderr, "\a")
	}
	quiet := r.Client.Quiet > 0
	if !quiet {
		sys.Say("Granted job allocation %d", job.ID)
		sys.Say("Waiting for resource configuration")
		sys.Say("Nodes %s are ready for job", front.NodeText(job.AllocNodes()))
	}
	if r.Client.NoShell {
		return 0
	}
	resp, err := front.Call(sys, api.ShowCluster, api.Empty{})
	if err != nil {
		resp.Config = cluster.Config{ClusterIdentity: cluster.ClusterIdentity{ClusterName: "muster"}}
	}
	if options := resp.Config.InteractiveStep; options != "" && len(r.Argv) == 0 { // the shell runs where the job does
		if sys.Getenv("SHELL") == "" {
			sys.Environ = append(sys.Environ, "SHELL="+command[0])
		}
		command = []string{"/bin/sh", "-c", "exec srun " + options}
	}
	rc, end := runShown(sys, r, server, job, &resp.Config, command)
	if end == revoked {
		return rc
	}
	if !quiet {
		sys.Say("Relinquishing job allocation %d", job.ID)
	}
	exit := cluster.ExitStatus{Code: rc}
	if end == hungUp {
		exit.Code = 0
	}
	_, err = front.Call(sys, api.FinishJob, cluster.Finish{Job: job.ID, Exit: exit})
	if err != nil && !front.IsKind(err, cluster.ErrFinished) {
		text, _ := front.ErrorText(err)
		sys.Say("error: job %d could not be ended: %s", job.ID, text)
	}
	return rc
}

// sallocCommand is what to run: the words given, else the user's shell.
func sallocCommand(s *front.Sys, r *submit.Request) ([]string, int) {
	if r.Client.NoShell || len(r.Argv) > 0 {
		return r.Argv, 0
	}
	if f, ok := s.Stdin.(*os.File); !ok || !isOpen(f) {
		return nil, s.Fail("no controlling terminal: please set --no-shell")
	}
	shell := s.Getenv("SHELL")
	if u, ok := front.UserByID(s.UID); shell == "" && ok && u.Shell != "" {
		shell = u.Shell
	}
	if shell == "" {
		shell = "/bin/sh"
	}
	return []string{shell}, 0
}

// isOpen reports whether the descriptor leads anywhere: a shell without input ends at once, but
// one without a descriptor cannot start.
func isOpen(f *os.File) bool {
	_, err := f.Stat()
	return err == nil
}

// salloc ends with its command, unless the allocation was taken away before (revoked) or its terminal has gone
// (hungUp).
const (
	ended = iota
	revoked
	hungUp
)

// allocEnders are the signals that end the allocation where there is no terminal that has sent them to the command,
// too.
var allocEnders = []os.Signal{syscall.SIGINT, syscall.SIGQUIT, syscall.SIGTERM, syscall.SIGUSR1, syscall.SIGUSR2}

// runHere runs the command with the allocation in its environment. If the allocation is taken
// away first, the command runs to its own end unless -K says otherwise; SIGHUP is passed on, and not waited for.
func runHere(s *front.Sys, r *submit.Request, job *cluster.Job, cfg *cluster.Config, argv []string) (rc, end int) {
	file, ok := front.LookPath(argv[0], s.Getenv)
	if !ok {
		return s.Fail("_fork_command: Unable to find command \"%s\"", argv[0]), ended
	}
	attr := &os.ProcAttr{
		Files: files(s.Stdin, s.Stdout, s.Stderr),
		Env:   shellEnv(s, r, allocEnv(s, job, cfg)),
	}
	if r.Client.Chdir != "" {
		attr.Dir = r.Job.WorkDir
	}
	p, err := os.StartProcess(file, argv, attr)
	if err != nil {
		return s.Fail("_fork_command: %v", err), ended
	}
	in, _ := s.Stdin.(*os.File)
	interactive := in != nil && front.IsTerminal(in)
	sigs, stop := notifySignals(nil)
	defer stop()
	done := make(chan *os.ProcessState, 1)
	go func() { // ends with the command
		st, _ := p.Wait()
		done <- st
	}()
	gone, told := watchJob(s, job.ID, cluster.Ending), hearJob(s, job.ID)
	for {
		select {
		case text := <-told:
			s.Say("%s", text)
		case st := <-done:
			return exitOf(st), end
		case why := <-gone:
			if gone = nil; cluster.GaveAll(why) {
				continue
			}
			end = revoked
			switch {
			case r.Client.Quiet > 0:
			case why.Outcome == cluster.TimedOut || why.EndingWhy == cluster.TimedOut:
				s.Say("Job %d has exceeded its time limit and its allocation has been revoked.", job.ID)
			default:
				s.Say("Job allocation %d has been revoked.", job.ID)
			}
			if k := r.Client.KillCommand; k != 0 {
				_ = p.Signal(syscall.Signal(k))
			}
		case sig := <-sigs:
			switch {
			case !interactive && slices.Contains(allocEnders, sig): // the command ends with its job
				_, _ = front.Call(s, api.CancelJob, cluster.Cancel{Ref: cluster.Ref{Job: job.ID}})
			case sig == syscall.SIGTERM:
				_ = p.Signal(sig)
			case sig == syscall.SIGHUP:
				_ = p.Signal(sig)
				if end == ended {
					end = hungUp
				}
				return 1, end
			} // the terminal sends the others to the command itself
		}
	}
}

// exitOf is a command's exit code; a death by signal counts as 0, as in Slurm.
func exitOf(st *os.ProcessState) int { return max(st.ExitCode(), 0) }

// files are the streams that are real files; others cannot be passed on.
func files(streams ...any) []*os.File {
	out := make([]*os.File, len(streams))
	for i, x := range streams {
		out[i], _ = x.(*os.File)
	}
	return out
}

// hearJob hands on what a job is told (scontrol notify).
func hearJob(s *front.Sys, id cluster.JobID) <-chan string {
	c := make(chan string)
	go func() { // ends with the job, with what cannot tell, or with the program
		for {
			began := time.Now()
			resp, err := front.Call(s, api.HearJob, api.HearRequest{Job: id})
			switch {
			case err == nil:
			case front.IsUnreachable(err), time.Since(began) > time.Second:
				time.Sleep(time.Second)
			default: // a node of before, or the job is over
				return
			}
			for _, text := range resp.Texts {
				c <- text
			}
		}
	}()
	return c
}

// watchJob tells when a job has come to a phase by itself.
func watchJob(s *front.Sys, id cluster.JobID, phase cluster.Phase) <-chan *cluster.Job {
	c := make(chan *cluster.Job, 1)
	go func() { // ends with the job, or with the program
		for {
			resp, err := front.Call(s, api.WaitJob, api.WaitRequest{Job: id, Phase: phase, Timeout: submit.WaitHold})
			switch {
			case front.IsKind(err, cluster.ErrJobID):
				c <- &cluster.Job{}
				return
			case err != nil:
				time.Sleep(500 * time.Millisecond)
			case resp.Reached:
				c <- resp.Jobs[0]
				return
			}
		}
	}()
	return c
}

// shellEnv is the command's environment, with what the allocation adds to it.
func shellEnv(s *front.Sys, r *submit.Request, added []string) []string {
	env := slices.Concat(s.Environ, added)
	if r.Way.OOMKillStep {
		env = append(env, submit.OOMKillStepEnv+"=1")
	}
	return env
}

// allocEnv is what the allocation adds to the command's environment.
func allocEnv(s *front.Sys, job *cluster.Job, cfg *cluster.Config) []string {
	if job.Het != nil {
		resp, err := front.Call(s, api.ListJobs, api.JobQuery{Refs: []cluster.Ref{{Job: job.ID}}})
		if err == nil && len(resp.Jobs) == job.Het.Size {
			return env.HetAllocation(&cluster.Launch{
				Job: job, Config: cfg, Daemon: s.Getenv("MUSTER_SOCKET"), Sisters: resp.Jobs[1:],
			})
		}
	}
	l := &cluster.Launch{Job: job, Config: cfg, Inventory: &cluster.Inventory{}, Node: job.Alloc.Shares[0].Node,
		Daemon: s.Getenv("MUSTER_SOCKET"), Ranks: make([][]int, len(job.Alloc.Shares))}
	return append(env.Allocation(l), "SLURM_JOB_START_TIME="+strconv.FormatInt(job.Started.Unix(), 10))
}

// allocateShown is allocate, once it is known whether what --x11 asks for can be done.
func allocateShown(s *front.Sys, r *submit.Request) (*cluster.Job, *xServer, int) {
	x, code := findX11(s, r)
	if code != 0 {
		return nil, nil, code
	}
	job, code := allocate(s, r)
	return job, x, code
}

// runShown is runHere, with displays for the job's steps.
func runShown(s *front.Sys, r *submit.Request, x *xServer, job *cluster.Job, cfg *cluster.Config, argv []string,
) (rc, end int) {
	stop, code := forwardX11(s, r, x, job)
	defer stop()
	if code != 0 {
		return code, ended
	}
	return runHere(s, r, job, cfg, argv)
}
