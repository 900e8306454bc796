package cli

import (
	"os"
	"syscall"

	"dev.muster/cast/node"
	"dev.muster/pmi"
	"dev.muster/pmi/peer"
)

// CastHere puts files on this node for a job: alone, or, after the word then, before the tasks of a step. Then the
// process becomes the step's process manager, if it has one.
func CastHere(words []string) int {
	if len(words) == 0 {
		return node.Main(nil)
	}
	told := false
	code := node.Main(func() error {
		if told = true; len(words) > 1 {
			return syscall.Exec(words[1], words[1:], os.Environ())
		}
		return pmi.Ready{}.Say()
	})
	if !told {
		_ = pmi.Ready{Error: "the program has not arrived"}.Say()
	}
	return code
}

// ServePMI is the process manager of MPICH's kin on one node.
func ServePMI([]string) int {
	return pmi.ServerMain(func() (pmi.Credential, error) { return peer.New() })
}
