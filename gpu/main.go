package gpu

import (
	"context"
	"fmt"
	"os"
	"slices"

	"dev.muster/memexec"
)

// plainFlag makes the helper look without NVML.
const plainFlag = "--plain"

// HelperMain is the helper process, muster internal gpu-helper [--plain]. A program that was built without NVML (open
// is nil) becomes the one with it that it carries, if it carries one and that runs here; see
// docs/adr/0007-gpu-helper.md.
func HelperMain(args []string, open func() Source) int {
	Serve(context.Background(), os.Stdin, os.Stdout, library(args, open))
	return 0
}

// library is what the helper asks, nil for none.
func library(args []string, open func() Source) Source {
	if slices.Contains(args, plainFlag) {
		return nil
	}
	if open != nil {
		return open()
	}
	if len(carried) > 0 {
		err := memexec.Become("muster-gpu", carried)
		fmt.Fprintln(os.Stderr, "muster gpu helper: going on without NVML:", err)
	}
	return nil
}
