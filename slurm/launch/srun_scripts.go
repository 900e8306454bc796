package launch

import (
	"os"
	"strconv"
	"syscall"

	"dev.muster/cluster"
	"dev.muster/slurm/env"
	"dev.muster/slurm/front"
)

// script runs srun's own prolog or epilog, here and as the user. It is false if the prolog failed.
func (run *stepRun) script(what, path string) bool {
	if path == "" || path == "none" {
		return true
	}
	if !front.Executable(path) {
		run.sys.Tell(front.Info, "Access denied for %s: %s", path, whyNotRun(path))
		return true
	}
	attr := &os.ProcAttr{
		Files: files(run.sys.Stdin, run.sys.Stdout, run.sys.Stderr),
		Env:   append(append([]string(nil), run.sys.Environ...), run.scriptEnv(what)...),
	}
	p, err := os.StartProcess(path, []string{path}, attr)
	if err != nil {
		run.sys.Tell(front.Info, "Access denied for %s: %s", path, front.PlainError(err))
		return true
	}
	st, err := p.Wait()
	if err != nil || st.Success() {
		return true
	}
	if what == "epilog" {
		run.sys.Say("error: srun epilog failed status=%d", st.ExitCode())
		return true
	}
	run.sys.Say("error: srun prolog failed rc = %d. Aborting step.", st.ExitCode())
	return false
}

// whyNotRun words why a file cannot be executed.
func whyNotRun(path string) string {
	if fi, err := os.Stat(path); err != nil {
		return front.PlainError(err)
	} else if fi.IsDir() {
		return front.PlainError(syscall.EISDIR)
	}
	return front.PlainError(syscall.EACCES)
}

// scriptEnv tells the scripts which step they are run for.
func (run *stepRun) scriptEnv(what string) []string {
	st := &run.resp.Step
	nodes := make([]cluster.NodeName, len(st.Shares))
	counts := make([]string, len(st.Shares))
	for i, sh := range st.Shares {
		nodes[i], counts[i] = sh.Node, strconv.Itoa(sh.Tasks)
	}
	id, list := strconv.FormatUint(uint64(st.ID.Job), 10), front.NodeText(nodes)
	per, tasks := env.PerNode(st.Shares, func(sh cluster.Share) int { return sh.Tasks }), strconv.Itoa(st.Tasks)
	return []string{"SLURM_SCRIPT_CONTEXT=" + what + "_srun", "SLURM_JOB_UID=" + front.UintText(st.UID),
		"SLURM_JOB_USER=" + st.User, "SLURM_JOB_ID=" + id, "SLURM_JOBID=" + id,
		"SLURM_STEP_ID=" + strconv.Itoa(st.ID.Step), "SLURM_STEPID=" + strconv.Itoa(st.ID.Step),
		"SLURM_NODELIST=" + list, "SLURM_JOB_NODELIST=" + list, "SLURM_STEP_NODELIST=" + list,
		"SLURM_NNODES=" + strconv.Itoa(len(nodes)), "SLURM_JOB_NUM_NODES=" + strconv.Itoa(len(nodes)),
		"SLURM_STEP_NUM_NODES=" + strconv.Itoa(len(nodes)), "SLURM_STEP_NUM_TASKS=" + tasks,
		"SLURM_NTASKS=" + tasks, "SLURM_NPROCS=" + tasks,
		"SLURM_STEP_TASKS_PER_NODE=" + per, "SLURM_TASKS_PER_NODE=" + per}
}
