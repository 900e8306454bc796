package client

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"dev.muster/agent/container"
	"dev.muster/agent/container/enroot"
	"dev.muster/agent/fence"
	"dev.muster/agent/hardware"
	"dev.muster/agent/step"
	"dev.muster/cluster"
	"dev.muster/wire"
)

// builder makes what the supervisor is asked to run.
type builder struct {
	*tables
	hardware *hardware.Nodes
	texts    *texts
}

// batchSpec is what the supervisor must know to run a job's script.
func (b *builder) batchSpec(ctx context.Context, h *jobHere) (step.Spec, error) {
	j := h.job
	script, err := b.texts.get(ctx, j.ID, j.Spec.Script)
	if err != nil {
		return step.Spec{}, err
	}
	env, err := b.texts.get(ctx, j.ID, j.Spec.Env)
	if err != nil {
		return step.Spec{}, err
	}
	b.mu.Lock()
	cfg := b.config
	b.mu.Unlock()
	inv, found := b.hardware.Of(h.node)
	l := &cluster.Launch{Job: j, Config: &cfg, Inventory: &inv, Node: h.node, Daemon: b.cfg.Daemon, Sisters: h.sisters,
		Fenced: fence.Fenced(&cfg, &inv),
		Ranks:  make([][]int, len(j.Alloc.Shares))}
	l.GPUs.GPUs = l.ShareHere().GPUs
	path := filepath.Join(b.cfg.Spool, string(h.node), fmt.Sprintf("job%05d", j.ID), "slurm_script")
	appends := j.Spec.Append || cfg.AppendOutput && !j.Spec.Truncate
	out := step.IO{Kind: step.File, Path: absolute(j.Spec.WorkDir, b.cfg.FileName(j.Spec.Stdout, l)), Append: appends}
	stdin, errs := step.IO{}, step.IO{Kind: step.Same}
	if j.Spec.Stdin != "" && j.Spec.Stdin != "/dev/null" {
		stdin = step.IO{Kind: step.File, Path: absolute(j.Spec.WorkDir, b.cfg.FileName(j.Spec.Stdin, l))}
	}
	if j.Spec.Stderr != "" {
		p := absolute(j.Spec.WorkDir, b.cfg.FileName(j.Spec.Stderr, l))
		if p != out.Path {
			errs = step.IO{Kind: step.File, Path: p, Append: appends}
		}
	}
	argv := append([]string{path}, j.Spec.Args...)
	around := b.around(&cfg, h.node, nil)
	in := b.cfg.inside(j.Spec.Inside, &cfg, j.Spec, &around)
	if in != nil && j.Spec.UserEnv {
		env = append(in.Login(), env...)
	}
	around.Login = j.Spec.UserEnv && b.cfg.Program.Around != nil && in == nil
	if !around.Empty() {
		argv = around.Command(b.cfg.Program.aroundIn(in), argv)
	}
	id := step.ID{Job: j.ID, Attempt: j.Attempt, Step: cluster.BatchStep, Node: h.node}
	return step.Spec{
		ID: id, Private: b.private(h.node, id, l), Container: in, NoNewPrivs: cfg.NoNewPrivs(j),
		Fence: fence.Of(&cfg, &inv, found, l.ShareHere()), OOMText: b.oomText(id),
		UID: j.Spec.UID, GID: j.Spec.GID, Groups: j.Spec.Groups, Dir: j.Spec.WorkDir, Umask: j.Spec.Umask,
		Rlimits: cfg.Propagated(j.Spec.Rlimits, j.Spec.OwnLimits), Env: env, Script: script, ScriptPath: path,
		HostName: b.hardware.HostName(h.node), Hosts: b.hardware.Hosts(h.node), PIDEnv: b.cfg.PIDEnv,
		Tasks: []step.Task{{Argv: argv, Env: b.environ(l, env), Stdin: stdin, Stdout: out, Stderr: errs}},
	}, nil
}

// stepSpec is one node's part of a step.
func (b *builder) stepSpec(h *jobHere, ls *liveStep, ranks [][]int, i int, programs map[int][]string) (
	out step.Spec, err error) {
	s, id := &ls.spec, ls.ids[i]
	if id.Step < 0 && id.Step != cluster.InteractiveStep { // whoever asks for a step: these are made elsewhere
		return out, cluster.Errorf(cluster.Denied, cluster.ErrAccess,
			"step %d of job %d is the node's own: srun cannot start it", id.Step, id.Job)
	}
	b.mu.Lock()
	cfg := b.config
	b.mu.Unlock()
	inv, found := b.hardware.Of(id.Node)
	out = step.Spec{ID: id, UID: h.job.Spec.UID, GID: h.job.Spec.GID, Groups: h.job.Spec.Groups,
		Dir: s.WorkDir, Umask: s.Umask, Rlimits: cfg.Propagated(s.Rlimits, s.OwnLimits), Env: s.Env,
		PTY: s.PTY, HostName: b.hardware.HostName(id.Node), Hosts: b.hardware.Hosts(id.Node), PIDEnv: b.cfg.PIDEnv,
		OOMText: b.oomText(id), NoNewPrivs: cfg.NoNewPrivs(h.job)}
	for k := range h.job.Alloc.Shares {
		if sh := h.job.Alloc.Shares[k]; sh.Node == id.Node {
			out.Fence = fence.OfStep(fence.Of(&cfg, &inv, found, sh), s, ls.record.Shares[i])
		}
	}
	if s.PTY != nil && i > 0 {
		out.PTY = nil
	}
	err = b.cfg.manage(&out, &cfg, ls, ranks, i, inv.Addr)
	if err == nil {
		err = b.cfg.precede(&out, s.Cast)
	}
	if err != nil {
		return out, err
	}
	bind, mem := cluster.Bind(s, ls.record.Shares[i], &inv), cluster.BindMem(s.MemBind)
	around := b.around(&cfg, id.Node, s)
	if out.Container = b.cfg.inside(s.Inside, &cfg, h.job.Spec, &around); out.Container != nil {
		out.Container.Save, out.Container.Sent = s.Save, sentTo(s, id)
		out.Container.First, out.Container.Terminal = i == 0, s.Terminal
		if file := b.displayOf(h.job.ID, id.Node).Path(); file != "" {
			out.Container.Scripts = append(out.Container.Scripts, file)
		}
	}
	for local, rank := range ranks[i] {
		l := &cluster.Launch{Job: h.job, Config: &cfg, Inventory: &inv, Node: id.Node, NodeID: i, Step: &ls.record,
			Fenced: fence.Fenced(&cfg, &inv), Spec: s, Rank: rank, LocalRank: local, Ranks: ranks, Daemon: b.cfg.Daemon}
		l.GPUs = cluster.BindGPUs(s, ls.record.Shares[i].GPUs, local, &inv)
		if out.Private == nil {
			out.Private = b.private(id.Node, id, l)
		}
		if ls.alone() {
			out.Dir = "/"
			out.Tasks = append(out.Tasks, b.castTask(ls, l))
			continue
		}
		t := step.Task{Rank: rank, Argv: s.Argv, Env: b.environ(l, s.Env)}
		t.Env = append(t.Env, managed(out.Server, &ls.record, rank)...)
		if programs != nil {
			t.Argv = programs[rank]
		}
		sent(s, &t, id)
		if !around.Empty() {
			t.Argv = around.Command(b.cfg.Program.aroundIn(out.Container), t.Argv)
		}
		if !inv.Hollow {
			t.CPUs = bind.Of(local)
		}
		t.Memory, t.Refused = step.BindMemory(mem, local)
		t.Greeting = b.cfg.Greeting(l, bind, mem, step.NUMANodes())
		if s.PTY == nil || rank == 0 { // the others have no terminal: they read and write nothing
			b.streams(&t, s, l)
		}
		out.Tasks = append(out.Tasks, t)
	}
	return out, nil
}

// holder is the task of an external step: it keeps the step, until the job is over.
var holder = []string{"/bin/sleep", "infinity"}

// sessionSpec is the step of a job's sessions. Called with mu held.
func (b *builder) sessionSpec(h *jobHere, id step.ID) step.Spec {
	cfg, j := b.config, h.job
	inv, detected := b.hardware.Of(h.node)
	l := &cluster.Launch{
		Job: j, Config: &cfg, Inventory: &inv, Node: h.node, Daemon: b.cfg.Daemon,
		Fenced: fence.Fenced(&cfg, &inv),
	}
	return step.Spec{
		ID: id, UID: j.Spec.UID, GID: j.Spec.GID, Groups: j.Spec.Groups, Dir: "/", Umask: j.Spec.Umask,
		NoNewPrivs: cfg.NoNewPrivs(j), Own: true,
		Fence: fence.Of(&cfg, &inv, detected, l.ShareHere()), Private: b.private(h.node, id, l),
		HostName: b.hardware.HostName(h.node), Hosts: b.hardware.Hosts(h.node),
		Tasks: []step.Task{{Argv: holder}},
	}
}

// fetchSpec is the step that gets a job's image. It may use what the job may: it runs programs that have the registry's
// password, as the job's user, and these may run others that the user names. Called with mu held.
func (b *builder) fetchSpec(h *jobHere, id step.ID) (out step.Spec, err error) {
	cfg := b.config
	inv, detected := b.hardware.Of(h.node)
	share, _ := h.job.Share(h.node)
	s, want := h.job.Spec, h.job.Spec.Prefetch
	site := enroot.Read(enroot.Dir())
	q := container.Request{Store: b.cfg.Images, Limit: b.cfg.ImageDisk, Most: b.cfg.ImageSize, Image: want.Image,
		UID: s.UID, GID: s.GID, Groups: s.Groups, Enroot: want.Enroot, Docker: want.Docker,
		HTTP: site.AllowHTTP, Daemon: b.cfg.Daemon}
	if b.cfg.Program.Account != nil {
		q.Home, _ = b.cfg.Program.Account(s.UID)
	}
	text, err := wire.Marshal(&q)
	if err != nil {
		return out, err
	}
	helper := (&container.Spec{Self: b.cfg.Program.Path()}).Helper()
	said := b.fetchSaid(h)
	if err := os.MkdirAll(filepath.Dir(said), 0o755); err != nil {
		return out, fmt.Errorf("make a folder for what is said of an image: %w", err)
	}
	return step.Spec{ID: id, Dir: "/", Umask: 0o077, Fence: fence.Of(&cfg, &inv, detected, share), Tasks: []step.Task{{
		Argv:   append(helper, container.Prefetch, s.WorkDir, string(text)),
		Env:    os.Environ(),
		Stdout: step.IO{Kind: step.File, Path: said}, Stderr: step.IO{Kind: step.Same},
	}}}, nil
}

// fetchSaid is the file with what is said of a job's image.
func (b *builder) fetchSaid(h *jobHere) string {
	return filepath.Join(b.cfg.Spool, string(h.node), fmt.Sprintf("job%05d.image", h.job.ID))
}

// around are the scripts before and after each task: the cluster's and the user's.
func (b *builder) around(cfg *cluster.Config, n cluster.NodeName, s *cluster.StepSpec) step.Around {
	a := step.Around{Node: n, PIDEnv: b.cfg.PIDEnv}
	add := func(to *[]step.AroundScript, path string, system bool) {
		if path != "" && b.cfg.Program.Around != nil {
			*to = append(*to, step.AroundScript{Path: path, System: system})
		}
	}
	add(&a.Prologs, cfg.TaskProlog, true)
	if s != nil {
		add(&a.Prologs, s.TaskProlog, false)
		add(&a.Epilogs, s.TaskEpilog, false)
	}
	add(&a.Epilogs, cfg.TaskEpilog, true)
	return a
}

// environ is what the dialect sets for a task, and a TMPDIR if the user brought none.
func (b *builder) environ(l *cluster.Launch, own cluster.BlobText) []string {
	l.Own = own
	e := b.cfg.TaskEnv(l)
	if !strings.HasPrefix(string(own), "TMPDIR=") && !strings.Contains(string(own), "\x00TMPDIR=") {
		e = append(e, "TMPDIR=/tmp")
	}
	return append(e, b.displayOf(l.Job.ID, l.Node).Environ()...)
}

// oomText is the dialect's line about processes that were killed for want of memory.
func (b *builder) oomText(id step.ID) string {
	return b.cfg.OOMNote(cluster.StepID{Job: id.Job, Step: id.Step}, id.Node)
}

// private is what a step is told of folders that its job has for itself.
func (b *builder) private(n cluster.NodeName, id step.ID, l *cluster.Launch) *step.Private {
	p := b.hardware.Secluded(l.Config, n)
	if p == nil {
		return nil
	}
	out := &step.Private{Base: p.Base, Make: p.Make, Dirs: p.Dirs, Shared: p.Shared, Init: p.Init}
	if p.Init != "" {
		out.Env = append(b.cfg.ScriptEnv(l, false), b.cfg.MountEnv+"="+filepath.Join(p.Base, id.JobName()))
	}
	return out
}

// streams says where those of a task lead.
func (b *builder) streams(t *step.Task, s *cluster.StepSpec, l *cluster.Launch) {
	t.Stdin = b.stream(s, s.Stdin, t.Rank, l, true)
	t.Stdout = b.stream(s, s.Stdout, t.Rank, l, false)
	t.Stderr = b.stream(s, s.Stderr, t.Rank, l, false)
	if t.Stdout.Kind == step.File && (s.Stderr == "" || s.Stderr == s.Stdout) {
		t.Stderr = step.IO{Kind: step.Same}
	}
}

// stream says where one stream of a task leads: to srun, nowhere, or to a file of the task's own.
// Files that all tasks share are written by srun itself.
func (b *builder) stream(s *cluster.StepSpec, mode string, rank int, l *cluster.Launch, input bool) step.IO {
	switch mode {
	case "", "all":
		if input && s.PTY == nil && mode == "" && !s.StdinOpen {
			return step.IO{Kind: step.Null}
		}
		return step.IO{Kind: step.Stream}
	case "none":
		return step.IO{Kind: step.Null}
	}
	if k, err := strconv.Atoi(mode); err == nil {
		if k == rank {
			return step.IO{Kind: step.Stream}
		}
		return step.IO{Kind: step.Null}
	}
	file := step.IO{Kind: step.File, Path: absolute(s.WorkDir, b.cfg.FileName(mode, l)), Append: s.Append}
	if s.Label && !input {
		file.Label = cluster.RankLabel(rank, l.Step.Tasks)
	}
	return file
}

func absolute(dir, path string) string {
	if filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(dir, path)
}

// castTime is how long tasks wait for their program to arrive.
const castTime = 24 * time.Hour

// castTask is what a node runs of a step that puts files on nodes.
func (b *builder) castTask(ls *liveStep, l *cluster.Launch) step.Task {
	led := step.IO{Kind: step.Stream}
	env := b.environ(l, ls.spec.Env)
	return step.Task{Rank: l.Rank, Argv: b.cfg.Program.Cast, Env: env, Stdin: led, Stdout: led, Stderr: led}
}

// precede has the tasks of a step wait until their program has arrived. A process manager of MPI follows
// in the same process.
func (p *Config) precede(out *step.Spec, cast *cluster.Cast) error {
	if cast == nil || cast.Alone {
		return nil
	}
	if p.Program.Cast == nil {
		return cluster.Errorf(cluster.Invalid, "", "this node cannot take programs (--bcast)")
	}
	if out.Server == nil {
		out.Server = &step.Server{}
	}
	argv := append(p.Program.Cast[:len(p.Program.Cast):len(p.Program.Cast)], "then")
	out.Server.Argv, out.Server.Wait = append(argv, out.Server.Argv...), castTime
	return nil
}

// sentTo is the program that was put on a node for the tasks of a step, nothing if none was.
func sentTo(s *cluster.StepSpec, id step.ID) []string {
	if s.Cast == nil || s.Cast.Program == "" {
		return nil
	}
	return []string{cluster.CastPath(s.Cast.Program, cluster.StepID{Job: id.Job, Step: id.Step}, id.Node)}
}

// sent is what a task runs whose program was put on its node, and the variables that it needs.
func sent(s *cluster.StepSpec, t *step.Task, id step.ID) {
	file := sentTo(s, id)
	if file == nil || len(t.Argv) == 0 {
		return
	}
	t.Argv = append(file, t.Argv[1:]...)
	if s.Cast.Libs {
		t.Env = append(t.Env, libraries(s.Env, file[0]+"_libs"))
	}
}

// libraries is where the loader looks for libraries: in dir first.
func libraries(env cluster.BlobText, dir string) string {
	const name = "LD_LIBRARY_PATH="
	for v := range strings.SplitSeq(string(env), "\x00") {
		if old, ok := strings.CutPrefix(v, name); ok && old != "" {
			dir += ":" + old
		}
	}
	return name + dir
}
