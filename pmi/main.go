package pmi

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"sync"
	"syscall"

	"dev.muster/wire"
)

// The descriptors of a server's process. On 0 it reads what the hub says, on 1 it writes to it, 2
// takes lines for the step's user. From FirstTask on there is one socket for each local task, in
// the order of Setup.Local.
const (
	SetupFD   = 3 // a file that holds the Setup
	ReadyFD   = 4 // a pipe for the Ready, which ends it
	FirstTask = 5
)

// TaskFD is the descriptor of a task's own end of its socket.
const TaskFD = 3

// Ready is what a server says once tasks may start.
type Ready struct {
	Env   [][]string `json:"env,omitempty"`   // of each local task, NAME=value
	Error string     `json:"error,omitempty"` // why no task is to start
}

// maxSetup bounds a Setup, which names each task.
const maxSetup = 64 << 20

// ReadSetup reads the setup that a server's process was given.
func ReadSetup() (*Setup, error) {
	f := os.NewFile(SetupFD, "setup")
	if f == nil {
		return nil, errors.New("no setup was given: this program is started by muster")
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxSetup))
	if err != nil {
		return nil, fmt.Errorf("read the setup: %w", err)
	}
	return ParseSetup(b)
}

// Say ends the start of a server's process: tasks start now, or do not.
func (r Ready) Say() error {
	b, err := wire.Marshal(r)
	if err != nil {
		return err
	}
	f := os.NewFile(ReadyFD, "ready")
	if f == nil {
		return errors.New("nobody waits for the server: it is started by muster")
	}
	_, err = f.Write(b)
	return errors.Join(err, f.Close())
}

// ServerMain is a server's process: muster internal pmi. It ends with its step, which kills it, or
// when the hub is gone.
func ServerMain(newCredential func() (Credential, error)) int {
	signal.Ignore() // they are for the tasks
	setup, err := ReadSetup()
	if err == nil {
		err = serve(setup, newCredential)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "error: mpi/pmi2:", err)
		return 1
	}
	return 0
}

// serve speaks with the hub and all local tasks.
func serve(setup *Setup, newCredential func() (Credential, error)) error {
	s := NewServer(setup, os.Stdout, os.Stderr)
	s.link.Join(setup, s.say, newCredential)
	if os.Getenv(SpawnedEnv) == "1" {
		s.askBirth()
	}
	var tasks sync.WaitGroup
	for i, number := range setup.Local() {
		fd := FirstTask + i
		if err := syscall.SetNonblock(fd, true); err != nil { // so that one that waits needs no thread
			return fmt.Errorf("the socket of task %d: %w", number, err)
		}
		conn := os.NewFile(uintptr(fd), "task")
		tasks.Go(func() { s.Serve(number, conn) })
	}
	if err := (Ready{}).Say(); err != nil {
		return err
	}
	err := s.Listen(os.Stdin)
	s.unborn()
	tasks.Wait()
	return err
}

// Environ is what a task needs to find its server: PMI's own variables.
func Environ(job string, rank, size int) []string {
	var env []string
	env = append(env, fmt.Sprintf("PMI_FD=%d", TaskFD), "PMI_JOBID="+job)
	return append(env, fmt.Sprintf("PMI_RANK=%d", rank), fmt.Sprintf("PMI_SIZE=%d", size))
}
