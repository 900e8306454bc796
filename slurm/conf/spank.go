package conf

import (
	"fmt"
	"os"
	"path"
	"slices"
	"strings"

	"dev.muster/cluster"
	"dev.muster/slurm/opt"
)

// SPANK plugins are libraries for Slurm's own daemons: none is loaded. The work of the best known ones is done in
// another way, or not at all, and a plugstack.conf that names them is told so.

// A Spank is a SPANK plugin that sites use.
type Spank struct {
	Names string // of its library, without .so, as sites call it
	For   string
	Have  string // built in, hook, no
	How   string // how its work is done here
}

// How it is with a plugin.
const (
	builtIn = "built in"
	byHook  = "hook"
	notDone = "no"
)

// Spanks are the plugins that sites use most.
func Spanks() []Spank {
	return []Spank{
		{"spank_pyxis", "containers", builtIn, "its options, and its arguments in plugstack.conf: docs/containers.md"},
		{"private-tmpdir spank_private_tmpdir", "a `/tmp` of the job's own", builtIn,
			"`JobContainerType=job_container/tmpfs` and job_container.conf"},
		{"x11 spank_x11", "X11 in jobs", builtIn, "`PrologFlags=X11`; `srun --x11`, `salloc --x11`"},
		{"pty", "a terminal for a task", builtIn, "`srun --pty`"},
		{"oom-detect", "telling that memory ran out", builtIn, "the state OUT_OF_MEMORY, and a line in the output"},
		{"cpuset auto-affinity", "tasks on CPUs of their own", builtIn, "cgroup.conf, `--cpu-bind`, TaskPluginParam"},
		{"preserve-env use-env-preserve", "the submission's environment in tasks", builtIn, "`--export=ALL`"},
		{"job_stats dcgm spank_dcgm", "measuring GPUs for each job", builtIn, "`sacct`, `muster top`, the page"},
		{"sbcast-bin bcast", "programs copied to nodes", builtIn, "`srun --bcast`, `sbcast --send-libs`"},
		{"use-env", "environments by name", byHook, "a TaskProlog that prints `export NAME=VALUE`"},
		{"tmpdir spank_tmpdir", "`TMPDIR` for each job", byHook,
			"a TaskProlog that prints `export TMPDIR=…`; an Epilog removes it"},
		{"iotrace", "tracing of files", byHook, "a TaskProlog that prints `export LD_PRELOAD=…`"},
		{"renice", "tasks that yield", byHook, "a TaskProlog that calls `renice -p $SLURM_TASK_PID`"},
		{"addr-no-randomize", "fixed addresses in memory", byHook, "`srun setarch -R PROGRAM`"},
		{"auks", "Kerberos tickets on nodes", byHook, "a Prolog that calls `auks`; an Epilog destroys the tickets"},
		{"nvmps spank_mps mps", "NVIDIA's MPS for a job", byHook,
			"a Prolog that starts it where a job asks by `--comment`"},
		{"beeond spank_beeond", "a file system of the job's nodes", byHook,
			"a Prolog that starts it, an Epilog that ends it"},
		{"lua spank_lua", "scripts in Lua", byHook, "job_submit.lua, cli_filter.lua, TaskProlog"},
		{"stunnel", "tunnels into jobs", byHook, "`srun --pty`, `sattach`; `ssh -L` to a node of one's job"},
		{"singularity-exec spank_singularity spank_apptainer", "containers by Apptainer", byHook,
			"`--container-image`, or call apptainer in the step"},
		{"shifter_slurm", "containers by Shifter", notDone, "`--container-image`"},
		{"spank_charliecloud", "containers by Charliecloud", notDone,
			"`--container-image`, or call `ch-run` in the step"},
		{"system-safe", "`system()` under old MPI libraries", notDone, "MPI libraries of today need it no more"},
		{"msr-safe", "registers of CPUs kept and restored", notDone, "a Prolog and an Epilog, as root"},
	}
}

// is reports whether a library is the plugin.
func (s *Spank) is(library string) bool {
	base := strings.TrimSuffix(path.Base(library), ".so")
	return slices.Contains(strings.Fields(s.Names), base)
}

// HasHook reports whether a hook can do the work of a SPANK plugin, given by its library.
func HasHook(library string) bool {
	return slices.ContainsFunc(Spanks(), func(s Spank) bool { return s.is(library) && s.Have == byHook })
}

const (
	pyxisPlugin   = "spank_pyxis"
	plugstackFile = "plugstack.conf"
)

// plugstackAt is where the plugins are listed: beside slurm.conf, or where it says.
func plugstackAt(r *reader, slurmConf string) string {
	at := r.cfg.Keys["plugstackconfig"]
	if at == "" {
		return path.Join(path.Dir(slurmConf), plugstackFile)
	}
	if !path.IsAbs(at) {
		at = path.Join(path.Dir(slurmConf), at)
	}
	if _, err := os.Stat(at); err != nil {
		r.notes = append(r.notes,
			"slurm.conf: PlugStackConfig="+r.cfg.Keys["plugstackconfig"]+": there is no such file here")
	}
	return at
}

// plugstack reads a plugstack.conf(5): required or optional, a library, its arguments; include and a pattern.
func plugstack(r *reader, file string) error { return spankFile(r, file, 0) }

func spankFile(r *reader, file string, depth int) error {
	if depth > maxIncludes {
		return fmt.Errorf("%s: more than %d nested include lines", file, maxIncludes)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	n := 0
	for line := range strings.Lines(string(text)) {
		n++
		line, _, _ = strings.Cut(line, "#")
		words := strings.Fields(line)
		if len(words) == 0 {
			continue
		}
		switch what := strings.ToLower(words[0]); {
		case len(words) > 1 && (what == "required" || what == "optional"):
			plugin(r, file, n, words[1], words[2:])
		case len(words) == 2 && what == "include":
			for _, f := range matching(r, file, n, words[1]) {
				if err := spankFile(r, f, depth+1); err != nil {
					return fmt.Errorf("%s:%d: include: %w", file, n, err)
				}
			}
		default:
			r.note(file, n, "%q is not understood: want required PLUGIN ARGUMENTS, "+
				"optional PLUGIN ARGUMENTS or include FILES",
				strings.TrimSpace(line))
		}
	}
	return nil
}

// matching lists the files that an include line means, in the order of their names.
func matching(r *reader, file string, n int, pattern string) (out []string) {
	if !path.IsAbs(pattern) {
		pattern = path.Join(path.Dir(file), pattern)
	}
	dir, base := path.Split(pattern)
	if strings.ContainsAny(dir, "*?[") {
		r.note(file, n, "include %s: only the last part of a path may be a pattern", pattern)
		return nil
	}
	if !strings.ContainsAny(base, "*?[") {
		return []string{pattern}
	}
	list, _ := os.ReadDir(dir) // one that is not there has no files
	for _, e := range list {
		if ok, err := path.Match(base, e.Name()); err != nil {
			r.note(file, n, "include %s: %v", pattern, err)
			return nil
		} else if ok && !e.IsDir() {
			out = append(out, path.Join(dir, e.Name()))
		}
	}
	return out
}

// plugin reads a line with a plugin.
func plugin(r *reader, file string, n int, library string, args []string) {
	known := Spanks()
	at := slices.IndexFunc(known, func(s Spank) bool { return s.is(library) })
	switch {
	case at < 0:
		r.note(file, n, "SPANK plugin %s cannot be loaded; TaskProlog, "+
			"Prolog and Epilog run programs at the same points",
			library)
	case known[at].Names == pyxisPlugin:
		r.fine = append(r.fine, fmt.Sprintf("%s:%d: SPANK plugin %s is not needed for %s: %s",
			file, n, library, known[at].For, known[at].How))
		for _, a := range args {
			pyxisArg(r, file, n, a)
		}
	case known[at].Have == builtIn:
		r.fine = append(r.fine, fmt.Sprintf("%s:%d: SPANK plugin %s is not needed for %s: %s",
			file, n, library, known[at].For, known[at].How))
	default:
		r.note(file, n, "SPANK plugin %s cannot be loaded; for %s: %s", library, known[at].For, known[at].How)
	}
}

// pyxisArgs are the arguments of Pyxis: what each does, or why it changes nothing; fine: nothing is missing then.
var pyxisArgs = [...]struct {
	name string
	set  func(r *reader, value string) (want string)
	why  string
	fine bool
}{
	{name: "execute_entrypoint", set: func(r *reader, v string) string {
		return digit(&r.cfg.Containers.Entrypoint, v)
	}},
	{name: "sbatch_support", set: func(r *reader, v string) string {
		yes := false
		want := digit(&yes, v)
		r.cfg.Containers.NoBatch = !yes && want == ""
		return want
	}},
	{name: "container_scope", set: func(r *reader, v string) string {
		if v != "job" && v != "global" {
			return "job or global"
		}
		r.cfg.Containers.Global = v == "global"
		return ""
	}},
	{name: "runtime_path", why: "containers are below the daemon's --data", fine: true},
	{name: "expose_enroot_logs", why: "there is no enroot; what went wrong is always told", fine: true},
	{name: "use_enroot_load", why: "images are unpacked by muster itself, without a squashfs", fine: true},
	{name: "importer", why: "images are fetched by muster itself: no other program is asked"},
	{name: "container_image_save", why: "images are kept unpacked on nodes, which get them from each other: " +
		"muster image pin keeps one"},
}

func digit(to *bool, v string) (want string) {
	switch v {
	case "0", "1":
		*to = v == "1"
		return ""
	}
	return "0 or 1"
}

func pyxisArg(r *reader, file string, n int, arg string) {
	name, value, _ := strings.Cut(arg, "=")
	var names []string
	for i := range pyxisArgs {
		a := &pyxisArgs[i]
		names = append(names, a.name)
		switch {
		case a.name != name:
			continue
		case a.set == nil && a.fine:
			r.fine = append(r.fine, fmt.Sprintf("%s:%d: %s has no effect: %s", file, n, arg, a.why))
		case a.set == nil:
			r.note(file, n, "%s has no effect: %s", arg, a.why)
		default:
			if want := a.set(r, value); want != "" {
				r.note(file, n, "%s: want %s", arg, want)
			}
		}
		return
	}
	r.note(file, n, "%s is no argument of Pyxis%s", arg, opt.Meant(name, names))
}

// pluginLines are plugstack.conf, as far as it says something.
func pluginLines(c cluster.ContainerDefaults) []string {
	if c == (cluster.ContainerDefaults{}) {
		return nil
	}
	words := []string{"required", pyxisPlugin + ".so"}
	if c.Entrypoint {
		words = append(words, "execute_entrypoint=1")
	}
	if c.NoBatch {
		words = append(words, "sbatch_support=0")
	}
	return []string{strings.Join(words, " ")}
}

// ociConf tells what of an oci.conf changes nothing: bundles need no other runtime.
func ociConf(r *reader, file string) error {
	return r.read(file, func(file string, n int, ps []pair) {
		for _, p := range ps {
			switch key := strings.ToLower(p.key); key {
			case "envexclude", "runtimeenvexclude", "srunargs", "srunpath":
				r.note(file, n, "%s has no effect: --container is run by muster itself", p.key)
			default:
				r.fine = append(r.fine, fmt.Sprintf("%s:%d: %s has no effect: --container is run by muster itself",
					file, n, p.key))
			}
		}
	}, 0)
}
