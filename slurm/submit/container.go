package submit

import (
	"path"
	"strings"

	"dev.muster/cluster"
	"dev.muster/slurm/front"
	"dev.muster/slurm/opt"
	"dev.muster/slurm/values"
)

// optionsContainer are those of Pyxis.
var optionsContainer = []opt.Option[Request]{
	{Long: "container-image", Arg: opt.Required, On: opt.All, Newer: true, Group: opt.Containers,
		Env:  "sbatch=PYXIS_CONTAINER_IMAGE srun=PYXIS_CONTAINER_IMAGE salloc=PYXIS_CONTAINER_IMAGE",
		Meta: "[user@][registry#]image[:tag]",
		Help: "image to run in: of a registry, or in files (/..., ./... or oci:PATH)",
		Set:  setImage},
	{Long: "container-mounts", Arg: opt.Required, On: opt.All, Newer: true, Group: opt.Containers,
		Env:  "sbatch=PYXIS_CONTAINER_MOUNTS srun=PYXIS_CONTAINER_MOUNTS salloc=PYXIS_CONTAINER_MOUNTS",
		Meta: "src[:dst[:flags]],...",
		Help: "what of the node is seen inside; flags: ro, rw, rprivate, x-create=dir|file",
		Set:  setMounts},
	{Long: "container-workdir", Arg: opt.Required, On: opt.All, Newer: true, Group: opt.Containers,
		Env:  "sbatch=PYXIS_CONTAINER_WORKDIR srun=PYXIS_CONTAINER_WORKDIR salloc=PYXIS_CONTAINER_WORKDIR",
		Meta: "path",
		Help: "working directory inside; the image's without it",
		Set:  setInsideDir},
	{Long: "container-env", Arg: opt.Required, On: opt.All, Newer: true, Group: opt.Containers,
		Env:  "sbatch=PYXIS_CONTAINER_ENV srun=PYXIS_CONTAINER_ENV salloc=PYXIS_CONTAINER_ENV",
		Meta: "names",
		Help: "variables of the job that win over the image's",
		Set:  setInsideEnv},
	{Long: "container-mount-home", On: opt.All, Newer: true, Group: opt.Containers,
		Env:  "sbatch=PYXIS_CONTAINER_MOUNT_HOME srun=PYXIS_CONTAINER_MOUNT_HOME salloc=PYXIS_CONTAINER_MOUNT_HOME",
		Help: "see the home folder inside",
		Set:  func(r *Request, _ string) error { return toggle(&r.inside.MountHome, &r.inside.NoHome) }},
	{Long: "no-container-mount-home", On: opt.All, Newer: true, Group: opt.Containers,
		Help: "do not see the home folder inside",
		Set:  func(r *Request, _ string) error { return toggle(&r.inside.NoHome, &r.inside.MountHome) }},
	{Long: "container-entrypoint", On: opt.All, Newer: true, Group: opt.Containers,
		Env:  "sbatch=PYXIS_CONTAINER_ENTRYPOINT srun=PYXIS_CONTAINER_ENTRYPOINT salloc=PYXIS_CONTAINER_ENTRYPOINT",
		Help: "run the entry point of the image, with the command as its arguments",
		Set:  func(r *Request, _ string) error { return toggle(&r.inside.Entrypoint, &r.inside.NoEntrypoint) }},
	{Long: "no-container-entrypoint", On: opt.All, Newer: true, Group: opt.Containers,
		Help: "do not run the entry point",
		Set:  func(r *Request, _ string) error { return toggle(&r.inside.NoEntrypoint, &r.inside.Entrypoint) }},
	{Long: "container-writable", On: opt.All, Newer: true, Group: opt.Containers,
		Env:  "sbatch=PYXIS_CONTAINER_WRITABLE srun=PYXIS_CONTAINER_WRITABLE salloc=PYXIS_CONTAINER_WRITABLE",
		Help: "the image can be written to; what is written goes with the step",
		Set:  func(r *Request, _ string) error { return toggle(&r.inside.Writable, &r.inside.ReadOnly) }},
	{Long: "container-readonly", On: opt.All, Newer: true, Group: opt.Containers,
		Env:  "sbatch=PYXIS_CONTAINER_READONLY srun=PYXIS_CONTAINER_READONLY salloc=PYXIS_CONTAINER_READONLY",
		Help: "the image cannot be written to, but for /tmp, /var/tmp and /run",
		Set:  func(r *Request, _ string) error { return toggle(&r.inside.ReadOnly, &r.inside.Writable) }},
	{Long: "no-container-remap-root", On: opt.All, Newer: true, Group: opt.Containers,
		Help: "do not be root inside",
		Set:  func(r *Request, _ string) error { return toggle(&r.inside.NoRoot, &r.inside.Root) }},
	{Long: "container-remap-root", On: opt.All, Newer: true, Group: opt.Containers,
		Env:  "sbatch=PYXIS_CONTAINER_REMAP_ROOT srun=PYXIS_CONTAINER_REMAP_ROOT salloc=PYXIS_CONTAINER_REMAP_ROOT",
		Help: "be root inside, and nobody else",
		Set:  func(r *Request, _ string) error { return toggle(&r.inside.Root, &r.inside.NoRoot) }},
	{Long: "container-name", Arg: opt.Required, On: opt.All, Newer: true, Group: opt.Containers,
		Env:  "sbatch=PYXIS_CONTAINER_NAME srun=PYXIS_CONTAINER_NAME salloc=PYXIS_CONTAINER_NAME",
		Meta: "name[:auto|create|exec|no_exec]",
		Help: "go on with the container of that name, which the job keeps, or make it",
		Set:  setInsideName},
	{Long: "container-save", Arg: opt.Required, On: opt.All, Newer: true, Group: opt.Containers,
		Env:  "sbatch=PYXIS_CONTAINER_SAVE srun=PYXIS_CONTAINER_SAVE salloc=PYXIS_CONTAINER_SAVE",
		Meta: "path",
		Help: "save the container to a squashfs file on its node when the step is over; not of sbatch",
		Set:  setSave},
	{Long: "container-entrypoint-log", On: opt.All, Newer: true, Group: opt.Containers,
		Env: "sbatch=PYXIS_CONTAINER_ENTRYPOINT_LOG srun=PYXIS_CONTAINER_ENTRYPOINT_LOG " +
			"salloc=PYXIS_CONTAINER_ENTRYPOINT_LOG",
		Help: "show what the entry point prints: it is always shown",
		Set:  func(*Request, string) error { return nil }},
	{Long: "container-prefetch", On: opt.All, Newer: true, Group: opt.Containers,
		Help: "get the image on all nodes before the job's time begins to count",
		Set: func(r *Request, _ string) error {
			r.Way.Prefetch = true
			return nil
		}},
	{Long: "container-unshare", Arg: opt.Required, On: opt.All, Newer: true, Group: opt.Containers,
		Env:  "sbatch=PYXIS_CONTAINER_UNSHARE srun=PYXIS_CONTAINER_UNSHARE salloc=PYXIS_CONTAINER_UNSHARE",
		Meta: "net,ipc,uts",
		Help: "namespaces that the container does not share with the node",
		Set:  setUnshare},
}

// pyxisPrefix begins the variables that stand for the options of Pyxis.
const pyxisPrefix = "PYXIS_CONTAINER_"

// setBundle takes --container, which runs a bundle of the OCI.
func setBundle(r *Request, v string) error {
	if v == "" {
		return badContainer("--container: name the folder of a bundle")
	}
	r.bundle = v
	return nil
}

// unbundle has the container be that of a bundle.
func unbundle(r *Request) error {
	c := &r.inside
	if r.bundle == "" {
		return nil
	}
	if c.Image != "" || c.Name != "" {
		err := badContainer("--container=%s and --container-image or --container-name are two containers: "+
			"leave one of them out", r.bundle)
		return opt.Named(r.prog, "", "", err)
	}
	c.Image, c.Bundle = inDir(r.Job.WorkDir, r.bundle), true
	return nil
}

// setUnshare reads namespaces with commas between them.
func setUnshare(r *Request, v string) error {
	r.inside.Unshare = strings.Split(v, ",")
	for _, name := range r.inside.Unshare {
		if !cluster.ContainerSpace(name) {
			return badContainer("--container-unshare=%s: %q is none of net, ipc and uts; mounts are always its own, "+
				"processes and groups those of the job", v, name)
		}
	}
	return nil
}

// badContainer refuses an option that says nothing that can be done.
func badContainer(format string, args ...any) error {
	return opt.Errorf(opt.CodeError, "error: "+format, args...)
}

// toggle says what holds, and that the other does not.
func toggle(what, not *bool) error {
	*what, *not = true, false
	return nil
}

// refuse takes the variables by which a user does without what the site has for everybody: the value 0 is no option.
func refuse(r *Request) {
	c := &r.inside
	for _, v := range []struct {
		name    string
		yes, no *bool
	}{{"MOUNT_HOME", &c.MountHome, &c.NoHome}, {"REMAP_ROOT", &c.Root, &c.NoRoot},
		{"ENTRYPOINT", &c.Entrypoint, &c.NoEntrypoint}, {"WRITABLE", &c.Writable, &c.ReadOnly}} {
		*v.no = *v.no || !*v.yes && r.sys.Getenv(pyxisPrefix+v.name) == "0"
	}
}

func setImage(r *Request, v string) error {
	if why := values.ContainerImage(v); why != "" {
		return badContainer("--container-image=%s: %s", v, why)
	}
	r.inside.Image = v
	return nil
}

// setInsideName reads NAME[:auto|create|exec|no_exec].
func setInsideName(r *Request, v string) error {
	name, mode, _ := strings.Cut(v, ":")
	switch mode {
	case "", "auto":
		mode = cluster.ContainerAuto
	case cluster.ContainerCreate, cluster.ContainerExec, cluster.ContainerNoExec:
	default:
		return badContainer("--container-name=%s: behind the name stands auto, create, exec or no_exec", v)
	}
	if !cluster.ContainerName(name) {
		return badContainer("--container-name=%s: a name has letters, digits and _ - . in it", v)
	}
	r.inside.Name, r.inside.NameMode = name, mode
	return nil
}

func setSave(r *Request, v string) error {
	if r.prog == opt.Sbatch {
		return r.Cannot("--container-save="+v, "the container of a script is not saved",
			"give it to an srun in the script")
	}
	if v == "" {
		return badContainer("--container-save: name the file")
	}
	r.Step.Save = v
	return nil
}

func setInsideDir(r *Request, v string) error {
	if !path.IsAbs(v) {
		return badContainer("--container-workdir=%s: it must begin with /", v)
	}
	r.inside.WorkDir = path.Clean(v)
	return nil
}

func setInsideEnv(r *Request, v string) error {
	r.inside.Env = nil
	for name := range strings.SplitSeq(v, ",") {
		if name == "" || strings.Contains(name, "=") {
			return badContainer("--container-env=%s: it takes names of variables, with commas between them", v)
		}
		r.inside.Env = append(r.inside.Env, name)
	}
	return nil
}

// setMounts reads SRC[:DST[:FLAG+FLAG]],...
func setMounts(r *Request, v string) error {
	r.inside.Mounts = nil
	for text := range strings.SplitSeq(v, ",") {
		m, why := values.ContainerMount(text)
		if why != "" {
			return badContainer("--container-mounts: %q: %s", text, why)
		}
		r.inside.Mounts = append(r.inside.Mounts, m)
	}
	return nil
}

// contain makes the job, or srun's step, run in the container that was asked for. Options of salloc
// are for the steps in its allocation: it hands them on in Pyxis's variables.
func contain(r *Request) error {
	refuse(r)
	if err := unbundle(r); err != nil {
		return err
	}
	c := r.inside
	if c.Image == "" && c.Name == "" {
		for _, g := range r.Set {
			if g.From != FromEnv && isContainer(g.Long) {
				err := badContainer("--%s is of no use without --container-image", g.Long)
				return opt.Named(r.prog, "", "", err)
			}
		}
		return nil
	}
	for i := range c.Mounts {
		m := &c.Mounts[i]
		if !path.IsAbs(m.Source) {
			if m.Source = path.Join(r.Job.WorkDir, m.Source); !path.IsAbs(m.Target) {
				m.Target = m.Source
			}
		}
	}
	if err := fetchBefore(r, &c); err != nil {
		return opt.Named(r.prog, "", "", err)
	}
	// Of jobs whose steps alone are in the container it tells what their nodes need.
	r.Job.Inside = &cluster.Container{Image: c.Image, Bundle: c.Bundle}
	switch r.prog {
	case opt.Srun:
		r.Step.Inside = &c
		r.Step.Terminal = front.OnTerminal(r.sys.Stderr)
		if save := &r.Step.Save; *save != "" {
			*save = inDir(r.Job.WorkDir, *save)
		}
	case opt.Sbatch:
		r.Job.Inside = &c
	case opt.Salloc:
		handOn(r)
	}
	return nil
}

// fetchBefore has the job's nodes get the image before the job's time counts.
func fetchBefore(r *Request, c *cluster.Container) error {
	switch {
	case !r.Way.Prefetch:
		return nil
	case c.Bundle:
		return badContainer("--container-prefetch: a bundle is a folder, there is nothing to get: leave the option out")
	case c.Image == "":
		return badContainer("--container-prefetch: name the image by --container-image")
	}
	r.Job.Prefetch = &cluster.Prefetch{Image: c.Image, Enroot: r.sys.Getenv("ENROOT_CONFIG_PATH"),
		Docker: r.sys.Getenv("DOCKER_CONFIG")}
	return nil
}

// inDir is a path as seen from a folder.
func inDir(dir, name string) string {
	if path.IsAbs(name) {
		return name
	}
	return path.Join(dir, name)
}

func isContainer(long string) bool {
	return strings.HasPrefix(strings.TrimPrefix(long, "no-"), "container-") && long != "container-id"
}

// handOn puts the options of Pyxis on salloc's line into the environment of what it runs.
func handOn(r *Request) {
	r.sys.Environ = append(r.sys.Environ, ContainerEnviron(r)...)
}

// ContainerEnviron returns variables that have srun in an allocation do what the options of containers on a line say.
func ContainerEnviron(r *Request) (variables []string) {
	if r.bundle != "" {
		variables = append(variables, "SRUN_CONTAINER="+r.inside.Image)
	}
	for _, g := range r.Set {
		if g.From != FromLine || !isContainer(g.Long) || g.Long == "container-prefetch" {
			continue
		}
		long, value := g.Long, g.Value
		switch {
		case strings.HasPrefix(long, "no-"):
			long, value = strings.TrimPrefix(long, "no-"), "0"
		case long == "container-readonly":
			long, value = "container-writable", "0"
		case value == "":
			value = "1"
		}
		name := pyxisPrefix + strings.ToUpper(strings.ReplaceAll(strings.TrimPrefix(long, "container-"), "-", "_"))
		variables = append(variables, name+"="+value)
	}
	return variables
}
