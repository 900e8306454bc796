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
// is nil) becomes the one with it that it carries, if it carries one and that runs here; see docs/adr/0007-gpu-helper.md.
func HelperMain(args []string, open func() Source) int {
	var src Source
	if !slices.Contains(args, plainFlag) {
		if open != nil {
			src = open()
		} else if len(carried) > 0 {
			fmt.Fprintln(os.Stderr, "muster gpu helper: going on without NVML:", memexec.Become("muster-gpu", carried))
		}
	}
	Serve(context.Background(), os.Stdin, os.Stdout, src)
	return 0
}
