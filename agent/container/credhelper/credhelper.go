// Package credhelper asks the programs by which docker keeps credentials: docker-credential-NAME get, which reads a
// registry's name and answers with a user and a secret.
package credhelper

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"dev.muster/wire"
)

// Dirs are where the programs are looked for: the node's own folders alone, since they run beside the job, not in it.
var Dirs = []string{"/usr/local/bin", "/usr/bin", "/bin", "/usr/local/sbin", "/usr/sbin"}

// Limit is how long a program may take.
var Limit = 15 * time.Second

// maxAnswer bounds what a program may say.
const maxAnswer = 64 << 10

// notFound is in the answer of a program that has nothing for the registry.
const notFound = "credentials not found"

// Asker asks as a user.
type Asker struct {
	As   *syscall.Credential // nil: as this process
	Home string
	Env  []string // of the user's, besides HOME and PATH
}

// answer is what a program says.
type answer struct {
	Username string `json:"Username"`
	Secret   string `json:"Secret"`
}

// Get asks a program for a registry's credentials; user is empty if it has none. ErrNone: there is no such program.
func (a *Asker) Get(name, registry string) (user, secret string, err error) {
	path, err := find(name)
	if err != nil {
		return "", "", err
	}
	text, err := a.run(path, registry)
	if strings.Contains(string(text), notFound) {
		return "", "", nil
	}
	if err != nil {
		return "", "", fmt.Errorf("%s: %s (%w)", path, strings.TrimSpace(string(text)), err)
	}
	var got answer
	if err := wire.Unmarshal(text, &got); err != nil {
		return "", "", fmt.Errorf("%s: its answer cannot be read", path) // which may have the secret in it
	}
	return got.Username, got.Secret, nil
}

// run runs a program, and kills what it leaves behind.
func (a *Asker) run(path, registry string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(context.Background(), Limit)
	defer cancel()
	out := &bounded{}
	cmd := exec.CommandContext(ctx, path, "get")
	cmd.Stdin = strings.NewReader(registry + "\n")
	cmd.Stdout = out
	cmd.Dir = "/"
	cmd.Env = append([]string{"HOME=" + a.Home, "PATH=" + strings.Join(Dirs, ":")}, a.Env...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Credential: a.As}
	kill := func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.Cancel = kill
	cmd.WaitDelay = time.Second
	if err := startApart(cmd); err != nil {
		return nil, err
	}
	defer func() { _ = kill() }()
	err := cmd.Wait()
	if ctx.Err() != nil {
		err = fmt.Errorf("it has not answered within %s", Limit)
	}
	return out.text, err
}

// startApart starts a program from another thread. The calling thread may have the user's effective IDs only, and then
// lacks the privilege to set the real IDs and groups of a program.
func startApart(cmd *exec.Cmd) error {
	started := make(chan error, 1)
	go func() { started <- cmd.Start() }()
	return <-started
}

// ErrNone is why nothing was asked.
var ErrNone = errors.New("there is no such program")

// find is the program of that name.
func find(name string) (string, error) {
	if name == "" || strings.ContainsAny(name, "/\x00") {
		return "", fmt.Errorf("%q names no credential helper", name)
	}
	for _, dir := range Dirs {
		if path, err := exec.LookPath(filepath.Join(dir, "docker-credential-"+name)); err == nil {
			return path, nil
		}
	}
	return "", fmt.Errorf("docker-credential-%s is not on this node in %s: %w", name, strings.Join(Dirs, ", "), ErrNone)
}

// bounded keeps what is written, up to a bound.
type bounded struct{ text []byte }

func (b *bounded) Write(p []byte) (int, error) {
	if len(b.text)+len(p) > maxAnswer {
		return 0, errors.New("it says too much")
	}
	b.text = append(b.text, p...)
	return len(p), nil
}
