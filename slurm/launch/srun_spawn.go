package launch

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"

	"dev.muster/api"
	"dev.muster/pmi"
	"dev.muster/slurm/front"
	"dev.muster/slurm/submit"
)

// MPI_Comm_spawn: what a task asks for is one more step of the job, which this srun starts and sees through as if it
// had been called in the job once more, with --mpi=pmi2 and --ntasks. As with Slurm that step outlives its parent's.

// spawned is a step that a task of another one has asked for.
type spawned struct {
	parent *stepRun
	asked  *pmi.Spawn
	begun  chan struct{} // closed once all tasks have begun with PMI
	job    string        // the step's name, once it has one
	step   *stepRun      // nil: it is not made yet
}

// unspawned is what a task hears whose tasks have not come about; the user has been told why.
const unspawned = "the tasks have not begun: one has ended before MPI_Init, or their step could not be made"

// spawn starts what a task asks for. done tells that task.
func (run *stepRun) spawn(asked *pmi.Spawn, done func(job string, err error)) {
	sp := &spawned{parent: run, asked: asked, begun: make(chan struct{})}
	over := make(chan struct{})
	go func() {
		defer close(over)
		sp.run()
	}()
	select {
	case <-sp.begun:
	case <-over:
	}
	if !sp.hasBegun() {
		done("", errors.New(unspawned))
		return
	}
	if run.children.isOver() {
		sp.step.kill()
	}
	done(sp.job, nil)
}

func (sp *spawned) hasBegun() bool {
	select {
	case <-sp.begun:
		return true
	default:
		return false
	}
}

// run makes the step and sees it through. Its end is nobody's exit code, as with Slurm.
func (sp *spawned) run() {
	s := sp.sys()
	r, err := sp.request(s)
	if err != nil {
		s.Usage(err)
		return
	}
	submit.SayNotes(s, r)
	if findPrograms(s, r) != 0 {
		return
	}
	sio, code := newStepIO(s, r)
	if code != 0 {
		return
	}
	made, code := createStep(s, r, sp.parent.resp.Step.ID.Job)
	if code != 0 {
		sio.close()
		return
	}
	run := newStepRun(s, r, []api.StepResponse{made}, sio)
	run.spawned, sp.job, sp.step = sp, run.stepText(), run
	if !sp.parent.children.adopt(sp) {
		run.kill()
		sio.close()
		return
	}
	defer sp.parent.children.wait.Done()
	run.follow()
}

// children are the steps that the tasks of one have asked for.
type children struct {
	mu    sync.Mutex
	over  bool // those tasks are gone
	steps []*spawned
	wait  sync.WaitGroup
}

// adopt adds a step, unless who has asked for it is gone.
func (c *children) adopt(sp *spawned) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.over {
		c.wait.Add(1)
		c.steps = append(c.steps, sp)
	}
	return !c.over
}

func (c *children) isOver() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.over
}

// orphan ends steps of which those who have asked for them have not heard, and are gone; what is not made yet will not
// be.
func (c *children) orphan() {
	c.mu.Lock()
	steps := c.steps
	c.over, c.steps = true, nil
	c.mu.Unlock()
	for _, sp := range steps {
		if !sp.hasBegun() {
			sp.step.kill()
		}
	}
}

// await waits for the others.
func (c *children) await() {
	c.orphan()
	c.wait.Wait()
}

// inherited are options of srun that hold for what its tasks ask for as well, by the variables that srun reads.
var inherited = [...]struct{ option, variable string }{
	{"cpu-bind", "SLURM_CPU_BIND"},
	{"distribution", "SLURM_DISTRIBUTION"},
	{"label", "SLURM_LABELIO"},
	{"mem-bind", "SLURM_MEM_BIND"},
	{"overcommit", "SLURM_OVERCOMMIT"},
	{"threads-per-core", "SLURM_THREADS_PER_CORE"},
}

// sys is what an srun of the step would see, called in the job.
func (sp *spawned) sys() *front.Sys {
	run := sp.parent
	s := *run.bare
	s.Stdin, s.Verbose, s.Args = nil, 0, nil
	s.Environ = slices.Clone(s.Environ)
	set := func(name, value string) { s.Environ = withVariable(s.Environ, name, value) }
	set("SLURM_JOB_ID", strconv.FormatUint(uint64(run.resp.Step.ID.Job), 10))
	if s.Getenv("SLURM_NNODES") == "" {
		set("SLURM_NNODES", strconv.Itoa(len(run.resp.Nodes)))
	}
	for _, v := range submit.ContainerEnviron(run.req) {
		name, value, _ := strings.Cut(v, "=")
		if name != "PYXIS_CONTAINER_SAVE" { // the step that asks for tasks saves its own
			set(name, value)
		}
	}
	for _, g := range run.req.Set {
		for _, in := range inherited {
			if in.option == g.Long && g.From == submit.FromLine {
				set(in.variable, cmp.Or(g.Value, "1"))
			}
		}
	}
	return &s
}

// withVariable sets a variable of an environment.
func withVariable(environ []string, name, value string) []string {
	environ = slices.DeleteFunc(environ, func(e string) bool { return strings.HasPrefix(e, name+"=") })
	return append(environ, name+"="+value)
}

// request is what an srun of the step would be asked for.
func (sp *spawned) request(s *front.Sys) (*submit.Request, error) {
	programs := sp.asked.Programs
	first := programs[0].Argv
	argv := []string{"--mpi=pmi2", "--ntasks=" + strconv.Itoa(sp.asked.Tasks())}
	argv = append(argv, sp.info(s)...)
	r, err := submit.ParseSrun(append(argv, "--", first[0]), s)
	if err != nil {
		return nil, err
	}
	r.Way.Spawned = true
	r.Step.Argv = append(r.Step.Argv, first[1:]...)
	if len(programs) > 1 {
		r.Step.MultiProgFile = true
		if r.Step.MultiProg, err = multiProg(programs); err != nil {
			return nil, err
		}
	}
	r.Step.Env, err = submit.JobEnviron(r, s.Environ)
	return r, err
}

// info are options by what MPI's info says. It goes by that of one program alone, as Slurm does, and says which keys
// it leaves aside.
func (sp *spawned) info(s *front.Sys) (options []string) {
	programs := sp.asked.Programs
	given := slices.ContainsFunc(programs, func(p pmi.Program) bool { return len(p.Info) > 0 })
	if len(programs) > 1 {
		if given {
			s.Say("error: mpi/pmi2: spawn info ignored")
		}
		return nil
	}
	for pair := range slices.Chunk(programs[0].Info, 2) {
		key, value := pair[0], pair[1]
		switch key {
		case "host":
			options = append(options, "--nodelist="+value)
		case "wdir":
			options = append(options, "--chdir="+value)
		case "path":
			s.Environ = withVariable(s.Environ, "PATH", value)
		case "arch", "file", "soft":
			s.Say("error: mpi/pmi2: spawn info key '%s' not supported", key)
		default:
			s.Say("error: mpi/pmi2: unknown spawn info key '%s' ignored", key)
		}
	}
	return options
}

// multiProg says by the lines of --multi-prog what each task runs.
func multiProg(programs []pmi.Program) (string, error) {
	var b strings.Builder
	first := 0
	for _, p := range programs {
		fmt.Fprintf(&b, "%d-%d", first, first+p.Tasks-1)
		first += p.Tasks
		for _, word := range p.Argv {
			if strings.ContainsAny(word, "\n\x00") {
				return "", errors.New("a word of several programs (MPI_Comm_spawn_multiple) has a line's end in it")
			}
			b.WriteString(" '" + strings.ReplaceAll(word, "'", `'\''`) + "'")
		}
		b.WriteByte('\n')
	}
	return b.String(), nil
}

// endUnspawned ends a step of which a task has ended before all have begun: who has asked for them waits, and so would
// the others in MPI_Init.
func (run *stepRun) endUnspawned() {
	sp := run.spawned
	if sp == nil || run.killed || run.running.Empty() || sp.hasBegun() {
		return
	}
	run.killed = true
	run.abort()
}
