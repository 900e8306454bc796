// Package front is what all of Slurm's front-ends have in common: the world outside (Sys), a call and how
// its failure is told, the words of command lines, users, terminals. It knows no command, and nothing that
// one shows. Begin with sys.go, then call.go and say.go.
package front

import (
	"context"
	"io"
	"os"
	"path"
	"strconv"
	"strings"
	"syscall"
	"time"

	"dev.muster/api"
	"dev.muster/cluster"
	"dev.muster/slurm/data"
)

// Version is muster's version, set by the linker.
var Version = "dev"

// Sys is what a front-end has of the world outside, so that tests can give it another.
type Sys struct {
	Prog           string   // the command's name, for messages
	Args           []string // the words of the command, its name first; none where a command calls another one's work
	Stdin          io.Reader
	Stdout, Stderr io.Writer
	Environ        []string
	Getwd          func() (string, error)
	Dial           func(context.Context) (api.Conn, error) // the local daemon
	Now            func() time.Time
	UID, GID       uint32
	User           string // name of UID; "": it is to be looked up
	Umask          uint32
	Rlimits        func() []cluster.Rlimit
	Hostname       func() (string, error)
	Sid            int // session id of the calling shell
	Verbose        int // how many -v were given
	// NoFiles says that who asks is elsewhere, and that this process has rights that they lack: no file that they name
	// is opened.
	NoFiles bool
	// Direct answers calls within the process that Dial would reach; nil: all travel.
	Direct api.Direct
	// Answers changes answers in JSON and YAML before they are written; nil: nothing does.
	Answers func(*data.Answer)
	// Refused is told of calls that fail; nil: nobody is.
	Refused func(error)

	// Again runs the command for another cluster; nil: it cannot be.
	Again func(*Sys) int

	token   bool    // all calls go by one
	cluster string  // that was named and is asked; "": the own one
	remote  bool    // it is another one
	later   bool    // others were asked before
	refusal *string // what the other cluster said when it could not be reached

	foreign foreign // of peers that run Slurm

	warnings *[]data.Problem // of calls; shared with copies for other clusters

	away uint32 // 1: the daemon did not answer the last call; atomic
}

// Sockets lists where the local daemon may listen, in the order of search.
func Sockets(getenv func(string) string) []string {
	if s := getenv("MUSTER_SOCKET"); s != "" {
		return []string{s}
	}
	list := []string{"/run/muster/muster.sock"}
	if home := getenv("HOME"); home != "" {
		list = append([]string{path.Join(home, ".muster", "muster.sock")}, list...)
	}
	return list
}

// NoDaemon says that no daemon answers on this machine, and what to do.
func NoDaemon(getenv func(string) string) string {
	at := strings.Join(Sockets(getenv), " or ")
	if getenv("MUSTER_SOCKET") != "" {
		return "no muster daemon answers at " + at + " (MUSTER_SOCKET): is it the right socket, and does the daemon run?"
	}
	return "no muster daemon answers at " + at + ": systemctl status muster-server muster-client shows whether one runs here; " +
		"MUSTER_SOCKET names the socket of another one, and muster dev starts one"
}

// Getenv returns an environment variable, or "".
func (s *Sys) Getenv(name string) string {
	v, _ := s.LookupEnv(name)
	return v
}

// LookupEnv returns an environment variable and whether it is set.
func (s *Sys) LookupEnv(name string) (string, bool) {
	for _, e := range s.Environ {
		if len(e) > len(name) && e[len(name)] == '=' && e[:len(name)] == name {
			return e[len(name)+1:], true
		}
	}
	return "", false
}

// RealSys is the process's own surroundings. Its Dial is unset: main knows the socket.
func RealSys(prog string) *Sys {
	return &Sys{
		Prog: prog, Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr,
		Environ: os.Environ(), Getwd: workDir, Now: time.Now, Hostname: os.Hostname,
		UID: uint32(os.Getuid()), GID: uint32(os.Getgid()),
		Umask: umask(), Rlimits: softLimits, Sid: sid(),
	}
}

// workDir keeps the shell's idea of the directory ($PWD) where that is right, as a user
// behind a symbolic link expects; os.Getwd does so.
func workDir() (string, error) { return os.Getwd() }

// umask reads the file creation mask, which can only be read by setting it.
func umask() uint32 {
	m := syscall.Umask(0o077)
	syscall.Umask(m)
	return uint32(m)
}

func sid() int {
	id, _, errno := syscall.RawSyscall(syscall.SYS_GETSID, 0, 0, 0)
	if errno != 0 {
		return 0
	}
	return int(id)
}

// rlimitNames are the limits Slurm propagates, with Linux's numbers.
var rlimitNames = [...]struct {
	name string
	num  int
}{
	{"CPU", 0}, {"FSIZE", 1}, {"DATA", 2}, {"STACK", 3}, {"CORE", 4}, {"RSS", 5}, {"NPROC", 6},
	{"NOFILE", 7}, {"MEMLOCK", 8}, {"AS", 9},
}

// softLimits reads the soft resource limits of the submitting shell. They are this
// process's, but for NOFILE: the Go runtime raises that one to the hard limit, or one below it, as it
// starts, so the parent's is taken instead where it can be read.
func softLimits() []cluster.Rlimit {
	list := make([]cluster.Rlimit, 0, len(rlimitNames))
	for _, r := range rlimitNames {
		var lim syscall.Rlimit
		if syscall.Getrlimit(r.num, &lim) != nil {
			continue
		}
		if r.name == "NOFILE" && lim.Cur+1 >= lim.Max {
			lim.Cur = parentNofile(lim.Cur)
		}
		list = append(list, cluster.Rlimit{Name: r.name, Soft: lim.Cur})
	}
	return list
}

// parentNofile reads the soft limit of open files of the parent process.
func parentNofile(fallback uint64) uint64 {
	text, err := os.ReadFile("/proc/" + strconv.Itoa(os.Getppid()) + "/limits")
	if err != nil {
		return fallback
	}
	_, rest, _ := strings.Cut(string(text), "Max open files")
	fields := strings.Fields(rest)
	if len(fields) == 0 {
		return fallback
	}
	n, err := strconv.ParseUint(fields[0], 10, 64)
	if err != nil {
		return fallback
	}
	return min(n, fallback)
}

// RlimitKnown reports whether name is one of Slurm's limits, with or without RLIMIT_.
func RlimitKnown(name string) bool {
	name = strings.TrimPrefix(name, "RLIMIT_")
	for _, r := range rlimitNames {
		if r.name == name {
			return true
		}
	}
	return false
}
