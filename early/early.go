// Package early runs the programs that must start in about a millisecond: the Slurm front-ends. Go
// initializes packages in the order of their import paths as soon as what they import is ready, and
// this module's path sorts before those of the libraries that only the daemons use; so this init
// runs, and exits, before raft, SQLite, net or the metrics initialize. TestTidyInit checks the
// order. See docs/adr/0002-early-dispatch.md.
package early

import (
	"context"
	"os"
	"path"

	"dev.muster/api"
	"dev.muster/slurm"
	"dev.muster/slurm/front"
)

func init() {
	for i, name := range os.Args[:min(len(os.Args), 2)] {
		if i == 0 {
			name = path.Base(name)
		}
		if slurm.IsCommand(name) {
			run(name, os.Args[i+1:])
		}
	}
}

// run is the whole of a front-end's life.
func run(name string, words []string) {
	sys := front.RealSys(name)
	sys.Dial, sys.Args = front.DialLocal, append([]string{name}, words...)
	if code := sys.ByToken(reach); code >= 0 {
		os.Exit(code)
	}
	os.Exit(slurm.Main(append([]string{name}, words...), sys))
}

// reach has another process of this program reach a server over the network, since package net is not for this one.
// That process finds the token in its environment.
func reach(_ context.Context, urls string) (api.Conn, error) { return front.Through("reach", urls) }
