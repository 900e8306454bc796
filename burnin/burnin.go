// Package burnin is an acceptance test of the machine that it runs on: it puts load on GPUs, CPUs, memory and disk,
// watches the GPUs meanwhile, and says of each part whether it passed, with the evidence. A part that needs a
// program that is not installed is reported as not tested.
package burnin

import (
	"context"
	"os"
	"strings"

	"dev.muster/cluster"
)

// Run tests the machine. Its report does not end with ctx: parts that were not reached are not told of.
func Run(ctx context.Context, o Options) []cluster.TestedPart {
	serial, _ := os.ReadFile("/sys/class/dmi/id/product_serial") // for root alone; virtual machines have none
	t := &test{Options: o, serial: strings.TrimSpace(string(serial))}
	w := startWatch(ctx, o.Watch)
	defer w.stop()
	for _, part := range []struct {
		what string
		run  func(context.Context) cluster.TestedPart
	}{{"CPUs", t.cpus}, {"memory", t.memory}, {"disk", t.disk}} {
		if ctx.Err() == nil {
			o.Say("testing %s", part.what)
			t.parts = append(t.parts, part.run(ctx))
		}
	}
	if ctx.Err() == nil {
		t.gpus(ctx, w)
	}
	return t.parts
}
