// Package slurm is the table of muster's front-ends, the commands that speak Slurm's dialect, and what
// stands above all of them: their manual and what servers tell in Slurm's words. The commands
// are in the packages below this one; DESIGN.md says which.
package slurm

import (
	"fmt"
	"slices"

	"dev.muster/slurm/control"
	"dev.muster/slurm/cron"
	"dev.muster/slurm/front"
	"dev.muster/slurm/launch"
	"dev.muster/slurm/opt"
	"dev.muster/slurm/report"
	"dev.muster/slurm/sacctmgr"
	"dev.muster/slurm/show"
	"dev.muster/slurm/stage"
	"dev.muster/slurm/submit"
	"dev.muster/slurm/wrap"
)

// frontEnd is one command. Its function gets the arguments without the name and returns the exit code.
type frontEnd struct {
	name, summary string
	run           func(sys *front.Sys, argv []string) int
	page          func() (operands string, options []opt.Entry) // of its manual
}

// frontEnds lists the commands. It is a function: a table of functions that refer to each other
// cannot be laid out by the compiler.
func frontEnds() []frontEnd {
	return []frontEnd{
		{"sbatch", "submit a batch script",
			submit.Sbatch, submitPage(opt.Sbatch)},
		{"srun", "run a step, allocating for it if need be",
			launch.Srun, submitPage(opt.Srun)},
		{"salloc", "allocate nodes and run a command",
			launch.Salloc, submitPage(opt.Salloc)},
		{"scontrol", "show and change jobs, nodes and partitions",
			control.Scontrol, queryPage(opt.Scontrol, control.ScontrolOptions)},
		{"sinfo", "list partitions and nodes",
			show.Sinfo, queryPage(opt.Sinfo, show.SinfoOptions)},
		{"squeue", "list jobs and steps",
			show.Squeue, queryPage(opt.Squeue, show.SqueueOptions)},
		{"scancel", "end jobs and steps or send them signals",
			control.Scancel, queryPage(opt.Scancel, control.ScancelOptions)},
		{"sacct", "show history",
			report.Sacct, queryPage(opt.Sacct, report.SacctOptions)},
		{"sacctmgr", "show and change accounts, users, QOS and their limits",
			sacctmgr.Run, queryPage(opt.Sacctmgr, sacctmgr.Options)},
		{"sprio", "show what the priorities of pending jobs are made of",
			report.Sprio, queryPage(opt.Sprio, report.SprioOptions)},
		{"sshare", "show shares and usage of accounts and users",
			report.Sshare, queryPage(opt.Sshare, report.SshareOptions)},
		{"sreport", "sum up what was used",
			report.Sreport, queryPage(opt.Sreport, report.SreportOptions)},
		{"sdiag", "show what the server has done",
			report.Sdiag, queryPage(opt.Sdiag, report.SdiagOptions)},
		{"seff", "show how well a job used its CPUs and memory",
			report.Seff, queryPage(opt.Seff, report.SeffOptions)},
		{"sstat", "show what running steps use",
			report.Sstat, queryPage(opt.Sstat, report.SstatOptions)},
		{"sbcast", "put a file on the nodes of a job",
			stage.Sbcast, queryPage(opt.Sbcast, stage.SbcastOptions)},
		{"sgather", "fetch a file from the nodes of a job",
			stage.Sgather, queryPage(opt.Sgather, stage.SgatherOptions)},
		{"sattach", "show what a running step prints, and type for it",
			stage.Sattach, queryPage(opt.Sattach, stage.SattachOptions)},
		{"scrontab", "list and change a crontab, whose lines are jobs",
			cron.Scrontab, queryPage(opt.Scrontab, cron.ScrontabOptions)},
		{"strigger", "run programs when something happens to jobs, nodes or servers",
			control.Strigger, queryPage(opt.Strigger, control.StriggerOptions)},
		{"swait", "wait until no step of a job runs",
			launch.Swait, queryPage(opt.Swait, launch.SwaitOptions)},
	}
}

// showsTasks reports whether a command shows what tasks write, as they write it.
func showsTasks(command string) bool {
	return command == "srun" || command == "salloc" || command == "sattach"
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

// Wrappers are the commands of other workload managers, and Slurm's contributed ones: who wants one links its name to
// muster, since other programs may have it.
func Wrappers() (names []string) {
	for _, w := range wrap.Commands() {
		names = append(names, w.Name)
	}
	return names
}

// KeyMakers are the names of munge's commands that make a key, which the installer links where no other program has
// them.
func KeyMakers() (names []string) {
	for _, w := range wrap.KeyMakers() {
		names = append(names, w.Name)
	}
	return names
}

// IsCommand reports whether name is a front-end, a wrapper or one of munge's commands.
func IsCommand(name string) bool {
	return IsFrontEnd(name) || slices.Contains(Wrappers(), name) || slices.Contains(KeyMakers(), name)
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
	for _, w := range wrap.Commands() {
		if w.Name == name {
			return w.Summary
		}
	}
	return ""
}

// Main runs the front-end argv[0] and returns its exit code.
func Main(argv []string, sys *front.Sys) int {
	all := frontEnds()
	for _, w := range wrap.Commands() {
		all = append(all, frontEnd{name: w.Name, summary: w.Summary, run: w.Call})
	}
	for _, w := range wrap.KeyMakers() {
		all = append(all, frontEnd{name: w.Name, summary: w.Summary, run: w.Run})
	}
	for _, f := range all {
		if f.name == sys.Prog {
			if !showsTasks(f.name) {
				sys.Stdout, sys.Stderr = front.PlainText(sys.Stdout), front.PlainText(sys.Stderr)
			}
			run := func(sys *front.Sys) int {
				code := f.run(sys, argv[1:])
				if code != 0 && sys.Unanswered() {
					sys.Say("why: %s", sys.WhyUnanswered())
				}
				return code
			}
			sys.Again = run
			return run(sys)
		}
	}
	fmt.Fprintf(sys.Stderr, "muster: %s is not a command of Slurm's\n", sys.Prog)
	return 1
}
