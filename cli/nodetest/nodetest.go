// Package nodetest is muster burnin: acceptance tests of nodes, and of the network between them, by jobs of their own.
// It also holds what these jobs run on the nodes.
package nodetest

import (
	"errors"
	"fmt"
	"os"
	"strconv"

	"dev.muster/slurm/front"
)

const burninUsage = `usage: muster burnin [--seconds N] [--memory MB] [--disk MB] [--output FILE] NODES
       muster burnin --fabric [--seconds N] [--rails NAME,…] [--min GBITS] [--no-record] [--json] NODES
       muster burnin --show [--json] [NODES|UUID|SERIAL …]`

// Main submits an acceptance test of each of some nodes, or shows what tests found (muster burnin [--show] …), or tests
// the network between nodes (--fabric). It returns the exit code: 1 if a part that is shown has failed.
func Main(sys *front.Sys, argv []string) int {
	if len(argv) > 0 && argv[0] == "--fabric" {
		return runFabric(sys, argv[1:])
	}
	var options []string
	w := newWords()
	show := w.Bool("show", false, "")
	json := w.Bool("json", false, "")
	output := w.String("output", os.DevNull, "")
	for _, name := range []string{"seconds", "memory", "disk"} {
		w.value(name, func(value string) error {
			options = append(options, "--"+name, value)
			n, err := strconv.Atoi(value)
			if err != nil || n <= 0 {
				return errors.New("want a number above 0")
			}
			return nil
		})
	}
	if code := w.parse(sys, argv, burninUsage); code != 0 {
		return code
	}
	if *show && len(options) == 0 {
		return burninShow(sys, w.Args(), *json)
	}
	if *show || *json || w.NArg() != 1 {
		fmt.Fprintln(sys.Stderr, burninUsage)
		return 2
	}
	return burninSubmit(sys, w.Arg(0), options, *output)
}
