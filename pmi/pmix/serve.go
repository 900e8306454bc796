//go:build cgo && linux

package pmix

import (
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"dev.muster/pmi"
	"dev.muster/pmi/peer"
)

// Serve serves the local tasks until the hub is gone: the descriptors are those of pmi/main.go.
// ready is called once with what each task needs in its environment.
func Serve(s *pmi.Setup, ready func(env [][]string) error) error {
	if err := check(s); err != nil {
		return err
	}
	forget(os.Environ())
	dir, err := newDir(s)
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	go removeOnSignal(dir)
	if err := dropPrivileges(s); err != nil {
		return err
	}
	serving = &server{table: newTable(s), link: pmi.NewLink(os.Stdout), log: os.Stderr, request: request}
	serving.link.Join(s, serving.say, func() (pmi.Credential, error) { return peer.New() })
	serving.dead = func(p proc) {
		if err := notifyDead(p); err != nil {
			serving.say("%v", err)
		}
	}
	env, err := begin(s, dir)
	if err != nil {
		return err
	}
	if err := ready(env); err != nil {
		return err
	}
	return serving.link.Listen(os.Stdin, serving.called, serving.lost)
}

// begin starts the library's server and has it know the step.
func begin(s *pmi.Setup, dir string) (env [][]string, err error) {
	// Versions from 4 on compress long lists of nodes if they can, into what is no text and
	// version 3 cannot read.
	if err := os.Setenv("PMIX_MCA_preg", "^compress"); err != nil {
		return nil, err
	}
	if err := load(); err != nil {
		return nil, err
	}
	if err := start(serverInfo(s, dir)); err != nil {
		return nil, err
	}
	if err := register(s, dir); err != nil {
		return nil, err
	}
	for _, r := range s.Local() {
		list, err := environ(s, r)
		if err != nil {
			return nil, err
		}
		env = append(env, list)
	}
	return env, nil
}

// newDir makes a folder for the library's files that is this server's alone, since several nodes of
// a step may be on one machine.
func newDir(s *pmi.Setup) (string, error) {
	dir, err := os.MkdirTemp(s.Dir, fmt.Sprintf("muster-pmix-%s-%d-", strings.ReplaceAll(s.Job, "/", "_"), s.Node))
	if err != nil {
		return "", fmt.Errorf("make a folder for PMIx: %w", err)
	}
	if os.Geteuid() != 0 {
		return dir, nil
	}
	if err := os.Chown(dir, int(s.UID), int(s.GID)); err != nil {
		return "", errors.Join(fmt.Errorf("make a folder for PMIx: %w", err), os.Remove(dir))
	}
	return dir, nil
}

// dropPrivileges goes on as the step's user: the library reads what tasks send, which must not reach root.
func dropPrivileges(s *pmi.Setup) error {
	if os.Geteuid() != 0 || s.UID == 0 {
		return nil
	}
	err := syscall.Setgroups([]int{int(s.GID)})
	if err == nil {
		err = syscall.Setgid(int(s.GID))
	}
	if err == nil {
		err = syscall.Setuid(int(s.UID))
	}
	if err != nil {
		return fmt.Errorf("go on as user %d and group %d: %w", s.UID, s.GID, err)
	}
	return nil
}

// forget removes what tells of another PMIx server, above the one that this is to be. Parameters of
// the library stay.
func forget(env []string) {
	for _, pair := range env {
		name, _, _ := strings.Cut(pair, "=")
		if strings.HasPrefix(name, "PMIX_") && !strings.HasPrefix(name, "PMIX_MCA_") {
			_ = os.Unsetenv(name)
		}
	}
}

// removeOnSignal leaves no files behind when the server is asked to end.
func removeOnSignal(dir string) {
	c := make(chan os.Signal, 1)
	signal.Notify(c, syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP)
	got := <-c
	_ = os.RemoveAll(dir)
	os.Exit(128 + int(got.(syscall.Signal)))
}
