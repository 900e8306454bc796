package slurm

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"dev.muster/api"
	"dev.muster/cluster"
	"dev.muster/slurm/opt"
	"dev.muster/wire"
)

// frontEnd is one command. Its function gets the arguments without the name and returns the exit code.
type frontEnd struct {
	name, summary string
	run           func(sys *Sys, argv []string) int
}

// frontEnds lists the commands. It is a function: a table of functions that refer to each other
// can not be laid out by the compiler.
func frontEnds() []frontEnd {
	return []frontEnd{
		{"sbatch", "submit a batch script", runSbatch},
		{"srun", "run a step, allocating for it if need be", runSrun},
		{"salloc", "allocate nodes and run a command", runSalloc},
		{"scontrol", "show and change jobs, nodes and partitions", runScontrol},
		{"sinfo", "list partitions and nodes", runSinfo},
		{"squeue", "list jobs and steps", runSqueue},
		{"scancel", "end jobs and steps or send them signals", runScancel},
		{"sacct", "show history", runSacct},
		{"sacctmgr", "show and change accounts, users, QOS and their limits", runSacctmgr},
		{"sprio", "show what the priorities of pending jobs are made of", runSprio},
		{"sshare", "show shares and usage of accounts and users", runSshare},
		{"sreport", "sum up what was used", runSreport},
		{"sdiag", "show what the server has done", runSdiag},
		{"seff", "show how well a job used its CPUs and memory", runSeff},
		{"sstat", "show what running steps use", runSstat},
	}
}

// IsFrontEnd reports whether name is one of Slurm's commands that muster has.
func IsFrontEnd(name string) bool {
	for _, f := range frontEnds() {
		if f.name == name {
			return true
		}
	}
	return false
}

// FrontEnds lists the names.
func FrontEnds() (names []string) {
	for _, f := range frontEnds() {
		names = append(names, f.name)
	}
	return names
}

// Summary is a command's one line of help.
func Summary(name string) string {
	for _, f := range frontEnds() {
		if f.name == name {
			return f.summary
		}
	}
	return ""
}

// Main runs the front-end argv[0] and returns its exit code.
func Main(argv []string, sys *Sys) int {
	for _, f := range frontEnds() {
		if f.name == sys.Prog {
			code := f.run(sys, argv[1:])
			if code != 0 && atomic.LoadUint32(&sys.away) == 1 {
				sys.say("why: %s", NoDaemon(sys.Getenv))
			}
			return code
		}
	}
	fmt.Fprintf(sys.Stderr, "muster: %s is not a command of Slurm's\n", sys.Prog)
	return 1
}

func (s *Sys) client() *api.Client { return &api.Client{Dial: s.Dial, Aged: s.aged} }

// toldAge is that a command has said how old its answers are.
var toldAge sync.Once

// aged says once that what a command tells is old.
func (s *Sys) aged(age time.Duration) {
	toldAge.Do(func() {
		s.say("as of %v ago: the server that answers does not keep up with the one that leads, or none leads", age.Round(time.Second))
	})
}

// say prints a line with the program's name, as Slurm's commands do.
func (s *Sys) say(format string, args ...any) {
	fmt.Fprintf(s.Stderr, s.Prog+": "+format+"\n", args...)
}

// fail prints an error with the program's name and returns the exit code for it.
func (s *Sys) fail(format string, args ...any) int {
	if s.Prog == ownProg {
		s.say(format, args...)
		return 1
	}
	s.say("error: "+format, args...)
	return s.errorExit()
}

// ownProg is the name of the program in messages of muster's own commands.
const ownProg = "muster"

// failed prints why a call of one of muster's own commands failed.
func (s *Sys) failed(err error) int {
	if isUnreachable(err) {
		return s.fail("%s", NoDaemon(s.Getenv))
	}
	return s.fail("%v", err)
}

// errorExit is the exit code of an error that is not the command line's nor a task's: 1, or what SLURM_EXIT_ERROR says to
// the programs that submit.
func (s *Sys) errorExit() int {
	if s.Prog != "sbatch" && s.Prog != "salloc" && s.Prog != "srun" {
		return 1
	}
	if n, ok := opt.Number(s.Getenv("SLURM_EXIT_ERROR")); ok && n != 0 {
		return n & 0xff
	}
	return 1
}

// json prints a value as JSON; it returns the exit code.
func (s *Sys) json(v any) int {
	text, err := wire.AppendIndent(nil, v, "", "  ")
	if err == nil {
		_, err = s.Stdout.Write(append(text, '\n'))
	}
	if err != nil {
		return s.fail("%v", err)
	}
	return 0
}

// usage prints what a refused or answered command line says, and returns its exit code.
func (s *Sys) usage(err error) int {
	var u *UsageError
	if !errors.As(err, &u) {
		return s.fail("%v", err)
	}
	out := s.Stderr
	if u.Stdout {
		out = s.Stdout
	}
	fmt.Fprintln(out, strings.Join(u.Lines, "\n"))
	if u.Refused {
		return s.errorExit()
	}
	return u.Code
}

// slurmErrors gives each kind of error Slurm's text and number.
var slurmErrors = [...]struct {
	kind cluster.ErrKind
	no   int
	text string
}{
	{cluster.ErrPartition, 2000, "Invalid partition name specified"},
	{cluster.ErrNoPartition, 2001, "No partition specified or system default partition"},
	{cluster.ErrAccess, 2002, "Access/permission denied"},
	{cluster.ErrNodesOutside, 2004, "Requested nodes not in this partition"},
	{cluster.ErrNodeCount, 2006, "Node count specification invalid"},
	{cluster.ErrTaskCount, 0, "Task count specification invalid"},
	{cluster.ErrNodeName, 2009, "Invalid node name specified"},
	{cluster.ErrTooBig, 2011, "Pathname of a file, directory or other parameter too long"},
	{cluster.ErrNodeConfig, 2014, "Requested node configuration is not available"},
	{cluster.ErrPending, 2016, "Job is pending execution"},
	{cluster.ErrJobID, 2017, "Invalid job id specified"},
	{cluster.ErrFinished, 2021, "Job/step already completing or completed"},
	{cluster.ErrEnded, 0, "Job has already finished"},
	{cluster.ErrBusy, 2015, "Requested nodes are busy"},
	{cluster.ErrPartitionDown, 2013, "Required partition not available (inactive or drain)"},
	{cluster.ErrCircular, 2041, "Circular job dependency"},
	{cluster.ErrPartInUse, 2047, "Partition is in use"},
	{cluster.ErrDependency, 2029, "Job dependency problem"},
	{cluster.ErrBatchOnly, 2030, "Only batch jobs are accepted or processed"},
	{cluster.ErrTimeLimit, 2051, "Requested time limit is invalid (missing or exceeds some limit)"},
	{cluster.ErrTimeMin, 0, "Invalid time-min specification (exceeds job's time or other limits)"},
	{cluster.ErrResvSkip, 0, "Reservation given is not skipable, try deleting instead"},
	{cluster.ErrStepCPUs, 2045, "More processors requested than permitted"},
	{cluster.ErrStepMem, 2044, "Memory required by task is not available"},
	{cluster.ErrGRES, 2072, "Invalid generic resource (gres) specification"},
	{cluster.ErrStepGRES, 2072, "Invalid generic resource (gres) specification"},
	{cluster.ErrStepNodes, 2006, "Node count specification invalid"},
	{cluster.ErrArray, 2077, "Invalid job array specification"},
	{cluster.ErrFeature, 2031, "Invalid feature specification"},
	{cluster.ErrPrefer, 0, "Invalid preferred feature specification"},
	{cluster.ErrNice, 2078, "Invalid --nice value"},
	{cluster.ErrUser, 2010, "Invalid user id"},
	{cluster.ErrDisabled, 2032, "Requested operation is presently disabled"},
	{cluster.ErrNotSuspended, 2062, "Job is not suspended"},
	{cluster.ErrNotRunning, 2020, "Job is not running"},
	{cluster.ErrNodeState, 2048, "Invalid node state specified"},
	{cluster.ErrLicense, 2048, "Invalid license specification"},
	{cluster.ErrAccount, 2045, "Invalid account or account/partition combination specified"},
	{cluster.ErrQOS, 2066, "Invalid qos specification"},
	{cluster.ErrWCKey, 2057, "Invalid wckey specification"},
	{cluster.ErrPolicy, 2050, "Job violates accounting/QOS policy (job submit limit, user's size and/or time limits)"},
	{cluster.ErrNotHeld, 2033, "Job is in held state, pending scheduler release"},
	{cluster.ErrPriorityReset, 2079, "Changes to job priority are not persistent, change nice instead"},
	{cluster.ErrGroup, 2057, "User's group not permitted to use this partition"},
	{cluster.ErrNotPending, 2021, "Job is no longer pending execution"},
	{cluster.ErrReservation, 2070, "Requested reservation is invalid"},
	{cluster.ErrResvName, 2074, "Duplicate reservation name"},
	{cluster.ErrResvTime, 2052, "Invalid time specified"},
	{cluster.ErrResvOverlap, 2071, "Requested reservation overlaps with another reservation"},
	{cluster.ErrResvBusy, 2016, "Requested nodes are busy"},
	{cluster.ErrResvInUse, 2068, "Requested reservation is in use"},
	{cluster.ErrResvCores, 0, "Core-based reservation can not be updated"},
	{cluster.ErrResvCoreCount, 0, "Core count for reservation node list is not consistent!"},
	{cluster.ErrCPUCount, 0, "CPU count specification invalid"},
	{cluster.ErrResvAccess, 2069, "Access denied to requested reservation"},
	{cluster.ErrBeginTime, 2052, "Invalid time specified"},
	{cluster.ErrReasonNeeded, 2180, "You must specify a reason when DOWNING or DRAINING a node. Request denied"},
	{cluster.ErrNoChange, 2181, "No changes specified"},
	{cluster.ErrUnsupported, 1010, "Requested operation not supported on this system"},
	{cluster.ErrHetPart, 2108, "Operation not permitted on individual component of heterogeneous job"},
	{cluster.ErrHetLeader, 2109, "Job not heterogeneous job leader"},
	{cluster.ErrQueueFull, 2035, "Slurm temporarily unable to accept job, sleeping and retrying"},
}

// contactText is what Slurm's commands say when no server answers.
const contactText = "Unable to contact slurm controller (connect failure)"

// slurmText words an error as Slurm does, with its number (0 if it has none).
func slurmText(err error) (string, int) {
	var e *api.Error
	if isDoubt(err) {
		return err.Error(), 0
	}
	if errors.Is(err, api.ErrUnreachable) {
		return contactText, 1800
	}
	if !errors.As(err, &e) {
		return err.Error(), 0
	}
	for _, row := range slurmErrors {
		if e.Kind == row.kind && e.Kind != "" {
			return row.text, row.no
		}
	}
	return e.Message, 0
}

// call makes one call with a background context: front-ends end by signals.
func call[Q, R any](s *Sys, e api.Endpoint[Q, R], q Q) (R, error) {
	c := s.client()
	defer c.Close()
	r, err := api.Call(context.Background(), c, e, q)
	away := uint32(0)
	if errors.Is(err, api.ErrUnreachable) {
		away = 1
	}
	atomic.StoreUint32(&s.away, away)
	return r, err
}
