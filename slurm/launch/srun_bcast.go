package launch

import (
	"errors"
	"path"
	"slices"
	"strings"

	"dev.muster/api"
	"dev.muster/api/stream"
	"dev.muster/cast"
	"dev.muster/cluster"
	"dev.muster/slurm/front"
	"dev.muster/slurm/stage"
	"dev.muster/slurm/submit"
)

// bcastName is what a program is called where its name is not said: the step and the node tell them apart.
const bcastName = "slurm_bcast_%J_%N"

// findPrograms finds the programs that are to be put on the step's nodes, one a component, and tells their specs.
// A component without one waits for those of the others.
func findPrograms(s *front.Sys, r *submit.Request) int {
	all := r.Components()
	for _, p := range all {
		if code := findProgram(s, p); code != 0 {
			return code
		}
	}
	if !slices.ContainsFunc(all, func(p *submit.Request) bool { return p.Bcast.On }) {
		return 0
	}
	for _, p := range all {
		if p.Step.Cast == nil {
			p.Step.Cast = &cluster.Cast{}
		}
	}
	return 0
}

// findProgram finds the program of one component. With --multi-prog it is the file that names the programs, which
// stay where they are, as in Slurm.
func findProgram(s *front.Sys, r *submit.Request) int {
	b := &r.Bcast
	if !b.On {
		return 0
	}
	if r.Step.Inside != nil && b.Libs {
		return s.Usage(r.Cannot("--send-libs with --container-image",
			"libraries of this machine need not fit the image's",
			"put the libraries into the image, or link the program statically; --bcast alone sends it"))
	}
	if b.File = r.Step.Argv[0]; !r.Step.MultiProgFile {
		file, ok := front.LookPath(b.File, s.Getenv)
		if !ok {
			s.Say("fatal: Can not execute %s", b.File)
			return 1
		}
		if b.File = file; !path.IsAbs(file) {
			b.File = r.Step.WorkDir + "/" + file // with its dots, as Slurm tells it
		}
	}
	if b.Libs {
		b.List, b.Libs = stage.Libraries(s, b.File, b.Exclude)
	}
	b.Path = pattern(b, r.Step.WorkDir)
	r.Step.Cast = &cluster.Cast{}
	if !r.Step.MultiProgFile {
		r.Step.Cast.Program = b.Path
		r.Step.Cast.Libs = b.Libs
	}
	return 0
}

// pattern is where the program goes.
func pattern(b *submit.Bcast, dir string) string {
	dest := strings.ReplaceAll(b.Dest, "%", "%%")
	switch {
	case !path.IsAbs(dest):
		return strings.ReplaceAll(dir, "%", "%%") + "/" + bcastName
	case strings.HasSuffix(dest, "/"):
		return dest + bcastName
	}
	return dest
}

// unsent is why a program did not reach its nodes.
type unsent struct {
	file string
	err  error
}

// program is what goes to the nodes of one component.
type program struct {
	submit.Bcast
	to stage.Nodes
}

// begin sends srun's input to the tasks, once they are there: where a program goes before, no input stands in its way.
func (run *stepRun) begin() {
	if run.to == nil {
		run.tellStarted()
		run.io.feed(run.streams, run.resp)
		return
	}
	go func() { // ends with the nodes' answers, or with srun
		if why := run.sendPrograms(); why != nil {
			run.events <- nodeEvent{unsent: why}
			return
		}
		run.tellStarted()
		run.io.feed(run.streams, run.resp)
	}()
}

// sendPrograms puts the programs on their nodes and has the tasks of all components begin.
func (run *stepRun) sendPrograms() *unsent {
	for i := range run.programs {
		p := &run.programs[i]
		if err := p.send(); err != nil {
			return &unsent{p.File, err}
		}
	}
	run.sent.Store(true) // what the processes say from now on is of MPI
	if err := run.to.Go(); err != nil {
		return &unsent{run.programs[0].File, err}
	}
	return nil
}

func (p *program) send() error {
	err := p.to.PutFile(p.File, cast.Order{Put: p.Path, Force: true, Times: true})
	if err == nil && p.Libs {
		err = p.to.PutLibraries(p.Path, p.List)
	}
	return err
}

// recipients finds the nodes to which programs go first, those of all components where one of them has a program.
func (run *stepRun) recipients(made []api.StepResponse) {
	all := run.req.Components()
	if all[0].Step.Cast == nil {
		return
	}
	run.to = &stage.Nodes{}
	for k, part := range made {
		first := len(run.to.List)
		for _, n := range part.Nodes {
			one := stage.NewNode(n.Node, run.streams[len(run.to.List)], stream.StepServer)
			one.Path = func(pattern string) string { return cluster.CastPath(pattern, part.Step.ID, n.Node) }
			run.to.List = append(run.to.List, one)
		}
		if all[k].Bcast.On {
			run.programs = append(run.programs, program{all[k].Bcast, stage.Nodes{List: run.to.List[first:]}})
		}
	}
}

// notSent ends a step whose program did not arrive everywhere: no task of it has begun.
func (run *stepRun) notSent(why *unsent) {
	var all stage.Failures
	if errors.As(why.err, &all) {
		all.Say(run.sys, stage.Call)
	} else {
		run.sys.Say("error: %s", front.PlainError(why.err))
	}
	run.sys.Say("fatal: Failed to broadcast '%s'. Step launch aborted.", why.file)
	run.unsent, run.killed, run.told, run.worst = true, true, true, 1
	run.to.End() // without the program there are no tasks, and so no step
}
