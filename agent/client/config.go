package client

import (
	"context"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"dev.muster/agent/container"
	"dev.muster/agent/container/enroot"
	"dev.muster/agent/machine"
	"dev.muster/agent/step"
	"dev.muster/agent/usage"
	"dev.muster/api"
	"dev.muster/cluster"
	"dev.muster/gpu"
)

// Config says how a client runs.
type Config struct {
	Dir    string // for the outbox and the supervisor; its owner's alone
	Spool  string // for scripts, which their users must be able to read
	Nodes  []machine.Node
	Server *api.Client
	Runner step.Runner
	// Peer calls the client of another node, by address; nil where there is no network.
	Peer        func(addr string) *api.Client
	api.Dialect        // what tasks, files and scripts are told
	Images      string // the folder of unpacked images
	// ImageDisk is how many bytes those may take; 0: half of their file system.
	ImageDisk int64
	// ImageSize is how many bytes one of them may unpack to; 0: 64 GiB.
	ImageSize int64
	Program   Program
	PIDEnv    string // variable that holds a task's own process id
	// MountEnv is the variable by which the program for new private folders learns where they are.
	MountEnv string
	Daemon   string // address that front-ends inside jobs use
	// GPUs watches those of this machine, which is the only node then; nil for hollow nodes.
	GPUs *gpu.Watcher
	// HollowLoad has the GPUs of hollow nodes do something (machine.HollowLoad).
	HollowLoad bool
	// GPUJobs is a folder for a file of each GPU with the numbers of its jobs; empty: none.
	GPUJobs string
	// Machine looks at this machine's other parts; nil for hollow nodes.
	Machine *machine.Machine
	// SampleSpan is the time for which what the nodes do is told as one sample; 0: a minute.
	SampleSpan time.Duration
	// Sampler measures what the steps of Runner use; nil where these are no processes.
	Sampler *usage.Sampler
}

// Program is this program, as tasks meet it.
type Program struct {
	// Around is the command that runs a task with scripts around it (step.TaskMain).
	Around []string
	// Cast is the command that puts files on a node (package cast/node).
	Cast []string
	// Managers are the commands that become the process managers of MPI.
	Managers map[cluster.Manager][]string
	Names    []string // it answers to
	// Account is where a user lives, and with which shell.
	Account func(uid uint32) (home, shell string)
}

// Path is where the program is.
func (p *Program) Path() string {
	if len(p.Around) == 0 {
		return ""
	}
	return p.Around[0]
}

// inside is what a node is told of the container of a step, nil for none. Scripts that run before
// and after its tasks run in the container, too.
func (cfg *Config) inside(
	what *cluster.Container, site *cluster.Config, j *cluster.JobSpec, around *step.Around,
) *container.Spec {
	if what == nil {
		return nil
	}
	out := &container.Spec{Container: *what, Store: cfg.Images, Limit: cfg.ImageDisk, Most: cfg.ImageSize,
		Self:  cfg.Program.Path(),
		Names: strings.Join(cfg.Program.Names, " "), Sock: cfg.Daemon, User: j.User, Group: j.Group}
	out.Defaults(enroot.Read(enroot.Dir()), site.Containers)
	out.NoSquashfs = !site.Squashfs()
	out.NoWritable = !site.WritableContainers()
	out.Writable = out.Writable && (what.Writable || !out.NoWritable) // else it is a default of the site's alone
	if cfg.Program.Account != nil {
		out.Home, out.Shell = cfg.Program.Account(j.UID)
	}
	for _, list := range [][]step.AroundScript{around.Prologs, around.Epilogs} {
		for _, s := range list {
			out.Scripts = append(out.Scripts, s.Path)
		}
	}
	return out
}

// aroundIn is the command that runs a task with scripts around it, where the task runs.
func (p *Program) aroundIn(in *container.Spec) []string {
	if in == nil || len(p.Around) == 0 {
		return p.Around
	}
	return append([]string{container.Program}, p.Around[1:]...)
}

// siteProgram runs a program of the site's beside the daemon, as root and with the front-ends at hand. Only the log
// tells that it failed.
func (cfg *Config) siteProgram(ctx context.Context, log *slog.Logger, program string, limit time.Duration,
	environ ...string) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	cmd := exec.CommandContext(ctx, program)
	cmd.Dir = "/"
	own := ""
	if exe, err := os.Executable(); err == nil { // the front-ends lie beside it
		own = filepath.Dir(exe) + ":"
	}
	cmd.Env = append(append(os.Environ(), "PATH="+own+os.Getenv("PATH"), "MUSTER_SOCKET="+cfg.Daemon), environ...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = time.Second
	out, err := cmd.CombinedOutput()
	if err != nil && ctx.Err() != context.Canceled {
		log.Warn("a program of the site failed", "program", program, "about", environ, "err", err,
			"said", strings.TrimSpace(string(out[:min(len(out), checkSays)])))
	}
}

// The site's own health check (HealthCheckProgram): a program that looks at a node as root, now and then, and
// drains it by scontrol if it finds something. Its exit code is only told of in the log.
const (
	checkPace  = 5 * time.Second  // how often it is looked whether one is due
	checkLimit = 60 * time.Second // how long one may run, as in Slurm
	checkSays  = 1 << 10          // bytes of its output that are told of
)
