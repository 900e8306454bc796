package submit

import (
	"errors"
	"path"
	"strings"

	"dev.muster/api/stream"
	"dev.muster/cast"
	"dev.muster/cluster"
	"dev.muster/slurm/front"
	"dev.muster/slurm/stage"
)

// bcast is what --bcast asks for.
type bcast struct {
	on      bool
	dest    string // as given
	exclude string
	libs    bool
	file    string // the program here
	list    []string
}

// bcastName is what a program is called where its name is not said: the step and the node tell them apart.
const bcastName = "slurm_bcast_%J_%N"

// findProgram finds the program that is to be put on the step's nodes, and tells the step's spec.
func findProgram(s *front.Sys, r *Request) int {
	b := &r.bcast
	if !b.on {
		return 0
	}
	refuse := func(with, way string) int {
		return s.Usage(r.cannot("--bcast with "+with, "there is no one program that all tasks run", way))
	}
	switch {
	case len(r.Parts) > 0:
		return refuse("several components", "start each by an srun of its own: --het-group")
	case r.Step.MultiProgFile:
		return refuse("--multi-prog", "put the programs on the nodes by sbcast")
	case r.Step.Inside != nil:
		return refuse("--container-image", "put the program into the image, or mount its folder: --container-mounts")
	}
	file, ok := front.LookPath(r.Step.Argv[0], s.Getenv)
	if !ok {
		s.Say("fatal: Can not execute %s", r.Step.Argv[0])
		return 1
	}
	if b.file = file; !path.IsAbs(file) {
		b.file = r.Step.WorkDir + "/" + file // with its dots, as Slurm tells it
	}
	if b.libs {
		b.list, b.libs = stage.Libraries(s, b.file, b.exclude)
	}
	r.Step.Cast = &cluster.Cast{Program: b.pattern(r.Step.WorkDir), Libs: b.libs}
	return 0
}

// pattern is where the program goes.
func (b *bcast) pattern(dir string) string {
	dest := strings.ReplaceAll(b.dest, "%", "%%")
	switch {
	case !path.IsAbs(dest):
		return strings.ReplaceAll(dir, "%", "%%") + "/" + bcastName
	case strings.HasSuffix(dest, "/"):
		return dest + bcastName
	}
	return dest
}

// unsent is why a program did not reach its nodes.
type unsent struct{ err error }

// begin sends srun's input to the tasks, once they are there: where a program goes before, no input stands in its way.
func (run *stepRun) begin() {
	if run.to == nil {
		run.tellStarted()
		run.io.feed(run.streams, run.resp)
		return
	}
	go func() { // ends with the nodes' answers, or with srun
		if err := run.sendProgram(); err != nil {
			run.events <- nodeEvent{unsent: &unsent{err}}
			return
		}
		run.tellStarted()
		run.io.feed(run.streams, run.resp)
	}()
}

// sendProgram puts the program on the nodes and has the tasks begin.
func (run *stepRun) sendProgram() error {
	b := &run.req.bcast
	pattern := run.req.Step.Cast.Program
	err := run.to.PutFile(b.file, cast.Order{Put: pattern, Force: true, Times: true})
	if err == nil && b.libs {
		err = run.to.PutLibraries(pattern, b.list)
	}
	if err != nil {
		return err
	}
	run.sent.Store(true) // what the processes say from now on is of MPI
	return run.to.Go()
}

// recipients are the nodes of a step to which its program goes first.
func (run *stepRun) recipients() *stage.Nodes {
	if run.req.Step.Cast == nil {
		return nil
	}
	to := &stage.Nodes{}
	for i, n := range run.resp.Nodes {
		one := stage.NewNode(n.Node, run.streams[i], stream.StepServer)
		one.Path = func(pattern string) string { return cluster.CastPath(pattern, run.resp.Step.ID, n.Node) }
		to.List = append(to.List, one)
	}
	return to
}

// notSent ends a step whose program did not arrive everywhere: no task of it has begun.
func (run *stepRun) notSent(why *unsent) {
	var all stage.Failures
	if errors.As(why.err, &all) {
		all.Say(run.sys, stage.Call)
	} else {
		run.sys.Say("error: %s", front.PlainError(why.err))
	}
	run.sys.Say("fatal: Failed to broadcast '%s'. Step launch aborted.", run.req.bcast.file)
	run.unsent, run.killed, run.told, run.worst = true, true, true, 1
	run.to.End() // without the program there are no tasks, and so no step
}
