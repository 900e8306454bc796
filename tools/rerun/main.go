// Command rerun runs go test and gives failed tests a second chance, so that a busy machine does not
// reject a good change.
//
//	rerun [-tries 2] [-flaky 3] [-budget 30m] -- FLAGS OF go test ./...
//
// It prints what go test -v prints. It runs each failed test again, alone, and prints FLAKY: NAME for each
// test that then passes. The exit status is 1 if a test fails every time, if more tests are flaky than -flaky
// allows, or if a package fails for any reason other than failed tests: a build error, a panic, a timeout.
package main

import (
	"flag"
	"fmt"
	"os"
	"time"
)

// Limits of a run.
const (
	defaultTries  = 2
	defaultFlaky  = 3
	defaultBudget = 30 * time.Minute
)

func main() {
	r := runner{out: os.Stdout}
	flag.IntVar(&r.tries, "tries", defaultTries, "run a failed test again up to N times")
	flag.IntVar(&r.flaky, "flaky", defaultFlaky, "fail if more than N tests are flaky")
	flag.DurationVar(&r.budget, "budget", defaultBudget, "stop running tests again after this time")
	flag.Parse()
	if err := r.run(flag.Args()); err != nil {
		fmt.Println("rerun:", err)
		os.Exit(1)
	}
}
