package submit

import (
	"bytes"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"

	"dev.muster/pmi"
	"dev.muster/slurm/front"
	"dev.muster/slurm/opt"
	"dev.muster/slurm/values"
)

// ofJobsGPUs are what shows a batch script the GPUs of its job; a step's own are set where it has some.
const ofJobsGPUs = " CUDA_VISIBLE_DEVICES ROCR_VISIBLE_DEVICES ZE_AFFINITY_MASK GPU_DEVICE_ORDINAL " +
	"SLURM_GPUS_ON_NODE SLURM_STEP_GPUS "

// ofSubmission is what names a submission and who makes it, and not those that the job makes; nor does what a task of
// MPI_Comm_spawn starts have its parent.
const ofSubmission = " " + submitKeyEnv + " SLURM_JWT " + pmi.SpawnedEnv + " "

// OOMKillStepEnv hands --oom-kill-step of a job on to its steps.
const OOMKillStepEnv = "SLURM_OOM_KILL_STEP"

// ofStep is a job's environment without what shows the job's GPUs.
func ofStep(environ []string) []string {
	if !slices.ContainsFunc(environ, func(e string) bool { return strings.HasPrefix(e, "SLURM_JOB_GPUS=") }) {
		return environ
	}
	return slices.DeleteFunc(slices.Clone(environ), func(e string) bool {
		name, _, _ := strings.Cut(e, "=")
		return strings.Contains(ofJobsGPUs, " "+name+" ")
	})
}

// JobEnviron chooses from environ what --export passes on, as NAME=value entries that
// each end in a NUL. For a batch job that does not get everything, and for
// --get-user-env, it also sets Job.UserEnv: the login environment comes first, these
// entries on top. With --export-file alone, nothing but the file is passed on.
func JobEnviron(req *Request, environ []string) ([]byte, error) {
	env := &envList{index: make(map[string]int, len(environ))}
	words := front.SplitList(req.Client.Export)
	all := exportsAll(req, words)
	if req.prog == opt.Srun {
		environ = ofStep(environ)
	}
	env.inherit(environ, all, req.exportFile == nil || len(words) > 0)
	for _, w := range words {
		if !env.export(w, environ) {
			return nil, opt.Errorf(opt.CodeError, "%s: error: Invalid --export entry %q", req.prog.Name(), w)
		}
	}
	for entry := range bytes.SplitSeq(req.exportFile, []byte{0}) {
		if name, _, ok := strings.Cut(string(entry), "="); ok && name != "" {
			env.set(name, string(entry))
		}
	}
	if req.prog == opt.Sbatch && !all {
		req.Job.UserEnv = true
	}
	env.ofRequest(req)
	return env.bytes(), nil
}

// exportsAll reports whether a job has the whole environment of its submission.
func exportsAll(req *Request, words []string) bool {
	if slices.ContainsFunc(words, func(w string) bool { return strings.EqualFold(w, "ALL") }) {
		return true
	}
	return req.exportFile == nil && (!req.Client.ExportGiven || len(words) == 0)
}

// inherit takes all variables of environ, or, where those are wanted, Slurm's own.
func (l *envList) inherit(environ []string, all, own bool) {
	for _, e := range environ {
		name, _, ok := strings.Cut(e, "=")
		if !ok || name == "" || strings.Contains(ofSubmission, " "+name+" ") {
			continue
		}
		if all || own && strings.HasPrefix(name, "SLURM_") {
			l.set(name, e)
		}
	}
}

// export does what a word of --export says, NAME, taken from environ, or NAME=VALUE, and reports whether it says that.
func (l *envList) export(word string, environ []string) bool {
	name, _, valued := strings.Cut(word, "=")
	switch {
	case strings.EqualFold(word, "ALL"), strings.EqualFold(word, "NONE"), strings.EqualFold(word, "NIL"):
	case valued && name == "":
		return false
	case valued:
		l.set(name, word)
	default:
		l.copy(name, environ)
	}
	return true
}

// ofRequest sets what tells a job of its own options.
func (l *envList) ofRequest(req *Request) {
	if req.prog == opt.Srun && req.From("job-name") == FromLine {
		l.set("SLURM_JOB_NAME", "SLURM_JOB_NAME="+req.Job.Name)
	}
	if req.prog == opt.Srun {
		l.set("SRUN_DEBUG", "SRUN_DEBUG="+strconv.Itoa(max(3+req.verbose-req.Client.Quiet, 0)))
	}
	if req.Job.Export != "" && req.prog != opt.Srun { // srun's is for its own tasks, not for what they start
		l.set("SLURM_EXPORT_ENV", "SLURM_EXPORT_ENV="+req.Job.Export)
	}
	if req.Way.OOMKillStep && req.prog != opt.Srun {
		l.set(OOMKillStepEnv, OOMKillStepEnv+"=1")
	}
	if req.Way.Spawned {
		l.set(pmi.SpawnedEnv, pmi.SpawnedEnv+"=1")
	}
	if req.Job.UserEnv || req.prog == opt.Sbatch && req.Job.Export != "" {
		l.set("SLURM_GET_USER_ENV", "SLURM_GET_USER_ENV=1")
	}
}

// envList is an environment in order; a name that is set again keeps its place.
type envList struct {
	entries []string
	index   map[string]int
}

func (l *envList) set(name, entry string) {
	if i, ok := l.index[name]; ok {
		l.entries[i] = entry
		return
	}
	l.index[name] = len(l.entries)
	l.entries = append(l.entries, entry)
}

// copy takes a variable, or a shell function of that name, from environ.
func (l *envList) copy(name string, environ []string) {
	for _, e := range environ {
		if n, _, ok := strings.Cut(e, "="); ok && (n == name || n == "BASH_FUNC_"+name+"%%") {
			l.set(n, e)
		}
	}
}

func (l *envList) bytes() []byte {
	n := 0
	for _, e := range l.entries {
		n += len(e) + 1
	}
	out := make([]byte, 0, n)
	for _, e := range l.entries {
		out = append(append(out, e...), 0)
	}
	return out
}

const maxExportFile = 16 << 20 // bytes of --export-file

// readExportFile reads a file, or a descriptor of this process from 3 on.
func readExportFile(s *front.Sys, name string) ([]byte, error) {
	if fd, ok := values.Digits(name); ok && !s.NoFiles {
		if fd < 3 {
			return nil, os.ErrInvalid
		}
		f := os.NewFile(uintptr(fd), name)
		if f == nil {
			return nil, os.ErrInvalid
		}
		return io.ReadAll(io.LimitReader(f, maxExportFile))
	}
	return s.ReadFile(name, maxExportFile)
}
