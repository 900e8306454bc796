package pmix

import (
	"errors"
	"fmt"
	"os"

	"dev.muster/memexec"
	"dev.muster/pmi"
)

// errNoPMIx is why a muster that was built without cgo and carries no server refuses.
var errNoPMIx = errors.New("this muster was built without a C compiler and has no PMIx server: " +
	"build it with one, or use --mpi=pmi2")

// Main is the process of a PMIx server, muster internal pmix: it has the descriptors of pmi.ServerMain,
// but no sockets of tasks, which find it by what Ready says. A program that was built without cgo
// becomes the server that it carries, if it carries one and that runs here; see
// docs/adr/0007-gpu-helper.md. It ends with its step, which kills it, or when the hub is gone.
func Main() int {
	said := false
	ready := func(env [][]string) error {
		said = true
		return pmi.Ready{Env: env}.Say()
	}
	err := serveStep(ready)
	if err == nil {
		return 0
	}
	if !said && (pmi.Ready{Error: err.Error()}).Say() == nil {
		return 1 // who started it tells the user
	}
	fmt.Fprintln(os.Stderr, "error: mpi/pmix:", err)
	return 1
}

func serveStep(ready func([][]string) error) error {
	if !Built && len(carried) == 0 {
		return errNoPMIx
	}
	if !Built {
		return fmt.Errorf("the PMIx server does not run here: %w", memexec.Become("muster-pmix", carried))
	}
	setup, err := pmi.ReadSetup()
	if err != nil {
		return err
	}
	return Serve(setup, ready)
}
