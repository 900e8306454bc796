// Package early runs the programs that must start in about a millisecond: the Slurm front-ends and
// the supervisor. Go initialises packages in the order of their import paths as soon as what they
// import is ready, and this module's path sorts before those of the libraries that only the daemons
// use; so this init runs, and exits, before raft, SQLite or the metrics initialise. The order is
// checked by make lint. See docs/adr/0002-early-dispatch.md.
package early

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"

	"dev.muster/agent/step"
	"dev.muster/slurm"
)

func init() {
	args := os.Args
	if len(args) == 0 {
		return
	}
	name := filepath.Base(args[0])
	if !slurm.IsFrontEnd(name) {
		if len(args) < 2 {
			return
		}
		name, args = args[1], args[1:]
	}
	switch {
	case slurm.IsFrontEnd(name):
		sys := slurm.RealSys(name)
		sys.Dial = Dial
		os.Exit(slurm.Main(args, sys))
	case name == "internal" && len(args) > 1 && args[1] == "supervisor":
		if err := supervise(args[2:]); err != nil {
			fmt.Fprintln(os.Stderr, "muster supervisor:", err)
			os.Exit(1)
		}
		os.Exit(0)
	}
}

func supervise(args []string) error {
	if len(args) != 2 || args[0] != "--dir" {
		return errors.New("usage: muster internal supervisor --dir DIR")
	}
	return step.SupervisorMain(context.Background(), args[1])
}

// Sockets lists where the local daemon may listen, in the order of search.
func Sockets() []string {
	if s := os.Getenv("MUSTER_SOCKET"); s != "" {
		return []string{s}
	}
	list := []string{"/run/muster/muster.sock"}
	if home := os.Getenv("HOME"); home != "" {
		list = append([]string{filepath.Join(home, ".muster", "muster.sock")}, list...)
	}
	return list
}

// Dial reaches the local daemon.
func Dial(context.Context) (conn net.Conn, err error) {
	for _, s := range Sockets() {
		if conn, err = net.DialUnix("unix", nil, &net.UnixAddr{Name: s, Net: "unix"}); err == nil {
			return conn, nil
		}
	}
	return nil, err
}
